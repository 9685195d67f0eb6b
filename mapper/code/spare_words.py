"""`${name:+words}` of a shell program: words, or a part of one, that are there only where a variable has a value."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from mapper.code.abstract_values import PUT_IN, UNKNOWN, Lit, Value, of_source
from mapper.code.variables import Names

if TYPE_CHECKING:
    from tree_sitter import Node

SEVERAL = re.compile(rf"[*\[{{~{PUT_IN}]|^(?!.*://).*\?", re.DOTALL)  # such a word may become several, or another
_CONDITION = re.compile(r"\$\{([A-Za-z_]\w*:?\+|[1-9]:?\+)", re.ASCII)
_RUNS = re.compile(r"\$[({]|`|\\")


class Shell(Protocol):
    """What is known of the program that the words are of."""

    data: bytes
    names: Names
    chosen: dict[str, bool]

    def source(self, node: Node) -> str: ...

    def word(self, node: Node) -> Value: ...


def condition(shell: Shell, node: Node) -> str:
    """The `name:+` of `${name:+words}`; "" for any other word."""
    found = _CONDITION.match(shell.source(node)) if node.type == "expansion" else None
    return found[1] if found is not None and len(node.named_children) < 3 else ""


def holds(shell: Shell, condition: str) -> bool | None:
    """Whether the words that are there on a condition are; None where they may be."""
    if condition in shell.chosen:
        return shell.chosen[condition]
    known = shell.names.get(condition.rstrip(":+"))
    if not isinstance(known, Lit) or condition[0].isdecimal():
        return None
    return ":" not in condition or known.value != ""


def undecided(shell: Shell, node: Node, most: int) -> str | None:
    """The first condition on which words of a command are there, or not; None where there is none, or where all of them
    give more than `most` ways."""
    found = {
        name: None
        for one in node.named_children
        if one.type == "expansion"
        and (name := condition(shell, one))
        and holds(shell, name) is None
        and words(shell, one) is not None
    }
    return next(iter(found), None) if 2 ** len(found) <= most else None


@contextlib.contextmanager
def unchosen(shell: Shell) -> Iterator[None]:
    """Nothing is chosen for the commands of a function that a command runs."""
    kept, shell.chosen = shell.chosen, {}
    try:
        yield
    finally:
        shell.chosen = kept


def quoted(shell: Shell, node: Node) -> list[Value]:
    """The parts of what it is in quotes, where it is anything."""
    made: list[Value] = []
    for blanks, piece in _pieces(shell, node):
        if piece.type not in ("word", "string", "simple_expansion"):
            return [UNKNOWN]  # quotes within quotes are letters
        made += [Lit(blanks), of_source(shell.source(piece)) if piece.type == "word" else shell.word(piece)]
    return made


def words(shell: Shell, node: Node) -> list[list[Value]] | None:
    """The parts of each word that it becomes without quotes, where it becomes any; None where they aren't known."""
    made: list[list[Value]] = [[]]
    for blanks, piece in _pieces(shell, node):
        written = shell.source(piece)
        if blanks:
            made.append([])
        match piece.type:
            case "word" if not SEVERAL.search(written):
                first, *rest = re.split(r"[ \t\n]+", written)
                made[-1].append(of_source(first))
                made += [[of_source(one)] for one in rest]
            case "string" | "raw_string" if len(written) > 2 and "@" not in written:
                made[-1].append(shell.word(piece))
            case "simple_expansion" if any(one != Lit("") for one in made[-1]):
                made[-1].append(shell.word(piece))
            case _:
                return None
    there = [one for one in made if any(part != Lit("") for part in one)]
    return there if "IFS" not in shell.names else None


def _pieces(shell: Shell, node: Node) -> list[tuple[str, Node]]:
    """The parts of what follows `name:+`, each with the blanks before it; the whole where it runs something."""
    body = node.named_children[1:]
    if not body or _RUNS.search(shell.source(node), 2):
        return [("", node)] * bool(body)
    parts = body[0].named_children if body[0].type == "concatenation" else body
    ends = [body[0].start_byte, *(one.end_byte for one in parts)]
    return [
        (shell.data[end : one.start_byte].decode("utf-8", "replace"), one)
        for end, one in zip(ends, parts, strict=False)
    ]
