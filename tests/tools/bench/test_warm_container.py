"""What containers that wait take is measured of those that the bench itself made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import warm_container


@pytest.mark.docker
async def test_containers_that_wait_are_found_and_weighed(sandbox_image: str, tmp_path: Path) -> None:
    found = await warm_container.idle(tmp_path)
    assert found.rounds == 4
    assert found.p95 >= found.value > 0
    assert found.floor > 0
