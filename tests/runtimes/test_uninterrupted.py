"""Whoever waits without interruption is there when the work has ended, however often it was cancelled."""

from __future__ import annotations

import asyncio

import pytest

from runtimes.uninterrupted import uninterrupted


@pytest.mark.parametrize("cancels", [1, 2, 5])
async def test_cancelled_it_ends_when_the_work_has(cancels: int) -> None:
    go, ended = asyncio.Event(), []

    async def work() -> None:
        await go.wait()
        ended.append("work")

    async def waits() -> None:
        try:
            await uninterrupted(work())
        finally:
            ended.append("who waited")

    task = asyncio.create_task(waits())
    for _ in range(cancels):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done() and not ended
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["work", "who waited"]


async def test_what_it_gives_and_what_it_raises() -> None:
    async def raising() -> None:
        raise KeyError("it")

    assert await uninterrupted(asyncio.sleep(0, "given")) == "given"
    with pytest.raises(KeyError):
        await uninterrupted(raising())


async def test_a_fault_of_what_was_waited_for_while_cancelled_is_looked_at() -> None:
    """The cancellation is what is raised, and no task is left with an exception that nobody saw."""
    seen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: seen.append(context))
    go = asyncio.Event()

    async def work() -> None:
        await go.wait()
        raise KeyError("it")

    task = asyncio.create_task(uninterrupted(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    await asyncio.sleep(0)
    assert not seen
