"""Turns at what there is little of, as threads or processes, so that nobody's many keep another's one waiting.

Who asks is named widest first, as an agent, a process of it, a connection of that; agents without a name are one.
Rules: whoever has fewest at work is next, and of equal ones whoever had a turn longest ago, looked at for the agent
first, then for its process, then for its connection. Whoever comes stands behind those who wait: connections cost
nothing, and who opened a new one for each request would have every turn. One agent has at most half of the places, so
that there is one for another at once, however long its own work takes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Who = tuple[str, ...]  # widest first

asking: ContextVar[Who] = ContextVar("asking", default=())  # for whom a task, and what it begins, works; (): nobody


class Counts(Counter[Who]):
    """How much of something is whose: an agent's, a process's of it, a connection's of that. () has all."""

    def add(self, who: Who, size: int = 1) -> None:
        for wide in range(len(who) + 1):
            self[who[:wide]] += size
            if not self[who[:wide]]:
                del self[who[:wide]]

    @contextmanager
    def more(self, who: Who, size: int = 1) -> Iterator[None]:
        self.add(who, size)
        try:
            yield
        finally:
            self.add(who, -size)

    def rank(self, who: Who) -> tuple[int, ...]:
        """The more its agent has, the higher; of equal ones, its process, then itself."""
        return tuple(self[who[:wide]] for wide in range(1, len(who) + 1))

    def has_more(self, one: Who, other: Who) -> bool:
        """Whether one has more than the other, counted for the widest in which they differ."""
        wide = next((wide for wide in range(1, len(one)) if one[:wide] != other[:wide]), len(one))
        return self[one[:wide]] > self[other[:wide]]


@dataclass(slots=True, eq=False)
class _Request:
    """One that waits for its turn."""

    who: Who
    begin: Callable[[], object]


@dataclass(slots=True)
class Turns:
    """So many `places`, given in turns. For one thread."""

    places: int
    _at_work: Counts = field(default_factory=Counts)
    _waiting: dict[Who, dict[_Request, None]] = field(default_factory=dict)  # of each the oldest first
    _present: Counts = field(default_factory=Counts)  # those who wait or are at work
    _turn: int = 0
    _had: dict[Who, int] = field(default_factory=dict)  # of each that is present its last turn, or when it came

    def ask(self, who: Who, begin: Callable[[], object]) -> Callable[[], None]:
        """Have `begin` called when it is this one's turn, which may be at once. What is returned ends the turn, or the
        wait for it; it is to be called once."""
        request = _Request(who, begin)
        self._present.add(who)
        for wide in range(1, len(who) + 1):
            self._had.setdefault(who[:wide], self._turn - 1)  # before the one that had its turn just now
        self._waiting.setdefault(who, {})[request] = None
        self._go_on()
        return lambda: self._end(request)

    @asynccontextmanager
    async def turn(self, who: Who) -> AsyncIterator[None]:
        """While it is this one's turn."""
        come = asyncio.Event()
        end = self.ask(who, come.set)
        try:
            await come.wait()
            yield
        finally:
            end()

    def _go_on(self) -> None:
        while self._at_work[()] < self.places:
            most = max(1, self.places // 2)
            who = min((one for one in self._waiting if self._at_work[one[:1]] < most), key=self._rank, default=None)
            if who is None:
                return
            request = next(iter(self._waiting[who]))
            self._wait_no_more(request)
            self._at_work.add(who)
            self._turn += 2
            self._had.update((who[:wide], self._turn) for wide in range(1, len(who) + 1))
            request.begin()

    def _rank(self, who: Who) -> tuple[tuple[int, int], ...]:
        return tuple((self._at_work[who[:wide]], self._had[who[:wide]]) for wide in range(1, len(who) + 1))

    def _wait_no_more(self, request: _Request) -> None:
        del self._waiting[request.who][request]
        if not self._waiting[request.who]:
            del self._waiting[request.who]

    def _end(self, request: _Request) -> None:
        if request in self._waiting.get(request.who, ()):
            self._wait_no_more(request)
        else:
            self._at_work.add(request.who, -1)
        self._present.add(request.who, -1)
        for wide in range(1, len(request.who) + 1):
            if request.who[:wide] not in self._present:
                del self._had[request.who[:wide]]
        self._go_on()
