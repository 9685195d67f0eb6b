"""How much each agent may ask for: requests, their bytes, looks at what it asked for, and calls to a model.

Rules: what is over it is refused before anything is journaled, so that a refusal leaves no row; one row says when an
agent's first was refused, and the next how many there were in between. The person has no quota. Agents without a name
have one each, by connection, and all of them together have four times that, since a connection costs nothing.
"""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from goex.journal.chain import Journal
from policies.errors import Denied, GoexError
from policies.grants import ANONYMOUS, PERSON
from policies.jsonvalue import JsonObject
from policies.limits import QUOTA, Quota

_TOGETHER = 4  # times a quota for all agents without a name
_MOST = 2000  # buckets that are kept
_LOOKS = 10  # times the requests
_LOOK_SIZE = 16 * 1024  # characters of an action's texts that are one look
MOST_WATCHED = 256  # actions that an agent follows at once
MOST_WAITING = 128  # of one kind and one agent, under way or waiting for their turn
MAPPINGS = "mappings"  # and assessments
JUDGEMENTS = "judgements"  # of a coding agent's own tools, whose hook doesn't wait long: they have turns of their own
_TOLD_EVERY = timedelta(minutes=10)
_LATER = "Ask again later, and more slowly; the person can raise it: [limits] in config.toml"


class Exhausted(Denied):
    """An agent asked for more than its quota."""

    code = "exhausted"


@dataclass(slots=True)
class _Bucket:
    """Refills evenly up to `most`."""

    most: float
    a_second: float
    left: float
    at: datetime

    def now(self, now: datetime) -> float:
        self.left = min(self.most, self.left + max(0.0, (now - self.at).total_seconds()) * self.a_second)
        self.at = now
        return self.left


