"""What the screen knows: the questions that wait, which one is looked at, and what may be done with it. Pure.

Rules:

* The selection is the person's. Nothing that arrives, ends or changes places moves it; when what was selected ends,
  nothing is selected.
* A key counts only for a question that has stood on the screen for a moment, so that nothing slides under a finger.
* Nothing can be allowed before its last line was on the screen, nor from a text that was cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from policies.display_text import escape

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

MOMENT = 0.6  # seconds that a question must have stood on the screen before a key counts for it

_ENDS = {
    "approved": "allowed",
    "denied": "denied",
    "expired": "not answered in time: no answer denies",
    "withdrawn": "withdrawn by whoever asked",
}
# What moves while a question waits; all else of it is fixed by its digest.
_MOVING = ("place", "waiting", "count", "deadline", "state")


@dataclass(slots=True)
class Item:
    """One question. `whole` is it with nothing cut, once that was fetched."""

    brief: pb.Approval
    whole: pb.Approval | None = None
    shown: float | None = None  # when it came onto the screen, whole
    seen: bool = False  # its last line was on the screen

    @property
    def id(self) -> str:
        return self.brief.id


@dataclass(slots=True)
class Board:
    """All of it. Times are seconds of one monotonic clock, apart from deadlines."""

    items: dict[str, Item] = field(default_factory=dict)
    selected: str = ""
    connected: bool = False
    ended: str = ""  # what became of the question that was selected
    mine: set[str] = field(default_factory=set)  # questions that were decided here

    @property
    def queue(self) -> list[Item]:
        """In the daemon's order; without one, in the order in which they came."""
        return sorted(self.items.values(), key=lambda item: item.brief.place or 1_000_000)

    @property
    def current(self) -> Item | None:
        return self.items.get(self.selected)

    def put(self, approval: pb.Approval) -> str:
        """Take in what the daemon says of one question. Returns a word about one that has ended, "" otherwise."""
        known = self.items.get(approval.id)
        if approval.state not in ("", "pending"):
            return self._end(approval) if known is not None else ""
        for twin in approval.same_as:
            self._absorb(twin, approval.id)
        if known is None:
            self.items[approval.id] = Item(approval, None if approval.brief else approval)
            return ""
        known.brief = approval
        if not approval.brief:
            self.fetched(approval)
        elif known.whole is not None:
            for name in _MOVING:
                setattr(known.whole, name, getattr(approval, name))
            del known.whole.same_as[:]
            known.whole.same_as.extend(approval.same_as)
        return ""

    def fetched(self, approval: pb.Approval) -> None:
        """Take in the whole of a question. If it isn't what stood on the screen, it counts as not seen."""
        item = self.items.get(approval.id)
        if item is None or approval.brief:
            return
        if item.whole is None or (item.whole.digest, *item.whole.lines) != (approval.digest, *approval.lines):
            item.shown, item.seen = None, False
        item.whole = approval

    def resync(self, pending: Iterable[pb.Approval]) -> str:
        """After a connection: what the daemon doesn't list any more has ended meanwhile."""
        self.connected = True
        listed = {approval.id: approval for approval in pending}
        gone = [id for id in self.items if id not in listed]
        for id in gone:
            del self.items[id]
        if self.selected in gone:
            self.selected, self.ended = "", "It was settled meanwhile: goex log says how."
        for approval in listed.values():
            self.put(approval)
        return f"{len(gone)} ended while the daemon was away." if gone else ""

    def select(self, id: str) -> None:
        """The person's choice, and nobody else's."""
        if id != self.selected and (item := self.items.get(id)) is not None:
            item.shown = None
            self.selected, self.ended = id, ""

    def step(self, by: int) -> str:
        """The id `by` places further in the queue; the first (or last) one when nothing is selected; "" for none."""
        order = [item.id for item in self.queue]
        if not order:
            return ""
        if self.selected not in order:
            return order[0 if by > 0 else -1]
        return order[min(max(order.index(self.selected) + by, 0), len(order) - 1)]

    def stands(self, id: str, now: float, *, end: bool) -> None:
        """The question is on the screen now; `end`: its last line, too."""
        item = self.items.get(id)
        if item is not None and item.whole is not None:
            item.shown = now if item.shown is None else item.shown
            item.seen = item.seen or end

    def why_not(self, now: float, today: datetime, *, allow: bool) -> str:
        """Why a key can't decide the selected question now; "" when it can. Denying needs less."""
        item = self.current
        if item is None:
            return self.ended or "Choose a question first (↑ ↓)."
        if not self.connected:
            return "The daemon is away: nothing can be decided until it is back."
        if item.id in self.mine:
            return "That is being decided."
        if item.whole is None or item.shown is None:
            return "It isn't on the screen yet."
        if now - item.shown < MOMENT:
            return "It has only just appeared: look at it first."
        if remaining(item.brief.deadline, today) == 0:
            return "Its time has run out."
        if allow and not item.seen:
            return "Read it to its end first (space, PgDn)."
        if allow and (item.whole.brief or not item.whole.digest):
            return "It isn't here as a whole, so it can't be allowed from here."
        return ""

    def _end(self, approval: pb.Approval) -> str:
        del self.items[approval.id]
        how = _ENDS.get(approval.state, escape(approval.state))
        here = approval.id in self.mine
        self.mine.discard(approval.id)
        by = f" by {escape(approval.settled_by)}" if approval.settled_by and not here else ""
        word = f"{escape(approval.id)}: {how}{by}{'' if here else ' (settled elsewhere)'}."
        if approval.id == self.selected:
            self.selected, self.ended = "", word
        return word

    def _absorb(self, twin: str, into: str) -> None:
        """A question that is shown as one with another has no line of its own any more."""
        if twin != into and twin in self.items:
            del self.items[twin]
            if self.selected == twin:
                self.selected, self.ended = "", f"It is the same as {escape(into)}, and stands there now."


def remaining(deadline: str, now: datetime) -> int | None:
    """Seconds until `deadline`, at least 0; None when it isn't known."""
    try:
        return max(0, int((datetime.fromisoformat(deadline) - now).total_seconds()))
    except (ValueError, TypeError):
        return None


def clock(seconds: int | None) -> str:
    """`4:07`, `2 h 05`; "?" when it isn't known."""
    if seconds is None:
        return "?"
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02}"
    return f"{seconds // 60}:{seconds % 60:02}"
