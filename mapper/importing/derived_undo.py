"""Ways back that follow from the form of a document: what creates and what deletes, what archives and unarchives, what
changes and what reads the same thing. Pure.

Rules: a wrong way back is worse than none, so that each needs strong evidence and is left out where one piece is
missing: the same path, an answer that is the thing itself, a read of the very same thing (to compare first, and to read
back after), a state that can be read, and permissions that the action itself can be granted. What others may put into a
thing isn't deleted with it, nor is anything that the caller named itself. Each is tried on a simulation of what its
document says; none of it was tried on the service: it says `derived`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from mapper.importing import simulated_service, undo_trial
from mapper.importing.derived_changes import for_good, patch, rewrite, toggle, turn, unanswered
from mapper.importing.operation import Field, Op
from mapper.importing.risks import words
from mapper.importing.undo_evidence import Evidence, in_part
from mapper.importing.undo_parts import (
    ITS_OWN,
    MAX_FIELDS,
    SET_BY_SERVICE,
    akin,
    as_before,
    bare,
    body_of,
    equals,
    fixed_parts,
    forms_without,
    gone,
    hidden,
    hides,
    id_of,
    is_name,
    last_hole,
    locked,
    once,
    parent,
    plain,
    reads,
    same,
    unchanged,
    writable,
)
from policies.jsonvalue import JsonValue
from policies.services import CallTemplate, Expect, Risk, UndoTemplate

_BRINGS_BACK = ("undelete", "restore", "untrash")
# "Deletes the form and all of its responses": these don't come back with it.
_MORE = re.compile(
    r"(?i)\b(?:and|with|including|as well as)\b[^.]{0,40}\b(?:its|it's|their|all|any|associated|related)\b"
)
# "Triggers a new engagement for the flow": what that began isn't taken back with its record.
_BEGINS = re.compile(r"(?i)\W*(?:trigger|execut|launch|run|start)\w*\b")
_PAYS = re.compile(r"(?i)^(payment_?(method|source|token)|credit_?card)")
# An answer with one of these is of work that goes on: what it makes may not be listed yet.
_UNDER_WAY = frozenset({"operation", "operations", "operationId", "operation_id", "job", "jobId", "job_id", "task"})
# A list that is shown in parts may not show what was made.
_PAGES = re.compile(
    r"(?i)page|limit|offset|cursor|after|before|start|size|count|next|token|skip|take|top|max|first|last|since|total|more|paging|pagination|meta"
)
_REFERRED = "What others made since that refers to it may go with it."
_PLACES = 200  # where things of one kind stand: of more it isn't looked for the one that is meant
# A DELETE that is called so ends what goes on, and may leave it there.
_ENDS = frozenset({"cancel", "close", "deactivate", "disable", "archive", "suspend", "expire"})


def derive(ops: Iterable[Op]) -> dict[str, UndoTemplate]:
    """The ways back of these operations of one document, by their ids; their templates name operations by ids, too."""
    known = Evidence(tuple(ops))
    tell = simulated_service.numbers()
    made: dict[str, UndoTemplate] = {}
    for op in known.ops:
        if op.risk is Risk.READ or op.risk is Risk.ADMIN or known.by[op.http, op.key] is None:
            continue
        found = _of(known, op)
        if found is not None and undo_trial.holds(op, found, known.read_as(op), tell):
            made[op.id] = found
    return made


def _of(known: Evidence, op: Op) -> UndoTemplate | None:
    if op.http in ("PUT", "PATCH"):
        op = unanswered(op)
    match op.http:
        case "POST":
            made = _create(known, op) or _create_listed(known, op)
            return turn(known, op) or made or patch(known, op) or rewrite(known, op)
        case "PATCH":
            return turn(known, op) or patch(known, op)
        case "PUT":
            return turn(known, op) or toggle(known, op) or rewrite(known, op)
        case "DELETE":
            return turn(known, op) or toggle(known, op) or _delete(known, op)
    return None


def _create(known: Evidence, op: Op) -> UndoTemplate | None:
    if last_hole(op.path) or op.risk is not Risk.WRITE or op.answer is None:
        return None
    if _done_for_good(op):
        return None
    found = known.deletes.get(op.path, []) or _elsewhere(known, op)
    if len(found) != 1:
        return None
    (other,) = found
    if _ENDS & set(words(other.name)):
        return None
    hole, outer = last_hole(other.path), bare(other) - {last_hole(other.path)}
    id = id_of(hole, op, other)
    if id is None or not known.goes(op, other):
        return None
    if "body" in other.needed or not outer <= bare(op) or not other.needed - bare(other) <= op.needed:
        return None
    if known.joins(op, other):
        return None
    if op.body is None and is_name(id):
        return None  # the call may say what it will be called, and meet what was there before
    first = id.partition(".")[0]
    chosen = op.body is not None and first in op.body.fields and not op.body.fields[first].read_only
    named = chosen and op.body is not None and (id in op.body.needed or id != first)
    if not named and not known.makes(op):
        return None
    made = f"$response.{op.around}{id}"
    read = known.read_of(other, op)
    if read is not None:
        looks = _looks(known, op, other, read, made) or (None if chosen else _as_sent(known, op, other, read, made))
    else:
        looks = None if named else _listed(known, op)
    empty = known.empty(op, other, {**{name: f"$request.{name}" for name in outer}, hole: made})
    if looks is None or empty is None:
        return None
    before = None
    if named and read is not None:
        # The call says what it will be called: that must be free, or it is somebody else's.
        said = gone("There is one of this name already, so that its creation couldn't be taken back.")
        asked = {**looks[0].arguments, hole: f"$request.{op.asked(id)}"}
        before = CallTemplate(method=read.id, arguments=asked, expect=(said,))
    there = {name: f"$request.{name}" for name in sorted(outer | (other.needed - bare(other)))}
    guard, verify = looks
    return UndoTemplate(
        pre=before,
        calls=(CallTemplate(method=other.id, arguments={**there, hole: made}),),
        guard=guard,
        guards=empty,
        verify=verify,
        source="derived",
        note=_REFERRED if known.referred(other) else "",
        unless=op.asked(id) if chosen and not named else "",
        created=201 in op.codes,
    )


def _create_listed(known: Evidence, op: Op) -> UndoTemplate | None:
    """Of what isn't answered with what it makes: the list that this stands in is read before it and right after it."""
    listed, found = known.by.get(("GET", op.key)), known.deletes.get(op.path, [])
    if last_hole(op.path) or _done_for_good(op) or op.body is None or listed is None or len(found) != 1:
        return None
    (other,) = found
    hole, outer = last_hole(other.path), bare(op)
    if listed.risk is not Risk.READ or not listed.items or in_part(listed):
        return None
    if op.answer is not None and _UNDER_WAY & op.answer.fields.keys():
        return None
    beside = set(listed.answer.fields) - {listed.lists[2:]} if listed.answer is not None else set()
    if any(_PAGES.search(name) for name in (*listed.optional, *beside)):
        return None
    if not known.makes(op, named=True) or not known.goes(op, other, listed) or bare(other) - {hole} != outer:
        return None
    if "body" in other.needed or not (listed.needed - bare(listed)) | (other.needed - bare(other)) <= op.apart:
        return None
    id = id_of(hole, replace(op, answer=listed.items), other)
    sent = [name for name in writable(op.body) if name in listed.items.fields and name not in SET_BY_SERVICE]
    sent = [name for name in sent if _is_told(op.body.fields[name], listed.items.fields[name])]
    if id in op.body.fields and any(name.lower().strip("_") in ("id", "uid", "uuid") for name in listed.items.fields):
        return None  # a comment's text isn't what names it
    read = known.read_of(other, op)
    shows_all = read is None or read.answer is None or same(listed.items, read.answer)
    if id is None or not shows_all or not any("string" in op.body.fields[name].kinds for name in sent):
        return None
    made = f"$made.{id}"
    empty = known.empty(op, other, {**{name: f"$request.{name}" for name in outer}, hole: made})
    if empty is None:
        return None
    there = {name: f"$request.{name}" for name in sorted(listed.needed)}
    looked = CallTemplate(method=listed.id, arguments=there)
    held = Expect(op="contains", path=listed.lists, value=["$made"], says="It was changed since, or isn't listed")
    left = Expect(op="lacks", path=listed.lists, value=["$made"], says="It is still there")
    again = {name: f"$request.{name}" for name in sorted(outer | (other.needed - bare(other)))}
    return UndoTemplate(
        pre=looked,
        after=looked,
        made=listed.lists,
        fields=tuple(op.asked(name) for name in sorted(sent)),
        calls=(CallTemplate(method=other.id, arguments={**again, hole: made}),),
        guard=replace(looked, expect=(held,)),
        guards=empty,
        verify=replace(looked, expect=(left,)),
        source="derived",
        note=_REFERRED if known.referred(other) else "",
    )


