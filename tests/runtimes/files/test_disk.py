"""Full disks, real ones: a small file system below the folder, and below the snapshots."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import Unavailable
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo, without_left


@pytest.fixture
def small(place: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    made = place / "small"
    made.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(made)]).returncode:
        pytest.skip("may not mount here")
    yield made
    subprocess.run(["umount", "-l", str(made)], check=True)


def grow(small: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=8m", str(small)], check=True)


async def test_a_full_disk_below_the_folder_touches_nothing(small: Path, state: Path) -> None:
    folder = small / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(os.urandom(600_000))
    os.chown(folder, 1000, 1000)
    before = photo(folder)
    way = Way(runtime(state), folder, "rm a; head -c 700000 /dev/zero | tr '\\0' x > b")
    outcome = await way.do()
    assert outcome.ok, outcome.summary
    after = photo(folder)
    with pytest.raises(Unavailable, match="full"):
        await way.revert("undo")
    assert photo(folder) == after
    grow(small)
    assert (await way.revert("undo")).ok
    assert photo(folder) == before


async def test_a_full_disk_below_the_snapshots_touches_nothing(small: Path, owned: Path) -> None:
    (owned / "a").write_bytes(os.urandom(2_000_000))
    before = photo(owned)
    way = Way(runtime(small / "state"), owned, "rm a")
    with pytest.raises(Unavailable, match="full"):
        await way.do()
    assert photo(owned) == before
    grow(small)
    assert (await way.do()).ok
    assert (await way.revert("undo")).ok
    assert photo(owned) == before


async def test_what_the_program_left_does_not_fit_on_the_disk(small: Path, owned: Path) -> None:
    (owned / "a").write_text("a")
    before = photo(owned)
    way = Way(runtime(small / "state"), owned, "rm a; head -c 3000000 /dev/urandom > b")
    outcome = await way.do()
    assert not outcome.ok and outcome.touched and "can't be recorded: The disk is full" in outcome.summary
    assert not (owned / "a").exists() and (owned / "b").stat().st_size == 3000000
    assert (await way.revert("undo")).ok
    (kept,) = {path.rpartition(b"/")[0] for path in photo(owned) if path.endswith(b"/b")}
    assert kept.startswith(b"/.goex-left-")
    assert without_left(owned) == before
