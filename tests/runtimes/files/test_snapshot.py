"""The snapshot repository: what is shared, what is collected, what a hash from the cache is worth."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.files import manifest as manifests
from runtimes.files.content_ids import hash_file, object_id
from runtimes.files.snapshot import Repository
from runtimes.files.tree import Bounds, Walk
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


def test_the_same_stat_is_trusted_only_when_it_is_old(owned: Path, state: Path) -> None:
    """A change within the clock's grain of a walk would leave the same stat: so it is read again."""
    (owned / "a").write_text("one")
    fd = os.open(owned, os.O_RDONLY)
    read: list[bytes] = []

    def reader(file: int, at: os.stat_result, path: bytes) -> str:
        read.append(path)
        return hash_file(file, at, path)

    def walk(known: object) -> object:
        read.clear()
        return Walk(bounds=Bounds(), read=reader, known=known, trusted=True).run(fd)  # type: ignore[arg-type]

    fresh = walk(None)
    walk(fresh)
    assert read == [b"a"], "changed right before the first walk"
    time.sleep(2.1)
    old = walk(None)
    walk(old)
    assert read == []
    at = (owned / "a").stat()
    (owned / "a").write_text("two")
    os.utime(owned / "a", ns=(at.st_atime_ns, at.st_mtime_ns))
    changed = walk(old)
    assert read == [b"a"], "size and mtime are the same, the change time isn't"
    assert changed.entries[b"a"].oid == object_id(b"two")  # type: ignore[attr-defined]
    os.close(fd)


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
