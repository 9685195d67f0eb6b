"""A program's gateway is opened before it is certain that the program runs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from policies.actions import Plan
from policies.errors import InvalidInput
from runtimes.base import Context
from runtimes.code.runtime import CodeRuntime
from runtimes.gateway.client import GatewayClient
from runtimes.sandbox.docker import DockerSandbox
from tests.runtimes.code.support import CATALOG, SLACK, code, context

pytestmark = pytest.mark.docker


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayClient]:
    client = GatewayClient(tmp_path / "gw")
    await client.start()
    yield client
    await client.stop()


@pytest.fixture
async def runtime(gateway: GatewayClient, tmp_path: Path, code_image: str) -> AsyncIterator[CodeRuntime]:
    sandbox = DockerSandbox(f"test-runtime-{os.getpid()}", scratch_dir=tmp_path / "scratch")
    yield CodeRuntime(sandbox, gateway, CATALOG)
    await sandbox.close()


async def assessed(runtime: CodeRuntime) -> tuple[Plan, Context]:
    before = context(SLACK)
    return await runtime.assess(code("print('ran')"), before), before


def places(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "gw").glob("gw-*"))


async def test_a_gateway_that_was_opened_for_nothing_is_closed(runtime: CodeRuntime, tmp_path: Path) -> None:
    plan, before = await assessed(runtime)
    await runtime.prepare(plan, before)
    await runtime._begun[before.action_id].opening
    assert places(tmp_path)
    await before.ending.aclose()
    assert not places(tmp_path)
    _, again = await assessed(runtime)  # and it can be opened once more
    await runtime.prepare(plan, again)
    outcome = await runtime.execute(plan, again)
    assert (outcome.ok, outcome.stdout) == (True, "ran\n"), outcome
    await again.ending.aclose()
    assert not places(tmp_path)


async def test_one_that_is_let_go_of_before_it_is_open_is_closed_too(runtime: CodeRuntime, tmp_path: Path) -> None:
    plan, before = await assessed(runtime)
    await runtime.prepare(plan, before)
    await before.ending.aclose()
    assert not places(tmp_path)


async def test_one_that_cannot_be_opened_says_so_when_the_program_is_to_run(runtime: CodeRuntime) -> None:
    plan, before = await assessed(runtime)
    twice = replace(plan, limits={**plan.limits})
    await runtime.prepare(plan, before)
    _, second = await assessed(runtime)
    await runtime.prepare(twice, second)  # of the same action
    with pytest.raises(InvalidInput, match="served already"):
        await runtime.execute(twice, second)
    await second.ending.aclose()
    await before.ending.aclose()


async def test_each_that_was_prepared_is_let_go_of(
    runtime: CodeRuntime, gateway: GatewayClient, tmp_path: Path
) -> None:
    """Also the first of two for one action, which the second took the place of."""
    plan, before = await assessed(runtime)
    await runtime.prepare(plan, before)
    first = runtime._begun[before.action_id]
    _, second = await assessed(runtime)
    await runtime.prepare(plan, second)
    await second.ending.aclose()
    await before.ending.aclose()
    assert first.opening.done()
    assert not places(tmp_path)
    assert not gateway._opened
