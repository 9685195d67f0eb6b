"""The templates of a manifest: undo, pre-read, guard, read-back and probe, checked against what they name.

Rules: a template names methods and parameters that exist and gives all that are required; it refers only to what is
known when it is filled; what is read before, between and after is a read. A reference to a request's argument needs
one that is always there, or a `?` at its end, since an undo that can't be filled is no undo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from mapper.templates import Reference, Source, may_be_left_out, parse, references
from mapper.toml_tables import Table
from policies.errors import InvalidInput
from policies.jsonvalue import steps
from policies.services import CallTemplate, Expect, Method, Risk, UndoTemplate

_T = TypeVar("_T")
Op = Literal["equals", "not_equals", "contains", "lacks", "exists", "absent"]

_BEFORE: tuple[Source, ...] = ("request", "action")
_AFTER: tuple[Source, ...] = ("request", "response", "pre", "action")
_OPS: tuple[Op, ...] = ("equals", "not_equals", "contains", "lacks", "exists", "absent")


def checked(table: Table, keys: tuple[str, ...], work: Callable[[], _T]) -> _T:
    """Run `work`; its InvalidInput becomes an error about the key at `keys`."""
    try:
        return work()
    except InvalidInput as error:
        table.fail(str(error).rstrip("."), *keys)


def read(
    method: Method, methods: Mapping[str, Method], table: Table
) -> tuple[UndoTemplate | None, CallTemplate | None]:
    """The undo and the probe of `method`, None where the manifest has none."""
    has_undo = table.has("undo")
    undo = table.table("undo")
    made: UndoTemplate | None = None
    pre = _optional(method, methods, undo, "pre", _BEFORE)
    after = _AFTER if pre is not None else tuple(source for source in _AFTER if source != "pre")
    made_at, fields = undo.take("made", str, ""), undo.texts("fields")
    then = _optional(method, methods, undo, "after", _BEFORE)
    if bool(made_at) != (then is not None) or (made_at and pre is None):
        undo.fail("what is new in a list is told by pre and after, which read it, and made, its path", "made")
    if made_at:
        checked(undo, ("made",), lambda: steps(made_at))
        after = (*after, "made")
    if bool(fields) != bool(made_at) or not set(fields) <= set(method.parameters["required"]):
        undo.fail("names arguments that are always there, by which what is new is known", "fields")
    if has_undo:
        if method.risk is Risk.READ:
            undo.fail("a read has nothing to take back")
        restores, answered = undo.take("restores", str, ""), undo.take("answered", bool, False)
        found = undo.take("calls", list)
        calls = tuple(
            _template(
                method,
                methods,
                Table(undo.file, _as_table(undo, item), (*undo.path, "calls")),
                after,
                (restores,) if place == len(found) else (),
            )
            for place, item in enumerate(found, 1)
        )
        if not calls:
            undo.fail("needs a call", "calls")
        made = UndoTemplate(
            calls=calls,
            pre=pre,
            guard=_optional(method, methods, undo, "guard", after),
            guards=tuple(
                _read(method, methods, Table(undo.file, _as_table(undo, item), (*undo.path, "guards")), after)
                for item in undo.take("guards", list, [])
            ),
            verify=_optional(method, methods, undo, "verify", (*after, "undo")),
            note=undo.take("note", str, ""),
            restores=restores,
            answered=answered,
            fields=fields,
            after=then,
            made=made_at,
        )
        _check_restores(method, methods, made, undo)
        undo.done()
    known = tuple(source for source in after if source != "response")
    return made, _optional(method, methods, table, "probe", known)


def _check_restores(method: Method, methods: Mapping[str, Method], made: UndoTemplate, undo: Table) -> None:
    name, last = made.restores, made.calls[-1]
    if not name:
        return
    if made.pre is None or made.guard is None or made.verify is None:
        undo.fail("needs pre, guard and verify: old fields are read, compared and read back", "restores")
    if name not in method.parameters["properties"] or name not in methods[last.method].parameters["properties"]:
        undo.fail(f"{name!r} must be a parameter of {method.name} and of {last.method}", "restores")
    if name in last.arguments:
        undo.fail(f"{name!r} is filled with the old fields, so it can't be given, too", "restores")


def expects(table: Table, key: str, known: tuple[Source, ...] = (), method: Method | None = None) -> tuple[Expect, ...]:
    """The list of expectations below `key`; () when it isn't there."""
    made = []
    for item in table.take(key, list, []):
        entry = Table(table.file, _as_table(table, item), (*table.path, key))
        made.append(_expect(entry, known, method))
        entry.done()
    return tuple(made)


