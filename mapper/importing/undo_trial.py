"""Tries a derived way back on a simulation of what its document says: do, undo, look. Pure.

Rules: the simulated service takes nothing that its document doesn't describe (an argument that is missing or unknown, a
value of another form), and shows what it says that it shows. A way back passes when it brings everything back as it was
at least once, and never wrongly: what somebody else changed meanwhile must be seen before anything is sent, and an undo
that the service doesn't carry out must be seen by the read-back. That a real service does what its document says isn't
shown by it: a derived way back stays unproven until it worked there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from mapper.importing.derived_changes import STATES
from mapper.importing.operation import Field, Op
from mapper.importing.simulated_service import GONE, Refused, Service, placed, with_place
from mapper.importing.undo_parts import HOLE, SET_BY_SERVICE, id_of, last_hole, parent, verb_of
from mapper.new_items import new_item
from mapper.restore_templates import expanded
from mapper.templates import Reference, parse
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, MissingValue, find
from policies.services import CallTemplate, Expect, UndoTemplate


class Trial(Enum):
    """What came of one try."""

    WORKED = "all is as it was"
    REFUSED = "nothing was taken back, and that was seen"
    WRONG = "it isn't as it was, or somebody else's change is gone"


def holds(
    op: Op, undo: UndoTemplate, by: Mapping[str, Op], tell: Iterator[int], service: type[Service] = Service
) -> bool:
    """Whether a way back of `op` works in the simulation, and never does harm there."""
    worked = False
    for whole in (True, False):
        for on in (False, True):
            came = run(op, undo, by, tell, service, on=on, whole=whole)
            if came is Trial.WRONG:
                return False
            if came is Trial.WORKED:
                for meanwhile in () if worked else ("changed", "ignored"):
                    came = run(op, undo, by, tell, service, on=on, whole=whole, meanwhile=meanwhile)
                    if came is not Trial.REFUSED:
                        return False
                worked = True
                break
    return worked


def run(
    op: Op, undo: UndoTemplate, by: Mapping[str, Op], tell: Iterator[int], service: type[Service] = Service, *,
    on: bool = False, whole: bool = True, meanwhile: str = "",
) -> Trial:  # fmt: skip
    """Do it, undo it, look. `whole`: the call says all that it may say. `meanwhile` somebody else `changed` what the
    action left, or the undo's requests are answered and `ignored`."""
    try:
        return _tried(op, undo, by, tell, service, on, whole, meanwhile)
    except StopIteration:
        return Trial.REFUSED  # there are no more values to be told apart


def _tried(
    op: Op, undo: UndoTemplate, by: Mapping[str, Op], tell: Iterator[int], service: type[Service], on: bool,
    whole: bool, meanwhile: str,
) -> Trial:  # fmt: skip
    first = by[undo.calls[0].method]
    turns = op.path == first.path and verb_of(op.path)[2] in STATES  # a state of what stands above it
    creates = op.http == "POST" and first.http == "DELETE" and not turns
    anew = op.http == "DELETE" and first.http == "POST" and not turns
    item = first if creates else op
    named = str(undo.calls[0].arguments.get(last_hole(first.path), "")) if undo.made else ""
    called = named.removeprefix("$made.")
    to = service(item=item if last_hole(item.path) else None, on=on, numbers=tell, things={}, called=called)
    arguments = _arguments(op, undo, to, whole=whole)
    reads = [by[each.method] for each in undo.reads]
    _begin(to, op, first if creates else None, with_place(op, arguments), reads)
    before = {place: dict(thing) for place, thing in to.things.items()}
    sent: list[CallTemplate] = []
    try:
        _carry(to, op, undo, by, arguments, meanwhile, sent)
    except (Refused, MissingValue, InvalidInput):
        # It may stop before anything was sent; afterwards only where what was sent had no effect.
        return Trial.REFUSED if bool(sent) == (meanwhile == "ignored") else Trial.WRONG
    names = {name for each in (op, *(by[call.method] for call in undo.calls)) for name in _writes(each)}
    back = _is_back(before, to.things, names, anew=anew)
    return Trial.WORKED if back and not meanwhile else Trial.WRONG


