"""Undo templates that write back the old fields of exactly those that a call wrote. Pure.

Rules: what is written back depends on what the call wrote, so the template is made for one call, before anything is
sent; its values are references to what was read before, never copies. A field is written back whole: then it doesn't
matter whether the service merges an object into the old one or puts it in its place. What an object within a field got
anew can't be taken out of it that way, so each such part must have been there before (`parts_before`). A name that
can't stand in a path, or of which it isn't known that it can be read, makes the template one that can't be filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, MissingValue, find
from policies.services import ARGUMENTS, CallTemplate, Expect, UndoTemplate

MAX_FIELDS = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_DIFFERENT = "It isn't as the action left it"
_NOT_BACK = "It isn't as it was before"


def expanded(undo: UndoTemplate, arguments: JsonObject) -> UndoTemplate:
    """`undo` for a call with these arguments; itself where it restores nothing by fields. Raises InvalidInput."""
    if undo.unless and _is_there(arguments, undo.unless):
        raise InvalidInput(f"{undo.unless} was chosen by the caller, so that it may have been there before")
    if not undo.restores:
        return undo
    written = _written(undo, arguments)
    if not isinstance(written, Mapping) or not written or "$from" in written:
        raise InvalidInput(f"what it changes isn't said by its {undo.restores}")
    if undo.pre is None or undo.guard is None or undo.verify is None:
        raise InvalidInput("what it restores isn't read before, compared and read back")
    parts = list(_leaves(written, ()))
    if len(parts) > MAX_FIELDS:
        raise InvalidInput(f"it changes {len(parts)} fields; at most {MAX_FIELDS} are put back")
    unknown = [name for name in written if undo.fields and name not in undo.fields]
    if unknown:
        raise InvalidInput(f"{unknown[0][:60]} can't be read before, as far as is known")
    if not undo.answered and any(len(part) > 1 for part in parts):
        raise InvalidInput("it changes parts of an object, and isn't answered with what became of it")
    values = [name for name in written if name not in undo.tags]
    if not values:
        raise InvalidInput("it says only what type the thing is")
    *before, last = undo.calls
    own = {**last.arguments, **_mask(undo, arguments, written)}
    spread = undo.restores == ARGUMENTS
    asked = "$request" if spread else f"$request.{undo.restores}"
    maybe = "" if undo.select or undo.shown else "?"
    there = {name: place(undo.around, name) for name in values}
    before_it = {name: f"$pre{there[name]}{maybe}" for name in values}
    again = {name: before_it.get(name, f"{asked}{place('', name)}") for name in written}
    restored = replace(last, arguments={**own, **(again if spread else {undo.restores: again})})
    left_by = {name: f"$response{there[name]}?" if undo.answered else f"{asked}{place('', name)}" for name in values}
    left = [_equals(there[name], left_by[name], _DIFFERENT) for name in values]
    back = [_equals(there[name], before_it[name], _NOT_BACK) for name in values]
    others = [name for name in undo.fields if undo.rest and name not in written]
    stays = [_equals(place(undo.around, name), f"$pre{place(undo.around, name)}?", _DIFFERENT) for name in others]
    shown = {undo.select: values} if undo.select else {}
    return replace(
        undo,
        pre=_with(undo.pre, [], shown),
        calls=(*before, restored),
        guard=_with(undo.guard, [*left, *stays], shown),
        verify=_with(undo.verify, [*back, *stays], shown),
        restores="",
        mask="",
        select="",
        tags=(),
    )


def _written(undo: UndoTemplate, arguments: JsonObject) -> Any:
    """What the call writes: the argument that is restored, or all that don't say which thing it is."""
    if undo.restores != ARGUMENTS:
        return arguments.get(undo.restores)
    return {name: value for name, value in arguments.items() if name not in undo.calls[-1].arguments}


def place(around: str, name: str) -> str:
    """The end of a path to the field `name` of what is `around`: `.data.name`, `["@odata.type"]`."""
    outer = f".{around.removesuffix('.')}" if around else ""
    return outer + (f".{name}" if _NAME.fullmatch(name) else f"[{json.dumps(name)}]")


def parts_before(undo: UndoTemplate, arguments: JsonObject) -> tuple[str, ...]:
    """The paths, in what was read before, of parts of objects that the call wrote: each must have been there, unless
    the whole field wasn't."""
    if not undo.restores:
        return ()
    return tuple(f"$.{undo.around}{'.'.join(part)}" for part in _leaves(_written(undo, arguments), ()) if len(part) > 1)


def _mask(undo: UndoTemplate, arguments: JsonObject, written: Mapping[str, Any]) -> dict[str, str]:
    """The mask of the undo: the same as the call's, which must name just what is in its body."""
    if not undo.mask or undo.mask not in arguments:
        return {}
    said = arguments[undo.mask]
    if not isinstance(said, str) or {name.strip() for name in said.split(",")} != set(written):
        raise InvalidInput(f"its {undo.mask} doesn't name just what its {undo.restores} holds")
    return {undo.mask: f"$request.{undo.mask}"}


def _is_there(arguments: JsonObject, path: str) -> bool:
    try:
        find(dict(arguments), f"$.{path}")
    except MissingValue:
        return False
    return True


def _with(template: CallTemplate, expects: list[Expect], shown: JsonObject) -> CallTemplate:
    return replace(template, arguments={**template.arguments, **shown}, expect=(*template.expect, *expects))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of all that is written."""
    if isinstance(value, Mapping) and value and "$from" not in value:
        for name, child in value.items():
            if path and not all(_NAME.fullmatch(one) for one in (*path, name)):
                raise InvalidInput(f"a field is called {name[:40]!r}")
            yield from _leaves(child, (*path, name))
    else:
        yield path


def _equals(name: str, value: str, says: str) -> Expect:
    return Expect(op="equals", path=f"${name}", value=value, says=f"{says} ({name.removeprefix('.')})")
