"""Which value of an answer a plan means: a plain path, or one that filters a list (RFC 9535). Pure.

A filter compares values of an item with constants that stand in the plan, so that no answer has a say in what is looked
for: nothing in it leads out of the item or searches, and a pattern is a text with `.*` before or behind it. Exactly one
value may be meant; none or several is an error that names what is there, and has the items that may be chosen from. A
filter may look in the lists of all items of another list (`$.lists[*].cards[?@.title=='Milk'].id`). A path over *each*
item of a list (`$.items[*].id`, or a filter that several may fit) is another question (`items_at`).
The work is bounded before it is begun: items looked at, times comparisons, of all paths of an action together (`Work`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathNode, JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    BooleanLiteral,
    ComparisonExpression,
    Expression,
    FilterExpression,
    FloatLiteral,
    FunctionExtension,
    IntegerLiteral,
    LogicalExpression,
    NullLiteral,
    PrefixExpression,
    RelativeFilterQuery,
    StringLiteral,
)
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction
from jsonpath_rfc9535.segments import JSONPathChildSegment
from jsonpath_rfc9535.selectors import FilterSelector, IndexSelector, NameSelector, WildcardSelector

from policies.display_text import escape, shorten
from policies.errors import InvalidInput
from policies.jsonvalue import MAX_PATH, JsonValue, MissingValue, canonical, find, steps

MAX_WORK = 20_000  # items that are looked at, times the comparisons of the filter
MAX_FILTERS = 3
MAX_DEPTH = 20  # of a filter
MAX_EXACT = 2**53  # beyond it a number in a filter may be read as another one
NAMED = 5  # values that an error names
OFFERED = 10  # items that may be chosen from
_LONGEST = 80  # characters of each

_NARROW = "Say more exactly which one is meant."
_FORM = "Write it like $.items[0].id or $.items[?@.title=='Errands'].id."
_LITERALS = (BooleanLiteral, FloatLiteral, IntegerLiteral, NullLiteral, StringLiteral)
_PATTERN = re.compile(r"(?:\.\*)?(?:[^\\.*+?()\[\]{}|^$]|\\[\\.*+?()\[\]{}|^$-]|\[[.*+?()|{}-]\])*(?:\.\*)?")
_EDGE = 200  # characters of a pattern
_SIGN = re.compile(r"\\(.)|\[(.)\]")  # a sign that stands for itself
_NOT_ANY = re.compile("[\r\n\ud800-\udfff]")  # what `.` isn't
_TOLD_FIRST = ("name", "title", "summary", "subject", "displayName", "label", "text", "email", "id")


@dataclass(slots=True)
class Work:
    """How much may still be looked at."""

    left: int = MAX_WORK


@dataclass(frozen=True, slots=True)
class Choice:
    """An item that a filter may have meant: where it stands, and what it is, in at most 120 escaped characters."""

    place: str  # a plain path
    text: str


class SeveralValues(InvalidInput):
    """A filter fits several values where exactly one is wanted. `choices` are the first of these."""

    code = "several-values"

    def __init__(self, message: str, *, choices: tuple[Choice, ...] = (), next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.choices = choices


class NoMatch(MissingValue):
    """A filter fits nothing. `choices` are the first of the items that were looked at."""

    def __init__(self, message: str, *, choices: tuple[Choice, ...] = (), next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.choices = choices


class _Match(FilterFunction):
    """`match` of a text with `.*` before or behind it, in time that grows with the value, which is a stranger's: an
    expression's grows with the square of it."""

    arg_types: ClassVar = [ExpressionType.VALUE, ExpressionType.VALUE]
    return_type: ClassVar = ExpressionType.LOGICAL

    def __call__(self, value: object, pattern: str) -> bool:
        if not isinstance(value, str):
            return False
        before = pattern.startswith(".*")
        behind = pattern[2 * before :].endswith(".*")
        text = _SIGN.sub(r"\1\2", pattern[2 * before : len(pattern) - 2 * behind])
        start = 0 if not before else value.find(text) if behind else len(value) - len(text)
        if before and behind and (ended := _NOT_ANY.search(value)) and (own := _NOT_ANY.search(text)):
            start = ended.start() - own.start()  # they can only be each other
        end = start + len(text)
        around = start >= 0 and value.startswith(text, start) and (behind or end == len(value))
        return around and not _NOT_ANY.search(value[:start]) and not _NOT_ANY.search(value, end)


