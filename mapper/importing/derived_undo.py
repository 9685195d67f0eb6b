"""Ways back that follow from the form of a document: what creates and what deletes, what archives and unarchives, what
changes and what reads the same thing. Pure.

Rules: a wrong way back is worse than none, so that each needs strong evidence and is left out where one piece is
missing: the same path, an answer that is the thing itself, a read of the very same thing (to compare first, and to read
back after), a state that can be read, and permissions that the action itself can be granted. What others may put into a
thing isn't deleted with it, nor is anything that the caller named itself. None of it was tried: it says `derived`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from mapper.importing.operation import Op, Shape
from mapper.importing.risks import words
from policies.jsonvalue import JsonObject
from policies.services import CallTemplate, Expect, Risk, UndoTemplate

MAX_FIELDS = 60  # of a thing that is compared or made again

_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_\-]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_MAKES = frozenset({"create", "insert", "add", "new", "post", "register", "make", "store"})
_VERSIONS = (
    "etag", "eTag", "revision", "resourceVersion", "resource_version", "fingerprint", "updated_at", "updatedAt",
    "updateTime", "updated", "modified", "modified_at", "modifiedAt", "modifiedTime", "lastModified",
    "last_modified", "version",
)  # fmt: skip
# What a service sets by itself: neither written back, nor the same after.
_ITS_OWN = frozenset(_VERSIONS[:-1]) | frozenset(
    (
        "created", "created_at", "createdAt", "createTime", "createdTime", "creationTime", "creationTimestamp",
        "selfLink", "self_link", "url", "href", "html_url", "links", "_links", "kind",
    )
)  # fmt: skip
_LOCKS = frozenset({"etag", "eTag", "revision", "resourceVersion", "resource_version", "fingerprint", "version"})
# What a read doesn't give back: written again without it, a thing would lose it.
_HIDDEN = re.compile(r"(?i)pass(word|phrase)|secret|private|credential|token|certificate|\bpem\b|^raw$|_?key(Data)?$")
# With one of these a read may show only a part of the thing by itself.
_VIEWS = frozenset({"view", "format", "projection", "part", "expand", "include", "fields", "detail", "details"})
# What a name in a path ends with that is a thing's own field: `{milestone_number}` is its `number`.
_IDS = frozenset({"sid", "uuid", "guid", "gid", "uid", "number", "slug", "key", "name", "code", "pk"})
_BRINGS_BACK = ("undelete", "restore", "untrash")
# A verb, its opposite, and what is true of a thing between the two.
_PAIRS = (
    ("archive", "unarchive", ("archived",)), ("star", "unstar", ("starred",)), ("lock", "unlock", ("locked",)),
    ("enable", "disable", ("enabled",)), ("disable", "enable", ("disabled",)), ("pin", "unpin", ("pinned",)),
    ("mute", "unmute", ("muted",)), ("hide", "unhide", ("hidden",)), ("hide", "show", ("hidden",)),
    ("follow", "unfollow", ("following", "followed")), ("subscribe", "unsubscribe", ("subscribed",)),
    ("block", "unblock", ("blocked",)), ("activate", "deactivate", ("active", "activated")),
    ("publish", "unpublish", ("published",)), ("flag", "unflag", ("flagged",)), ("like", "unlike", ("liked",)),
    ("watch", "unwatch", ("watching", "watched")), ("close", "reopen", ("closed",)),
    ("freeze", "unfreeze", ("frozen",)),
    ("trash", "untrash", ("trashed",)), ("trash", "restore", ("trashed",)), ("complete", "uncomplete", ("completed",)),
    ("favorite", "unfavorite", ("favorite", "favorited")), ("suspend", "unsuspend", ("suspended",)),
    ("snooze", "unsnooze", ("snoozed",)), ("feature", "unfeature", ("featured",)),
)  # fmt: skip


def derive(ops: Iterable[Op]) -> dict[str, UndoTemplate]:
    """The ways back of these operations of one document, by their ids; their templates name operations by ids, too."""
    return _Document(tuple(ops)).derive()


class _Document:
    def __init__(self, ops: tuple[Op, ...]) -> None:
        self._ops = ops
        self._by: dict[tuple[str, object], Op | None] = {}
        for op in ops:
            place = op.http, op.key
            self._by[place] = None if place in self._by else op  # two of the same: neither is sure
        collections = {_parent(_plain(op.path)) for op in ops if _last_hole(op.path)}
        self._paths = {_plain(op.path) for op in ops}
        self._deletes: dict[str, list[Op]] = {}
        # Things that others can put something into, and the collections that it goes to.
        self._holders: dict[str, set[str]] = {}
        self._lists = {_plain(op.path): op for op in ops if op.http == "GET" and op.lists and op.risk is Risk.READ}
        for op in ops:
            if op.http == "DELETE" and _last_hole(op.path):
                self._deletes.setdefault(_parent(op.path), []).append(op)
            if op.http in ("POST", "PUT"):
                segments = _plain(op.path).split("/")
                for end in range(2, len(segments)):
                    if segments[end - 1] == "{}" and "/".join(segments[: end + 1]) in collections:
                        self._holders.setdefault("/".join(segments[:end]), set()).add("/".join(segments[: end + 1]))

    def derive(self) -> dict[str, UndoTemplate]:
        made: dict[str, UndoTemplate] = {}
        for op in self._ops:
            if op.risk is Risk.READ or op.risk is Risk.ADMIN or self._by[op.http, op.key] is None:
                continue
            found = self._of(op)
            if found is not None:
                made[op.id] = found
        return made

    def _of(self, op: Op) -> UndoTemplate | None:
        match op.http:
            case "POST":
                return self._verb(op) or self._create(op)
            case "PATCH":
                return self._verb(op) or self._patch(op)
            case "PUT":
                return self._verb(op) or self._toggle(op) or self._replace(op)
            case "DELETE":
                return self._toggle(op) or self._delete(op)
        return None

    # ---- things that are made and deleted

    def _create(self, op: Op) -> UndoTemplate | None:
        if _last_hole(op.path) or not self._makes(op):
            return None
        found = self._deletes.get(op.path, [])
        if len(found) != 1:
            return None
        (other,) = found
        hole, read = _last_hole(other.path), self._read_of(other)
        if read is None or not self._goes(op, other, read):
            return None
        id = _id_of(hole, op, other)
        if id is None or not _same(op.answer, read.answer):
            return None
        if other.needed != _bare(other) or other.has_body or _bare(other) - {hole} != _bare(op):
            return None
        chosen = op.body is not None and id in op.body.fields and not op.body.fields[id].read_only
        if chosen and op.body is not None and id in op.body.needed:
            return None  # each call names it itself, so that none could be taken back
        there = {**_same_names(op), hole: f"$response.{op.around}{id}"}
        guard, empty = _unchanged(read, op), self._empty(op, other, id)
        if not guard or empty is None:
            return None
        return UndoTemplate(
            calls=(CallTemplate(method=other.id, arguments=there),),
            guard=CallTemplate(method=read.id, arguments=there, expect=guard),
            guards=empty,
            verify=CallTemplate(method=read.id, arguments=there, expect=(_gone("It is still there."),)),
            source="derived",
            unless=f"body.{op.body_around}{id}" if chosen else "",
        )

    def _delete(self, op: Op) -> UndoTemplate | None:
        hole = _last_hole(op.path)
        if not hole or op.has_body or _bare(op) != op.needed:
            return None
        read = self._read_of(op)
        make = self._by.get(("POST", (_parent(op.path), _forms_without(op, hole))))
        if read is None or make is None or not self._makes(make) or _plain(op.path) in self._holders:
            return None
        id = _id_of(hole, make, op)
        if id is None or make.body is None or read.answer is None or not _same(make.answer, read.answer):
            return None
        if not self._goes(op, make, read) or _bare(make) != _bare(op) - {hole}:
            return None
        if make.needed - {"body"} != _bare(make) or hole in make.optional:
            return None
        if any(f"{_plain(op.path)}{sign}{verb}" in self._paths for sign in ":/" for verb in _BRINGS_BACK):
            return None
        if id in _writable(make.body) and (id != hole or re.search(r"(?i)id$", id)):
            return None  # who gives the id isn't sure
        kept = [name for name in _writable(make.body) if name not in _ITS_OWN or name in make.body.needed]
        if not kept or len(kept) > MAX_FIELDS or not _reads(read.answer, kept, make.body):
            return None
        if not make.body.needed <= set(kept) or set(kept) & _LOCKS:
            return None
        there = {name: f"$request.{name}" for name in _bare(op)}
        again = {name: f"$request.{name}" for name in _bare(make)}
        lost = sorted(set(read.answer.fields) - set(kept) - {id})
        note = "It comes back as something new" + ("" if id in kept else f", with another {id}")
        note += ": what referred to the old one may not find it"
        if lost:
            note += f"; not as before: {', '.join(lost[:12])}{', …' if len(lost) > 12 else ''}"
        return UndoTemplate(
            pre=CallTemplate(method=read.id, arguments=there),
            guard=CallTemplate(method=read.id, arguments=there, expect=(_gone("It is there again."),)),
            calls=(CallTemplate(method=make.id, arguments={**again, "body": _body(make, read, kept)}),),
            verify=CallTemplate(
                method=read.id,
                arguments={**again, hole: f"$undo.{make.around}{id}"},
                expect=_as_before(read, kept),
            ),
            source="derived",
            note=note + ".",
        )

    # ---- things that are changed

    def _patch(self, op: Op) -> UndoTemplate | None:
        read = self._read_of(op)
        if read is None or op.body is None or read.answer is None or not self._goes(op, read):
            return None
        if op.body_around or (op.answer is not None and op.around != read.around):
            return None  # fields are written back by their names in the body itself
        if op.answer is not None and not _same(op.answer, read.answer):
            return None  # something that goes on by itself, or another thing
        mask = next((name for name in ("updateMask", "update_mask") if name in op.optional | op.needed), "")
        if op.needed - {"body"} - ({mask} if mask else set()) != _bare(op):
            return None
        fields = [name for name in _writable(op.body) if name not in _LOCKS]
        fields = [name for name in fields if _reads(read.answer, [name], op.body)]
        if not fields or op.body.needed - set(fields):
            return None
        there = _same_names(op)
        looked = CallTemplate(method=read.id, arguments=there)
        return UndoTemplate(
            pre=looked,
            guard=looked,
            calls=(CallTemplate(method=op.id, arguments=there),),
            verify=looked,
            source="derived",
            restores="body",
            answered=_same(op.answer, read.answer),
            fields=tuple(sorted(fields)[:1000]),
            mask=mask,
            around=read.around,
        )

    def _replace(self, op: Op) -> UndoTemplate | None:
        read = self._read_of(op)
        if read is None or op.body is None or read.answer is None or not self._goes(op, read):
            return None
        if not self._changes(op) or (op.answer is not None and not _same(op.answer, read.answer)):
            return None
        fields = [name for name in _writable(op.body) if name not in _ITS_OWN or name in op.body.needed]
        if op.needed - {"body"} != _bare(op) or not fields or len(fields) > MAX_FIELDS or set(op.body.fields) & _LOCKS:
            return None
        if not _reads(read.answer, fields, op.body) or not op.body.needed <= set(fields):
            return None
        there = _same_names(op)

        def left(name: str) -> str:
            # Without an answer, what was left is what was asked for: all of it, since what the request didn't have may
            # have got any value, and may be another's by then. A call without one of the fields has no such undo.
            return f"$response.{op.around}{name}?" if op.answer is not None else f"$request.body.{op.body_around}{name}"

        return UndoTemplate(
            pre=CallTemplate(method=read.id, arguments=there),
            guard=CallTemplate(
                method=read.id,
                arguments=there,
                expect=tuple(
                    _equals(f"{read.around}{name}", left(name), "It isn't as the action left it") for name in fields
                ),
            ),
            calls=(CallTemplate(method=op.id, arguments={**there, "body": _body(op, read, fields)}),),
            verify=CallTemplate(
                method=read.id,
                arguments=there,
                expect=_as_before(read, fields),
            ),
            source="derived",
        )

    # ---- states

    def _toggle(self, op: Op) -> UndoTemplate | None:
        """PUT and DELETE without a body on one path, where a GET says whether it is there."""
        put, delete, read = (self._by.get((http, op.key)) for http in ("PUT", "DELETE", "GET"))
        if put is None or delete is None or read is None or op.has_body or put.has_body or delete.has_body:
            return None
        if 404 not in read.codes or read.risk is not Risk.READ or not self._goes(op, put, delete, read):
            return None
        if any(one.needed != _bare(one) for one in (put, delete, read)) or _plain(op.path) in self._holders:
            return None
        there = _same_names(op)
        absent = CallTemplate(method=read.id, arguments=there, expect=(_gone(""),))
        present = CallTemplate(method=read.id, arguments=there)
        adds = op is put
        before, after = (absent, present) if adds else (present, absent)
        said = "It is so already, so that nothing would be taken back." if adds else ""
        return UndoTemplate(
            pre=CallTemplate(method=read.id, arguments=there, expect=(_gone(said),)) if adds else before,
            guard=after,
            calls=(CallTemplate(method=delete.id if adds else put.id, arguments=there),),
            verify=before,
            source="derived",
        )

    def _verb(self, op: Op) -> UndoTemplate | None:
        """`…/archive` and `…/unarchive` (or `:archive`) of one thing whose state can be read."""
        stem, sign, verb = _verb_of(op.path)
        if not verb or op.needed != _bare(op):
            return None
        for first, second, states in _PAIRS:
            if verb not in (first, second):
                continue
            opposite = second if verb == first else first
            other = self._by.get((op.http, (f"{stem}{sign}{opposite}", op.key[1])))
            read = self._by.get(("GET", (stem, op.key[1])))
            if other is None or read is None or read.answer is None or read.risk is not Risk.READ:
                continue
            state = next((name for name in read.answer.fields if _is_state(name, states, read.answer)), "")
            if not state or other.needed != _bare(other) or not self._goes(op, other, read):
                continue
            if read.needed != _bare(read):
                continue
            there = _same_names(op)
            on, off = _state(f"{read.around}{state}", "equals"), _state(f"{read.around}{state}", "not_equals")
            before, after = (off, on) if verb == first else (on, off)

            def looked(expect: Expect, says: str, read: Op = read, there: dict[str, str] = there) -> CallTemplate:
                return CallTemplate(method=read.id, arguments=there, expect=(replace(expect, says=says),))

            return UndoTemplate(
                pre=looked(before, "It is so already, so that nothing would change."),
                guard=looked(after, f"Its {state} was changed since."),
                calls=(CallTemplate(method=other.id, arguments=there),),
                verify=looked(before, f"Its {state} isn't as it was."),
                source="derived",
            )
        return None

    # ---- evidence

    def _makes(self, op: Op) -> bool:
        """Whether a POST on a collection surely makes a thing, and says which."""
        if op.http != "POST" or op.risk is not Risk.WRITE or op.answer is None:
            return False
        if {200, 201} <= op.codes:  # one of the two may mean that it was there already
            return False
        said = words(op.name.rpartition(".")[2])
        return 201 in op.codes or bool(_MAKES & set(said[:1] + said[-1:]))

    def _changes(self, op: Op) -> bool:
        """Whether a PUT changes what is there, and never makes it: things of its kind are made elsewhere, or its
        answers say so."""
        hole = _last_hole(op.path)
        make = self._by.get(("POST", (_parent(op.path), _forms_without(op, hole)))) if hole else None
        if make is not None and self._makes(make):
            return True
        if 201 in op.codes or not op.codes:
            return False
        if ("DELETE", op.key) in self._by:
            return False  # it comes and goes: a PUT may be how it comes
        # Settings are there with what they are of; another thing is, where it says what happens when it isn't.
        return not hole or 404 in op.codes

    def _read_of(self, op: Op) -> Op | None:
        """The GET of the very same thing, which needs nothing else."""
        found = self._by.get(("GET", op.key))
        if found is None or found.risk is not Risk.READ or found.answer is None or not found.answer.fields:
            return None
        return found if found.needed == _bare(found) and not found.optional & _VIEWS else None

    def _empty(self, make: Op, item: Op, id: str) -> tuple[CallTemplate, ...] | None:
        """That nothing was put into what was made; None where that can't be read."""
        made = []
        for path in sorted(self._holders.get(_plain(item.path), ())):
            found = self._lists.get(path)
            if found is None or found.needed != _bare(found) or not self._goes(make, found) or found.optional & _VIEWS:
                return None
            *outer, last = _HOLE.findall(found.path)
            own = _HOLE.findall(make.path)
            if len(outer) != len(own):
                return None
            there = {name: f"$request.{given}" for name, given in zip(outer, own, strict=True)}
            says = "Something was put into it since"
            expect = Expect(op="equals", path=found.lists, value=[], says=f"{says} ({path.rpartition('/')[2]})")
            made.append(
                CallTemplate(
                    method=found.id, arguments={**there, last: f"$response.{make.around}{id}"}, expect=(expect,)
                )
            )
        return tuple(made)

    def _goes(self, op: Op, *others: Op) -> bool:
        """Whether the others need no permission beyond what the action could be granted itself."""
        return all((op.virtual and other.virtual) or bool(op.scopes & other.scopes) for other in others)


