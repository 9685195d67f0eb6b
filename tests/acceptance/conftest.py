"""A daemon of its own for each file of these tests, and folders that an action may work on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One that runs, with an unsealed vault."""
    with Daemon() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder that belongs to an ordinary user, when we may give it to one."""
    made = tmp_path / "work"
    made.mkdir()
    if os.geteuid() == 0:
        os.chown(made, 65534, 65534)
    return made
