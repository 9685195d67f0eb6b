"""What moves the notifications takes the next click, wherever it comes from: that of a double click above all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goex.config import Notify
from goex.notify.card import DENY, ONCE, question
from goex.notify.notifier import Note, Notifier
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb


class OnScreen(Notifier):
    """Two reads that stood still for a while, on a server that takes down what it is told to; what was allowed."""

    def __init__(self, folder: Path) -> None:
        paths = Paths(config_dir=folder, state_dir=folder, run_dir=folder)
        super().__init__(paths, Notify(), {}, lambda event, facts: None)
        self.allowed: list[str] = []
        self.gone = asyncio.Event()
        self._server.take_down = self._taken  # type: ignore[method-assign]
        self._feed.allow_once = self._allow  # type: ignore[method-assign]
        self._feed.deny = self._deny  # type: ignore[method-assign]
        for id, name in enumerate("ab"):
            approval = pb.Approval(id=name, digest="d", risk="read", widths=["once"], lines=["a line"])
            self._board.asked(approval)
            self._notes[name] = Note(id, name, question(approval, count=1), (approval,))
        self._moved = asyncio.get_running_loop().time() - 60

    async def _taken(self, id: int) -> None:
        await self.gone.wait()

    async def _allow(self, approval: pb.Approval) -> pb.Approval:
        self.allowed.append(approval.id)
        return approval

    async def _deny(self, approval: pb.Approval) -> pb.Approval:
        return approval

    async def rest(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    def stood_still(self) -> None:
        self._moved -= 60

    def over(self) -> None:
        for task in self._tasks:
            task.cancel()


@pytest.fixture
async def screen(tmp_path: Path) -> AsyncIterator[OnScreen]:
    made = OnScreen(tmp_path)
    yield made
    made.over()


@pytest.mark.promise(25)
@pytest.mark.parametrize("first", [ONCE, DENY])
async def test_the_second_of_a_double_click_allows_nothing(screen: OnScreen, first: str) -> None:
    screen._clicked(0, first)
    screen._clicked(1, ONCE)
    await screen.rest()
    assert screen.allowed == (["a"] if first == ONCE else [])


@pytest.mark.promise(25)
@pytest.mark.parametrize("id", [0, 99])
async def test_what_is_closed_moves_the_others(screen: OnScreen, id: int) -> None:
    """A notice of ours, or another program's notification, too."""
    screen._closed(id)
    screen._clicked(1, ONCE)
    await screen.rest()
    assert not screen.allowed


@pytest.mark.promise(25)
async def test_it_moves_when_the_server_has_taken_it_down(screen: OnScreen) -> None:
    screen._clicked(0, ONCE)
    await screen.rest()
    screen.stood_still()  # the server takes its time
    screen.gone.set()
    await screen.rest()
    screen._clicked(1, ONCE)
    await screen.rest()
    assert screen.allowed == ["a"]


@pytest.mark.promise(25)
async def test_what_stood_still_is_allowed(screen: OnScreen) -> None:
    screen._clicked(0, ONCE)
    await screen.rest()
    screen.stood_still()
    screen._clicked(1, ONCE)
    await screen.rest()
    assert screen.allowed == ["a", "b"]