def _is_told(sent: Field, shown: Field) -> bool:
    """Whether a value stands in a list as it was sent: a text, a number, yes or no."""
    plain_kinds = {"string", "integer", "boolean"}
    kinds = sent.kinds & shown.kinds
    return bool(kinds) and sent.kinds | shown.kinds <= plain_kinds and not (sent.write_only or shown.write_only)


def _done_for_good(op: Op) -> bool:
    paid = op.body is not None and any(_PAYS.search(name) for name in op.body.fields)
    begins = op.http == "POST" and bool(_BEGINS.match(op.said))
    return paid or begins or _mails(op) or for_good(op)


def _mails(op: Op) -> bool:
    """Whether a POST is a letter that is sent: it has a subject, and to whom it goes."""
    named = {name.lower() for name in op.body.fields} if op.http == "POST" and op.body is not None else set()
    return "subject" in named and bool(named & {"to", "recipient", "recipients"})


def _looks(known: Evidence, op: Op, item: Op, read: Op, made: str) -> tuple[CallTemplate, CallTemplate] | None:
    """What compares a thing that `op` made, and what reads back that it is gone: the read of its own."""
    guard = unchanged(read, op)
    if not guard or not same(op.answer, read.answer) or not known.goes(op, read):
        return None
    hole = last_hole(item.path)
    names = sorted((bare(item) - {hole}) | (read.needed - bare(read)))
    there = {**{name: f"$request.{name}" for name in names}, hole: made}
    return (
        CallTemplate(method=read.id, arguments=there, expect=guard),
        CallTemplate(method=read.id, arguments=there, expect=(gone("It is still there."),)),
    )


