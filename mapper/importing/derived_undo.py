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

from mapper.importing.operation import Op
from mapper.importing.risks import words
from mapper.importing.undo_parts import (
    HOLE,
    ITS_OWN,
    LOCKS,
    MAX_FIELDS,
    as_before,
    bare,
    body_of,
    equals,
    fixed_parts,
    forms_without,
    gone,
    id_of,
    is_state,
    last_hole,
    parent,
    plain,
    reads,
    same,
    same_names,
    state_is,
    unchanged,
    verb_of,
    writable,
)
from policies.jsonvalue import JsonObject
from policies.services import CallTemplate, Expect, Risk, UndoTemplate

_UNSURE = "Whether it is there already can't be told, so that it couldn't be taken back."
_MAKES = frozenset({"create", "insert", "add", "new", "post", "register", "make", "store"})
# With one of these a read may show only a part of the thing by itself.
_VIEWS = frozenset({"view", "format", "projection", "part", "expand", "include", "fields", "detail", "details"})
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
        collections = {parent(plain(op.path)) for op in ops if last_hole(op.path)}
        self._paths = {plain(op.path) for op in ops}
        self._makers = {plain(op.path) for op in ops if op.http == "POST"}
        self._deletes: dict[str, list[Op]] = {}
        self._of_kind: dict[tuple[str, str], list[Op]] = {}  # deletions by the last word of the path, and what is read
        # Things that others can put something into, and the collections that it goes to.
        self._holders: dict[str, set[str]] = {}
        self._lists = {plain(op.path): op for op in ops if op.http == "GET" and op.lists and op.risk is Risk.READ}
        for op in ops:
            if op.http == "DELETE" and last_hole(op.path):
                self._deletes.setdefault(parent(op.path), []).append(op)
                read, fixed = self._by.get(("GET", op.key)), fixed_parts(op.path)
                if read is not None and read.answer is not None and fixed and read.answer.name:
                    self._of_kind.setdefault((fixed[-1], read.answer.name), []).append(op)
            if op.http in ("POST", "PUT"):
                segments = plain(op.path).split("/")
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
        if last_hole(op.path) or op.risk is not Risk.WRITE or op.answer is None:
            return None
        found = self._deletes.get(op.path, []) or self._elsewhere(op)
        if len(found) != 1:
            return None
        (other,) = found
        hole, read = last_hole(other.path), self._read_of(other, op)
        if read is None or not self._goes(op, other, read):
            return None
        id = id_of(hole, op, other)
        if id is None or not same(op.answer, read.answer):
            return None
        outer = bare(other) - {hole}
        if "body" in other.needed or not outer <= bare(op) or not other.needed - bare(other) <= op.needed:
            return None
        chosen = op.body is not None and id in op.body.fields and not op.body.fields[id].read_only
        named = chosen and op.body is not None and id in op.body.needed
        if not named and not self._makes(op):
            return None
        there = {name: f"$request.{name}" for name in sorted(outer | (other.needed - bare(other)))}
        looked = {name: f"$request.{name}" for name in sorted(outer | (read.needed - bare(read)))}
        made = f"$response.{op.around}{id}"
        guard, empty = unchanged(read, op), self._empty(op, other, {**looked, hole: made})
        if not guard or empty is None:
            return None
        before = None
        if named:  # the call says what it will be called: that must be free, or it is somebody else's
            said = gone("There is one of this name already, so that its creation couldn't be taken back.")
            asked = {**looked, hole: f"$request.body.{op.body_around}{id}"}
            before = CallTemplate(method=read.id, arguments=asked, expect=(said,))
        there, looked = {**there, hole: made}, {**looked, hole: made}
        return UndoTemplate(
            pre=before,
            calls=(CallTemplate(method=other.id, arguments=there),),
            guard=CallTemplate(method=read.id, arguments=looked, expect=guard),
            guards=empty,
            verify=CallTemplate(method=read.id, arguments=looked, expect=(gone("It is still there."),)),
            source="derived",
            unless=f"body.{op.body_around}{id}" if chosen and not named else "",
        )

    def _elsewhere(self, op: Op) -> list[Op]:
        """The deletions of things like the one that `op` answers with, where these stand in another place than below
        their collection: `/columns/{id}` of `/projects/{id}/columns`."""
        if op.answer is None or not op.answer.name:
            return []
        fixed = fixed_parts(op.path)
        found = []
        for other in self._of_kind.get((fixed[-1] if fixed else "", op.answer.name), ()):
            rest, own = iter(fixed), fixed_parts(other.path)
            # With a collection of its own it is another kind of thing, unless the words of both paths are the same.
            apart = fixed != own and parent(plain(other.path)) in self._makers
            if not apart and all(part in rest for part in own) and bare(other) - {last_hole(other.path)} <= bare(op):
                found.append(other)
        return found

    def _delete(self, op: Op) -> UndoTemplate | None:
        hole = last_hole(op.path)
        if not hole or op.has_body:
            return None
        read = self._read_of(op)
        make = self._by.get(("POST", (parent(op.path), forms_without(op, hole))))
        if (
            read is None
            or not op.needed - bare(op) <= read.needed
            or make is None
            or not self._makes(make)
            or plain(op.path) in self._holders
        ):
            return None
        id = id_of(hole, make, op)
        if id is None or make.body is None or read.answer is None or not same(make.answer, read.answer):
            return None
        if not self._goes(op, make, read) or bare(make) != bare(op) - {hole}:
            return None
        if not make.needed - {"body"} - bare(make) <= op.needed or hole in make.optional:
            return None
        if any(f"{plain(op.path)}{sign}{verb}" in self._paths for sign in ":/" for verb in _BRINGS_BACK):
            return None
        if id in writable(make.body) and (id != hole or re.search(r"(?i)id$", id)):
            return None  # who gives the id isn't sure
        kept = [name for name in writable(make.body) if name not in ITS_OWN or name in make.body.needed]
        if not kept or len(kept) > MAX_FIELDS or not reads(read.answer, kept, make.body):
            return None
        if not make.body.needed <= set(kept) or set(kept) & LOCKS:
            return None
        there = {name: f"$request.{name}" for name in sorted(read.needed)}
        again = {name: f"$request.{name}" for name in sorted(make.needed - {"body"})}
        lost = sorted(set(read.answer.fields) - set(kept) - {id})
        note = "It comes back as something new" + ("" if id in kept else f", with another {id}")
        note += ": what referred to the old one may not find it"
        if lost:
            note += f"; not as before: {', '.join(lost[:12])}{', …' if len(lost) > 12 else ''}"
        return UndoTemplate(
            pre=CallTemplate(method=read.id, arguments=there),
            guard=CallTemplate(method=read.id, arguments=there, expect=(gone("It is there again."),)),
            calls=(CallTemplate(method=make.id, arguments={**again, "body": body_of(make, read, kept)}),),
            verify=CallTemplate(
                method=read.id,
                arguments={**there, hole: f"$undo.{make.around}{id}"},
                expect=as_before(read, kept),
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
        if op.answer is not None and not same(op.answer, read.answer):
            return None  # something that goes on by itself, or another thing
        mask = next((name for name in ("updateMask", "update_mask") if name in op.optional | op.needed), "")
        if op.needed - {"body"} - ({mask} if mask else set()) != read.needed:
            return None
        if "$select" in read.optional and not read.select:
            return None
        tags = sorted(name for name, each in op.body.fields.items() if each.tag)
        fields = [name for name in writable(op.body, odd=True) if name not in LOCKS and name not in tags]
        fields = [name for name in fields if reads(read.answer, [name], op.body)]
        fields = [name for name in fields if not read.shows or name in read.shows]
        if not fields or op.body.needed - set(fields) - set(tags):
            return None
        there = {name: f"$request.{name}" for name in sorted(read.needed)}
        looked = CallTemplate(method=read.id, arguments=there)
        return UndoTemplate(
            pre=looked,
            guard=looked,
            calls=(CallTemplate(method=op.id, arguments=there),),
            verify=looked,
            source="derived",
            restores="body",
            answered=same(op.answer, read.answer),
            fields=tuple(sorted([*fields, *tags])[:1000]),
            mask=mask,
            select=read.select,
            tags=tuple(tags),
            around=read.around,
        )

    def _replace(self, op: Op) -> UndoTemplate | None:
        read = self._read_of(op)
        if read is None or op.body is None or read.answer is None or not self._goes(op, read):
            return None
        if "$select" in read.optional:
            return None  # what it doesn't show unasked would be lost
        if op.answer is not None and not same(op.answer, read.answer):
            return None
        fields = [name for name in writable(op.body) if name not in ITS_OWN or name in op.body.needed]
        if op.needed - {"body"} != read.needed or not fields or len(fields) > MAX_FIELDS or set(op.body.fields) & LOCKS:
            return None
        if not reads(read.answer, fields, op.body) or not op.body.needed <= set(fields):
            return None
        there = {name: f"$request.{name}" for name in sorted(read.needed)}
        before, absent = CallTemplate(method=read.id, arguments=there), None
        whole: tuple[Expect, ...] = ()
        if not self._changes(op):  # it may make what it doesn't find
            other = self._unmade(op, read)
            whole = unchanged(read, op) if op.answer is not None else ()
            if other is None or (op.answer is not None and not whole):
                return None
            before = replace(before, expect=(Expect(op="status", value=[200, 404, 410], says=_UNSURE),))
            absent = CallTemplate(method=other.id, arguments=there)

        def left(name: str) -> str:
            # Without an answer, what was left is what was asked for: all of it, since what the request didn't have may
            # have got any value, and may be another's by then. A call without one of the fields has no such undo.
            return f"$response.{op.around}{name}?" if op.answer is not None else f"$request.body.{op.body_around}{name}"

        as_left = tuple(equals(f"{read.around}{name}", left(name), "It isn't as the action left it") for name in fields)
        return UndoTemplate(
            pre=before,
            guard=CallTemplate(method=read.id, arguments=there, expect=(*as_left, *whole)),
            calls=(CallTemplate(method=op.id, arguments={**there, "body": body_of(op, read, fields)}),),
            verify=CallTemplate(
                method=read.id,
                arguments=there,
                expect=as_before(read, fields),
            ),
            source="derived",
            absent=absent,
        )

    def _unmade(self, op: Op, read: Op) -> Op | None:
        """What deletes a thing that `op`, a PUT, made: None where it may take more with it than that made."""
        other = self._by.get(("DELETE", op.key))
        path = plain(op.path)
        if other is None or not last_hole(op.path) or other.needed != bare(other) or not self._goes(op, other):
            return None
        if 404 not in read.codes or read.needed != bare(read) or path in self._holders:
            return None
        if op.answer is not None:
            return other
        # Nothing says what it was like when it was made: what else writes to it would be lost unseen.
        writers = [each for each in self._ops if each.http in ("POST", "PUT", "PATCH") and each is not op]
        return None if any(plain(each.path).startswith((f"{path}/", f"{path}:")) or plain(each.path) == path
                           for each in writers) else other  # fmt: skip

    # ---- states

    def _toggle(self, op: Op) -> UndoTemplate | None:
        """PUT and DELETE without a body on one path, where a GET says whether it is there."""
        put, delete, read = (self._by.get((http, op.key)) for http in ("PUT", "DELETE", "GET"))
        if put is None or delete is None or read is None or op.has_body or put.has_body or delete.has_body:
            return None
        if 404 not in read.codes or read.risk is not Risk.READ or not self._goes(op, put, delete, read):
            return None
        if any(one.needed != bare(one) for one in (put, delete, read)) or plain(op.path) in self._holders:
            return None
        there = same_names(op)
        absent = CallTemplate(method=read.id, arguments=there, expect=(gone(""),))
        present = CallTemplate(method=read.id, arguments=there)
        adds = op is put
        before, after = (absent, present) if adds else (present, absent)
        said = "It is so already, so that nothing would be taken back." if adds else ""
        return UndoTemplate(
            pre=CallTemplate(method=read.id, arguments=there, expect=(gone(said),)) if adds else before,
            guard=after,
            calls=(CallTemplate(method=delete.id if adds else put.id, arguments=there),),
            verify=before,
            source="derived",
        )

    def _verb(self, op: Op) -> UndoTemplate | None:
        """`…/archive` and `…/unarchive` (or `:archive`) of one thing whose state can be read."""
        stem, sign, verb = verb_of(op.path)
        if not verb or op.needed != bare(op):
            return None
        for first, second, states in _PAIRS:
            if verb not in (first, second):
                continue
            opposite = second if verb == first else first
            other = self._by.get((op.http, (f"{stem}{sign}{opposite}", op.key[1])))
            read = self._by.get(("GET", (stem, op.key[1])))
            if other is None or read is None or read.answer is None or read.risk is not Risk.READ:
                continue
            state = next((name for name in read.answer.fields if is_state(name, states, read.answer)), "")
            if not state or other.needed != bare(other) or not self._goes(op, other, read):
                continue
            if read.needed != bare(read):
                continue
            there = same_names(op)
            on, off = state_is(f"{read.around}{state}", "equals"), state_is(f"{read.around}{state}", "not_equals")
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
        hole = last_hole(op.path)
        make = self._by.get(("POST", (parent(op.path), forms_without(op, hole)))) if hole else None
        if make is not None and self._makes(make):
            return True
        if 201 in op.codes or not op.codes:
            return False
        if ("DELETE", op.key) in self._by:
            return False  # it comes and goes: a PUT may be how it comes
        # Settings are there with what they are of; another thing is, where it says what happens when it isn't.
        return not hole or 404 in op.codes

    def _read_of(self, op: Op, call: Op | None = None) -> Op | None:
        """The GET of the very same thing, with nothing else than what `call` (`op` by default) is always given."""
        found = self._by.get(("GET", op.key))
        if found is None or found.risk is not Risk.READ or found.answer is None or not found.answer.fields:
            return None
        given = (call or op).needed - {"body"}
        return found if found.needed - bare(found) <= given and not (found.optional | given) & _VIEWS else None

    def _empty(self, make: Op, item: Op, there: JsonObject) -> tuple[CallTemplate, ...] | None:
        """That nothing was put into what was made, which is `there`; None where that can't be read."""
        made = []
        for path in sorted(self._holders.get(plain(item.path), ())):
            found = self._lists.get(path)
            if found is None or found.needed != bare(found) or not self._goes(make, found) or found.optional & _VIEWS:
                return None
            holes = zip(HOLE.findall(found.path), HOLE.findall(item.path), strict=True)
            arguments: JsonObject = {name: there[own] for name, own in holes}
            says = "Something was put into it since"
            expect = Expect(op="equals", path=found.lists, value=[], says=f"{says} ({path.rpartition('/')[2]})")
            made.append(CallTemplate(method=found.id, arguments=arguments, expect=(expect,)))
        return tuple(made)

    def _goes(self, op: Op, *others: Op) -> bool:
        """Whether the others need no permission beyond what the action could be granted itself."""
        return all((op.virtual and other.virtual) or bool(op.scopes & other.scopes) for other in others)
