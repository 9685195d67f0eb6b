"""Tries a derived way back on a simulation of what its document says: do, undo, look. Pure.

Rules: the simulated service takes nothing that its document doesn't describe (an argument that is missing or unknown, a
value of another form), and shows what it says that it shows. A way back passes when it brings everything back as it was
at least once, and never wrongly: what somebody else changed meanwhile must be seen before anything is sent, and an undo
that the service doesn't carry out must be seen by the read-back. That a real service does what its document says isn't
shown by it: a derived way back stays unproven until it worked there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from mapper.importing.derived_changes import STATES
from mapper.importing.operation import Field, Op, Shape
from mapper.importing.undo_parts import HOLE, SET_BY_SERVICE, id_of, last_hole, parent, verb_of
from mapper.new_items import new_item
from mapper.restore_templates import expanded
from mapper.templates import Reference, parse
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, MissingValue, find
from policies.services import CallTemplate, Expect, UndoTemplate

GONE = (404, 410)
MAX_VALUES = 40_000_000  # made up in the trials of one document; beyond it nothing more passes
_BAD = 422
_KINDS: Mapping[type, frozenset[str]] = {
    str: frozenset({"string"}), bool: frozenset({"boolean"}), int: frozenset({"integer", "number"}),
    float: frozenset({"number"}), list: frozenset({"array"}), dict: frozenset({"object"}),
}  # fmt: skip


class Trial(Enum):
    """What came of one try."""

    WORKED = "all is as it was"
    REFUSED = "nothing was taken back, and that was seen"
    WRONG = "it isn't as it was, or somebody else's change is gone"


class Refused(Exception):
    """The action isn't sent as what can be taken back, or its undo stops before it is done."""


