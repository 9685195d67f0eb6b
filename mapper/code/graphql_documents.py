"""GraphQL documents that a program holds: the root fields that they call, and what they ask for by paths. Pure.

Rules: one operation, of a mutation one root field; names are the schema's, whatever an alias calls them, and fragments
count where they are spread. What costs more to look at than a document should is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphql import GraphQLError, OperationType, parse
from graphql.language import ast

MAX_TOKENS = 4_000
MAX_STEPS = 2_000  # fields that are looked at, those of a fragment each time that it is spread
_DEEPEST = 30
_DIRECTIVES = frozenset({"include", "skip"})


class NotTaken(Exception):
    """A document can't be one of a program's, and why."""


@dataclass(slots=True)
class Asked:
    """What a document does: `query` or `mutation`, its root fields, and the paths of all plain values below each."""

    operation: str
    paths: dict[str, set[str]] = field(default_factory=dict)


def read(document: str) -> Asked:
    """What a document asks for. Raises NotTaken."""
    try:
        parsed = parse(document, no_location=True, max_tokens=MAX_TOKENS)
    except (GraphQLError, RecursionError) as error:
        raise NotTaken("isn't a GraphQL document that can be read") from error
    operations = [one for one in parsed.definitions if isinstance(one, ast.OperationDefinitionNode)]
    fragments = {one.name.value: one for one in parsed.definitions if isinstance(one, ast.FragmentDefinitionNode)}
    if len(operations) != 1 or len(operations) + len(fragments) != len(parsed.definitions):
        raise NotTaken("has to be one operation, and its fragments")
    (operation,) = operations
    if operation.operation is OperationType.SUBSCRIPTION:
        raise NotTaken("is a subscription")
    _check_directives(operation)
    walk = _Walk(fragments)
    asked = Asked(operation.operation.value)
    roots = 0
    for root in walk.fields(operation.selection_set, ()):
        name = root.name.value
        if name == "__typename":
            continue
        roots += 1
        asked.paths.setdefault(name, set()).update(walk.paths(root, name, ()))
    if not roots or (asked.operation == "mutation" and roots != 1):
        raise NotTaken("has to make exactly one mutation" if asked.operation == "mutation" else "asks for nothing")
    return asked


class _Walk:
    """Goes through selections, and counts."""

    def __init__(self, fragments: Mapping[str, ast.FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._left = MAX_STEPS

    def fields(self, selection: ast.SelectionSetNode, within: tuple[str, ...]) -> Iterator[ast.FieldNode]:
        """The fields of a selection, with those of the fragments in it. `within`: the fragments that it is in."""
        for node in selection.selections:
            self._spend()
            _check_directives(node)
            if isinstance(node, ast.FieldNode):
                yield node
            elif isinstance(node, ast.InlineFragmentNode):
                yield from self.fields(node.selection_set, self._deeper(within, ""))
            elif isinstance(node, ast.FragmentSpreadNode):
                name = node.name.value
                if name in within or name not in self._fragments:
                    raise NotTaken(f"has a fragment {name[:60]} that isn't there, or holds itself")
                _check_directives(self._fragments[name])
                yield from self.fields(self._fragments[name].selection_set, self._deeper(within, name))
            else:
                raise NotTaken("holds what isn't known")

    def paths(self, node: ast.FieldNode, path: str, within: tuple[str, ...]) -> Iterator[str]:
        """The paths of the plain values below a field."""
        if node.selection_set is None:
            yield path
            return
        below = self._deeper(within, "")
        for each in self.fields(node.selection_set, below):
            yield from self.paths(each, f"{path}.{each.name.value}", below)

    def _deeper(self, within: tuple[str, ...], name: str) -> tuple[str, ...]:
        if len(within) >= _DEEPEST:
            raise NotTaken(f"is nested deeper than {_DEEPEST} levels")
        return (*within, name)

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotTaken(f"asks for more than {MAX_STEPS:,} fields")


def _check_directives(node: ast.Node) -> None:
    for one in getattr(node, "directives", None) or ():
        if one.name.value not in _DIRECTIVES:
            raise NotTaken(f"has the directive @{one.name.value[:60]}")
