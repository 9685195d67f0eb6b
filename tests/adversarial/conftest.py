"""The scene in which attacks on grants are tried, with every defence; a file's control has fewer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adversarial.grant_scene import Scene, scene


@pytest.fixture(scope="module")
def shipped(sandbox_image: str) -> Iterator[Scene]:
    with scene() as made:
        yield made