@dataclass(slots=True)
class Service:
    """What a document describes, with two things of the kind that the action is about. Of the methods of `Service`
    each is what a service may do otherwise: `tests` have some that do."""

    item: Op | None  # what addresses one thing
    on: bool  # what is true of things at the beginning
    numbers: Iterator[int]
    things: dict[str, dict[str, Any]]
    called: str = ""  # the field that names a thing in its list, where no answer shows it

    def handle(self, op: Op, arguments: JsonObject) -> tuple[int, Any]:
        """The answer to a request."""
        if not _is_whole(op, arguments):
            return _BAD, None
        place, body = placed(op, arguments), _body(op, arguments)
        match op.http:
            case "GET":
                return self.look(op, place, arguments)
            case "DELETE":
                return (204, None) if self.things.pop(place, None) is not None else (404, None)
            case "PUT":
                there = place in self.things
                self.things[place] = self.kept(self.things.get(place, {}), op.body, body) if op.body else {}
                self._name(op, place, arguments)
                return (200 if there else 201), self.shown(op, self.things[place])
        if place in self.things:
            self.things[place].update(self.stored(op.body, body))
            return 200, self.shown(op, self.things[place])
        stem, _, verb = verb_of(op.path)
        if verb and (thing := self.things.get(placed(replace(op, path=stem), arguments))) is not None:
            said = STATES.get(verb.lower(), {})
            thing.update({own: said[plain] for plain, own in _plain_names(thing).items() if plain in said})
            return 200, self.shown(op, thing)
        return (404, None) if op.http == "PATCH" else self.make(op, arguments, body)

    def look(self, op: Op, place: str, arguments: JsonObject) -> tuple[int, Any]:
        if place in self.things:
            return 200, self.shown(op, self.things[place], arguments.get(op.select) if op.select else None)
        if not op.lists or last_hole(op.path):
            return 404, None
        items = [self._part(op.items, thing) for at, thing in self.things.items() if parent(at) == place]
        return 200, (items if op.lists == "$" else {op.lists[2:]: items})

    def make(self, op: Op, arguments: JsonObject, body: Mapping[str, Any]) -> tuple[int, Any]:
        """A new thing, with what it was given and what the service adds."""
        if self.item is None:
            return 404, None
        thing = self.stored(op.body, body)
        self.fill(thing, op)
        hole = last_hole(self.item.path)
        name = self.called or (id_of(hole, op, self.item) if op.answer is not None else None) or hole
        outer, _, inner = name.rpartition(".")
        holder = dict(thing.get(outer, {})) if outer else thing
        given = name.partition(".")[0] in body
        if not given or inner not in holder:
            holder[inner] = self.value(_at(op.answer, name) or Field(kinds=self.item.holes.get(hole, frozenset())))
        if outer:
            thing[outer] = holder
        place = placed(self.item, {**arguments, hole: holder[inner]})
        if place in self.things:
            return 409, None
        self.things[place] = thing
        return 201, self.shown(op, thing)

    def kept(self, old: Mapping[str, Any], shape: Shape | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """What a PUT leaves: what it says, and what the service alone sets."""
        fields = shape.fields if shape is not None else {}
        own = {name: value for name, value in old.items() if name not in fields or fields[name].read_only}
        return {**own, **self.stored(shape, body)}

    def stored(self, shape: Shape | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of a body: nothing of what the service alone sets."""
        fields = shape.fields if shape is not None else {}
        own = {name for name, about in fields.items() if about.read_only} | SET_BY_SERVICE
        return {name: value for name, value in body.items() if name not in own}

    def fill(self, thing: dict[str, Any], *ops: Op) -> None:
        """Add what these operations show of a thing, and it doesn't have yet, or has in another form."""
        for shape in (each for op in ops for each in (op.answer, op.items) if each is not None):
            for name, about in shape.fields.items():
                if not about.write_only and (name not in thing or not _is_of(thing[name], about)):
                    thing[name] = self.value(about)

    def shown(self, op: Op, thing: dict[str, Any], names: Any = None) -> Any:
        """An answer with a thing in it."""
        if op.answer is None:
            return None
        part: Any = self._part(op.answer, thing)
        if names is not None:
            part = {name: value for name, value in part.items() if name in names}
        return {op.around.removesuffix("."): part} if op.around else part

    def value(self, about: Field) -> Any:
        """A new value of a field's form, unlike all others where that can be."""
        for kind in ("string", "integer", "number", "boolean", "array", "object"):
            if kind in about.kinds:
                return self._of(kind, about)
        return self._of("object" if about.parts else "array" if about.items else "string", about)

    def change(self, place: str) -> None:
        """As somebody else would: every field of a thing, but what it is called by."""
        called = place.rpartition("/")[2]
        for name, value in self.things[place].items():
            if isinstance(value, bool) or str(value) != called:
                self.things[place][name] = self._other(value)

    def _other(self, value: Any) -> Any:
        match value:
            case bool():
                return not value
            case str():
                return f"other-{next(self.numbers)}"
            case int() | float():
                return next(self.numbers)
            case list():
                return [*value, *(value or ["other"])]
            case dict():
                return {name: self._other(part) for name, part in value.items()} or {"other": next(self.numbers)}
        return value

    def _of(self, kind: str, about: Field) -> Any:
        number = next(self.numbers)
        match kind:
            case "string":
                return f"text-{number}"
            case "integer" | "number":
                return number
            case "boolean":
                return self.on
            case "array":
                return [self.value(about.items)] if about.items is not None else []
        made = {name: self.value(part) for name, part in about.parts.items() if not part.write_only}
        return made or {"part": number}

    def _part(self, shape: Shape | None, thing: dict[str, Any]) -> dict[str, Any]:
        fields = {name: about for name, about in (shape.fields if shape else {}).items() if not about.write_only}
        for name, about in fields.items():
            if name not in thing or not _is_of(thing[name], about):
                thing[name] = self.value(about)
        return {name: thing[name] for name in fields}

    def _name(self, op: Op, place: str, arguments: JsonObject) -> None:
        hole = last_hole(op.path)
        if self.item is not None and hole and op.answer is not None and hole in op.answer.fields:
            self.things[place].setdefault(hole, arguments[hole])


def numbers() -> Iterator[int]:
    """What the values of one document's trials are told apart by."""
    return iter(range(1, MAX_VALUES))


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
    creates = op.http == "POST" and first.http == "DELETE"
    anew = op.http == "DELETE" and first.http == "POST"
    item = first if creates else op
    named = str(undo.calls[0].arguments.get(last_hole(first.path), "")) if undo.made else ""
    called = named.removeprefix("$made.")
    to = service(item=item if last_hole(item.path) else None, on=on, numbers=tell, things={}, called=called)
    arguments = _arguments(op, undo, to, whole=whole)
    reads = [by[each.method] for each in undo.reads]
    _begin(to, op, first if creates else None, arguments, reads)
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
    if makes is None and not (op.http == "PUT" and not op.has_body):
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


def placed(op: Op, arguments: JsonObject) -> str:
    """Where a request goes."""
    return HOLE.sub(lambda hole: str(arguments.get(hole[1], "")), op.path)


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
    if op.http == "DELETE":
        place = placed(op, arguments)
        to.things[place] = {}
        to.fill(to.things[place], *(by[each.method] for each in undo.reads))
    elif op.http == "PUT" and not op.has_body:
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
    wanted = undo.fields if undo.restores else tuple(op.body.fields)
    names = [name for name in wanted if name in op.body.fields and not op.body.fields[name].read_only]
    if not whole:
        names = [name for name in names if name in op.body.needed or name in undo.tags] or names[:1]
    names = [name for name in names if op.asked(name) != undo.unless]
    other = replace(to, on=not to.on)  # unlike what is there
    names += sorted(op.body.needed - op.body.fields.keys())  # of which it says no more
    shown = op.answer.fields if op.answer is not None else {}
    body = {}
    for name in names:
        about = op.body.fields.get(name, Field())
        body[name] = other.value(about if about.kinds or about.parts else shown.get(name, about))
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


def _is_whole(op: Op, arguments: JsonObject) -> bool:
    """Whether a request has what its document wants, each value in the form that it wants, and nothing else."""
    if not op.needed <= arguments.keys() or not arguments.keys() <= op.needed | op.optional:
        return False
    if op.body is None:
        return True
    body = _body(op, arguments)
    if not op.spread and "body" not in arguments:
        return "body" not in op.needed
    fields = op.body.fields
    if not op.body.needed <= body.keys() or not (body.keys() <= fields.keys() | op.body.needed or op.body.open):
        return False
    return all(value is None or _is_of(value, fields[name]) for name, value in body.items() if name in fields)


def _body(op: Op, arguments: JsonObject) -> Mapping[str, Any]:
    if op.body is None:
        return {}
    if op.spread:
        return {name: value for name, value in arguments.items() if name in op.body.fields and name not in op.holes}
    body = arguments.get("body", {})
    if op.body_around and isinstance(body, Mapping):
        body = body.get(op.body_around.removesuffix("."), {})
    return body if isinstance(body, Mapping) else {}


def _is_of(value: Any, about: Field) -> bool:
    """Whether a value has a field's form."""
    if about.kinds and not about.kinds & _KINDS.get(type(value), about.kinds):
        return False
    if isinstance(value, list) and about.items is not None:
        return all(_is_of(one, about.items) for one in value)
    if isinstance(value, dict) and about.parts:
        known = all(_is_of(part, about.parts[name]) for name, part in value.items() if name in about.parts)
        return known and about.needed <= value.keys() | {n for n, p in about.parts.items() if p.read_only}
    return True


def _plain_names(thing: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a thing that say what is true of it, by their words alone: `is_archived` as `archived`."""
    return {re.sub(r"^(is|has)_?(?=[A-Za-z])", "", name).lower(): name
            for name, value in thing.items() if isinstance(value, bool)}  # fmt: skip


def _at(shape: Shape | None, name: str) -> Field | None:
    return shape.fields.get(name) if shape is not None else None
