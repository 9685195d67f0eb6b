"""Whose turn it is at folders that lie in one another: first come, first served, and the person's before agents'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import pytest

from runtimes.files import workers
from runtimes.files.workers import FolderLocks, HeldLocks

T = TypeVar("T")


@pytest.fixture(autouse=True)
def looked_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which folders these are is found out in no thread."""

    async def at_once(work: Callable[[], T]) -> T:
        return work()

    monkeypatch.setattr(workers, "in_thread", at_once)


class Queue:
    """Who holds what, in order of getting it; each until it is let go."""

    def __init__(self) -> None:
        self.locks = FolderLocks()
        self.got: list[str] = []
        self._go: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, *paths: str, first: bool = False) -> None:
        self._go[name] = asyncio.Event()

        async def hold() -> None:
            async with self.locks.hold(*paths, first=first):
                self.got.append(name)
                await self._go[name].wait()

        self.tasks[name] = asyncio.create_task(hold())
        await self._settle()

    async def leave(self, name: str) -> None:
        self._go[name].set()
        await self.tasks[name]
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.mark.promise(16)
async def test_two_that_take_turns_in_its_parts_dont_keep_the_whole() -> None:
    queue = Queue()
    await queue.come("a", "/p/a")
    await queue.come("b", "/p/b")
    await queue.come("whole", "/p")
    await queue.come("a again", "/p/a")
    await queue.leave("a")
    await queue.come("a once more", "/p/a")
    assert queue.got == ["a", "b"]
    await queue.leave("b")
    assert queue.got == ["a", "b", "whole"]
    await queue.leave("whole")
    assert queue.got[3:] == ["a again"]
    await queue.leave("a again")
    assert queue.got[4:] == ["a once more"]


@pytest.mark.promise(16)
async def test_the_persons_comes_before_all_that_wait() -> None:
    queue = Queue()
    await queue.come("a", "/p/a")
    await queue.come("agent's whole", "/p")
    await queue.come("agent's part", "/p/b")
    await queue.come("person's", "/p", first=True)
    await queue.leave("a")
    assert queue.got == ["a", "person's"]
    await queue.leave("person's")
    assert queue.got[2:] == ["agent's whole"]


async def test_what_overlaps_with_nobody_waits_for_nobody() -> None:
    queue = Queue()
    await queue.come("a", "/p/a")
    await queue.come("whole", "/p")
    await queue.come("elsewhere", "/q")
    await queue.come("like it by its name", "/pa")
    assert queue.got == ["a", "elsewhere", "like it by its name"]


async def test_several_are_taken_at_once_and_never_meet() -> None:
    queue = Queue()
    await queue.come("ab", "/a", "/b")
    await queue.come("bc", "/b", "/c")
    await queue.come("ca", "/c", "/a")
    await queue.come("c", "/c")
    await queue.come("d", "/d")
    assert queue.got == ["ab", "d"]
    await queue.leave("ab")
    await queue.leave("bc")
    await queue.leave("ca")
    assert queue.got == ["ab", "d", "bc", "ca", "c"]


async def test_whoever_goes_away_is_in_nobodys_way() -> None:
    queue = Queue()
    await queue.come("a", "/p/a")
    await queue.come("whole", "/p")
    await queue.come("b", "/p/b")
    assert queue.got == ["a"]
    queue.tasks["whole"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await queue.tasks["whole"]
    await queue._settle()
    assert queue.got == ["a", "b"]


async def test_now_or_not_at_all() -> None:
    queue = Queue()
    await queue.come("a", "/p/a")
    await queue.come("whole", "/p")
    async with AsyncExitStack() as held:
        assert not await held.enter_async_context(queue.locks.hold_now("/p/b"))  # somebody waits for what it lies in
        assert await held.enter_async_context(queue.locks.hold_now("/q"))
        await queue.come("q", "/q")
        assert queue.got == ["a"]


async def test_whoever_holds_them_all_waits_for_none_but_others() -> None:
    queue = Queue()
    await queue.come("ab", "/a", "/b")
    inner = HeldLocks(queue.locks)
    async with inner.hold("/a"), inner.hold("/b"), inner.hold_now("/a") as own, inner.hold_now("/c") as other:
        assert (own, other) == (False, True)
        await queue.come("c", "/c")
        assert queue.got == ["ab"]