def _as_sent(known: Evidence, op: Op, item: Op, read: Op, made: str) -> tuple[CallTemplate, CallTemplate] | None:
    """The same of what is answered with little more than its id: it is as it was sent, and its read shows nothing else
    than that and what the service sets. A call without one of the fields has no such way back."""
    if op.body is None or op.body.partial or op.answer is None or read.answer is None or not known.goes(op, read):
        return None
    named = made.removeprefix(f"$response.{op.around}")
    if op.answer.fields.keys() - read.answer.fields.keys() - {named} - ITS_OWN or named in _UNDER_WAY:
        return None  # it says more than the thing does, as of work that goes on: its id may be that one's
    sent = [name for name in writable(op.body) if name not in SET_BY_SERVICE]
    id = id_of(last_hole(item.path), read, item)
    others = read.answer.fields.keys() - set(sent) - {id} - ITS_OWN
    if id is None or id in sent or not sent or len(sent) > MAX_FIELDS or others:
        return None
    if not reads(read.answer, sent, op.body) or not any("string" in op.body.fields[name].kinds for name in sent):
        return None
    names = sorted((bare(item) - {last_hole(item.path)}) | (read.needed - bare(read)))
    there = {**{name: f"$request.{name}" for name in names}, last_hole(item.path): made}
    says = "It isn't as the action made it"
    held = tuple(equals(f"{read.around}{name}", f"$request.{op.asked(name)}", says) for name in sent)
    return (
        CallTemplate(method=read.id, arguments=there, expect=held),
        CallTemplate(method=read.id, arguments=there, expect=(gone("It is still there."),)),
    )


def _listed(known: Evidence, op: Op) -> tuple[CallTemplate, CallTemplate] | None:
    """The same by the list that it stands in, where nothing reads it alone: just as it was answered. In another part
    of the list it isn't found, and stays."""
    listed = known.by.get(("GET", op.key))
    if listed is None or listed.risk is not Risk.READ or not listed.lists or in_part(listed):
        return None
    if listed.needed - bare(listed) or not listed.items or not known.goes(op, listed):
        return None
    if not same(op.answer, listed.items) or not same(listed.items, op.answer) or hidden(listed.items):
        return None  # what is shown only once isn't listed
    made: list[JsonValue] = [f"$response.{op.around}".removesuffix(".")]
    there = {name: f"$request.{name}" for name in sorted(bare(op))}
    held = Expect(op="contains", path=listed.lists, value=made, says="It was changed since, or isn't listed")
    left = Expect(op="lacks", path=listed.lists, value=made, says="It is still there")
    return (
        CallTemplate(method=listed.id, arguments=there, expect=(held,)),
        CallTemplate(method=listed.id, arguments=there, expect=(left,)),
    )


