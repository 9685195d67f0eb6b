"""Large contents as Git LFS keeps them: right in git-lfs's own judgement, in constant memory, shared where possible."""

# ruff: noqa: ASYNC221

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.files.large import Large
from runtimes.files.snapshot import Repository
from runtimes.files.tree import Bounds, Walk
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo

SIZE = 3_000_001
LARGE = 1_000_000


def repository(state: Path) -> Path:
    (found,) = (state / "snapshots").glob("*.git")
    return found


def objects(state: Path) -> list[Path]:
    return sorted(path for path in (repository(state) / "lfs" / "objects").rglob("*") if path.is_file())


async def test_a_large_file_is_kept_as_git_lfs_does_and_comes_back(owned: Path, state: Path) -> None:
    data = os.urandom(SIZE)
    (owned / "big").write_bytes(data)
    (owned / "also big").write_bytes(data)
    (owned / "small").write_text("small")
    before = photo(owned)
    way = Way(runtime(state, large=LARGE), owned, "rm big; cat 'also big' small > other")
    assert (await way.do()).ok
    after = photo(owned)
    plain = hashlib.sha256(data).hexdigest()
    assert plain in [path.name for path in objects(state)] and len(objects(state)) == 2
    assert objects(state)[0].stat().st_mode & 0o777 == 0o400
    assert not any(pack.stat().st_size > LARGE for pack in repository(state).rglob("*.pack"))
    assert (await way.revert("undo")).ok
    assert photo(owned) == before
    assert (await way.revert("redo")).ok
    assert photo(owned) == after
    await way.revert("commit")
    assert not list((state / "snapshots").glob("*.git"))


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs isn't installed: apt-get install git-lfs")
async def test_git_lfs_itself_finds_it_right_and_finds_damage(owned: Path, state: Path) -> None:
    (owned / "big").write_bytes(os.urandom(SIZE))
    way = Way(runtime(state, large=LARGE), owned, "echo x > small")
    assert (await way.do()).ok

    def fsck() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "lfs", "fsck", "refs/goex/a1/after"],
            env={"PATH": os.environ["PATH"], "GIT_DIR": str(repository(state)), "HOME": str(state)},
            capture_output=True,
            text=True,
            check=False,
        )

    listed = subprocess.run(
        ["git", "lfs", "ls-files", "--long", "refs/goex/a1/after"],
        env={"PATH": os.environ["PATH"], "GIT_DIR": str(repository(state)), "HOME": str(state)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert objects(state)[0].name in listed.stdout
    found = fsck()
    assert found.returncode == 0, found.stdout + found.stderr
    objects(state)[0].chmod(0o600)
    objects(state)[0].write_bytes(b"damaged")
    found = fsck()
    assert found.returncode != 0 and "corrupt" in found.stdout + found.stderr


@pytest.mark.promise(66)
async def test_a_damaged_or_missing_large_content_is_refused_and_nothing_is_touched(owned: Path, state: Path) -> None:
    (owned / "big").write_bytes(os.urandom(SIZE))
    way = Way(runtime(state, large=LARGE), owned, "rm big")
    assert (await way.do()).ok
    after = photo(owned)
    (kept,) = objects(state)
    kept.chmod(0o600)
    with kept.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"other")
    with pytest.raises(Unavailable, match="damaged"):
        await way.revert("undo")
    assert photo(owned) == after
    kept.unlink()
    with pytest.raises(Unavailable, match="lacks"):
        await way.revert("undo")
    assert photo(owned) == after


def test_memory_stays_constant_and_holes_stay_holes(owned: Path, state: Path) -> None:
    with (owned / "big").open("wb") as file:
        file.truncate(200 << 20)
        file.seek(100 << 20)
        file.write(os.urandom(1 << 20))
    fd = os.open(owned, os.O_RDONLY)
    tracemalloc.start()
    kept = Repository(state / "r.git", large=LARGE)
    _, made = kept.save("a1/before", Walk(bounds=Bounds()), fd)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    os.close(fd)
    assert most < 64 << 20
    path = kept.lfs.path(made.entries[b"big"].oid)
    assert path.stat().st_size == 200 << 20 and path.stat().st_blocks * 512 < 20 << 20


def test_a_repository_stays_with_the_size_of_its_beginning(owned: Path, state: Path) -> None:
    """Else one content would have two names, and nothing could be compared."""
    (owned / "big").write_bytes(os.urandom(SIZE))
    fd = os.open(owned, os.O_RDONLY)
    first = Repository(state / "r.git", large=LARGE)
    _, made = first.save("a1/before", Walk(bounds=Bounds()), fd)
    later = Repository(state / "r.git", large=100 * LARGE)
    walk = Walk(bounds=Bounds(), read=later.hash)
    assert walk.run(fd).entries == made.entries
    os.close(fd)


def test_what_a_killed_process_left_goes_and_what_nobody_needs_goes(owned: Path, state: Path) -> None:
    (owned / "big").write_bytes(os.urandom(SIZE))
    fd = os.open(owned, os.O_RDONLY)
    kept = Repository(state / "r.git", large=LARGE)
    kept.save("a1/before", Walk(bounds=Bounds()), fd)
    (owned / "big").write_bytes(os.urandom(SIZE))
    _, made = kept.save("a2/before", Walk(bounds=Bounds()), fd)
    os.close(fd)
    half = state / "r.git" / "lfs" / "tmp" / "1-2"
    half.write_bytes(b"half")
    kept.drop("a1")
    kept.collect()
    assert not half.exists()
    left = [path.name for path in (state / "r.git" / "lfs" / "objects").rglob("*") if path.is_file()]
    assert left == [made.entries[b"big"].oid[1:]]


def test_there_must_be_room_before_anything_is_written(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (owned / "big").open("wb") as file:
        file.truncate(8 << 40)
        fd = os.open(owned / "big", os.O_RDONLY)
        with pytest.raises(Unavailable, match="full"):
            Large(state / "lfs").store(fd, 8 << 40)
        os.close(fd)
    assert not list((state / "lfs" / "tmp").iterdir())


@pytest.fixture
def sharing(place: Path) -> Iterator[Path]:
    """A file system on which files can share their blocks."""
    if os.geteuid() != 0 or shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs root and mkfs.btrfs: apt-get install btrfs-progs")
    image, made = place / "image", place / "btrfs"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    made.mkdir()
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(made)], capture_output=True, check=False).returncode:
        pytest.skip("may not mount here")
    yield made
    subprocess.run(["umount", "-l", str(made)], check=True)


