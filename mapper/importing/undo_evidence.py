"""What a document's operations say of each other: what reads a thing, what makes it, what may be put into it. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mapper.importing.operation import Op, Shape
from mapper.importing.risks import words
from mapper.importing.undo_parts import (
    HOLE,
    bare,
    fixed_parts,
    forms_without,
    id_of,
    last_hole,
    parent,
    plain,
    without_signs,
)
from policies.jsonvalue import JsonObject
from policies.services import CallTemplate, Expect, Risk

_MAKES = frozenset({"create", "insert", "add", "new", "post", "register", "make", "store"})
# "Create or update a flow", "if one exists already, it is overwritten": it may change what is there.
_MAY_CHANGE = re.compile(
    r"\bupsert|\b(?:creat|add|insert|regist|sav|stor|set|mak|put)\w*\b[^.]{0,60}?(?:\bor\b|\band\b|/|&)\s*(?:\w+\s+){0,2}?"
    r"(?:updat|modif|replac|overwrit|overrid|chang|edit|merg)|\bexist\w*\b[^.]{0,80}\b(?:updat|overwrit|replac|overrid|merg|return)|"
    r"\b(?:updat|overwrit|replac|overrid|merg)\w*\b[^.]{0,80}\bexist",
    re.IGNORECASE,
)
# "Assign a channel to a user": it may have been so before.
_JOINS = re.compile(r"\W*(?:assign|attach|associat|link|join|invit|grant|add)\w*\b[^.]{0,60}\bto\b", re.IGNORECASE)
# What the last word of a path says in the place of HTTP: of a collection, and of one thing.
_SAYS = {
    False: {"create": "POST", "add": "POST", "insert": "POST"},
    True: {"delete": "DELETE", "remove": "DELETE", "destroy": "DELETE", "update": "", "edit": ""},
}
_UPDATES = frozenset({"update", "edit", "modify", "change"})
# A change of several things, of which the body is said to be one.
_MANY = re.compile(r"(?i)bulk|batch|multi|several|\ball\b|\blist\b|\bmany\b|\bor more\b")
# With one of these a read may show only a part of the thing by itself.
_VIEWS = frozenset({"view", "format", "projection", "part", "expand", "include", "fields", "detail", "details"})


class Evidence:
    """A document's operations, and what can be told of them."""

    def __init__(self, ops: tuple[Op, ...]) -> None:
        self.ops = ops = _by_id(_by_place(ops))
        self.ids = {op.id: op for op in ops}
        self.by: dict[tuple[str, object], Op | None] = {}
        for op in ops:
            place = op.http, op.key
            self.by[place] = None if place in self.by else op  # two of the same: neither is sure
        self.collections = {parent(plain(op.path)) for op in ops if last_hole(op.path)}
        # `…/records/{name}/{type}` stands in `…/records`, too.
        self.collections |= {parent(path) for path in self.collections if path.endswith("/{}")}
        self.paths = {plain(op.path) for op in ops}
        self.makers = {plain(op.path) for op in ops if op.http == "POST"}
        self.written = sorted({plain(op.path) for op in ops if op.http in ("POST", "PUT")})
        self.writers = sorted(plain(op.path) for op in ops if op.http in ("POST", "PUT", "PATCH"))
        self.deletes: dict[str, list[Op]] = {}
        self.of_kind: dict[tuple[str, str], list[Op]] = {}  # deletions by the last word of the path, and what is read
        self._named: dict[str, set[str]] | None = None  # the places whose bodies have a field, by its name
        # Things that others can put something into, and the collections that it goes to.
        self.holders: dict[str, set[str]] = {}
        self.lists = {plain(op.path): op for op in ops if op.http == "GET" and op.lists and op.risk is Risk.READ}
        for op in ops:
            if op.http == "DELETE" and last_hole(op.path):
                self.deletes.setdefault(parent(op.path), []).append(op)
                read, fixed = self.by.get(("GET", op.key)), fixed_parts(op.path)
                if read is not None and read.answer is not None and fixed and read.answer.name:
                    self.of_kind.setdefault((fixed[-1], read.answer.name), []).append(op)
            if op.http in ("POST", "PUT"):
                segments = plain(op.path).split("/")
                for end in range(2, len(segments)):
                    held = "/".join(segments[: end + 1])
                    if segments[end - 1] == "{}" and (held in self.collections or held in self.lists):
                        self.holders.setdefault("/".join(segments[:end]), set()).add("/".join(segments[: end + 1]))

    def makes(self, op: Op, *, named: bool = False) -> bool:
        """Whether a POST on a collection surely makes a thing, and says which (unless `named` by the call)."""
        if op.http != "POST" or op.risk is not Risk.WRITE or (op.answer is None and not named):
            return False
        if {200, 201} <= op.codes:  # one of the two may mean that it was there already
            return False
        if _MAY_CHANGE.search(op.said) or "upsert" in op.name.lower() or "orupdate" in without_signs(op.name):
            return False
        if 201 not in op.codes and _JOINS.match(op.said):
            return False
        said = words(op.name.rpartition(".")[2])
        if said == ["post"]:
            said = []  # no name of its own: it is called by its path
        first = [word.removesuffix("s") for word in words(op.said[:60])[:1]]
        return 201 in op.codes or bool(_MAKES & {*said[:1], *said[-1:], *first})

    def joins(self, op: Op, item: Op) -> bool:
        """Whether a POST only puts a thing somewhere, which was there before: it says so, or names that by its id."""
        apart = parent(plain(item.path)) != plain(op.path)
        kind = without_signs((fixed_parts(item.path) or [""])[-1])
        own = {f"{one}{id}" for one in (kind, kind[:-1], f"{kind[:-3]}y") for id in ("id", "ids") if one}
        names = op.body is not None and any(without_signs(name) in own and not about.read_only
                                            for name, about in op.body.fields.items())  # fmt: skip
        return (apart and (names or bool(_JOINS.match(op.said)))) or (names and bool(_JOINS.match(op.said)))

    def referred(self, item: Op) -> bool:
        """Whether what is made elsewhere may name a thing by its id (`part` or `part_id` for `/parts/{id}`)."""
        kind = without_signs((fixed_parts(item.path) or [""])[-1])
        own = {one for one in (kind, kind[:-1], f"{kind[:-3]}y") if len(one) > 2}
        if self._named is None:
            self._named = {}
            for op in self.ops:
                if op.http in ("POST", "PUT", "PATCH") and op.body is not None:
                    for name in op.body.fields:
                        self._named.setdefault(without_signs(name), set()).add(plain(op.path))
        places = (self._named.get(f"{one}{id}", ()) for one in own for id in ("", "id", "ids", "pk"))
        return any(parent(place) != parent(plain(item.path)) and place != parent(plain(item.path))
                   for found in places for place in found)  # fmt: skip

    def changes(self, op: Op) -> bool:
        """Whether a PUT changes what is there, and never makes it: things of its kind are made elsewhere, or its
        answers say so."""
        hole = last_hole(op.path)
        make = self.by.get(("POST", (parent(op.path), forms_without(op, hole)))) if hole else None
        if make is not None and self.makes(make, named=True):
            return True
        if 201 in op.codes or not op.codes:
            return False
        if ("DELETE", op.key) in self.by:
            return False  # it comes and goes: a PUT may be how it comes
        # Settings are there with what they are of; another thing is, where it says what happens when it isn't.
        return not hole or 404 in op.codes

    def read_of(self, op: Op, call: Op | None = None, *, part: bool = False) -> Op | None:
        """The GET of the very same thing, with nothing else than what `call` (`op` by default) is always given. With
        `part` it may be one that shows only a part by itself (`in_part`)."""
        found = self.by.get(("GET", op.key))
        if found is None or found.risk is not Risk.READ or found.answer is None or not found.answer.fields:
            return None
        given = (call or op).apart
        fits = found.needed - bare(found) <= given and not given & _VIEWS
        return found if fits and (part or not in_part(found)) else None

    def unsaid_read(self, op: Op) -> Op | None:
        """The GET at the place of `op` of which its document doesn't say what it shows, taken to show what `op` writes:
        whether it does is told by the read before the action, which isn't sent as what can be taken back otherwise."""
        found = self.by.get(("GET", op.key))
        if found is None or not found.untold or found.risk is not Risk.READ or op.body is None:
            return None
        given = op.apart
        if plain(op.path) in self.collections or not any(200 <= code < 300 for code in op.codes):
            return None  # what stands there is added to, or nothing says how it goes
        if 200 not in found.codes or not found.needed - bare(found) <= given or given & _VIEWS:
            return None
        lists = [name for name, about in op.body.fields.items() if "array" in about.kinds]
        shown = Shape(name="", fields={name: about for name, about in op.body.fields.items() if not about.write_only})
        return replace(found, answer=shown, lists=f"$.{lists[0]}" if len(lists) == 1 else "")

    def read_as(self, op: Op) -> Mapping[str, Op]:
        """All operations by their ids, the read of `op` as it is taken to be."""
        taken = self.unsaid_read(op)
        return self.ids if taken is None else ChainMap({taken.id: taken}, self.ids)

    def empty(self, make: Op, item: Op, there: JsonObject) -> tuple[CallTemplate, ...] | None:
        """That nothing was put into what was made, which is `there`; None where that can't be read."""
        made = []
        for path in sorted(self.holders.get(plain(item.path), ())):
            found = self.lists.get(path)
            if found is None or found.needed != bare(found) or not self.goes(make, found) or found.optional & _VIEWS:
                return None
            asked, holes = HOLE.findall(found.path), HOLE.findall(item.path)
            if len(asked) != len(holes):
                return None  # `/rates/{from}/{to}` is no list of what is in `/rates/{id}`
            arguments: JsonObject = {name: there[own] for name, own in zip(asked, holes, strict=True)}
            says = "Something was put into it since"
            expect = Expect(op="equals", path=found.lists, value=[], says=f"{says} ({path.rpartition('/')[2]})")
            made.append(CallTemplate(method=found.id, arguments=arguments, expect=(expect,)))
        return tuple(made)

    def holds_others(self, path: str) -> bool:
        """Whether something can be put into what stands at a path (without the names of its holes), or below it."""
        return path in self.holders or _has_below(self.written, path)

    def writes_alone(self, op: Op) -> bool:
        """Whether nothing but `op` writes to the thing at its path, or to what stands below it."""
        path = plain(op.path)
        there = bisect_right(self.writers, path) - bisect_left(self.writers, path)
        return there == 1 and not _has_below(self.writers, path)

    def goes(self, op: Op, *others: Op) -> bool:
        """Whether the others need no permission beyond what the action could be granted itself."""
        return all((op.virtual and other.virtual) or bool(op.scopes & other.scopes) for other in others)


