"""Documents from how they are to how they shall be: `before` is what is expected now, `after` the goal.

Rules: everything is compared before anything is set, byte by byte; what differs is listed by id and field, without
values, since whoever asked for the action may not be allowed to see what others wrote. In a transaction the order only
has to suit unique indexes. Without one every write carries its own comparison, and what can't be put in its place is
tried again after the others; documents that wait for each other (keys that were exchanged) are taken out first, and so
are those that are too large to be compared and replaced in one statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from policies.display_text import escape, shorten
from policies.errors import Conflict, GoexError
from runtimes.mongo.backend import Duplicate, Unit, Vanished
from runtimes.mongo.extjson import decode, encode, shown
from runtimes.mongo.guards import Guards
from runtimes.mongo.job import changed_meanwhile, now
from runtimes.mongo.records import Change, Lifted

_MOST_SHOWN = 20
_FITS = 15 * 2**20  # bytes of both sides of a document: no statement may be larger than 16 MB


def named(change: Change) -> str:
    """How one document is called, for a person."""
    text, cut = shorten(shown(decode(change.id)["_id"]), 80)
    return escape(f"{change.collection} _id {text}{'…' if cut else ''}")


def refuse_difference(
    unit: Unit, changes: Sequence[Change], *, begun: bool = False, lifted: Collection[tuple[str, bytes]] = ()
) -> list[Change]:
    """Raise Conflict unless every document is as expected. `begun`: some were moved already, and those in `lifted` may
    have been taken out. Returns what still has to be done."""
    there = now(unit, changes)
    left: list[Change] = []
    different: list[str] = []
    for change in changes:
        found = there.get(change.key)
        if begun and found == change.after:
            continue
        if found is None and change.key in lifted:
            left.append(replace(change, before=None))
            continue
        left.append(change)
        if found != change.before:
            different.append(difference(change, found))
    if different:
        shown_first = different[:_MOST_SHOWN]
        more = len(different) - len(shown_first)
        raise Conflict(
            f"{len(different)} {'document was' if len(different) == 1 else 'documents were'} changed since by somebody "
            "else; nothing was touched.",
            next_step="Look at them, and bring them to how they should be by hand.",
            difference=(*shown_first, *((f"and {more} more",) if more else ())),
        )
    return left


def apart(unit: Unit, changes: Sequence[Change]) -> bool:
    """Whether some document isn't as it shall be."""
    there = now(unit, changes)
    return any(there.get(change.key) != change.after for change in changes)


def difference(change: Change, found: bytes | None) -> str:
    """What isn't as expected of one document, without any value."""
    if found is None:
        return f"{named(change)}: it isn't there any more"
    if change.before is None:
        return f"{named(change)}: somebody made one with this _id"
    was, now_is = decode(change.before), decode(found)
    fields = [key for key in {**was, **now_is} if _alone(was, key) != _alone(now_is, key)]
    if not fields:
        return f"{named(change)}: the order of its fields differs"
    text, cut = shorten(", ".join(fields), 200)
    return f"{named(change)}: {escape(text)}{'…' if cut else ''}"


def _alone(document: dict[str, Any], key: str) -> bytes | None:
    return encode({"": document[key]}) if key in document else None


# ---- in a transaction


def move_at_once(unit: Unit, changes: Sequence[Change], *, lift: bool) -> None:
    """What was compared, moved in one transaction. Raises Duplicate: then it has to be rolled back. `lift`: documents
    are taken out and put back, so that unique keys may change places among them."""
    outs = [change for change in changes if change.before is not None and (change.after is None or lift)]
    ins = [change for change in changes if change.after is not None and (change.before is None or lift)]
    for change in outs:
        if unit.delete(change.collection, change.filter) != 1:
            raise changed_meanwhile()
    if not lift:
        for change in changes:
            if change.before is None or change.after is None:
                continue
            if unit.replace(change.collection, change.filter, change.after) != 1:
                raise changed_meanwhile()
    for change in ins:
        assert change.after is not None
        unit.insert(change.collection, [change.after])


# ---- one by one


class Stuck(Conflict):
    """A key that is unique is somebody else's now."""


@dataclass(slots=True)
class OneByOne:
    """Moves documents without a transaction. `noted` is told of those that are taken out for a moment, before they are
    and once they are back: in between they are neither as before nor as after."""

    unit: Unit
    noted: Lifted
    guards: Guards
    moved: list[Change] = field(default_factory=list)
    lifted: list[Change] = field(default_factory=list)  # may have been taken out

    def move(self, changes: Iterable[Change]) -> None:
        """Raises Stuck, and Conflict when somebody changes one of them meanwhile: `moved` says how far it came."""
        waiting = sorted(changes, key=lambda change: (change.after is not None, change.before is None))
        while waiting:
            again: list[Change] = []
            index = ""
            for change in waiting:
                try:
                    if change.before is not None and change.after is not None and change.size > _FITS:
                        change = self._lift(change)
                    self._one(change)
                except Duplicate as error:
                    again.append(change)
                    index = error.index
            if len(again) == len(waiting):
                again = self._make_room(again, index)
            waiting = again

    def back(self) -> None:
        """Undo what was moved. Raises as `move` does."""
        out = {change.key: change for change in self.lifted}
        moved = [out.pop(change.key, change).reversed for change in reversed(self.moved)]
        missing = [replace(change, before=None, after=change.before) for change in out.values()]
        OneByOne(self.unit, self.noted, self.guards).move([*moved, *missing])

    def _one(self, change: Change) -> None:
        if change.after is None:
            assert change.before is not None
            done = self.unit.delete(change.collection, self.guards.of(change.collection, change.before))
        elif change.before is None:
            self.unit.insert(change.collection, [change.after])
            done = 1
        else:
            done = self.unit.replace(change.collection, self.guards.of(change.collection, change.before), change.after)
        if done != 1:
            raise Conflict(
                "Somebody changed a document while it was being put back.", difference=(f"{named(change)}: it differs",)
            )
        self.moved.append(change)
        if change.before is None:
            self.noted.back(change.key)

    def _make_room(self, waiting: list[Change], index: str) -> list[Change]:
        first = next((change for change in waiting if change.before is not None), None)
        if first is None:
            raise Stuck(
                f"A document that somebody made since has a key that is unique ({index}).",
                next_step="Change or remove that document, then ask again.",
                difference=tuple(named(change) for change in waiting[:_MOST_SHOWN]),
            )
        return [*(change for change in waiting if change is not first), self._lift(first)]

    def _lift(self, change: Change) -> Change:
        """Take a document out; what is left to do for it."""
        assert change.before is not None
        self.lifted.append(change)
        try:
            self.noted.out(change)
            if self.unit.delete(change.collection, self.guards.of(change.collection, change.before)) != 1:
                raise Conflict("Somebody changed a document while it was being put back.", difference=(named(change),))
        except Vanished:
            raise
        except GoexError:
            self.lifted.pop()  # it is still there: nobody has to put it back
            self.noted.back(change.key)
            raise
        return replace(change, before=None)