async def test_where_files_can_share_blocks_a_large_one_takes_no_room_twice(sharing: Path) -> None:
    folder = sharing / "folder"
    folder.mkdir()
    (folder / "big").write_bytes(os.urandom(60 << 20))
    for path in (folder, folder / "big"):
        os.chown(path, 1000, 1000)
    before = photo(folder)

    def used() -> int:
        os.sync()
        at = os.statvfs(sharing)
        return (at.f_blocks - at.f_bfree) * at.f_bsize

    began = used()
    way = Way(runtime(sharing / "state", large=LARGE), folder, "mv big other; echo x > y")
    assert (await way.do()).ok
    assert used() - began < 10 << 20
    assert (await way.revert("undo")).ok
    assert photo(folder) == before
    assert used() - began < 10 << 20


@pytest.mark.promise(66)
async def test_what_shares_blocks_asks_for_no_room_when_room_is_made(sharing: Path) -> None:
    """The large file needs none, so what is undone goes for the small one, and the action runs."""
    made = runtime(sharing / "state", large=LARGE, quota=3 * LARGE // 2)
    undone, folder = sharing / "undone", sharing / "folder"
    for each in (undone, folder):
        each.mkdir()
        (each / "small").write_bytes(os.urandom(LARGE - 1))
    (folder / "big").write_bytes(os.urandom(20 << 20))
    for path in (undone, folder, *undone.iterdir(), *folder.iterdir()):
        os.chown(path, 1000, 1000)
    first = Way(made, undone, "rm small", action_id="a1")
    assert (await first.do()).ok
    assert (await first.revert("undo")).ok
    assert (await Way(made, folder, "rm small", action_id="a2").do()).ok
