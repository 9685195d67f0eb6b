"""Attacks by asking for the way back over many actions that stand on each other."""

from __future__ import annotations

import asyncio

import pytest

from goex.engine import timeline
from policies.actions import Plan
from runtimes.base import Context, Footprint
from tests.goex.engine.conftest import Desk, HeldRuntime, desk

__all__ = ["desk"]

_ACTIONS = 12


async def _looked_at(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many plans are read for the way back over actions that all changed one folder, and how many turns others get
    meanwhile."""
    for _ in range(_ACTIONS):
        last = await desk.done()
    looks, turns = 0, 0
    footprint = HeldRuntime.footprint

    async def counted(self: HeldRuntime, plan: Plan, context: Context) -> Footprint:
        nonlocal looks
        looks += 1
        return await footprint(self, plan, context)

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    monkeypatch.setattr(HeldRuntime, "footprint", counted)
    beside = asyncio.create_task(others())
    steps = await desk.engine.timeline.back(desk.core.actions.newest(limit=100))
    beside.cancel()
    assert len(steps) == _ACTIONS
    assert steps[0].row.id == last
    return looks, turns


@pytest.mark.promise(16)
async def test_each_is_read_once_and_others_have_their_turn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, turns = await _looked_at(desk, monkeypatch)
    assert looks == _ACTIONS
    assert turns >= _ACTIONS


async def test_control(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetting(dict[str, object]):
        def __contains__(self, key: object) -> bool:
            return False

        def get(self, *_: object) -> None:
            return None

    made = timeline._Read

    def forgetting() -> timeline._Read:
        return made(rows=Forgetting())  # type: ignore[arg-type]

    monkeypatch.setattr(timeline, "_Read", forgetting)
    looks, _ = await _looked_at(desk, monkeypatch)
    assert looks > _ACTIONS**2 / 2
