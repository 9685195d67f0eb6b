"""Full disks, real ones: a small file system below the folder, and below the snapshots; what else a system refuses."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.files import restore as restoring
from runtimes.files.action_folder import stopped
from runtimes.files.folder import open_pinned
from runtimes.files.handles import Handles, Moved, look, opened_path, set_metadata
from runtimes.files.plan_text import change
from runtimes.files.tree import Bounds, Entry, Walk
from runtimes.files.workers import translated
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
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


def remount(small: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(small)], check=True)


def grow(small: Path) -> None:
    remount(small, "size=8m")


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


async def test_a_disk_that_takes_no_more_or_nothing_is_named_and_the_folder_is_not_touched(
    small: Path, state: Path
) -> None:
    folder = small / "folder"
    (folder / "sub" / "inner").mkdir(parents=True)
    (folder / "sub" / "file").write_text("file")
    os.chown(folder, 1000, 1000)
    before = photo(folder)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: shutil.rmtree(top / "sub"))), folder)
    assert (await way.do()).ok
    after = photo(folder)
    at = os.statvfs(small)
    remount(small, f"nr_inodes={at.f_files - at.f_ffree + 3}")  # the staged file fits, and one of the two folders
    with pytest.raises(Unavailable) as full:
        await way.revert("undo")
    assert full.value.message == f"The disk is full ({folder})." and "Free some space" in full.value.next_step
    assert photo(folder) == after
    remount(small, "nr_inodes=1000,ro")
    with pytest.raises(Unavailable) as fixed:
        await way.revert("undo")
    assert fixed.value.message == f"The file system is read-only ({folder})."
    assert "remount,rw" in fixed.value.next_step
    remount(small, "rw")
    assert (await way.revert("undo")).ok
    assert photo(folder) == before


@pytest.mark.parametrize(
    ("number", "named"),
    [
        ("ENOSPC", "/folder"),
        ("EDQUOT", "/folder"),
        ("EROFS", "/folder"),
        ("EMFILE", ""),
        ("EPERM", "file"),
        ("ENAMETOOLONG", "file"),
        ("EIO", "file"),
    ],
)
def test_what_the_system_refuses_says_where_and_what_to_do(number: str, named: str) -> None:
    code = getattr(errno, number)
    found = translated(OSError(code, os.strerror(code), b"file"), "/folder")
    assert found.next_step and (f" ({named})." in found.message if named else "(" not in found.message)
    assert stopped("It stopped half way.", found).summary == f"It stopped half way. {found}"


def test_too_many_open_files_are_no_folder_that_was_swapped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, real = place.stat(), os.open

    def refused(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if dir_fd is None:
            return real(path, flags)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(OSError, match="Too many"):
            open_pinned(str(place), at.st_dev, at.st_ino)


def test_a_folder_that_the_system_will_not_remove_was_changed_by_nobody(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "sub").mkdir()
    with opened_path(place) as root, Handles(root, writes=True) as handles:
        now = Walk(bounds=Bounds()).run(root)
        restore = restoring.Restore(root=root, now=now, goal=now, name=b"x", contents=lambda: pytest.fail())
        for number, expected in ((errno.EROFS, OSError), (errno.ENOTEMPTY, Moved)):

            def refused(*arguments: object, number: int = number, **options: object) -> None:
                raise OSError(number, os.strerror(number))

            with monkeypatch.context() as patched, pytest.raises(expected):
                patched.setattr(os, "rmdir", refused)
                restore._remove(handles, b"sub", set())


def test_an_attribute_that_does_not_fit_is_not_called_a_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "file").touch()
    at = (place / "file").stat()
    goal = Entry("f", 0o644, at.st_uid, at.st_gid, 1, xattrs=(("user.big", b"x" * 20_000),))

    def refused(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "setxattr", refused)
    with opened_path(place) as fd, pytest.raises(Unavailable, match=r"user\.big \(20,000 bytes\)") as caught:
        set_metadata(fd, b"file", goal, at.st_ino)
    assert "setfattr -x" in caught.value.next_step


async def test_a_name_that_changed_its_case_alone_comes_back_where_case_is_not_minded(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (owned / "A").write_text("a")
    before = photo(owned)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: (top / "A").rename(top / "a"))), owned)
    assert (await way.do()).ok
    monkeypatch.setattr(restoring, "look", lambda fd, name: look(fd, name) or look(fd, name.swapcase()))
    outcome = await way.revert("undo")
    assert outcome.ok, outcome.summary
    assert photo(owned) == before


def test_a_replaced_file_s_lost_attributes_are_told() -> None:
    old = Entry("f", 0o640, 0, 0, 1, size=1, oid="x", xattrs=(("system.posix_acl_access", b"x"), ("user.note", b"y")))
    new = old._replace(oid="y", mode=0o644, xattrs=())
    assert change(b"a", old, new) == "changed a, 640→644, system.posix_acl_access, user.note"
