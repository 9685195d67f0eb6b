"""Calls in a container that waited: what is planned makes one wait, and the run takes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mapper.catalog import Catalog
from runtimes.gateway.client import GatewayClient
from runtimes.rest.runtime import RestRuntime
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.runtimes.rest.support import Bench, FakeSlack, calls
from tests.support.waiting import until_async

pytestmark = pytest.mark.docker

PROFILE = Profile(limits=Limits(seconds=200))
SEND = calls(("slack.chat.postMessage", {"channel": "#ops", "text": "hi"}))


async def test_a_call_goes_out_of_a_container_that_waited(
    sandbox_image: str, slack: FakeSlack, slack_bench: Bench, tmp_path: Path
) -> None:
    sandbox = DockerSandbox(
        f"tests-waiting-{os.getpid()}",
        scratch_dir=tmp_path / "scratch",
        pool_dir=tmp_path / "waiting",
        bounds=PoolBounds(least=1, most=1),
    )
    gateway = GatewayClient(tmp_path / "gateway")
    runtime = RestRuntime(sandbox, gateway, Catalog.bundled(), PROFILE)
    try:
        for number in range(2):
            context = slack_bench.context(f"a{number}")
            plan = await runtime.assess(SEND, context)
            await runtime.prepare(plan, context)
            await until_async(lambda: sandbox.pooled(PROFILE))
            outcome = await runtime.execute(plan, context)
            assert outcome.ok, outcome
            assert not list((tmp_path / "scratch").glob("*/*")), "it started cold"
        assert len(slack.messages) == 2
    finally:
        await gateway.stop()
        await sandbox.close()
    assert not list((tmp_path / "waiting").glob("*/*"))
