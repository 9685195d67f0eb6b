"""A service that does what its document says, to try a derived way back on. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mapper.importing.derived_changes import STATES
from mapper.importing.operation import Field, Op, Shape
from mapper.importing.undo_parts import HOLE, SET_BY_SERVICE, id_of, last_hole, parent, verb_of
from policies.jsonvalue import JsonObject

GONE = (404, 410)
MAX_VALUES = 40_000_000  # made up in the trials of one document; beyond it nothing more passes
_BAD = 422
_KINDS: Mapping[type, frozenset[str]] = {
    str: frozenset({"string"}), bool: frozenset({"boolean"}), int: frozenset({"integer", "number"}),
    float: frozenset({"number"}), list: frozenset({"array"}), dict: frozenset({"object"}),
}  # fmt: skip


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
        arguments = with_place(op, arguments)
        if not _is_whole(op, arguments):
            return _BAD, None
        place, body = placed(op, arguments), body_of(op, arguments)
        stem, _, verb = verb_of(op.path)
        turned = self.things.get(placed(replace(op, path=stem), arguments)) if verb else None
        if turned is not None and place not in self.things and op.http != "GET" and verb in STATES:
            said = {plain: on is (op.http != "DELETE") for plain, on in STATES[verb].items()}
            turned.update({own: said[plain] for plain, own in _plain_names(turned).items() if plain in said})
            return 200, self.shown(op, turned)
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
                if not about.write_only and (name not in thing or not is_of(thing[name], about)):
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
            if name not in thing or not is_of(thing[name], about):
                thing[name] = self.value(about)
        return {name: thing[name] for name in fields}

    def _name(self, op: Op, place: str, arguments: JsonObject) -> None:
        hole = last_hole(op.path)
        if self.item is not None and hole and op.answer is not None and hole in op.answer.fields:
            self.things[place].setdefault(hole, arguments[hole])


def numbers() -> Iterator[int]:
    """What the values of one document's trials are told apart by."""
    return iter(range(1, MAX_VALUES))


def placed(op: Op, arguments: JsonObject) -> str:
    """Where a request goes."""
    return HOLE.sub(lambda hole: str(arguments.get(hole[1], "")), op.path)


def with_place(op: Op, arguments: JsonObject) -> JsonObject:
    """The arguments with those of the path that the body gives."""
    given = {hole: body_of(op, arguments).get(name) for hole, name in op.given.items()}
    return {**arguments, **{hole: value for hole, value in given.items() if value is not None}}


def _is_whole(op: Op, arguments: JsonObject) -> bool:
    """Whether a request has what its document wants, each value in the form that it wants, and nothing else."""
    if not op.needed <= arguments.keys() or not arguments.keys() <= op.needed | op.optional:
        return False
    if op.body is None:
        return True
    body = body_of(op, arguments)
    if not op.spread and "body" not in arguments:
        return "body" not in op.needed
    fields = op.body.fields
    if not op.body.needed <= body.keys() or not (body.keys() <= fields.keys() | op.body.needed or op.body.open):
        return False
    return all(value is None or is_of(value, fields[name]) for name, value in body.items() if name in fields)


def body_of(op: Op, arguments: JsonObject) -> Mapping[str, Any]:
    if op.body is None:
        return {}
    if op.spread:
        return {name: value for name, value in arguments.items() if name in op.body.fields and name not in op.holes}
    body = arguments.get("body", {})
    if op.body_around and isinstance(body, Mapping):
        body = body.get(op.body_around.removesuffix("."), {})
    return body if isinstance(body, Mapping) else {}


def is_of(value: Any, about: Field) -> bool:
    """Whether a value has a field's form."""
    if about.kinds and not about.kinds & _KINDS.get(type(value), about.kinds):
        return False
    if isinstance(value, list) and about.items is not None:
        return all(is_of(one, about.items) for one in value)
    if isinstance(value, dict) and about.parts:
        known = all(is_of(part, about.parts[name]) for name, part in value.items() if name in about.parts)
        return known and about.needed <= value.keys() | {n for n, p in about.parts.items() if p.read_only}
    return True


def _plain_names(thing: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a thing that say what is true of it, by their words alone: `is_archived` as `archived`."""
    return {re.sub(r"^(is|has)_?(?=[A-Za-z])", "", name).lower(): name
            for name, value in thing.items() if isinstance(value, bool)}  # fmt: skip


def _at(shape: Shape | None, name: str) -> Field | None:
    return shape.fields.get(name) if shape is not None else None