def _plain(path: str) -> str:
    """A path without the names of its holes: the same thing may be named in several ways."""
    return _HOLE.sub("{}", path)


def _last_hole(path: str) -> str:
    found = _HOLE.fullmatch(path.rpartition("/")[2])
    return found[1] if found else ""


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _forms_without(op: Op, hole: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, form) for name, form in op.forms.items() if name != hole))


def _bare(op: Op) -> frozenset[str]:
    """The arguments in its path."""
    return frozenset(op.holes)


def _same_names(op: Op) -> dict[str, str]:
    return {name: f"$request.{name}" for name in sorted(op.holes)}


def _verb_of(path: str) -> tuple[str, str, str]:
    """What is before the verb, what parts them, and the verb."""
    for sign in (":", "/"):
        stem, found, verb = path.rpartition(sign)
        if found and verb.isalpha() and stem.endswith("}"):
            return stem, sign, verb.lower() if verb.islower() else verb
    return "", "", ""


def _id_of(hole: str, make: Op, item: Op) -> str | None:
    """The field of what is made that names it in the path of its item.

    That it is the right one is told by the read before the undo, which compares the whole thing.
    """
    assert make.answer is not None
    spelled = {_without_signs(name): name for name in make.answer.fields}
    last = re.split(r"_|-|(?<=[a-z])(?=[A-Z])", hole)[-1]
    ids = last.lower() in _IDS and (last if last in make.answer.fields else last.lower())
    for name in (hole, spelled.get(_without_signs(hole), ""), "id" if re.search(r"(?i)id$", hole) else "", ids or ""):
        found = make.answer.fields.get(name)
        if found is not None and _NAME.fullmatch(name):
            kinds = found.kinds & {"string", "integer", "number"}
            wanted = item.holes[hole]
            # Many documents say "number" where they mean a whole one.
            fits = kinds & wanted or ("number" in kinds | wanted and "integer" in kinds | wanted)
            return name if kinds and fits else None
    return None


