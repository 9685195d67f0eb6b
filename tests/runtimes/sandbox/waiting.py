"""What the tests of containers that wait have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtimes.sandbox.container_pool import Kind
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox

PROFILE = Profile(limits=Limits(memory=96 * 2**20, pids=32, tmp=16 * 2**20, seconds=8.0, output=20_000))
KIND = Kind(PROFILE)


async def ready(sandbox: DockerSandbox) -> None:
    for _ in range(1000):
        if sandbox.pooled(PROFILE):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("none waits")


async def until(holds: Callable[[], object]) -> None:
    for _ in range(6000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")
