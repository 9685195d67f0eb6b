"""Whoever owns the folder puts other names and inodes where a restore by root is about to work."""

# The tests set their scenes with blocking calls: nothing else runs in their loop.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from policies.errors import Conflict, Unavailable
from runtimes.files import restore as restoring
from runtimes.files.content_ids import hash_file
from runtimes.files.handles import Moved, expect, opened_path, put_new, remove_tree, set_metadata
from runtimes.files.tree import Bounds, Entry, Manifest, Walk
from runtimes.sandbox.contract import Job, Profile, Result
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.output_frames import Output
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import MemoryRecords, Way, runtime
from tests.runtimes.files.photo import photo

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for folders of several owners")


def entry(path: Path, **changes: object) -> Entry:
    at = path.lstat()
    made = Entry("d" if path.is_dir() else "f", stat.S_IMODE(at.st_mode), at.st_uid, at.st_gid, at.st_mtime_ns)
    return made._replace(inode=at.st_ino, ctime=at.st_ctime_ns, links=at.st_nlink)._replace(**changes)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_metadata_is_never_set_on_another_inode(place: Path, kind: str) -> None:
    victim, meant = place / "victim", place / "meant"
    for made in (victim, meant):
        made.mkdir() if kind == "folder" else made.touch()
        made.chmod(0o700)
    goal = entry(meant, mode=0o777)
    meant.rename(place / "away")
    victim.rename(meant)

    with opened_path(place) as fd, pytest.raises(Moved):
        set_metadata(fd, b"meant", goal, goal.inode)

    assert stat.S_IMODE(meant.stat().st_mode) == 0o700


def test_stripping_a_bit_changes_no_other_file_s_mode(place: Path) -> None:
    """Between the look and the change, the name is given to a file that only root may read."""
    found, secret = place / "found", place / "secret"
    found.touch()
    found.chmod(0o4777)
    secret.write_text("root's")
    secret.chmod(0o600)

    def swapping(path: bytes, at: os.stat_result) -> bool:
        secret.rename(found)
        return False

    with opened_path(place) as fd, pytest.raises(Conflict):
        Walk(bounds=Bounds(), read=hash_file, strip=swapping).run(fd)

    assert stat.S_IMODE(found.stat().st_mode) == 0o600


@root_only
async def test_a_staging_folder_that_was_swapped_gets_nothing(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (owned / "file").write_text("mine")
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "file").unlink())), owned)
    await way.do()
    mkdir = os.mkdir
    swapped: list[Path] = []

    def swapping(name: bytes, mode: int, *, dir_fd: int) -> None:
        mkdir(name, mode, dir_fd=dir_fd)
        if name.startswith(b".goex-"):
            there = owned / os.fsdecode(name)
            there.rename(owned / "away")
            mkdir(there)
            there.chmod(0o777)
            os.chown(there, 4321, 4321)
            swapped.append(there)

    monkeypatch.setattr(restoring.os, "mkdir", swapping)
    with pytest.raises(Conflict):
        await way.revert("undo")

    assert swapped and [*swapped[0].iterdir()] == []


@root_only
async def test_a_folder_that_was_swapped_as_it_was_put_into_place_is_given_to_nobody(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (owned / "sub").mkdir()
    os.chown(owned / "sub", 4321, 4321)
    (owned / "secret").mkdir(mode=0o700)  # root's
    inode = (owned / "secret").stat().st_ino
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "sub").rmdir())), owned)
    assert (await way.do()).ok
    put = put_new

    def swapping(stage: int, staged: bytes, folder: int, name: bytes) -> None:
        put(stage, staged, folder, name)
        (owned / "sub").rename(owned / "away")
        (owned / "secret").rename(owned / "sub")

    monkeypatch.setattr(restoring, "put_new", swapping)
    outcome = await way.revert("undo")
    assert not outcome.ok and "sub was changed by someone else" in outcome.summary
    swapped = (owned / "sub").stat()
    assert (swapped.st_ino, swapped.st_uid, swapped.st_mode & 0o777) == (inode, 0, 0o700)