def _expect(entry: Table, known: tuple[Source, ...], method: Method | None) -> Expect:
    says = entry.take("says", str, "")
    if entry.has("status"):
        codes = entry.take("status", list)
        if not codes or not all(isinstance(code, int) and 100 <= code <= 599 for code in codes):
            entry.fail("must be a list of HTTP status codes", "status")
        return Expect(op="status", value=codes, says=says)
    path = entry.take("path", str)
    checked(entry, ("path",), lambda: steps(path))
    op = next((op for op in _OPS if entry.has(op)), None)
    if op is None:
        entry.fail(f"needs one of {', '.join(_OPS)}, status")
    value = entry.any(op)
    if op in ("exists", "absent"):
        if value is not True:
            entry.fail("must be true: to say the opposite, use the other word", op)
        return Expect(op=op, path=path, says=says)
    if op in ("contains", "lacks") and not isinstance(value, list | str):
        entry.fail("must be a list, or a reference to one", op)
    _check_references(entry, (op,), value, known, method)
    return Expect(op=op, path=path, value=value, says=says)


def _as_table(table: Table, item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        table.fail("must be a list of tables")
    return item


def _optional(
    method: Method, methods: Mapping[str, Method], table: Table, key: str, known: tuple[Source, ...]
) -> CallTemplate | None:
    if not table.has(key):
        return None
    return _read(method, methods, table.table(key), known)


def _read(method: Method, methods: Mapping[str, Method], inner: Table, known: tuple[Source, ...]) -> CallTemplate:
    made = _template(method, methods, inner, known)
    if methods[made.method].risk is not Risk.READ:
        inner.fail(f"must be a read, and {made.method} isn't", "method")
    return made


def _template(
    method: Method, methods: Mapping[str, Method], table: Table, known: tuple[Source, ...], given: tuple[str, ...] = ()
) -> CallTemplate:
    name = table.take("method", str)
    target = methods.get(name)
    if target is None:
        table.fail(f"{name!r} isn't a method of this service", "method")
    arguments = table.take("arguments", dict, {})
    for argument, value in arguments.items():
        if argument not in target.parameters["properties"]:
            table.fail(f"{name} has no parameter {argument!r}", "arguments", argument)
        _check_references(table, ("arguments", argument), value, known, method)
    for needed in target.parameters["required"]:
        if needed not in arguments and needed not in given:
            table.fail(f"{name} needs {needed!r}", "arguments")
    expect = expects(table, "expect", known, method)
    table.done()
    return CallTemplate(method=name, arguments=dict(arguments), expect=expect)


def _check_references(
    table: Table, keys: tuple[str, ...], value: Any, known: tuple[Source, ...], method: Method | None
) -> None:
    found: list[Reference] = checked(table, keys, lambda: list(references(value)))
    for reference in found:
        if reference.source not in known:
            table.fail(f"{reference} isn't known at that point", *keys)
        if reference.source == "request" and method is not None:
            name = steps(reference.path)[0]
            if reference.optional and name in method.parameters["properties"]:
                if not _whole(reference, value):
                    table.fail(f"{reference} can be left out only where it is the whole value, or a field's", *keys)
                continue
            if name not in method.parameters["required"] and name not in method.defaults:
                table.fail(f"{reference}: {method.name} has no such argument that is always there", *keys)


def _whole(reference: Reference, value: Any) -> bool:
    """Whether `reference` is `value`, or the value of a field in it."""
    if isinstance(value, Mapping):
        return any(_whole(reference, child) for child in value.values())
    if isinstance(value, list | tuple):
        return any(_whole(reference, child) for child in value if not isinstance(child, str))
    return may_be_left_out(value) and parse(value) == reference