def _without_signs(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _same(one: Shape | None, other: Shape | None) -> bool:
    """Whether two answers are the same thing."""
    if one is None or other is None or not one.fields:
        return False
    return one.name == other.name if one.name or other.name else set(one.fields) == set(other.fields)


def _writable(shape: Shape) -> list[str]:
    return [name for name, each in shape.fields.items() if not each.read_only and _NAME.fullmatch(name)]


def _reads(answer: Shape, names: Iterable[str], body: Shape) -> bool:
    """Whether all these fields of a body can be read in an answer, as values of the same kind."""
    for name in names:
        found, wanted = answer.fields.get(name), body.fields[name]
        if found is None or _HIDDEN.search(name) or found.write_only or wanted.write_only:
            return False
        if found.kinds and wanted.kinds and not found.kinds & wanted.kinds:
            return False
    return True


def _is_state(name: str, states: tuple[str, ...], shape: Shape) -> bool:
    plain = re.sub(r"^(is|has)_?(?=[A-Z_a-z])", "", name) if re.match(r"(is|has)[A-Z_]", name) else name
    return plain.lower() in states and shape.fields[name].kinds == {"boolean"}


def _body(op: Op, read: Op, names: Iterable[str]) -> JsonObject:
    """A body of these fields, with what was read before."""
    fields: JsonObject = {name: f"$pre.{read.around}{name}?-" for name in names}
    return {op.body_around.removesuffix("."): fields} if op.body_around else fields


def _as_before(read: Op, names: Iterable[str]) -> tuple[Expect, ...]:
    says = "It isn't as it was before"
    return tuple(_equals(f"{read.around}{name}", f"$pre.{read.around}{name}?", says) for name in names)


def _unchanged(read: Op, made: Op) -> tuple[Expect, ...]:
    """That a thing is as `made` answered it: by its version where it has one, else by all of its fields."""
    assert read.answer is not None
    names = [name for name in read.answer.fields if _NAME.fullmatch(name) and not read.answer.fields[name].write_only]
    version = next((name for name in _VERSIONS if name in names), "")
    wanted = [version] if version and version != "version" else names
    if len(wanted) > MAX_FIELDS or len(names) < len(read.answer.fields) - 5:
        return ()
    says = "It was changed since"
    return tuple(_equals(f"{read.around}{name}", f"$response.{made.around}{name}?", says) for name in wanted)


def _equals(name: str, value: str, says: str) -> Expect:
    return Expect(op="equals", path=f"$.{name}", value=value, says=f"{says} ({name})")


def _gone(says: str) -> Expect:
    return Expect(op="status", value=[404, 410], says=says)


def _state(name: str, op: Literal["equals", "not_equals"]) -> Expect:
    return Expect(op=op, path=f"$.{name}", value=True)
