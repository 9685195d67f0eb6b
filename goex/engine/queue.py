"""The order in which questions are answered, and which of them are the same question. Pure: nothing here is on disk.

Rules: a session's questions stand in the order in which they came; an agent's sessions take turns, and so do agents,
whoever had their turn longest ago first: a flood of one puts nobody else further back than by one question a round. A
session that comes stands behind those of its agent that wait: a connection costs nothing, and whoever opens a new one
for each question would have every turn.
Identical questions (same agent, same session, nothing different in what is shown) stand in one place, that of the
oldest: when that one is answered, the next of them takes the place that its own age gives it.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from goex.journal.actions import ActionRow
from policies.jsonvalue import canonical
from runtimes.idempotency import action_key

_KEY = re.compile(r"goex-[0-9a-f]{32}")
_MOST_CALLS = 64


@dataclass(frozen=True, slots=True)
class Waiting:
    """One question, as far as its place depends on it."""

    id: str
    action_id: str
    agent: str
    session: str
    alike: str  # a hash over all that is shown of it


@dataclass(slots=True)
class _Line:
    """What one agent waits for: by session, the numbers of the questions that stand for their duplicates, sorted."""

    sessions: dict[str, list[int]] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(numbers) for numbers in self.sessions.values())

    @property
    def head(self) -> int:
        return min(numbers[0] for numbers in self.sessions.values())

    def order(self) -> list[str]:
        return sorted(self.sessions, key=lambda session: (self.turns[session], self.sessions[session][0]))

    def numbers(self) -> Iterator[int]:
        """In the order in which they are answered."""
        return _rounds([self.sessions[session] for session in self.order()])


class Queue:
    """What waits."""

    def __init__(self) -> None:
        self._number = 0
        self._turn = 0
        self._waiting: dict[str, tuple[int, Waiting]] = {}
        self._ids: dict[int, str] = {}
        self._duplicates: dict[tuple[str, str, str], dict[int, str]] = {}
        self._lines: dict[str, _Line] = {}
        self._turns: dict[str, int] = {}
        self._of: dict[str, dict[str, None]] = {}

    def enter(self, waiting: Waiting) -> None:
        """Add one at the end of its session's line. Idempotent."""
        if waiting.id in self._waiting:
            return
        self._number += 1
        self._waiting[waiting.id] = self._number, waiting
        self._ids[self._number] = waiting.id
        self._of.setdefault(waiting.agent, {})[waiting.id] = None
        duplicates = self._duplicates.setdefault(_alike(waiting), {})
        duplicates[self._number] = waiting.id
        if len(duplicates) == 1:
            self._stand(waiting, self._number)

    def leave(self, id: str) -> None:
        """It was settled. Whoever it was asked for has had a turn. Idempotent."""
        number, waiting = self._waiting.pop(id, (0, None))
        if waiting is None:
            return
        del self._ids[number], self._of[waiting.agent][id]
        duplicates = self._duplicates[_alike(waiting)]
        stood = min(duplicates) == number
        del duplicates[number]
        line = self._lines[waiting.agent]
        if stood:
            line.sessions[waiting.session].remove(number)
            if duplicates:
                self._stand(waiting, min(duplicates))
        self._turn += 1
        self._turns[waiting.agent] = line.turns[waiting.session] = self._turn
        if not duplicates:
            del self._duplicates[_alike(waiting)]
        if not line.sessions[waiting.session]:
            del line.sessions[waiting.session], line.turns[waiting.session]
        if not line.sessions:
            del self._lines[waiting.agent]
        if not self._of[waiting.agent]:
            del self._of[waiting.agent]

    def order(self) -> tuple[str, ...]:
        """The questions that stand for themselves and their duplicates: the first is to be answered next."""
        lines = [list(self._lines[agent].numbers()) for agent in self._agents()]
        return tuple(self._ids[number] for number in _rounds(lines))

    def place(self, id: str) -> int:
        """Where it stands, or the one that stands for it; 1 is next, 0: it doesn't wait."""
        if id not in self._waiting:
            return 0
        waiting = self._waiting[id][1]
        number = min(self._duplicates[_alike(waiting)])
        line = self._lines[waiting.agent]
        before = bisect_left(line.sessions[waiting.session], number)
        within = _rank(line.order(), line.sessions, waiting.session, before)
        return 1 + _rank(self._agents(), self._lines, waiting.agent, within)

    def duplicates(self, id: str) -> tuple[str, ...]:
        """All that are identical to it, itself among them, oldest first; () when it doesn't wait."""
        if id not in self._waiting:
            return ()
        duplicates = self._duplicates[_alike(self._waiting[id][1])]
        return tuple(duplicates[number] for number in sorted(duplicates))

    def get(self, id: str) -> Waiting | None:
        found = self._waiting.get(id)
        return found[1] if found else None

    def of(self, *, agent: str = "", session: str = "") -> tuple[str, ...]:
        """The questions of an agent, of a session, or of an agent in a session, oldest first."""
        ids = self._of.get(agent, {}) if agent else self._waiting
        return tuple(id for id in ids if not session or self._waiting[id][1].session == session)

    def count(self, agent: str = "") -> int:
        """How many wait, each twin counted."""
        return len(self._of.get(agent, ())) if agent else len(self._waiting)

    def __len__(self) -> int:
        """How many places there are, duplicates counted once."""
        return sum(len(line) for line in self._lines.values())

    def _stand(self, waiting: Waiting, number: int) -> None:
        line = self._lines.setdefault(waiting.agent, _Line())
        line.turns.setdefault(waiting.session, self._turn)
        insort(line.sessions.setdefault(waiting.session, []), number)

    def _agents(self) -> list[str]:
        return sorted(self._lines, key=lambda agent: (self._turns.get(agent, 0), self._lines[agent].head))


def alike(row: ActionRow) -> str:
    """A hash over all that is shown of a question. Keys that are made anew for each action, so that a service tells its
    sendings apart, differ between duplicates and say nothing."""
    own: set[str] = set()

    def blank(found: re.Match[str]) -> str:
        if not own:
            own.update(action_key(row.id, call, turn) for call in range(_MOST_CALLS) for turn in ("", "/undo"))
        return "goex-key" if found[0] in own else found[0]

    shown = [row.agent, row.session, row.source, row.intent, row.kind, row.target, _KEY.sub(blank, row.plan)]
    return hashlib.sha256(canonical(shown)).hexdigest()


def _alike(waiting: Waiting) -> tuple[str, str, str]:
    return waiting.agent, waiting.session, waiting.alike


def _rounds(lines: list[list[int]]) -> Iterator[int]:
    """The first of each line, then the second of each."""
    place = 0
    while lines:
        lines = [line for line in lines if len(line) > place]
        yield from (line[place] for line in lines)
        place += 1


def _rank(order: list[str], lines: dict[str, list[int]] | dict[str, _Line], name: str, place: int) -> int:
    """How many come before the one at `place` (0-based) of its line, when lines take turns in this order."""
    mine = order.index(name)
    return sum(min(len(lines[other]), place + (turn < mine)) for turn, other in enumerate(order))
