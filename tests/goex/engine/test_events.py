"""What one who watches an action is told, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from goex.engine import events
from goex.engine.events import Finished, Hub, Printed, Stepped, Watcher
from goex.journal.actions import ActionRow
from goex.journal.states import State

ONE, TWO, THREE = Stepped("a", "to b", "b"), Stepped("b", "to c", "c"), Stepped("c", "to d", "d")
PRINTED = Printed("stdout", b"1\n")


def finished() -> Finished:
    texts: dict[str, Any] = dict.fromkeys(ActionRow.__dataclass_fields__, "")
    row = ActionRow(**{**texts, "number": 1, "state": State.DONE, "detached": False, "risk": 0})
    return Finished(row=row)


async def told(watcher: Watcher, count: int) -> list[object]:
    """So many events, after which there are no more."""
    async with asyncio.timeout(10):
        found: list[object] = [await watcher.get() for _ in range(count)]
    await asyncio.sleep(events.QUIET * 5)
    assert watcher._events.empty()
    return found


async def test_steps_that_follow_at_once_are_told_as_one() -> None:
    hub = Hub()
    watcher = hub.watch("a-1")
    for step in (ONE, TWO, THREE):
        hub.publish("a-1", step)
    assert await told(watcher, 1) == [Stepped("a", "to d", "d")]


async def test_a_step_that_nothing_follows_is_told_by_itself() -> None:
    watcher = Watcher()
    for step in (ONE, TWO):
        watcher.put(step)
        assert await told(watcher, 1) == [step]


async def test_steps_that_go_on_are_told_when_they_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "QUIET", 0.4)
    watcher = Watcher()
    for step in (ONE, TWO, THREE):
        watcher.put(step)
        await asyncio.sleep(events.QUIET * 0.6)
    assert await told(watcher, 1) == [Stepped("a", "to d", "d")]


async def test_anything_else_comes_after_the_steps_before_it() -> None:
    watcher = Watcher()
    for event in (ONE, PRINTED, TWO, THREE, PRINTED):
        watcher.put(event)
    assert await told(watcher, 4) == [ONE, PRINTED, Stepped("b", "to d", "d"), PRINTED]


async def test_the_end_tells_the_last_step_itself() -> None:
    watcher, end = Watcher(), finished()
    for event in (ONE, PRINTED, TWO, end):
        watcher.put(event)
    assert await told(watcher, 3) == [ONE, PRINTED, end]


async def test_each_who_watches_is_told_all() -> None:
    hub = Hub()
    watchers = [hub.watch("a-1"), hub.watch("a-1"), hub.watch("a-2")]
    hub.publish("a-1", ONE)
    hub.publish("a-1", PRINTED)
    hub.unwatch("a-1", watchers[0])
    hub.publish("a-1", TWO)
    expected: list[list[object]] = [[ONE, PRINTED], [ONE, PRINTED, TWO], []]
    assert [await told(watcher, len(each)) for watcher, each in zip(watchers, expected, strict=True)] == expected
    assert hub.awaited("a-1")
    hub.unwatch("a-1", watchers[1])
    looking = hub.watch("a-1", asked=False)
    assert not hub.awaited("a-1")  # who looks at it didn't ask for it
    hub.unwatch("a-1", looking)
