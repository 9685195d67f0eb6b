"""What happens to an action, for whoever watches: plain values, translated to the wire elsewhere."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field, replace

from goex.journal.actions import ActionRow
from policies.actions import IntentMapping, Need, Plan
from policies.errors import GoexError

QUIET = 0.002  # seconds after a step in which the next is told together with it


@dataclass(frozen=True, slots=True)
class Stepped:
    before: str
    event: str
    after: str


@dataclass(frozen=True, slots=True)
class Printed:
    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Progressed:
    text: str


@dataclass(frozen=True, slots=True)
class Mapped:
    mapping: IntentMapping


@dataclass(frozen=True, slots=True)
class Asked:
    approval_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why it didn't end well."""

    code: str
    message: str
    next_step: str = ""
    exit_status: int = 1
    details: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: GoexError) -> Problem:
        return cls(
            code=error.code,
            message=error.message,
            next_step=error.next_step,
            exit_status=int(error.exit_status),
            details=tuple(getattr(error, "difference", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    row: ActionRow  # as it ended
    plan: Plan | None = None  # the row's, where it is at hand
    problem: Problem | None = None
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question to the person, with what they are shown."""

    id: str
    action_id: str
    digest: str
    state: str  # pending, approved, denied, expired, withdrawn
    created: str
    deadline: str
    reason: str
    widths: tuple[str, ...]
    presence: bool
    needs: tuple[Need, ...] = field(default=())
    settled_by: str = ""


Event = Stepped | Printed | Progressed | Mapped | Asked | Finished


class Watcher:
    """The events of one action, for one who watches. Steps that follow each other at once are told as one, from the
    state before the first to that after the last, when no other has come for QUIET; an end tells the last itself.
    `asked`: whether this is who asked for the action; its question stands as long as one of these is there."""

    def __init__(self, *, asked: bool = True) -> None:
        self.asked = asked
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._step: Stepped | None = None
        self._late = False  # whether one came since the timer was set

    async def get(self) -> Event:
        """The next event."""
        return await self._events.get()

    def put(self, event: Event) -> None:
        if isinstance(event, Stepped):
            if self._step is None:
                asyncio.get_running_loop().call_later(QUIET, self._quiet)
                self._step, self._late = event, False
            else:
                self._step, self._late = replace(event, before=self._step.before), True
            return
        if isinstance(event, Finished):
            self._step = None
        self._tell()
        self._events.put_nowait(event)

    def _quiet(self) -> None:
        if self._late:
            self._late = False
            asyncio.get_running_loop().call_later(QUIET, self._quiet)
        else:
            self._tell()

    def _tell(self) -> None:
        if self._step is not None:
            self._events.put_nowait(self._step)
            self._step = None


class Hub:
    """Hands each action's events to everyone who watches it; leaving is `unwatch`."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = defaultdict(set)

    def watch(self, action_id: str, *, asked: bool = True) -> Watcher:
        watcher = Watcher(asked=asked)
        self._watchers[action_id].add(watcher)
        return watcher

    def unwatch(self, action_id: str, watcher: Watcher) -> None:
        watching = self._watchers.get(action_id, set())
        watching.discard(watcher)
        if not watching:
            self._watchers.pop(action_id, None)

    def awaited(self, action_id: str) -> bool:
        """Whether somebody who asked for it watches."""
        return any(watcher.asked for watcher in self._watchers.get(action_id, ()))

    def publish(self, action_id: str, event: Event) -> None:
        for watcher in self._watchers.get(action_id, ()):
            watcher.put(event)
