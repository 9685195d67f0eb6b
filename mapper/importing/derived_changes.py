"""Ways back of what changes a thing that is there: its fields are written back, its state is turned back. Pure.

Rules: as in `derived_undo`. What was left is what the answer shows, else what was asked for.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mapper.importing.operation import Op, Shape
from mapper.importing.risks import words
from mapper.importing.undo_evidence import Evidence, in_part
from mapper.importing.undo_parts import (
    LOCKS,
    MAX_FIELDS,
    SET_BY_SERVICE,
    akin,
    as_before,
    bare,
    body_of,
    equals,
    fixed_parts,
    gone,
    is_state,
    last_hole,
    locked,
    once,
    plain,
    reads,
    same,
    same_names,
    state_is,
    unchanged,
    verb_of,
    without_signs,
    writable,
)
from policies.services import ARGUMENTS, CallTemplate, Expect, Risk, UndoTemplate

# What deleting the record of it doesn't bring back: money, what a machine or a courier does, what was sent or agreed.
_FOR_GOOD = frozenset(
    {
        "charges", "payments", "payouts", "refunds", "transfers", "subscriptions", "orders", "purchases",
        "transactions", "deposits", "withdrawals", "shipments", "bookings", "deliveries", "donations", "deploys",
        "deployments", "builds", "runs", "jobs", "executions", "engagements", "batch", "batches",
        "sms", "faxes", "approvals",
    }
)  # fmt: skip
# What is owed on one of these, and what was agreed, is moved by its state.
_MOVED = _FOR_GOOD | {"invoices", "bills", "disputes", "claims", "quotes", "contracts"}
# Of these one may be in use at a time: what takes its place isn't taken back with it.
_ONE_OF = frozenset({"versions", "snapshots", "revisions", "releases", "builds", "themes", "drafts", "configurations"})
_UNSURE = "Whether it is there already can't be told, so that it couldn't be taken back."
_DELETES = re.compile(r"\b(?:delet|remov)", re.IGNORECASE)
_ADDS = frozenset({"create", "add", "insert", "new", "register", "invite"})
_CHANGES = frozenset({"update", "edit", "modify", "change", "set", "save", "patch", "put"})
_STARTS = frozenset({"execute", "start", "run", "launch", "trigger"})
# "<p>Updates the specified customer by setting the values of the parameters passed": of one thing, by its words alone.
_UPDATES = re.compile(r"(?i)(?:\W|<\w+>)*updates?\s+(?:an?|the|this|one)\b")
# What a change may begin or make anew, where no more is answered than which thing it is of.
_BEGUN = re.compile(r"(?i)\b(?:generat|request|send|start|trigger)")
# What these fields of a PATCH hold is to be done, and isn't what is there afterwards.
_TO_DO = frozenset({"instructions", "operations", "ops", "actions", "changes", "commands", "patch", "patches"})
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
# What each of these verbs makes of a thing's states.
STATES: dict[str, dict[str, bool]] = {}
for _verb, _opposite, _states in _PAIRS:
    STATES.setdefault(_verb, {}).update(dict.fromkeys(_states, True))
    STATES.setdefault(_opposite, {}).update(dict.fromkeys(_states, False))


def patch(known: Evidence, op: Op) -> UndoTemplate | None:
    """Of what changes only the fields that it is given: a PATCH, or a POST on a thing that needs none of them."""
    read = known.read_of(op, part=True) or known.unsaid_read(op)
    if read is None or op.body is None or read.answer is None or not known.goes(op, read) or op.body_around:
        return None
    answered = same(op.answer, read.answer) and op.around == read.around and not read.untold
    other = op.answer is not None and op.answer.name and read.answer.name and op.answer.name != read.answer.name
    if other or (op.answer is not None and op.around != read.around) or _goes_on(op, read.answer):
        return None
    if op.http == "PATCH" and (_DELETES.search(op.said[:150]) or _TO_DO & op.body.fields.keys()):
        return None  # what its lists say is done to what is there, and isn't what is there afterwards
    if moves(op) or (op.http == "POST" and not (answered and _only_changes(known, op))):
        return None
    mask = next((name for name in ("updateMask", "update_mask") if name in op.optional | op.needed), "")
    if op.apart - ({mask} if mask else set()) != read.needed:
        return None
    if "$select" in read.optional and not read.select:
        return None
    tags = sorted({name for name, each in op.body.fields.items() if each.tag} | set(op.given.values()))
    fields = [name for name in writable(op.body, odd=True) if name not in LOCKS and name not in tags]
    fields = [name for name in fields if name not in SET_BY_SERVICE or name in op.body.needed]
    fields = [name for name in fields if reads(read.answer, [name], op.body)]
    fields = [name for name in fields if not read.shows or name in read.shows]
    if not fields or op.body.needed - set(fields) - set(tags):
        return None
    there = op.there(read.needed)
    looked = CallTemplate(method=read.id, arguments=there)
    there_or_not = Expect(op="status", value=[200, 404, 410], says=_UNSURE)
    return UndoTemplate(
        # One that makes what it doesn't find isn't sent as what can be taken back where nothing is there.
        pre=replace(looked, expect=(there_or_not,)) if 201 in op.codes else looked,
        guard=looked,
        calls=(CallTemplate(method=op.id, arguments=op.there(read.needed - op.given.keys())),),
        verify=looked,
        source="derived",
        restores=ARGUMENTS if op.spread else "body",
        answered=answered,
        shown=in_part(read) or read.untold,
        rest=op.http == "POST",
        fields=tuple(sorted([*fields, *tags])[:1000]),
        mask=mask,
        select=read.select,
        tags=tuple(tags),
        around=read.around,
    )


def for_good(op: Op) -> bool:
    """Whether what an operation is about is done for good: its record can be changed, and it not."""
    return bool(_kind(op.path) & _FOR_GOOD)


def _kind(path: str) -> set[str]:
    """The last word of a path: what it is about, also of several (`/order/{id}`)."""
    return {kind for word in words((fixed_parts(path) or [""])[-1])[-1:] for kind in (word, f"{word}s")}


def unanswered(op: Op) -> Op:
    """`op`, whose answer says which thing it changed and nothing of what became of it, as one without an answer. Not
    where it sets a state, or is about what is done for good: an id may then be all that is said of what it began."""
    kind = without_signs((fixed_parts(op.path) or [""])[-1])
    ids = {"id", "itemid"} | {f"{one}id" for one in (kind, kind[:-1], f"{kind[:-3]}y") if one}
    if op.answer is None or 202 in op.codes or not {without_signs(name) for name in op.answer.fields} <= ids:
        return op
    begins = sets_state(op.body) or for_good(op) or _BEGUN.search(op.said[:150])
    return op if begins else replace(op, answer=None, around="")


def sets_state(body: Shape | None) -> bool:
    """Whether a body has a thing's state, which may be one that it doesn't leave: cancelled."""
    return body is not None and any(set(words(name)[-1:]) & {"status", "state", "requested"} for name in body.fields)


def moves(op: Op) -> bool:
    """Whether a change may move money, or what a machine does: it sets the state of what is done for good, or begins
    it."""
    named = [words(name) for name in op.body.fields] if op.body is not None else []
    said = any(set(each[-1:]) & {"status", "state", "voided"} or set(each) & _STARTS for each in named)
    return said and bool(_kind(op.path) & _MOVED)


def _makes(op: Op) -> bool:
    """Whether a POST says that it makes something."""
    return bool(_ADDS & {word.removesuffix("s") for word in words(op.said[:60])[:1]})


def _only_changes(known: Evidence, op: Op) -> bool:
    """Whether a POST on a thing changes what is there, and leaves alone what it isn't given."""
    assert op.body is not None
    said = words(op.name.rpartition(".")[2])
    path = plain(op.path)
    called = bool(_CHANGES & set(said[:1] + said[-1:])) and len(op.body.fields) > 1
    told = bool(_UPDATES.match(op.said)) and bool(last_hole(op.path)) and not sets_state(op.body)
    called = called or (told and not for_good(op))
    elsewhere = bool({201, 202} & op.codes) or path in known.collections or path in known.lists
    return called and not (op.body.needed or elsewhere or _makes(op))