@root_only
@pytest.mark.parametrize(
    "change",
    [{"uid": 0}, {"gid": 0}, {"mode": 0o4755}, {"xattrs": (("security.capability", b"x"),)}],
    ids=["owner", "group", "set-user-id", "capability"],
)
def test_what_gets_other_rights_is_made_anew(place: Path, change: dict[str, object]) -> None:
    """Its present owner may hold the inode open, or mapped, and write to it once it has the rights."""
    file = place / "file"
    file.touch()
    there = entry(file, uid=4321, gid=4321, mode=0o755, oid="x")
    root = entry(place)
    now = Manifest(entries={b"": root, b"file": there}, taken=0, settled=False)
    goal = Manifest(entries={b"": root, b"file": there._replace(**change)}, taken=0, settled=False)
    plain = Manifest(entries={b"": root, b"file": there._replace(mode=0o700)}, taken=0, settled=False)

    assert restoring.steps(now, goal).stage == (b"file",)
    assert restoring.steps(now, plain).settle == (b"file",)


def test_a_linked_file_that_was_written_since_is_not_replaced(place: Path) -> None:
    file = place / "file"
    file.write_text("mine")
    os.link(file, place / "other")
    seen = entry(file)
    file.write_text("theirs")
    os.utime(file, ns=(0, seen.mtime + 1))

    with opened_path(place) as fd, pytest.raises(Moved):
        expect(fd, b"file", b"file", seen)


@root_only
def test_removing_does_not_enter_what_is_mounted(place: Path) -> None:
    for where in (place / "gone", place / "gone" / "inner"):
        where.mkdir(exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "none", str(where)], check=False, capture_output=True).returncode:
            pytest.skip("this machine mounts nothing here")
        try:
            (where / "file").write_text("theirs")
            with opened_path(place) as fd, pytest.raises(Moved):
                remove_tree(fd, b"gone")
            assert (where / "file").read_text() == "theirs"
        finally:
            subprocess.run(["umount", str(where)], check=True)


@root_only
@pytest.mark.docker
async def test_a_folder_whose_path_leads_elsewhere_at_the_last_moment_is_not_worked_on(
    owned: Path, state: Path, place: Path
) -> None:
    """Its owner swaps it for a link after the last look from outside, and back before the next."""
    secret = place / "secret"
    secret.mkdir()
    (secret / "file").write_text("another user's")
    sandbox = DockerSandbox(f"races-{os.getpid()}", scratch_dir=state / "scratch")
    try:
        await sandbox.image_id(Profile())
    except Unavailable as error:
        await sandbox.close()
        pytest.skip(str(error))
    run = sandbox.run

    async def swapping(job: Job, profile: Profile, output: Output | None = None) -> Result:
        owned.rename(place / "away")
        owned.symlink_to(secret)
        try:
            return await run(job, profile, output)
        finally:
            owned.unlink()
            (place / "away").rename(owned)

    try:
        way = Way(runtime(state, sandbox), owned, "cat file; touch made")
        sandbox.run = swapping  # type: ignore[method-assign]
        outcome = await way.do()
    finally:
        await sandbox.close()

    assert not outcome.ok and outcome.exit_code == 126
    assert "another user" not in outcome.stdout
    assert [each.name for each in secret.iterdir()] == ["file"]


@pytest.mark.parametrize("failing", ["after", "state"])
async def test_what_could_not_be_noted_is_not_said_to_be_untouched(owned: Path, state: Path, failing: str) -> None:
    """The program has run, and the record of it fails: raising would mean that nothing had happened."""
    before = photo(owned)

    def deed(top: Path) -> None:
        (top / "made").touch()
        armed.append(True)

    armed: list[bool] = []
    records = MemoryRecords()
    way = Way(runtime(state, UnsafeNoSandbox(deed)), owned, records=records)
    put = records.put

    def refusing(name: str, data: bytes) -> None:
        if armed and name == failing:
            raise Unavailable("The record can't be written.", next_step="Free some space, then try again.")
        put(name, data)

    records.put = refusing  # type: ignore[method-assign]
    outcome = await way.do()
    assert not outcome.ok and outcome.touched and "couldn't be noted" in outcome.summary
    assert "try again" not in outcome.summary

    records.put = put  # type: ignore[method-assign]
    assert way.plan is not None
    assert (await way.runtime.settle(way.plan, way.context)).outcome is not None
    assert (await way.revert("undo")).ok
    assert photo(owned) == before
