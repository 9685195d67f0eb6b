"""The snapshot repository: what is shared, what is collected, what a hash from the cache is worth."""

from __future__ import annotations

import asyncio
import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.files import manifest as manifests
from runtimes.files.content_ids import hash_file, object_id
from runtimes.files.gitprocess import Git
from runtimes.files.runtime import FilesRuntime
from runtimes.files.snapshot import Repository
from runtimes.files.tree import Bounds, Manifest, Walk
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.photo import photo


def stored(state: Path) -> int:
    return sum(path.stat().st_size for path in (state / "snapshots").rglob("*") if path.is_file())


def fsck(state: Path) -> None:
    (repository,) = (state / "snapshots").glob("*.git")
    found = subprocess.run(
        ["git", "--git-dir", str(repository), "fsck", "--full", "--strict"], capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr


async def test_what_does_not_change_is_stored_once(owned: Path, state: Path) -> None:
    (owned / "big").write_bytes(os.urandom(1_000_000))
    made = runtime(state)
    for number in range(4):
        assert (await Way(made, owned, f"echo {number} > small", action_id=f"a{number}").do()).ok
    assert stored(state) < 1_300_000


async def test_commit_gives_the_space_back_and_keeps_what_others_need(owned: Path, state: Path) -> None:
    made = runtime(state)
    (owned / "kept").write_bytes(os.urandom(100_000))
    (owned / "gone").write_bytes(os.urandom(1_000_000))
    first = Way(made, owned, "rm gone; echo 1 > one", action_id="a1")
    await first.do()
    between = photo(owned)
    second = Way(made, owned, "rm kept", action_id="a2")
    await second.do()
    assert stored(state) > 1_100_000
    await first.revert("commit")
    assert 100_000 < stored(state) < 200_000
    fsck(state)
    assert (await second.revert("undo")).ok
    assert photo(owned) == between
    third = Way(made, owned, "rm kept", action_id="a3")
    await third.do()
    assert (await third.revert("undo")).ok
    await third.revert("commit")
    await second.revert("commit")
    assert not list((state / "snapshots").glob("*.git"))
    await second.runtime.forget(second.plan, second.context)  # type: ignore[arg-type]


async def test_an_odd_action_id_is_a_name_all_the_same(owned: Path, state: Path) -> None:
    way = Way(runtime(state), owned, "echo x > a", action_id="../../x y\n")
    assert (await way.do()).ok
    assert (await way.revert("undo")).ok
    await way.revert("commit")


def test_the_same_stat_is_trusted_only_when_it_is_old(owned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change within the clock's grain of a walk would leave the same stat, and so would one through a mapping until
    it is on the disk: so it is read again."""
    file = owned / "a"
    while not file.exists() or file.stat().st_ctime_ns % 10**6 == 0:
        file.write_text("one")  # a change time without parts of a millisecond is taken for one in whole seconds
    changed = file.stat().st_ctime_ns
    fd = os.open(owned, os.O_RDONLY)
    read: list[bytes] = []

    def reader(file: int, at: os.stat_result, path: bytes) -> str:
        read.append(path)
        return hash_file(file, at, path)

    def walk(known: Manifest | None, after: int) -> Manifest:
        read.clear()
        monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: changed + after * 10**6)
        return Walk(bounds=Bounds(), read=reader, known=known, trusted=True).run(fd)

    fresh = walk(None, 40_000)
    walk(fresh, 300_000)
    assert read == [b"a"], "changed right before the first walk"
    old = walk(None, 61_000)
    walk(old, 300_000)
    assert read == []
    at = file.stat()
    while file.stat().st_ctime_ns == changed:
        file.write_text("two")
    os.utime(file, ns=(at.st_atime_ns, at.st_mtime_ns))
    after = walk(old, 300_000)
    assert read == [b"a"], "size and mtime are the same, the change time isn't"
    assert after.entries[b"a"].oid == object_id(b"two")
    os.close(fd)


def test_a_change_after_a_walk_is_never_older_than_the_walk(owned: Path) -> None:
    """Change times are of a clock that moves in ticks: by a finer one a walk would seem to be later than the change."""
    fd = os.open(owned, os.O_RDONLY)
    for number in range(50):
        taken = Walk(bounds=Bounds(), trusted=True).run(fd).taken
        new = owned / f"a{number}"  # one that nobody has looked at yet: newer kernels set finer times on others
        new.touch()
        assert new.stat().st_ctime_ns >= taken
    os.close(fd)


@pytest.fixture
def in_memory(place: Path) -> Iterator[Path]:
    made = place / "memory"
    made.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(made)]).returncode:
        pytest.skip("may not mount here")
    yield made
    subprocess.run(["umount", "-l", str(made)], check=True)


async def test_what_is_written_by_a_mapping_in_memory_is_seen_and_taken_back(in_memory: Path, state: Path) -> None:
    """On tmpfs that moves no time."""
    folder = in_memory / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"one" * 3000)
    for path in (folder, folder / "a"):
        os.chown(path, 1000, 1000)
    await asyncio.sleep(0.1)  # so that its change time is past when it is looked at

    def write(top: Path) -> None:
        with (top / "a").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            assert mapped[:3] == b"one"  # a page that was read first may be written unseen
            mapped[:3] = b"TWO"

    way = Way(FilesRuntime(UnsafeNoSandbox(write), state / "snapshots"), folder)
    outcome = await way.do()
    assert outcome.touched and outcome.changes == ("changed a",)
    assert (await way.revert("undo")).ok
    assert (folder / "a").read_bytes() == b"one" * 3000


def test_manifests_survive_writing(owned: Path, state: Path) -> None:
    (owned / "a").write_text("one")
    os.link(owned / "a", owned / "b")
    Path(os.fsdecode(os.fsencode(owned) + b"/\xff\n")).symlink_to("/x")
    os.setxattr(owned / "a", "user.x", b"\0\xff")
    fd = os.open(owned, os.O_RDONLY)
    made = Walk(bounds=Bounds(), read=hash_file).run(fd)
    os.close(fd)
    assert manifests.decode(manifests.encode(made)).on(None) == made
    for broken in (b"", b"{}", b"[]", b'{"version": 2}', b'{"version":1,"taken":1,"settled":true,"entries":[[1]]}'):
        with pytest.raises(Unavailable):
            manifests.decode(broken)


def test_git_is_told_to_keep_refs_in_files(state: Path) -> None:
    told = Git(state / "none.git").run("-c", "alias.told=!env", "told", here=False)
    assert b"GIT_DEFAULT_REF_FORMAT=files" in told.splitlines()


def test_a_repository_whose_refs_git_keeps_in_a_table_is_not_used(tmp_path: Path) -> None:
    config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
    (tmp_path / "config").write_text(f"{config}\trefstorage = files\n")
    Git(tmp_path).check()
    (tmp_path / "config").write_text(f"{config}\trefstorage = reftable\n")
    with pytest.raises(Unavailable, match="aren't used"):  # it would name no snapshot, and all would be collected
        Git(tmp_path).check()


def test_reading_what_is_not_there(state: Path) -> None:
    with pytest.raises(Unavailable):
        Repository(state / "none.git").load("0" * 64)


async def test_the_journal_hears_of_each_snapshot(owned: Path, state: Path) -> None:
    heard: list[tuple[str, object]] = []
    way = Way(runtime(state), owned, "echo x > a")
    plain = context()
    way.context = type(plain)(
        **{name: getattr(plain, name) for name in plain.__slots__ if name != "note"},
        note=lambda kind, facts: heard.append((kind, facts["state"])),
    )
    await way.do()
    assert heard == [("snapshot", "before"), ("snapshot", "after")]
