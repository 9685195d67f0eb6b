"""Programs that a shell program holds itself and starts: in a here-document, after `-c`, in a file that it wrote."""

from __future__ import annotations

import os.path
import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mapper.code import shell_values
from mapper.code.abstract_values import UNKNOWN, Listed, Lit, Stream, Value, is_whole
from mapper.code.javascript import read_javascript
from mapper.code.python import read_python
from mapper.code.sent_requests import Seen
from mapper.code.shell_branches import Branches
from mapper.code.variables import Names

if TYPE_CHECKING:
    from tree_sitter import Node

PLACES = tuple(map(str, range(1, 20)))  # a function's arguments
PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class _Inner:
    """How another language's program is started: options that say nothing of it, and those that its text is after."""

    name: str
    read: Callable[[str, Seen], None]
    plain: frozenset[str]
    text: frozenset[str]


PYTHON_INSIDE = _Inner("Python", read_python, frozenset({"-u", "-I", "-B", "-s", "-E"}), frozenset({"-c"}))
NODE_INSIDE = _Inner(
    "JavaScript",
    read_javascript,
    frozenset({"--input-type=module", "--no-warnings"}),
    frozenset({"-e", "--eval", "-p", "-pe", "--print"}),
)


@dataclass(slots=True)
class Programs(Branches):
    """What the programs within one program send."""

    depth: int = 0
    functions: dict[str, Node] = field(default_factory=dict)

    @abstractmethod
    def started(self, program: str, names: Names, args: list[Value]) -> None:
        """Add what another shell program sends, with these variables and arguments."""

    def inner(self, line: int, how: _Inner, args: list[Value], text_in: list[Value]) -> None:
        """A program of another language that is started here."""
        rest = [arg for arg in args if not (isinstance(arg, Lit) and str(arg.value) in how.plain)]
        first = str(rest[0].value) if rest and isinstance(rest[0], Lit) else ""
        program: Value
        if first in how.text and len(rest) > 1:
            program = rest[1]
        elif (not rest or first in ("-", "/dev/stdin")) and text_in:
            program = text_in[-1]
        elif first and os.path.normpath(first) in self.written:
            program = self.file(Lit(first))
        else:
            self.seen.note(f"Line {line}: runs a {how.name} program that isn't written there.")
            return
        if not isinstance(program, Lit) or not is_whole(str(program.value)):
            self.seen.note(f"Line {line}: runs a {how.name} program of which parts are made while it runs.")
            return
        before = (len(self.seen.requests), len(self.seen.spoken))
        how.read(str(program.value), self.seen)
        self.shift(before, line)

    def shift(self, before: tuple[int, int], line: int) -> None:
        """Lines of a program within the program, as lines of the whole."""
        for place in range(before[0], len(self.seen.requests)):
            request = self.seen.requests[place]
            self.seen.requests[place] = replace(request, line=request.line + line)
        for place in range(before[1], len(self.seen.spoken)):
            spoken = self.seen.spoken[place]
            self.seen.spoken[place] = replace(spoken, line=spoken.line + line)

    def nested(self, line: int, program: Value, args: list[Value], given: bool = False) -> None:
        """A shell program that is started here, with these arguments; `given`: with other variables, maybe."""
        if not isinstance(program, Lit) or not is_whole(str(program.value)) or self.depth > 100:
            self.seen.note(f"Line {line}: runs a shell program that is made while it runs.")
            return
        self.depth += 20
        before = (len(self.seen.requests), len(self.seen.spoken))
        known = {
            name: UNKNOWN if given or name in self.perhaps or isinstance(self.names[name], Listed) else self.names[name]
            for name in sorted(self.exported | self.perhaps)
            if name in self.names
        }
        functions = [name for name in self.functions if name in self.exported]
        own = [f"{name}() {self.source(self.functions[name])}\nexport -f {name}\n" for name in functions]
        self.started("".join(own) + str(program.value), Names(known), args)
        self.shift(before, line - 1 - "".join(own).count("\n"))
        self.depth -= 20

    def places(self, args: list[Value] | None) -> None:
        """The arguments that a function has; None: any."""
        listed = shell_values.array(args) if args is not None else UNKNOWN
        known = isinstance(listed, Listed)
        several = [place for place, one in enumerate(args or ()) if isinstance(one, Stream | Listed)]
        sure = several[0] if several else len(args or ())
        for place, key in enumerate(PLACES):
            self.names[key] = (args or [])[place] if place < sure else Lit("") if known else UNKNOWN
        self.names.update({"@": listed, "*": UNKNOWN, "#": Lit(str(sure)) if known else UNKNOWN})

    def moved(self, base: str, args: list[Value]) -> None:
        """`shift`, and `set` where it gives other arguments."""
        plain = [str(arg.value) if isinstance(arg, Lit) else "" for arg in args]
        if base == "set":
            place = 0
            while place < len(args) and len(plain[place]) > 1 and plain[place][0] in "-+" and plain[place] != "--":
                place += 2 if "o" in plain[place] else 1
            if place < len(args):
                ended = plain[place] in ("--", "-")
                self.places(args[place + 1 :] if ended else args[place:] if plain[place] else None)
            return
        there = self.names.get("@")
        by = plain[0] if plain else "1"
        if not isinstance(there, Listed) or there.more or not by.isdecimal():
            self.places(None)
        elif int(by) <= len(there.items):
            self.places(list(there.items[int(by) :]))
