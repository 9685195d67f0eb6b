"""Branches of a shell program: one of several is taken, a command may not be run, a loop has rounds.

Rules: where ways meet, a variable may be what it is on any of them; a file that only some of them write is unknown.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mapper.code.abstract_values import UNKNOWN, Lit, Value
from mapper.code.interpreter import Left
from mapper.code.shell_expansions import Expansions
from mapper.code.variables import Around, Names

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(slots=True)
class Branches(Expansions):
    """What is known on each branch of one program."""

    @abstractmethod
    def statement(self, node: Node) -> None:
        """Follow one statement."""

    def follow(self, nodes: Iterable[Node]) -> bool:
        """Follow statements. Returns whether what comes after them is reached."""
        for each in nodes:
            try:
                self.statement(each)
            except Left:
                return False
        return True

    def ended(self, name: str, levels: Value) -> None:
        """`return`, `exit`, `break` or `continue`. Raises Left, but where there is no loop."""
        loops = name in ("break", "continue")
        wanted = int(str(levels.value)) if loops and isinstance(levels, Lit) and str(levels.value).isdecimal() else 1
        for one in reversed(self.around) if name != "exit" else ():
            if loops and one.function:
                return
            if one.function is loops:
                continue
            wanted -= 1
            if wanted <= 0:
                (one.rounds if name == "continue" else one.left).append(self.names.since(one.above))
                raise Left
        if not loops:
            raise Left

    def meet(self, before: Names, ways: Sequence[Names | dict[str, Value | None]]) -> None:
        """Go on where ways meet. Raises Left where there are none."""
        layers = []
        for way in ways:
            layers.append(way if isinstance(way, Names) else before.layer())
            if not isinstance(way, Names):
                layers[-1].update(way)
        if not layers:
            raise Left
        self.join(before, layers)

    def branch(self, node: Node) -> None:
        """`if` and `case`: ways of which one is taken, or none."""
        conditions = [one for one in node.children_by_field_name("condition") if one.is_named]
        for one in conditions:
            self.statement(one)
        before = self.names
        ways = [] if any(one.type == "else_clause" for one in node.named_children) else [before.layer()]
        way = first = before.layer()
        ended: list[Names] = []
        ways.append(first)
        for child in node.named_children:
            if child in conditions:
                continue
            way = self.names = first
            if child.type in ("else_clause", "elif_clause", "case_item"):
                way = self.names = before.layer()
                ways.append(way)
            asked = [one for one in child.children if one.is_named] if child.type == "elif_clause" else []
            then = next((one.start_byte for one in child.children if one.type == "then"), 0)
            self.follow(one for one in asked if one.start_byte < then)
            if child.type == "elif_clause":  # what it is asked for may have changed something for those after it
                before.update(dict.fromkeys(self.names.since(before), UNKNOWN))
            if child.type in ("word", "string", "expansion", "concatenation"):
                self.inside(child)
            if way not in ended and not self.follow([child]):
                ended.append(way)
        self.meet(before, [one for one in ways if one not in ended])

    def chain(self, node: Node) -> None:
        """`a && b || c`: but for the first, each may not be run."""
        nodes, marks = [node], set[str]()
        while nodes[0].type == "list":
            marks.update(one.type for one in nodes[0].children if not one.is_named)
            nodes[:1] = nodes[0].named_children
        self.statement(nodes[0])
        before = self.names
        ways = [before.layer()]
        for each in nodes[1:]:
            ways.append(self.names.layer() if marks == {"&&"} else before.layer())
            self.names = ways[-1]
            open_end = self.follow([each])
            if not open_end:
                ways.pop()
            if marks != {"&&"}:
                self.join(before, ways)
                ways = [before.layer()]
            elif not open_end:
                break
        self.join(before, ways)

    def rounds(self, nodes: Sequence[Node]) -> None:
        """What a loop runs, as it begins and with what its rounds may have changed."""
        before = self.names
        changed: set[str] = set()
        left: list[dict[str, Value | None]] = []
        while True:
            self.names = before.layer()
            self.names.update(dict.fromkeys(changed, UNKNOWN))
            self.around.append(Around(False, before))
            open_end = self.follow(nodes)
            around = self.around.pop()
            ways = [*around.rounds, *([self.names.since(before)] if open_end else [])]
            left += around.left
            self.seen.spend(1 + sum(map(len, ways)))
            new = {name for way in ways for name, value in way.items()
                   if value is not None and before.get(name) != value and name not in changed}  # fmt: skip
            if not new:
                break
            changed |= new
        self.meet(before, [before.layer(), *ways, *left])

    def gone_through(self, put: Callable[[Value], None], items: Sequence[Value], body: Node) -> None:
        """A loop over these items."""
        above = self.names
        there = [above.layer()]  # what each round begins with: none where the one before it is left in any case
        around = Around(False, above)
        for item in items:
            if not there:
                break
            self.meet(self._above(above), [one.since(above) for one in there])
            put(item)
            self.around.append(around)
            reached = self.follow([body])
            self.around.pop()
            there = [self.names] if reached else []
            there += [self._above(above, way) for way in around.rounds]
            around.rounds.clear()
        self.meet(above, [*(one.since(above) for one in there), *around.left])

    def _above(self, above: Names, way: dict[str, Value | None] | None = None) -> Names:
        made = above.layer()
        made.update(way or {})
        return made
