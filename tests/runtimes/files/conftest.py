"""Fixtures of the files tests."""

# By paths and os calls, as the runtime does not do it.

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.sandbox.contract import Profile, Sandbox
from runtimes.sandbox.docker import DockerSandbox


@pytest.fixture
def state() -> Iterator[Path]:
    """GoEx's state folder."""
    with tempfile.TemporaryDirectory(prefix="state-") as made:
        yield Path(made)


@pytest.fixture
async def sandbox(state: Path) -> AsyncIterator[Sandbox]:
    """The real one; skips where Docker isn't there."""
    made = DockerSandbox(f"files-tests-{os.getpid()}", scratch_dir=state / "scratch")
    try:
        await made.image_id(Profile())
    except Unavailable as error:
        await made.close()
        pytest.skip(str(error))
    yield made
    await made.close()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, for folders of several owners."""
    made = Path(tempfile.mkdtemp(prefix="place-"))
    made.chmod(0o755)
    yield made
    for top, folders, _ in os.walk(made):
        for name in folders:
            if not (Path(top) / name).is_symlink():
                (Path(top) / name).chmod(0o700)
    shutil.rmtree(made)


@pytest.fixture
def owned(place: Path) -> Path:
    """An empty folder that belongs to an ordinary user."""
    folder = place / "owned"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 1000, 1000)
    return folder


@pytest.fixture
def roots(place: Path) -> Path:
    """An empty folder that belongs to the user that the tests run as (root: it is worked on as a copy)."""
    folder = place / "roots"
    folder.mkdir()
    return folder
