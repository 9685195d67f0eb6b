"""Branches of a shell program: one of several is taken, a command may not be run, a loop has rounds.

Rules: where ways meet, a variable may be what it is on any of them; a file that only some of them write is unknown.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mapper.code.abstract_values import UNKNOWN
from mapper.code.shell_expansions import Expansions

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(slots=True)
class Branches(Expansions):
    """What is known on each branch of one program."""

    @abstractmethod
    def statement(self, node: Node) -> None:
        """Follow one statement."""

    def branch(self, node: Node) -> None:
        """`if` and `case`: ways of which one is taken, or none."""
        conditions = [one for one in node.children_by_field_name("condition") if one.is_named]
        for one in conditions:
            self.statement(one)
        before = self.names
        ways = [] if any(one.type == "else_clause" for one in node.named_children) else [before.layer()]
        first = before.layer()
        ways.append(first)
        for child in node.named_children:
            if child in conditions:
                continue
            self.names = first
            if child.type in ("else_clause", "elif_clause", "case_item"):
                self.names = before.layer()
                ways.append(self.names)
            for one in child.children if child.type == "elif_clause" else ():
                if one.type == "then":
                    break
                if one.is_named:
                    self.statement(one)
            if child.type == "elif_clause":  # what it is asked for may have changed something for those after it
                before.update(dict.fromkeys(self.names.since(before), UNKNOWN))
            if child.type in ("word", "string", "expansion", "concatenation"):
                self.inside(child)
            self.statement(child)
        self.join(before, ways)

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
            if marks != {"&&"} or len(ways) == 1:
                ways.append(self.names.layer() if marks == {"&&"} else before.layer())
                self.names = ways[-1]
            self.statement(each)
            if marks != {"&&"}:
                self.join(before, ways)
                ways = [before.layer()]
        self.join(before, ways)

    def rounds(self, nodes: Sequence[Node]) -> None:
        """What a loop runs, as it begins and with what its rounds may have changed."""
        before = self.names
        self.names = before.layer()
        for each in nodes:
            self.statement(each)
        since = self.names.since(before)
        self.seen.spend(len(since))
        changed = [name for name, value in since.items() if value is not None and before.get(name) != value]
        if changed:
            self.names = before.layer()
            self.names.update(dict.fromkeys(changed, UNKNOWN))
            for each in nodes:
                self.statement(each)
        self.join(before, [before.layer(), self.names])
