"""What the tests of containers that wait have in common."""

from __future__ import annotations

from runtimes.sandbox.container_pool import Kind
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.support.waiting import until_async

PROFILE = Profile(limits=Limits(memory=96 * 2**20, pids=32, tmp=16 * 2**20, seconds=90.0, output=20_000))
KIND = Kind(PROFILE)


async def ready(sandbox: DockerSandbox) -> None:
    await until_async(lambda: sandbox.pooled(PROFILE), "one that waits")
