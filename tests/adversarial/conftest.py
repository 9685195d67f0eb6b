"""The scene in which attacks on grants are tried, with every defence (a file's control has fewer); and what tests there
are, with those that aren't run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adversarial import table
from tests.adversarial.grant_scene import Scene, scene


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[table.COLLECTED] = {item.nodeid for item in items}


@pytest.fixture(scope="module")
def shipped(sandbox_image: str) -> Iterator[Scene]:
    with scene() as made:
        yield made
