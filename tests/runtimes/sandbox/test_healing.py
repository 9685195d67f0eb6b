"""The engine ends under a pool, is missing, and comes back: jobs fail clearly, and containers wait again afterwards."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from policies.actions import Ended
from runtimes.sandbox import container_pool
from runtimes.sandbox.contract import Job, Limits, Profile, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.engine import Engine, connect
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.services.engine import PrivateEngine, can_run
from tests.support.waiting import until_async

pytestmark = [pytest.mark.docker, pytest.mark.skipif(not can_run(), reason="only root can run an engine of its own")]

PROFILE = Profile(limits=Limits(memory=64 * 2**20, pids=16, tmp=2**20, seconds=90.0, output=2_000))
JOB = Job(action_id="a-1", argv=("echo", "well"))


@pytest.fixture
async def broken(
    sandbox_image: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[PrivateEngine, DockerSandbox]]:
    """An engine that may be broken, and a sandbox on it whose pool tries again soon."""
    monkeypatch.setattr(container_pool, "_FIRST_PAUSE", 0.1)
    monkeypatch.setattr(container_pool, "_LONGEST_PAUSE", 0.5)
    with tempfile.TemporaryDirectory(prefix="ge", dir="/var/tmp") as outer, PrivateEngine(Path(outer, "d")) as engine:
        engine.give(sandbox_image)
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        sandbox = DockerSandbox(
            "healing",
            scratch_dir=Path(outer, "scratch"),
            pool_dir=Path(outer, "waiting"),
            bounds=PoolBounds(least=1, most=2),
            engine=Engine(lambda: connect(10)),
        )
        sandbox.prepare(PROFILE)
        yield engine, sandbox
        await sandbox.close()


@pytest.mark.thorough
async def test_an_engine_that_ends_is_missing_and_comes_back(broken: tuple[PrivateEngine, DockerSandbox]) -> None:
    engine, sandbox = broken
    await until_async(lambda: sandbox.pooled(PROFILE) >= 1)
    begun = asyncio.Event()
    long = Job(action_id="a-long", argv=("sh", "-c", "echo begun; sleep 600"))
    running = asyncio.create_task(sandbox.run(long, PROFILE, lambda *_: begun.set()))
    await begun.wait()

    await asyncio.to_thread(engine.stop)
    assert (await running).ended is Ended.KILLED
    with pytest.raises(SandboxFailed) as caught:
        await sandbox.run(JOB, PROFILE)
    assert not caught.value.began
    assert "Docker" in caught.value.message and caught.value.next_step

    await asyncio.to_thread(engine.start)
    await until_async(lambda: sandbox.pooled(PROFILE) >= 1)
    result = await sandbox.run(JOB, PROFILE)
    assert (result.ended, result.stdout) == (Ended.EXITED, b"well\n")

    later = DockerSandbox("healing", pool_dir=engine.folder.parent / "waiting", engine=Engine(lambda: connect(10)))
    await sandbox.close()
    await later.reap()
    client = engine.client()
    assert client.containers(all=True, filters={"label": "org.goex.state=healing"}) == []
    client.close()
    await later.close()