def _goes_on(op: Op, thing: Shape) -> bool:
    """Whether what `op` began may go on by itself: it only takes it, or answers with another thing."""
    if op.codes & {200, 201, 202, 204} == {202}:
        return True
    other = not same(op.answer, thing)
    return op.answer is not None and other and (202 in op.codes or not akin(op.answer, thing))


def rewrite(known: Evidence, op: Op) -> UndoTemplate | None:
    """Of a PUT, or a POST of the very thing that is read at its place: it writes a thing as a whole."""
    read = known.read_of(op, part=True) or known.unsaid_read(op)
    if read is None or op.body is None or read.answer is None or not known.goes(op, read):
        return None
    itself = bool(op.body.name) and op.body.name == read.answer.name and not {201, 202} & op.codes
    if op.http == "POST" and (not (itself and last_hole(op.path)) or _makes(op)):
        return None
    if _adds(op, read) or _DELETES.search(op.said[:150]) or moves(op):
        return None
    if "$select" in read.optional or op.body.partial:
        return None  # what it doesn't show unasked, or what no document names, would be lost
    answered, shown = same(op.answer, read.answer) and not read.untold, in_part(read) or read.untold
    if _goes_on(op, read.answer):
        return None
    fields = [name for name in writable(op.body) if name not in SET_BY_SERVICE or name in op.body.needed]
    if op.apart != read.needed or not fields or len(fields) > MAX_FIELDS or locked(op.body, op.body.fields):
        return None
    if not reads(read.answer, fields, op.body) or not op.body.needed <= set(fields):
        return None
    there = op.there(read.needed)
    again = op.there(read.needed - op.given.keys())
    before, absent = CallTemplate(method=read.id, arguments=there), None
    whole: tuple[Expect, ...] = ()
    if not known.changes(op):  # it may make what it doesn't find
        other = None if read.untold else _unmade(known, op, read, answered=answered)
        whole = unchanged(read, op) if answered else ()
        before = replace(before, expect=(Expect(op="status", value=[200, 404, 410], says=_UNSURE),))
        if other is not None and (whole or not answered):
            absent = CallTemplate(method=other.id, arguments=there)
        else:
            whole = ()  # what it makes isn't taken back at all

    def left(name: str) -> str:
        # Without an answer, what was left is what was asked for: all of it, since what the request didn't have may
        # have got any value, and may be another's by then. A call without one of the fields has no such undo.
        told = op.answer is not None and name in op.answer.fields
        return f"$response.{op.around}{name}?" if told else f"$request.{op.asked(name)}"

    as_left = tuple(equals(f"{read.around}{name}", left(name), "It isn't as the action left it") for name in fields)
    return UndoTemplate(
        pre=before,
        guard=CallTemplate(method=read.id, arguments=there, expect=(*as_left, *whole)),
        calls=(CallTemplate(method=op.id, arguments={**again, **body_of(op, read, fields, shown=shown)}),),
        verify=CallTemplate(
            method=read.id,
            arguments=there,
            expect=as_before(read, fields),
        ),
        source="derived",
        absent=absent,
    )