def _by_place(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operations, each at the place of what it is about: `POST /things/create` at `/things`, and `POST
    /things/{id}/delete` as what deletes `/things/{id}`, unless something else is said to do that."""
    taken = {(op.http, plain(op.path)) for op in ops}
    return tuple(
        replace(op, http=place[0], path=place[1])
        if (place := _place(op)) is not None and (place[0], plain(place[1])) not in taken
        else op
        for op in ops
    )


def _by_id(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operations, each that changes the one thing whose id its body holds (`PUT /things`) at the place of that."""
    taken = {(op.http, plain(op.path)) for op in ops}
    items: dict[str, list[Op]] = {}
    for op in ops:
        if op.http == "GET" and last_hole(op.path) and op.answer is not None:
            items.setdefault(parent(op.path), []).append(op)
    made = []
    for op in ops:
        item = found[0] if len(found := items.get(op.path, [])) == 1 else None
        alone = item is not None and op.http in ("PUT", "PATCH") and (op.http, plain(item.path)) not in taken
        # A PUT of what nothing else makes may be what makes it.
        if item is not None and alone and (("POST", plain(op.path)) in taken or _updates(op)):
            op = _at_item(op, item, last_hole(item.path))
        made.append(op)
    return tuple(made)


def _updates(op: Op) -> bool:
    """Whether an operation changes what is there, by its method or by its name alone."""
    named = set(words(op.name))
    return op.http == "PATCH" or (bool(_UPDATES & named) and not _MAKES & named)


def _at_item(op: Op, item: Op, hole: str) -> Op:
    """`op` at the place of `item`, if it surely changes one thing, which its body and the read call the same."""
    if op.body is None or op.body_around or last_hole(op.path) or _MANY.search(f"{op.name} {op.said}"):
        return op
    if {word.removesuffix("s") for word in words(op.said[:60])[:1]} & {*_MAKES, "request"}:
        return op
    id = id_of(hole, replace(op, answer=op.body), item)
    if id is None or id not in op.body.fields or op.body.fields[id].read_only or id_of(hole, item, item) != id:
        return op
    taken = hole in op.needed or hole in op.optional - op.body.fields.keys()
    if taken or tuple(sorted(op.forms.items())) != forms_without(item, hole):
        return op
    holes, forms = {**op.holes, hole: item.holes[hole]}, {**op.forms, hole: item.forms[hole]}
    return replace(op, path=item.path, holes=holes, forms=forms, needed=op.needed | {hole}, given={hole: id})


def _place(op: Op) -> tuple[str, str] | None:
    stem, _, word = op.path.rpartition("/")
    http = _SAYS[bool(last_hole(stem))].get(word.lower())
    if not stem or http is None or op.http not in ("POST", http or "PUT") or (http == "DELETE" and op.has_body):
        return None
    return http or op.http, stem


def _has_below(paths: Sequence[str], path: str) -> bool:
    """Whether one of `paths`, which are sorted, goes on where `path` ends."""
    ends = ((f"{path}{sign}", bisect_left(paths, f"{path}{sign}")) for sign in "/:")
    return any(at < len(paths) and paths[at].startswith(start) for start, at in ends)


def in_part(read: Op) -> bool:
    """Whether a read may show only a part of the thing by itself."""
    beside = {"include"} if read.around == "data." and read.answer and "attributes" in read.answer.fields else set()
    return bool((read.optional & _VIEWS) - beside)
