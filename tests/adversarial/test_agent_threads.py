"""An agent has every thread look at something for it, as at a large folder, before anybody is asked; the person's
action is to wait for one. The control is asyncio's own threads, which tell nobody from anybody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from goex.engine.agent_threads import AT_ONCE, Threads
from goex.engine.core import Principal
from goex.journal.states import State
from policies.actions import Action, Plan
from policies.grants import ANONYMOUS, PERSON
from runtimes.base import Context
from tests.goex.engine.conftest import ASKER, Desk, HeldRuntime, desk

__all__ = ["desk"]

AGENTS = [replace(ASKER, agent=f"bot-{number}") for number in range(16)]
YOU = Principal(agent=PERSON, session="tty-1", source="a test")
OTHER = replace(ASKER, agent="other")


class LookingRuntime(HeldRuntime):
    """Looks in a thread, for agents until `free`. `most`: how many looked at once for them."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.lock, self.begun = threading.Event(), threading.Lock(), asyncio.Event()
        self.now = self.most = 0

    async def assess(self, action: Action, context: Context) -> Plan:
        self.begun.set()
        await asyncio.to_thread(self.look, context.agent)
        return self.plan(action)

    def look(self, agent: str) -> None:
        if agent in (PERSON, OTHER.agent):
            return
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.free.wait(300)
        with self.lock:
            self.now -= 1


async def asked_meanwhile(
    desk: Desk, threads: ThreadPoolExecutor, agents: Sequence[Principal] = AGENTS, who: Principal = YOU
) -> tuple[bool, int]:
    """Whether the action of `who` comes as far as its question while agents' look; and how many of these do at once."""
    asyncio.get_running_loop().set_default_executor(threads)
    looking: Any = LookingRuntime()
    desk.runtime, desk.core.runtimes = looking, {"files": looking}
    for agent in agents:
        for _ in range(4):
            desk.ask(principal=agent)
    await asyncio.wait_for(asyncio.shield(looking.begun.wait()), 300)
    id = desk.ask(principal=who)
    try:
        for _ in range(600):
            if desk.core.actions.get(id).state is State.ASKING:
                return True, looking.most
            await asyncio.sleep(0.01)
        return False, looking.most
    finally:
        looking.free.set()


@pytest.fixture
async def clean(desk: Desk) -> AsyncIterator[Desk]:
    yield desk
    for row in desk.core.actions.newest(limit=100):
        await desk.engine.cancel(row.id, why="the test is over")


@pytest.mark.promise(16)
async def test_the_person_has_threads(clean: Desk) -> None:
    assert await asked_meanwhile(clean, Threads()) == (True, AT_ONCE)


@pytest.mark.promise(16)
async def test_one_agents_many_leave_a_thread_for_another(clean: Desk) -> None:
    unnamed = [replace(ASKER, agent=ANONYMOUS, session=f"conn-{number}") for number in range(16)]
    assert await asked_meanwhile(clean, Threads(), unnamed, OTHER) == (True, AT_ONCE // 2)


@pytest.mark.thorough
async def test_control(clean: Desk) -> None:
    asked, most = await asked_meanwhile(clean, ThreadPoolExecutor(6))
    assert not asked and most == 6
