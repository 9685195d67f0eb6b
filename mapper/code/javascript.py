"""JavaScript for node, read by its grammar (tree-sitter's) and never run.

Rules: its syntax is written anew as Python's (`javascript_syntax`), and that is followed as any Python is, with the
names that JavaScript gives things (`javascript_libraries`). What has no such counterpart is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mapper.code import javascript_libraries as own
from mapper.code.abstract_values import Fields, Listed, Method, Named, Stream, Text, Thing, Unknown, Value
from mapper.code.javascript_syntax import Translation
from mapper.code.python import TOO_MUCH, Reader, mentioned
from mapper.code.sent_requests import Enough, Seen

if TYPE_CHECKING:
    from tree_sitter import Tree

LONGEST = 100_000  # characters


def read_javascript(program: str, seen: Seen) -> None:
    """Add to `seen` what a JavaScript program sends."""
    if len(program) > LONGEST:
        seen.note(f"The JavaScript is {len(program)} characters long; at most {LONGEST} are read.")
        return
    tree = _parsed(program)
    if tree.root_node.has_error:
        seen.note("A part of the JavaScript can't be read, so that what it does isn't known.")
    try:
        seen.spend(len(program) // 10)
        body = Translation(seen).block(tree.root_node)
        _JavaScript(seen, mentioned(body)).module(body)
    except (Enough, RecursionError):
        seen.note(TOO_MUCH)


def _parsed(program: str) -> Tree:
    import tree_sitter
    import tree_sitter_javascript

    language = tree_sitter.Language(tree_sitter_javascript.language())
    return tree_sitter.Parser(language).parse(program.encode("utf-8", "replace"))


class _JavaScript(Reader):
    """Follows one program: an object's fields are its attributes, and an empty object or list is true."""

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Fields):
            found = owner.get(name)
            return found if found is not None else Method(owner, name)
        if isinstance(owner, Named):
            return own.attribute(owner, name)
        if isinstance(owner, Unknown):
            return owner
        return super().attribute(owner, name)

    def call(self, function: Value, args: list[Value], given: Fields) -> Value:
        if isinstance(function, Named | Thing) or (
            isinstance(function, Method) and isinstance(function.of, Fields | Listed | Stream | Thing | Named | Text)
        ):
            self.step()
            found = own.called(self, function, args)
            if found is not None:
                self._handed_on(args, given)
                return found
        return super().call(function, args, given)

    def truth(self, value: Value) -> bool | None:
        return True if isinstance(value, Fields | Listed) else super().truth(value)