@dataclass(slots=True)
class Quotas:
    """What each agent has left."""

    journal: Journal
    clock: Callable[[], datetime]
    quota: Quota = QUOTA
    _buckets: dict[tuple[str, str], _Bucket] = field(default_factory=dict)
    _doing: dict[tuple[str, str], int] = field(default_factory=dict)
    _told: dict[str, tuple[datetime, int]] = field(default_factory=dict)  # when a row was written; refused since
    _turns: WeakValueDictionary[tuple[str, str], Semaphore] = field(default_factory=WeakValueDictionary)

    def take(self, agent: str, session: str, size: int) -> None:
        """One more request, of that many bytes. Raises Exhausted."""
        self._spend(agent, session, {"requests": 1, "bytes": size})

    def more(self, agent: str, session: str, size: int) -> None:
        """So many bytes more in a request that was taken, which stand elsewhere. Raises Exhausted."""
        self._spend(agent, session, {"bytes": size})

    def look(self, agent: str, session: str, looks: int = 1) -> None:
        """One more look at something that was asked for; 0: none, where what was read before is paid off. Raises
        Exhausted."""
        self._spend(agent, session, {"looks": looks})

    def read(self, agent: str, session: str, size: int) -> None:
        """Texts of that length were read for it: they count whether or not there is as much left. Raises Exhausted."""
        self._spend(agent, session, {"looks": size / _LOOK_SIZE}, spent=True)

    @contextmanager
    def watching(self, agent: str, session: str) -> Iterator[None]:
        """While an agent follows an action. Raises Exhausted where it follows too many already."""
        with self._at_once(agent, session, "actions followed at once", MOST_WATCHED):
            yield

    def model(self, agent: str, session: str, calls: int) -> None:
        """So many calls to a model. Raises Exhausted."""
        self._spend(agent, session, {"calls to the model": calls})

    @asynccontextmanager
    async def doing(self, agent: str, session: str, what: str = MAPPINGS) -> AsyncIterator[None]:
        """While an agent's words are looked at: a few at a time, the others wait. Raises Exhausted where too many
        do."""
        with self._at_once(agent, session, f"{what} at once", MOST_WAITING):
            async with self.turn(agent, session, what):
                yield

    def turn(self, agent: str, session: str, what: str = MAPPINGS) -> Semaphore:
        """What lets a few of an agent's requests of one kind work at a time, whatever others ask; the person doesn't
        wait."""
        line = next((line for line, _ in _lines(agent, session)), "")
        return self._turns.setdefault((line, what), Semaphore(self.quota.at_once)) if line else Semaphore()

    @contextmanager
    def _at_once(self, agent: str, session: str, what: str, most: int) -> Iterator[None]:
        line = next((line for line, _ in _lines(agent, session)), "")
        if line and self._doing.get((line, what), 0) >= most:
            raise self._refused(agent, line, what, f"{most} at a time", "Ask again when some of them have ended.")
        self._doing[line, what] = self._doing.get((line, what), 0) + 1
        try:
            yield
        finally:
            self._doing[line, what] -= 1
            if not self._doing[line, what]:
                del self._doing[line, what]

    def _spend(self, agent: str, session: str, amounts: Mapping[str, float], *, spent: bool = False) -> None:
        """Take all of it, or, unless it is `spent` already, nothing. Raises Exhausted."""
        now, lacking = self.clock(), None
        wanted = [(line, what, times) for line, times in _lines(agent, session) for what in amounts]
        for line, what, times in wanted:
            bucket = self._bucket(line, what, times)
            if bucket.now(now) < min(amounts[what], bucket.most):
                lacking = lacking or (line, what)
        if lacking is None or spent:
            for line, what, times in wanted:
                self._bucket(line, what, times).left -= amounts[what]
        if lacking is not None:
            raise self._refused(agent, *lacking, _SAID[lacking[1]](self.quota))

    def _bucket(self, line: str, what: str, times: int) -> _Bucket:
        found = self._buckets.get((line, what))
        if found is None:
            if len(self._buckets) >= _MOST:
                self._forget()
            most, seconds = _SIZES[what](self.quota)
            found = _Bucket(most * times, most * times / seconds, most * times, self.clock())
            self._buckets[line, what] = found
        return found

    def _forget(self) -> None:
        """Forget what is full again; and connections, where that isn't enough: all of them together are still held."""
        now = self.clock()
        self._buckets = {key: one for key, one in self._buckets.items() if one.now(now) < one.most}
        if len(self._buckets) >= _MOST:
            self._buckets = {key: one for key, one in self._buckets.items() if not key[0].startswith("conn-")}

    def _refused(self, agent: str, line: str, what: str, quota: str, next_step: str = _LATER) -> Exhausted:
        now = self.clock()
        told, since = self._told.pop(line, (None, 0))
        if len(self._told) >= _MOST:
            del self._told[next(iter(self._told))]
        if told is None or now - told > _TOLD_EVERY:
            self._told[line] = now, 0
            with suppress(GoexError):  # it is refused all the same
                facts: JsonObject = {"what": what, "more": since, "by": "goex"}
                self.journal.append("quota", lasting=False, agent=agent, facts=facts)
        else:
            self._told[line] = told, since + 1
        return Exhausted(
            f"{agent} asked for more than its quota of {what}: {quota}.",
            next_step=next_step,
        )


_SIZES: dict[str, Callable[[Quota], tuple[float, float]]] = {
    "requests": lambda quota: (quota.requests, 60.0),
    "bytes": lambda quota: (quota.megabytes * 2**20, 3600.0),
    "looks": lambda quota: (quota.requests * _LOOKS, 60.0),
    "calls to the model": lambda quota: (quota.model_calls, 3600.0),
}
_SAID: dict[str, Callable[[Quota], str]] = {
    "requests": lambda quota: f"{quota.requests} a minute",
    "bytes": lambda quota: f"{quota.megabytes} MiB an hour",
    "looks": lambda quota: f"{quota.requests * _LOOKS} a minute",
    "calls to the model": lambda quota: f"{quota.model_calls} an hour",
}


def _lines(agent: str, session: str) -> tuple[tuple[str, int], ...]:
    """Whose quota a request is of, and how many times one that is."""
    if agent == PERSON:
        return ()
    return ((session, 1), (ANONYMOUS, _TOGETHER)) if agent == ANONYMOUS else ((agent, 1),)