_ENVIRONMENT = JSONPathEnvironment()
_ENVIRONMENT.function_extensions["match"] = _Match()


def check_path(path: str) -> None:
    """Raise InvalidInput where it is none, or one over each item of a list."""
    if isinstance((_choosing(_query(path)) or [None])[-1], WildcardSelector):
        raise _refused(path, "[*] means several values, and one is wanted: a filter behind it chooses that")


def check_each(path: str) -> None:
    """Raise InvalidInput unless it is a path over each item of one list, by [*] or a filter."""
    head, _ = divided(path)
    if not head:
        raise _refused(path, "it names one value; for each item of a list write $.items[*].id, or a filter")
    if any(isinstance(selector, WildcardSelector) for selector in _choosing(_query(path))[:-1]):
        raise _refused(path, "it is about the items of one list, so that [*] stands once and behind every filter")


def is_filter(path: str) -> bool:
    """Whether `path` filters. Raises InvalidInput where it isn't one."""
    return _query(path) is not None


def divided(path: str) -> tuple[str, str]:
    """A path up to its last filter or [*], and what follows, which is a plain path itself; ("", path) without one.
    Raises InvalidInput."""
    query = _query(path)
    places = [n for n, segment in enumerate(query.segments) if _chooses(segment.selectors[0])] if query else []
    if query is None or not places:
        return "", path
    rest = query.segments[places[-1] + 1 :]
    if not rest:
        return path, "$"
    # A following segment's token stands behind the dot or the bracket that begins it.
    end = path.rindex("]", 0, rest[0].token.index) + 1
    return path[:end], f"${path[end:]}"


def value_at(value: JsonValue, path: str, work: Work | None = None) -> JsonValue:
    """The one value at `path`. Raises NoMatch (or MissingValue) for none, SeveralValues, InvalidInput where it isn't a
    path or there is too much to look at; `work` is what was looked at before."""
    check_path(path)
    query = _query(path)
    if query is None:
        return find(value, path)
    head, rest = divided(path)
    items = _items_at(value, head, work or Work())
    if len(items) > 1:
        there = _named([found for item in items[:NAMED] for found in _if_there(item.value, rest)], len(items))
        raise SeveralValues(
            f"{len(items)} values fit {path}, and exactly one is wanted: {there}.",
            choices=_choices(items),
            next_step=_NARROW,
        )
    return find(items[0].value, rest)


def items_at(value: JsonValue, path: str, most: int, work: Work | None = None) -> tuple[str, ...]:
    """The places of the items that a path over each is about (without what follows the last filter or [*]). Raises
    NoMatch where there is none, InvalidInput for more than `most`, and as `value_at`."""
    check_each(path)
    items = _items_at(value, divided(path)[0], work or Work())
    if len(items) > most:
        raise InvalidInput(f"{len(items)} items fit {path}, and the plan is for {most} at most.", next_step=_NARROW)
    return tuple(_place(item) for item in items)


def _items_at(value: JsonValue, path: str, work: Work) -> list[JSONPathNode]:
    """What a path that ends with a filter or [*] leads to. Raises NoMatch, InvalidInput."""
    query = _query(path)
    assert query is not None
    nodes = [JSONPathNode(value=value, location=(), parent=None, root=value)]
    for segment in query.segments:
        selector = segment.selectors[0]
        before = nodes
        if _chooses(selector):
            items = sum(len(node.value) for node in nodes if isinstance(node.value, list | dict))
            each = sum(1 for _ in _comparisons(selector.expression)) if isinstance(selector, FilterSelector) else 1
            work.left -= items * each
            if work.left < 0:
                raise InvalidInput(f"{path} would look at {items} items, which is too many.", next_step=_NARROW)
        nodes = list(segment.resolve(nodes))
        if not nodes:
            there = [one for node in before for one in _children(node)] if isinstance(selector, FilterSelector) else []
            raise NoMatch(_nothing(path, selector, before), choices=_choices(there), next_step=_NARROW)
    return nodes


