"""Pairs are tried before anybody was asked: what an agent has tried doesn't keep the person's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from policies.grants import PERSON
from runtimes.sql.pair_policy import Pairs
from runtimes.sql.pairs import trial
from tests.support.waiting import until_async


@pytest.mark.promise(16)
async def test_the_persons_pair_waits_for_no_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    lasts, under_way = asyncio.Event(), []

    async def prove(action: str, *rest: Any, **more: Any) -> Any:
        under_way.append(action)
        if action.startswith("slow"):
            await lasts.wait()
        return trial.Proof(ok=True, key=action, changed=1, seeds=1, image_id="", lines=())

    monkeypatch.setattr(trial, "prove", prove)
    monkeypatch.setattr(trial, "pair_key", lambda action, undo, schema: action)
    made: Any = Pairs(sandbox=None, failed=SimpleNamespace(has=lambda key: False))  # type: ignore[arg-type]

    async def ask(action: str, agent: str) -> Any:
        return (await made.proven(action, "", None, "a-1", agent))["key"]

    agents = [asyncio.create_task(ask(f"slow {number}", f"agent-{number}")) for number in range(3)]
    await until_async(lambda: under_way)
    assert await asyncio.wait_for(ask("quick", PERSON), 300) == "quick"
    assert under_way == ["slow 0", "quick"], "of all agents one is tried at once"
    lasts.set()
    assert await asyncio.gather(*agents) == [f"slow {number}" for number in range(3)]
    assert await ask("slow 1", PERSON) == "slow 1" and under_way.count("slow 1") == 1, "it is remembered"
