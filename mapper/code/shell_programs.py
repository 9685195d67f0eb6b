"""Programs that a shell program holds itself and starts: in a here-document, after `-c`, in a file that it wrote.

Rules: what is put into one while it runs (`bash -c "curl …/$id"`) is unknown where it stands, and a note says so: it
could end a text there and be a program of its own, whose requests are refused unless they are found elsewhere.
"""

from __future__ import annotations

import os.path
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mapper.code import shell_values
from mapper.code.abstract_values import PUT_IN, UNKNOWN, Listed, Lit, Stream, Text, Value, is_whole, joined
from mapper.code.interpreter import Left
from mapper.code.javascript import read_javascript
from mapper.code.python import read_python
from mapper.code.sent_requests import Seen
from mapper.code.shell_branches import Branches
from mapper.code.variables import Around, Names

if TYPE_CHECKING:
    from tree_sitter import Node

PLACES = tuple(map(str, range(1, 20)))  # a function's arguments
MAX_DEPTH = 12
LEFT = re.compile(r"\b(?:return|exit|break|continue)\b")  # what may leave a function, loop or program
PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class _Inner:
    """How another language's program is started: options that say nothing of it, and those that its text is after."""

    name: str
    read: Callable[[str, Seen, Sequence[Value]], None]
    plain: frozenset[str]
    text: frozenset[str]


PYTHON_INSIDE = _Inner("Python", read_python, frozenset({"-u", "-I", "-B", "-s", "-E"}), frozenset({"-c"}))
NODE_INSIDE = _Inner(
    "JavaScript",
    lambda program, seen, _: read_javascript(program, seen),
    frozenset({"--input-type=module", "--no-warnings"}),
    frozenset({"-e", "--eval", "-p", "-pe", "--print"}),
)


@dataclass(slots=True)
class Programs(Branches):
    """What the programs within one program send."""

    depth: int = 0
    functions: dict[str, Node] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)  # functions that may be defined otherwise
    traps: list[tuple[int, Value]] = field(default_factory=list)  # what is run when a signal comes, or at the end

    @abstractmethod
    def started(self, program: str, names: Names, args: list[Value] | None) -> None:
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
        written = self.program(line, how.name, program)
        if written is None:
            return
        before = (len(self.seen.requests), len(self.seen.spoken), len(self.seen.unread))
        how.read(written, self.seen, rest[2:] if first in how.text else rest[1:])
        self.shift(before, line)

    def program(self, line: int, what: str, known: Value) -> str | None:
        """What is written of a program that is started here, with PUT_IN for the rest; None where nothing is."""
        if isinstance(known, Lit) and is_whole(str(known.value)):
            return str(known.value)
        if isinstance(known, Text):
            self.seen.note(f"Line {line}: runs a {what} program of which parts are made while it runs.")
            return "".join(part if isinstance(part, str) else PUT_IN for part in known.parts)
        self.seen.note(f"Line {line}: runs a {what} program that is made while it runs.")
        return None

    def shift(self, before: tuple[int, int, int], line: int) -> None:
        """Lines of a program within the program, as lines of the whole."""
        for place in range(before[0], len(self.seen.requests)):
            request = self.seen.requests[place]
            self.seen.requests[place] = replace(request, line=request.line + line)
        for place in range(before[1], len(self.seen.spoken)):
            spoken = self.seen.spoken[place]
            self.seen.spoken[place] = replace(spoken, line=spoken.line + line)
        self.seen.unread[before[2] :] = [(at + line, what) for at, what in self.seen.unread[before[2] :]]

    def nested(self, line: int, program: Value, args: list[Value], given: bool = False) -> None:
        """A shell program that is started here, with these arguments; `given`: with other variables, maybe."""
        written = self.program(line, "shell", program if self.depth <= 100 else UNKNOWN)
        if written is None:
            return
        known = {
            name: UNKNOWN if given or name in self.perhaps or isinstance(self.names[name], Listed) else self.names[name]
            for name in sorted(self.exported | self.perhaps)
            if name in self.names
        }
        self.within(line, written, Names(known), args, [one for one in self.functions if one in self.exported])

    def within(self, line: int, program: str, names: Names, args: list[Value] | None, functions: list[str]) -> None:
        """A shell program that has these variables, arguments and functions."""
        self.depth += 20
        before = (len(self.seen.requests), len(self.seen.spoken), len(self.seen.unread))
        own = [f"{name}() {self.source(self.functions[name])}\nexport -f {name}\n" for name in functions]
        self.started("".join(own) + program, names, args)
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

    def function(self, name: str, args: list[Value]) -> Value | None:
        """Follow a function; what it prints, where one command alone does."""
        if self.depth > MAX_DEPTH * 8:
            self.seen.note(f"What {name} runs within itself isn't read.")
            return None
        self.local.append({key: self.names.get(key) for key in [*PLACES, "@", "*", "#"]})
        self.places(args)
        body, above, printed, reached = self.functions[name], self.names, None, False
        leaves = LEFT.search(self.source(body)) is not None
        self.around.append(Around(True, above))
        self.names = above.layer() if leaves else above
        self.depth += 8
        try:
            parts = [one for one in body.named_children if one.type != "comment"]
            silent = body.type == "compound_statement" and bool(parts) and all(map(self.silent, parts[:-1]))
            for one in parts[:-1] if silent else (body,):
                self.statement(one)
            printed = self.outcome(parts[-1]) if silent else None
            reached = True
        except Left:
            printed = None
        finally:
            self.depth -= 8
            around, outside = self.around.pop(), self.local.pop()
        if leaves or not reached:
            self.meet(above, [*([self.names.since(above)] if reached else []), *around.left])
        for key, value in outside.items():
            if value is None:
                self.names.drop(key)
            else:
                self.names[key] = value
        return printed if not around.left else None

    def silent(self, node: Node) -> bool:
        """Whether a statement prints nothing: an assignment, or a declaration that has one."""
        declares = node.type == "declaration_command" and " -" not in self.source(node).partition("=")[0]
        given = any(one.type == "variable_assignment" for one in node.named_children)
        return node.type in ("variable_assignment", "variable_assignments") or (declares and given)

    def trapped(self) -> None:
        """Follow what `trap` was given: when that is run isn't known, so that a variable is all that it ever was."""
        known = {name: joined(values) for name, values in (self.names.ever or {}).items() if values}
        for line, handler in self.traps:
            if not isinstance(handler, Lit) or self.several:
                self.seen.note(f"Line {line}: what trap runs is made while the program runs, and isn't followed.")
            elif self.depth < MAX_DEPTH * 8:
                self.within(line, str(handler.value), Names(known), None, list(self.functions))