def _elsewhere(known: Evidence, op: Op) -> list[Op]:
    """The deletions of things like the one that `op` answers with, where these stand in another place than below
    their collection: `/columns/{id}` of `/projects/{id}/columns`."""
    if op.answer is None or not op.answer.name:
        return []
    fixed = fixed_parts(op.path)
    found = []
    alike = known.of_kind.get((fixed[-1] if fixed else "", op.answer.name), [])
    for other in alike if len(alike) <= _PLACES else ():
        rest, own = iter(fixed), fixed_parts(other.path)
        # With a collection of its own it is another kind of thing, unless the words of both paths are the same.
        apart = fixed != own and parent(plain(other.path)) in known.makers
        if not apart and all(part in rest for part in own) and bare(other) - {last_hole(other.path)} <= bare(op):
            found.append(other)
    return found


def _delete(known: Evidence, op: Op) -> UndoTemplate | None:
    hole, read = last_hole(op.path), known.read_of(op)
    if not hole:
        return _delete_part(known, op)
    if op.has_body or read is None or read.answer is None or plain(op.path) in known.holders or _MORE.search(op.said):
        return None
    if not op.needed - bare(op) <= read.needed or _done_for_good(op):
        return None
    if any(f"{plain(op.path)}{sign}{verb}" in known.paths for sign in ":/" for verb in _BRINGS_BACK):
        return None
    make = known.by.get(("POST", (parent(op.path), forms_without(op, hole))))
    put = known.by.get(("PUT", op.key))
    if put is not None and 201 in put.codes and not put.given:  # it says that it makes what isn't there
        return _made_again(known, op, read, put, hole, "")
    if make is None or bare(make) != bare(op) - {hole} or hole in make.others or make.body is None:
        return None
    if _done_for_good(make):
        return None
    own = hole in writable(make.body) and not re.search(r"(?i)id$", hole)  # another's id is no name of its own
    if own and hole in make.body.needed and known.makes(make, named=True):
        return _made_again(known, op, read, make, hole, "")
    if not known.makes(make) or make.answer is None:
        return None
    id = id_of(hole, make, op)
    alike = same(make.answer, read.answer) or akin(make.answer, read.answer) or set(make.answer.fields) == {id}
    if id is None or not alike or (id in writable(make.body) and not (own and id == hole)):
        return None  # who gives the id isn't sure
    return _made_again(known, op, read, make, id, f"$undo.{make.around}{id}")


def _delete_part(known: Evidence, op: Op) -> UndoTemplate | None:
    """Of a thing that is there once, a part or the settings of another: a PUT at its place sets it again."""
    read, put = known.read_of(op), known.by.get(("PUT", op.key))
    if op.has_body or read is None or read.answer is None or 404 not in read.codes or put is None:
        return None
    if not once(op.path):
        return None
    # What is made by a POST may only be changed by the PUT, and what is in it is gone.
    if ("POST", op.key) in known.by and 201 not in put.codes:
        return None
    if known.holds_others(plain(op.path)) or _done_for_good(op) or not op.needed - bare(op) <= read.needed:
        return None
    return _made_again(known, op, read, put, "", "")


def _made_again(known: Evidence, op: Op, read: Op, make: Op, id: str, anew: str) -> UndoTemplate | None:
    """What `op` deletes is made again by `make`, with what was read before: as it was called, or as `anew`."""
    assert read.answer is not None
    hole = last_hole(op.path)
    if (
        make.body is None
        or make.body.partial
        or read.answer.varies
        or not known.goes(op, make, read)
        or not make.apart - bare(make) <= op.needed
    ):
        return None
    kept = [name for name in writable(make.body) if name not in SET_BY_SERVICE or name in make.body.needed]
    if not kept or len(kept) > MAX_FIELDS or not reads(read.answer, kept, make.body):
        return None
    if not make.body.needed <= set(kept) or locked(make.body, kept):
        return None
    there = {name: f"$request.{name}" for name in sorted(read.needed)}
    again = {name: f"$request.{name}" for name in sorted(make.apart)}
    lost = sorted(set(read.answer.fields) - set(kept) - {id})
    if make.http == "POST" and hides(lost):
        return None  # a token that was deleted doesn't work again when another one is made
    note = "It is set again" if make.http == "PUT" else "It comes back as something new"
    if anew:
        note += f", with another {id}: what referred to the old one may not find it"
    if lost:
        note += f"; not as before: {', '.join(lost[:12])}{', …' if len(lost) > 12 else ''}"
    return UndoTemplate(
        pre=CallTemplate(method=read.id, arguments=there),
        guard=CallTemplate(method=read.id, arguments=there, expect=(gone("It is there again."),)),
        calls=(CallTemplate(method=make.id, arguments={**again, **body_of(make, read, kept)}),),
        verify=CallTemplate(
            method=read.id,
            arguments={**there, hole: anew} if anew else there,
            expect=as_before(read, kept),
        ),
        source="derived",
        note=note + ".",
    )