def _children(node: JSONPathNode) -> list[JSONPathNode]:
    if isinstance(node.value, list):
        return [node.new_child(value, place, node) for place, value in enumerate(node.value[:OFFERED])]
    if isinstance(node.value, dict):
        return [node.new_child(value, key, node) for key, value in list(node.value.items())[:OFFERED]]
    return []


def _choosing(query: JSONPathQuery | None) -> list[object]:
    """The filters and [*] of a path, in order."""
    selectors = [segment.selectors[0] for segment in query.segments] if query else []
    return [selector for selector in selectors if _chooses(selector)]


def _chooses(selector: object) -> bool:
    return isinstance(selector, FilterSelector | WildcardSelector)


def _if_there(value: JsonValue, path: str) -> Iterator[JsonValue]:
    try:
        yield find(value, path)
    except MissingValue:
        return


def _choices(nodes: Sequence[JSONPathNode]) -> tuple[Choice, ...]:
    return tuple(Choice(_place(node), _told(node)) for node in nodes[:OFFERED])


def _place(node: JSONPathNode) -> str:
    """Where a node stands, as a plain path."""
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f"[{canonical(step).decode()}]" for step in node.location
    )


def _told(node: JSONPathNode) -> str:
    """An item in a few words: what it is called first, then whatever else it says in one line."""
    item = node.value
    if not isinstance(item, dict):
        return shorten(escape(canonical(item).decode()), _LONGEST)[0]
    plain = {key: each for key, each in item.items() if isinstance(each, str | int | float) and each != ""}
    order = [key for key in _TOLD_FIRST if key in plain] + [key for key in plain if key not in _TOLD_FIRST]
    parts = (f"{key}: {plain[key]}" for key in order[:4])
    return shorten(escape(", ".join(part[:_LONGEST] for part in parts)), 120)[0]


@lru_cache(maxsize=1024)
def _query(path: str) -> JSONPathQuery | None:
    """`path` as a query; None where it is plain. Raises InvalidInput."""
    try:
        steps(path)
    except (InvalidInput, ValueError) as plain:
        if "?" not in path and "*" not in path:
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
        elif isinstance(selector, WildcardSelector):
            filters += 1
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
        case FunctionExtension(name="match", args=[RelativeFilterQuery() as field, StringLiteral() as pattern]) if (
            field.query.singular_query()
        ):
            if len(pattern.value) > _EDGE or not _PATTERN.fullmatch(pattern.value):
                raise _refused(path, "a pattern is a text with .* before or behind it, its own signs after a backslash")
        case _:
            raise _refused(
                path, "a filter compares values of an item with constants (==, !=, <, <=, >, >=, match, &&, ||, !)"
            )


def _refused(path: str, why: str) -> InvalidInput:
    return InvalidInput(f"{path[:60]!r} isn't taken as a path: {why}.", next_step=_FORM)


def _comparisons(expression: Expression) -> Iterator[ComparisonExpression | FunctionExtension]:
    match expression:
        case FilterExpression():
            yield from _comparisons(expression.expression)
        case LogicalExpression():
            yield from _comparisons(expression.left)
            yield from _comparisons(expression.right)
        case PrefixExpression():
            yield from _comparisons(expression.right)
        case ComparisonExpression() | FunctionExtension():
            yield expression


def _nothing(path: str, selector: object, nodes: Sequence[JSONPathNode]) -> str:
    """What there is instead of what was looked for: of the first items what the filter's first comparison is about."""
    said = f"There is nothing at {path}."
    if not isinstance(selector, FilterSelector):
        return said
    first = next(_comparisons(selector.expression))
    sides = first.args if isinstance(first, FunctionExtension) else (first.left, first.right)
    field = next(side for side in sides if isinstance(side, RelativeFilterQuery))
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
