"""Frozen types as JSON and back: what is digested, journaled, sealed, and passed between processes.

Rules: an object has exactly the fields of its type, and each value exactly its field's type. Nothing is converted,
nothing that is unknown is passed over, and what is missing is an error. Three marks are exceptions. A field that is
NEWER, which an older GoEx didn't write, has its default where it is missing. One that is SPARSE is moreover left out
while it has its default, so that what is written is what was written before there was such a field. One that is
UNWRITTEN isn't in the JSON.

A class with `parse` stands there as text, bytes as hexadecimal digits, a time as in ISO 8601, and what is
`Annotated[T, JSON, write, read]` as the type JSON, by these two functions. What has no type (`JsonValue`) is passed on
as it is. A field `kind` that has one possible value tells which of several types an object is.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from datetime import datetime
from enum import Enum
from functools import cache, partial, reduce
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from policies.errors import InvalidInput

T = TypeVar("T")
_Change = Callable[[Any], Any]

NEWER: Mapping[str, bool] = {"newer": True}
SPARSE: Mapping[str, bool] = {"newer": True, "sparse": True}
UNWRITTEN: Mapping[str, bool] = {"unwritten": True}

_LONGEST = 200  # characters of what was wrong, which may quote what was read
_DICT: Any = dict


def to_json(value: object) -> dict[str, Any]:
    """Return `value`, of a dataclass, as JSON."""
    kind: Any = type(value)
    made: dict[str, Any] = _form(kind).write(value)
    return made


@overload
def from_json(kind: type[T], value: Any, what: str) -> T: ...
@overload
def from_json(kind: Any, value: Any, what: str) -> Any: ...
def from_json(kind: Any, value: Any, what: str) -> Any:
    """Return what `to_json` made JSON of, of the type `kind` (or a union). `what` begins the sentence for a person.

    Raises InvalidInput for anything else.
    """
    from msgspec import ValidationError, convert  # loaded late: hardly any command reads or writes this

    form = _form(kind)
    try:
        return form.read(convert(value, form.checked))
    except ValidationError as error:
        raise InvalidInput(f"{what} can't be read: {str(error)[:_LONGEST]}.") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # of a field's own function
        raise InvalidInput(f"{what} can't be read: {repr(error)[:_LONGEST]}.") from error


class _Form(NamedTuple):
    """How values of one type are written, as which type msgspec checks them, and how they are made of what it gives."""

    checked: Any
    write: _Change
    read: _Change


def _same(value: Any) -> Any:
    return value


_LEAVES: Mapping[Any, _Form] = {
    **{each: _Form(each, _same, _same) for each in (Any, str, int, bool, types.NoneType)},
    float: _Form(int | float, _same, _same),  # 60 stays 60, as it was digested
    bytes: _Form(str, bytes.hex, bytes.fromhex),
    datetime: _Form(str, datetime.isoformat, datetime.fromisoformat),
}


@cache
def _form(hint: Any) -> _Form:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _Form(*hint.__metadata__)
    if origin in (Union, types.UnionType):
        return _one_of({each: _form(each) for each in arguments})
    if origin is list or (origin is tuple and arguments[-1] is ...):
        return _several(origin, _form(arguments[0]))
    if origin in (Mapping, dict):
        return _named(_form(arguments[1]))
    if hint in _LEAVES:
        return _LEAVES[hint]
    if origin in (tuple, Literal):
        return _Form(hint, list if origin is tuple else _same, _same)
    if not isinstance(hint, type):
        raise TypeError(f"{hint!r} isn't written as JSON")
    if issubclass(hint, Enum):
        return _Form(hint, operator.attrgetter("value"), _same)
    if issubclass(hint, tuple):
        return _Form(hint, list, _same)
    if hasattr(hint, "parse"):
        return _Form(str, str, hint.parse)
    return _object(hint)


def _several(kind: Any, one: _Form) -> _Form:
    return _Form(
        kind[one.checked, ...] if kind is tuple else kind[one.checked],
        list if one.write is _same else lambda values: [one.write(each) for each in values],
        _same if one.read is _same else lambda values: kind(map(one.read, values)),
    )


def _named(one: _Form) -> _Form:
    return _Form(
        _DICT[str, one.checked],
        dict if one.write is _same else lambda values: {name: one.write(each) for name, each in values.items()},
        _same if one.read is _same else lambda values: {name: one.read(each) for name, each in values.items()},
    )


def _one_of(forms: Mapping[Any, _Form]) -> _Form:
    """A value's class tells which of them it is; at most one of them is told by no class, like a mapping."""
    classes = [form for form in forms.values() if isinstance(form.checked, type) and form.checked is not Any]
    reads = {form.checked: form.read for form in classes}
    read = next((form.read for form in forms.values() if form not in classes), _same)
    writes = {hint: form.write for hint, form in forms.items()}
    write = next((form.write for hint, form in forms.items() if not isinstance(hint, type)), _same)
    return _Form(
        reduce(operator.or_, (form.checked for form in forms.values())),
        lambda value: writes.get(type(value), write)(value),
        lambda value: reads.get(type(value), read)(value),
    )


def _object(kind: Any) -> _Form:
    """A dataclass; what is read is checked as a struct with the same fields."""
    from msgspec import UNSET, defstruct

    hints = get_type_hints(kind, include_extras=True)
    known = [each for each in fields(kind) if "unwritten" not in each.metadata]
    tag = get_args(hints["kind"])[0] if get_origin(hints.get("kind")) is Literal else None
    forms = {each.name: _form(hints[each.name]) for each in known}
    checked = defstruct(
        kind.__name__,
        [
            (each.name, forms[each.name].checked, UNSET)
            if "newer" in each.metadata
            else (each.name, forms[each.name].checked)
            for each in known
            if tag is None or each.name != "kind"
        ],
        tag_field=None if tag is None else "kind",
        tag=tag,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    writes = [(each.name, forms[each.name].write, _left_out(each)) for each in known]
    reads = [(name, forms[name].read) for name in checked.__struct_fields__]

    def write(value: Any) -> dict[str, Any]:
        made = {}
        for name, change, left_out in writes:
            each = getattr(value, name)
            if left_out is None or not left_out(each):
                made[name] = each if change is _same else change(each)
        return made

    def read(value: Any) -> Any:
        given = {}
        for name, change in reads:
            each = getattr(value, name)
            if each is not UNSET:
                given[name] = each if change is _same else change(each)
        return kind(**given)

    return _Form(checked, write, read)


def _left_out(field: Field[Any]) -> Callable[[Any], bool] | None:
    if "sparse" not in field.metadata:
        return None
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return partial(operator.eq, default) if default else operator.not_
