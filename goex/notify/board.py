"""Which questions there are, and which of them have room on the screen. Pure: no clock, no bus, no daemon.

Rules: questions that the daemon calls identical are one entry that counts them; agents take turns for the room, so that
one that floods doesn't hide another; what the person closed stays away until it is asked anew, and is still undecided.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb


@dataclass(slots=True)
class Entry:
    """Identical questions, oldest first. `key` is the id of the one that came first."""

    key: str
    questions: dict[str, pb.Approval] = field(default_factory=dict)
    # The person closed it; or a terminal is open for it, or an answer is under way: it has no room now.
    closed: bool = False
    busy: bool = False
    # It was on the screen at least once, so its end is worth a word.
    seen: bool = False

    @property
    def first(self) -> pb.Approval:
        return next(iter(self.questions.values()))

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.questions)


class Board:
    """All that waits."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def asked(self, approval: pb.Approval) -> None:
        """A question is open; news of one that is known replaces it."""
        same = (self.of(id) for id in (approval.id, *approval.same_as))
        entry = next((found for found in same if found is not None), None)
        if entry is None:
            entry = self._entries.setdefault(approval.id, Entry(approval.id))
        entry.questions[approval.id] = approval

    def ended(self, id: str) -> Entry | None:
        """A question isn't open any more. Returns the entry that it stood in, None for one that isn't known."""
        entry = self.of(id)
        if entry is not None:
            del entry.questions[id]
            if not entry.questions:
                del self._entries[entry.key]
        return entry

    def of(self, id: str) -> Entry | None:
        return next((entry for entry in self._entries.values() if id in entry.questions), None)

    def entry(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def clear(self) -> None:
        self._entries.clear()

    def reopen(self) -> None:
        """Another notification server: what was closed on the old one is shown again."""
        for entry in self._entries.values():
            entry.closed = False

    def wanted(self, most: int) -> tuple[list[Entry], int]:
        """The entries that have room, at most `most`, and how many more there are."""
        turns: dict[str, int] = defaultdict(int)
        ranked: list[tuple[int, int, Entry]] = []
        for number, entry in enumerate(self._entries.values()):
            if entry.closed or entry.busy:
                continue
            agent = entry.first.agent
            ranked.append((turns[agent], number, entry))
            turns[agent] += 1
        ranked.sort(key=lambda item: item[:2])
        return [entry for _, _, entry in ranked[:most]], max(len(ranked) - most, 0)
