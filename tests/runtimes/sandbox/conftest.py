"""A sandbox in which one container waits."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.runtimes.sandbox.waiting import PROFILE


@pytest.fixture
async def sandbox(sandbox_image: str, tmp_path: Path) -> AsyncIterator[DockerSandbox]:
    made = DockerSandbox(
        f"warm-{os.getpid()}-{tmp_path.name}",
        scratch_dir=tmp_path / "scratch",
        pool_dir=tmp_path / "waiting",
        bounds=PoolBounds(least=1, most=2),
    )
    made.prepare(PROFILE)
    yield made
    await made.close()