def _begin(to: Service, op: Op, makes: Op | None, arguments: JsonObject, reads: Sequence[Op]) -> None:
    """What is there before the action: the thing that it is about, unless it `makes` one, and one beside it."""
    read = makes or (reads[0] if reads else op)
    holes = HOLE.findall(read.path)
    if makes is None and not (op.http == "PUT" and not op.has_body and read.path == op.path):
        to.things[placed(read, arguments)] = {}
    if last_hole(read.path):
        beside = {hole: to.value(Field(kinds=read.holes[hole])) for hole in holes}
        to.things[placed(read, {**beside, **arguments, holes[-1]: beside[holes[-1]]})] = {}
    for place in to.things:
        to.fill(to.things[place], *reads)
        _call_it(to, place, arguments, reads)


def _is_back(
    before: Mapping[str, Any], after: Mapping[str, Any], names: set[str], *, anew: bool
) -> bool:  # fmt: skip
    """Whether all things are as they were, in the fields of these names (in all of them where there are none). `anew`:
    they may stand elsewhere."""

    def said(thing: Mapping[str, Any]) -> str:
        return repr(sorted((name, repr(value)) for name, value in thing.items() if name in names))

    if anew:
        return sorted(map(said, before.values())) == sorted(map(said, after.values()))
    return before.keys() == after.keys() and all(
        name in after[place] and after[place][name] == value
        for place, thing in before.items()
        for name, value in thing.items()
        if not names or name in names
    )


def _carry(
    to: Service, op: Op, undo: UndoTemplate, by: Mapping[str, Op], arguments: JsonObject, meanwhile: str,
    sent: list[CallTemplate],
) -> None:  # fmt: skip
    """Do it and undo it; `sent` gets what was sent to take it back. Raises Refused, MissingValue, InvalidInput."""
    undo = expanded(undo, arguments)
    known: dict[str, Any] = {"request": arguments}
    status = 200
    if undo.pre is not None:
        status, known["pre"] = _ask(to, undo.pre, by, known)
    gone = status in GONE
    if gone and undo.absent is None and any("$pre" in str(call.arguments) for call in undo.calls):
        raise Refused
    status, known["response"] = to.handle(op, arguments)
    if status >= 300:
        raise Refused
    if undo.after is not None:
        shown = _ask(to, undo.after, by, known)[1]
        given = {path.rpartition(".")[2]: find(arguments, f"$.{path}") for path in undo.fields if _has(arguments, path)}
        known["made"] = new_item(known["pre"], shown, undo.made, given)
    if meanwhile == "changed":
        _meddle(to, op, arguments, by, undo)
    for guard in (undo.guard, *undo.guards):
        if guard is not None:
            _ask(to, guard, by, known)
    calls, verify = undo.calls, undo.verify
    if gone and undo.absent is not None and verify is not None:
        calls = (undo.absent,)
        verify = replace(verify, expect=(Expect(op="status", value=list(GONE)),))
    real = {place: dict(thing) for place, thing in to.things.items()}
    for call in calls:
        again = _filled(call.arguments, known)
        sent.append(call)
        status, known["undo"] = to.handle(by[call.method], again)
        if not 200 <= status < 300:
            raise Refused
    if meanwhile == "ignored":
        to.things = real
    if verify is None:
        raise Refused
    _ask(to, verify, by, known)


def _meddle(to: Service, op: Op, arguments: JsonObject, by: Mapping[str, Op], undo: UndoTemplate) -> None:
    """Somebody else comes between: what is there is another, what is gone is there again, and the other way round."""
    itself = by[undo.reads[0].method].path == op.path
    if op.http == "DELETE" and itself:
        place = placed(op, arguments)
        to.things[place] = {}
        to.fill(to.things[place], *(by[each.method] for each in undo.reads))
    elif op.http == "PUT" and not op.has_body and itself:
        to.things.pop(placed(op, arguments))
    else:
        for place in to.things:
            to.change(place)