def _adds(op: Op, read: Op) -> bool:
    """Whether a PUT may add to things that are listed at its place, as it is called or by what it takes: one list."""
    assert op.body is not None
    if op.http != "PUT" or not once(op.path):
        return False
    said = words(op.name.rpartition(".")[2])
    called = bool(_ADDS & set(said[:1])) and not {"update", "replace", "set", "edit"} & set(said)
    return called or (len(op.body.fields) == 1 and read.lists == f"$.{next(iter(op.body.fields))}")


def _unmade(known: Evidence, op: Op, read: Op, *, answered: bool) -> Op | None:
    """What deletes a thing that `op`, a PUT, made: None where it may take more with it than that made."""
    other = known.by.get(("DELETE", op.key))
    path = plain(op.path)
    if not last_hole(op.path) and (not once(op.path) or known.holds_others(path)):
        return None
    if other is None or other.needed != bare(other) or not known.goes(op, other):
        return None
    if read.needed != bare(read) or path in known.holders:
        return None
    if answered:
        return other
    # Nothing says what it was like when it was made: what else writes to it would be lost unseen.
    return other if known.writes_alone(op) else None


def toggle(known: Evidence, op: Op) -> UndoTemplate | None:
    """PUT and DELETE without a body on one path, where a GET says whether it is there."""
    put, delete, read = (known.by.get((http, op.key)) for http in ("PUT", "DELETE", "GET"))
    if put is None or delete is None or read is None or op.has_body or put.has_body or delete.has_body:
        return None
    if (
        404 not in read.codes
        or 200 in read.codes
        or read.risk is not Risk.READ
        or not known.goes(op, put, delete, read)
    ):
        return None
    if any(one.needed != bare(one) for one in (put, delete, read)) or plain(op.path) in known.holders:
        return None
    if read.answer is not None:
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


def turn(known: Evidence, op: Op) -> UndoTemplate | None:
    """`…/archive` and `…/unarchive` (or `:archive`) of one thing whose state can be read, or what puts `…/archive`
    there and what deletes it."""
    stem, sign, verb = verb_of(op.path)
    if not verb or op.needed != bare(op) or (op.http == "DELETE" and op.has_body) or _kind(stem) & _ONE_OF:
        return None
    for first, second, states in _PAIRS:
        if verb not in (first, second):
            continue
        other = _opposite_of(known, op, f"{stem}{sign}{second if verb == first else first}")
        read = known.by.get(("GET", (stem, op.key[1])))
        if other is None or read is None or read.answer is None or read.risk is not Risk.READ:
            continue
        state = next((name for name in read.answer.fields if is_state(name, states, read.answer)), "")
        if not state or other.needed != bare(other) or not known.goes(op, other, read):
            continue
        if read.needed != bare(read):
            continue
        there = same_names(op)
        on, off = state_is(f"{read.around}{state}", "equals"), state_is(f"{read.around}{state}", "not_equals")
        before, after = (off, on) if (verb == first) is (op.http != "DELETE") else (on, off)

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


def _opposite_of(known: Evidence, op: Op, there: str) -> Op | None:
    """What turns back what `op` turns: the same at the opposite's place, or at its own what deletes what it puts. One
    that a body says more to doesn't turn back what was deleted: that had it said."""
    if op.http != "DELETE":
        return known.by.get((op.http, (there, op.key[1]))) or known.by.get(("DELETE", op.key))
    makers = [made for http in ("PUT", "POST") if (made := known.by.get((http, op.key))) is not None]
    return makers[0] if len(makers) == 1 and not makers[0].has_body else None
