"""Which value of an answer a plan means: a plain path, or one that filters a list (RFC 9535). Pure.

A filter compares values of an item with constants that stand in the plan, so that no answer has a say in what is looked
for: nothing in it leads out of the item, calls a function or searches. Exactly one value may be meant; none or several
is an error that names what is there. The work is bounded before it is begun: items looked at, times comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathNode, JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    BooleanLiteral,
    ComparisonExpression,
    Expression,
    FilterExpression,
    FloatLiteral,
    IntegerLiteral,
    LogicalExpression,
    NullLiteral,
    PrefixExpression,
    RelativeFilterQuery,
    StringLiteral,
)
from jsonpath_rfc9535.segments import JSONPathChildSegment
from jsonpath_rfc9535.selectors import FilterSelector, IndexSelector, NameSelector

from policies.errors import InvalidInput
from policies.jsonvalue import MAX_PATH, JsonValue, MissingValue, canonical, find, steps

MAX_WORK = 20_000  # items that are looked at, times the comparisons of the filter
MAX_FILTERS = 3
MAX_DEPTH = 20  # of a filter
MAX_EXACT = 2**53  # beyond it a number in a filter may be read as another one
NAMED = 5  # values that an error names
_LONGEST = 80  # characters of each

_NARROW = "Say more exactly which one is meant."
_FORM = "Write it like $.items[0].id or $.items[?@.title=='Errands'].id."
_LITERALS = (BooleanLiteral, FloatLiteral, IntegerLiteral, NullLiteral, StringLiteral)
_ENVIRONMENT = JSONPathEnvironment()


class SeveralValues(InvalidInput):
    """A filter fits several values where exactly one is wanted."""

    code = "several-values"


def check_path(path: str) -> None:
    """Raise InvalidInput where it is none."""
    _query(path)


def is_filter(path: str) -> bool:
    """Whether `path` filters. Raises InvalidInput where it isn't one."""
    return _query(path) is not None


def value_at(value: JsonValue, path: str) -> JsonValue:
    """The one value at `path`. Raises MissingValue for none, SeveralValues, InvalidInput where it isn't a path or there
    is too much to look at."""
    query = _query(path)
    if query is None:
        return find(value, path)
    nodes = [JSONPathNode(value=value, location=(), parent=None, root=value)]
    left = MAX_WORK
    for segment in query.segments:
        selector = segment.selectors[0]
        before = nodes
        if isinstance(selector, FilterSelector):
            items = sum(len(node.value) for node in nodes if isinstance(node.value, list | dict))
            left -= items * sum(1 for _ in _comparisons(selector.expression))
            if left < 0:
                raise InvalidInput(f"{path} would look at {items} items, which is too many.", next_step=_NARROW)
        nodes = list(segment.resolve(nodes))
        if not nodes:
            raise MissingValue(_nothing(path, selector, before), next_step=_NARROW)
    if len(nodes) > 1:
        there = _named([node.value for node in nodes], len(nodes))
        raise SeveralValues(f"{len(nodes)} values fit {path}, and exactly one is wanted: {there}.", next_step=_NARROW)
    return nodes[0].value


@lru_cache(maxsize=1024)
def _query(path: str) -> JSONPathQuery | None:
    """`path` as a query; None where it is plain. Raises InvalidInput."""
    try:
        steps(path)
    except (InvalidInput, ValueError) as plain:
        if "?" not in path:
            raise InvalidInput(f"{path[:60]!r} isn't a path.", next_step=_FORM) from plain
        if len(path) > MAX_PATH:
            raise InvalidInput(f"{path[:60]!r}… is too long for a path.", next_step=_FORM) from plain
    else:
        return None
    try:
        query = _ENVIRONMENT.compile(path)
        _check(path, query)
    except (JSONPathError, ArithmeticError, ValueError, RecursionError) as error:
        said = str(error) or type(error).__name__
        raise InvalidInput(f"{path[:60]!r} isn't a path ({said[:200]}).", next_step=_FORM) from error
    return query


def _check(path: str, query: JSONPathQuery) -> None:
    """Raise InvalidInput for what a path of a plan doesn't hold."""
    filters = 0
    for segment in query.segments:
        if type(segment) is not JSONPathChildSegment or len(segment.selectors) != 1:
            raise _refused(path, "each step names one key, one place or one filter")
        selector = segment.selectors[0]
        if isinstance(selector, FilterSelector):
            filters += 1
            _check_filter(path, selector.expression)
        elif not isinstance(selector, NameSelector | IndexSelector):
            raise _refused(path, "each step names one key, one place or one filter")
    if filters > MAX_FILTERS:
        raise _refused(path, f"it has {filters} filters, and at most {MAX_FILTERS} are taken")


def _check_filter(path: str, expression: Expression, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise _refused(path, "its filter is nested too deeply")
    match expression:
        case FilterExpression():
            _check_filter(path, expression.expression, depth + 1)
        case LogicalExpression():
            _check_filter(path, expression.left, depth + 1)
            _check_filter(path, expression.right, depth + 1)
        case PrefixExpression():
            _check_filter(path, expression.right, depth + 1)
        case ComparisonExpression():
            sides = (expression.left, expression.right)
            constants = [side for side in sides if isinstance(side, _LITERALS)]
            fields = [side for side in sides if isinstance(side, RelativeFilterQuery)]
            if len(constants) != 1 or len(fields) != 1 or not fields[0].query.singular_query():
                raise _refused(path, "a filter compares one value of an item with a constant")
            value = constants[0].value
            if isinstance(value, int | float) and abs(value) >= MAX_EXACT:
                raise _refused(path, "a number in a filter is less than 2^53; compare a text")
        case _:
            raise _refused(path, "a filter compares values of an item with constants (==, !=, <, <=, >, >=, &&, ||, !)")


def _refused(path: str, why: str) -> InvalidInput:
    return InvalidInput(f"{path[:60]!r} isn't taken as a path: {why}.", next_step=_FORM)


def _comparisons(expression: Expression) -> Iterator[ComparisonExpression]:
    match expression:
        case FilterExpression():
            yield from _comparisons(expression.expression)
        case LogicalExpression():
            yield from _comparisons(expression.left)
            yield from _comparisons(expression.right)
        case PrefixExpression():
            yield from _comparisons(expression.right)
        case ComparisonExpression():
            yield expression


def _nothing(path: str, selector: object, nodes: Sequence[JSONPathNode]) -> str:
    """What there is instead of what was looked for: of the first items what the filter's first comparison is about."""
    said = f"There is nothing at {path}."
    if not isinstance(selector, FilterSelector):
        return said
    sides = next(_comparisons(selector.expression))
    field = sides.left if isinstance(sides.left, RelativeFilterQuery) else sides.right
    items = [item for node in nodes for item in _items(node.value)]
    there = [found.value for item in items[:NAMED] for found in _ENVIRONMENT.find(f"${str(field)[1:]}", item)]
    return f"{said} There, {field} is {_named(there, len(items))}." if there else said


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []


def _named(values: Sequence[JsonValue], count: int) -> str:
    """The first of `count` values."""
    shown = [canonical(value).decode() for value in values[:NAMED]]
    listed = ", ".join(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in shown)
    return f"{listed} and {count - len(shown)} more" if count > len(shown) else listed