def _ask(to: Service, call: CallTemplate, by: Mapping[str, Op], known: Mapping[str, Any]) -> tuple[int, Any]:
    """The answer to a template's call. Raises Refused, MissingValue."""
    status, body = to.handle(by[call.method], _filled(call.arguments, known))
    expects = [replace(each, value=_filled(each.value, known)) for each in call.expect]
    if not any(each.op == "status" for each in expects) and not 200 <= status < 300:
        raise Refused
    if not all(_is_met(each, status, body) for each in expects if each.value is not _LEFT_OUT):
        raise Refused
    return status, body


def _has(arguments: JsonObject, path: str) -> bool:
    try:
        find(arguments, f"$.{path}")
    except MissingValue:
        return False
    return True


_LEFT_OUT: Any = object()


def _filled(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        made = {name: _filled(child, known) for name, child in value.items()}
        return {name: child for name, child in made.items() if child is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [_filled(child, known) for child in value]
    leaf = parse(value)
    if not isinstance(leaf, Reference):
        return leaf.value
    try:
        return find(known.get(leaf.source), leaf.path)
    except MissingValue:
        if not leaf.optional:
            raise
        return _LEFT_OUT if leaf.omitted or leaf.source == "request" else None


def _is_met(expect: Expect, status: int, body: Any) -> bool:
    if expect.op == "status":
        return status in expect.value
    try:
        found = find(body, expect.path)
    except MissingValue:
        found = _LEFT_OUT
    match expect.op:
        case "equals":
            return bool(found == expect.value)
        case "not_equals":
            return bool(found != expect.value)
        case "contains":
            return isinstance(found, list) and all(one in found for one in expect.value)
        case "lacks":
            return isinstance(found, list) and not any(one in found for one in expect.value)
    return False


def _arguments(op: Op, undo: UndoTemplate, to: Service, *, whole: bool) -> dict[str, Any]:
    made: dict[str, Any] = {name: to.value(Field(kinds=kinds)) for name, kinds in op.holes.items()}
    made |= {name: f"given-{name}" for name in op.apart - made.keys()}
    if op.body is None:
        return {**made, **({"body": {}} if "body" in op.needed else {})}
    fields = op.body.fields
    wanted = undo.fields if undo.restores else tuple(fields)
    names = [name for name in wanted if name in op.body.fields and not op.body.fields[name].read_only]
    if not whole:
        needed = [name for name in names if name in op.body.needed or name in undo.tags]
        # Beside what says its type a plain value, since an object with a type of its own isn't put back.
        plain = sorted(set(names) - set(needed), key=lambda name: (bool(fields[name].parts), name))[:1]
        names = needed if set(needed) - set(undo.tags) else [*needed, *plain]
    names = [name for name in names if op.asked(name) != undo.unless]
    other = replace(to, on=not to.on)  # unlike what is there
    names += sorted(op.body.needed - op.body.fields.keys())  # of which it says no more
    shown = op.answer.fields if op.answer is not None else {}
    body = {}
    for name in names:
        about = op.body.fields.get(name, Field())
        body[name] = other.value(about if about.kinds or about.parts else shown.get(name, about))
    for hole, name in op.given.items():
        body[name] = made.pop(hole)
    if undo.mask:
        made[undo.mask] = ",".join(names)
    if op.spread:
        return {**made, **body}
    return {**made, "body": {op.body_around.removesuffix("."): body} if op.body_around else body}


def _call_it(to: Service, place: str, arguments: JsonObject, reads: Sequence[Op]) -> None:
    """Give a thing, where it shows what it is called, the name that it stands under."""
    for read in reads:
        hole = last_hole(read.path)
        if not hole or read.answer is None or parent(placed(read, {**arguments, hole: ""})) != parent(place):
            continue
        name = id_of(hole, read, read)
        said: Any = place.rpartition("/")[2]
        if name and "." not in name and name in to.things[place]:
            to.things[place][name] = int(said) if isinstance(to.things[place][name], int) and said.isdecimal() else said


def _writes(op: Op) -> list[str]:
    fields = op.body.fields if op.body is not None else {}
    own = {name for name, about in fields.items() if about.read_only or about.tag} | SET_BY_SERVICE
    return [name for name in fields if name not in own]
