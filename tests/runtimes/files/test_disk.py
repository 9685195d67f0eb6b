"""Full disks, real ones: a small file system below the folder, and below the snapshots; what else a system refuses."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policies.errors import InvalidInput, Unavailable
from runtimes.files import handles, run, workcopy
from runtimes.files import restore as restoring
from runtimes.files.action_folder import stopped
from runtimes.files.folder import open_pinned, resolve
from runtimes.files.handles import Handles, Moved, Unkept, look, opened_path, set_metadata
from runtimes.files.plan_text import change
from runtimes.files.tree import Bounds, Entry, Manifest, Walk
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


def nothing() -> AbstractContextManager[restoring.Copy]:
    return nullcontext(lambda oid, write: None)  # nothing is to be copied


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
    assert "try again" not in outcome.summary
    assert not (owned / "a").exists() and (owned / "b").stat().st_size == 3000000
    assert (await way.revert("undo")).ok
    (kept,) = {path.rpartition(b"/")[0] for path in photo(owned) if path.endswith(b"/b")}
    assert kept.startswith(b"/.goex-left-")
    assert without_left(owned) == before


@pytest.mark.parametrize(
    ("size", "free", "said"),
    [  # counted in inodes, of which a kilobyte of attributes takes one
        (0, 3, "The disk is full ({folder})."),  # the staging folder fits, and the two folders; the file doesn't
        (3_900, 5, "The attribute user.big of sub (3,900 bytes) can't be kept: No space left on device."),
    ],
    ids=["file", "attribute"],
)
async def test_a_disk_that_takes_no_more_or_nothing_is_named_and_the_folder_is_not_touched(
    small: Path, state: Path, size: int, free: int, said: str
) -> None:
    folder = small / "folder"
    (folder / "sub" / "inner").mkdir(parents=True)
    (folder / "sub" / "file").write_text("file")
    if size:
        try:
            os.setxattr(folder / "sub", "user.big", b"x" * size)
        except OSError:
            pytest.skip("this kernel's tmpfs keeps no such attributes")
    os.chown(folder, 1000, 1000)
    before = photo(folder)
    way = Way(runtime(state, UnsafeNoSandbox(lambda top: shutil.rmtree(top / "sub"))), folder)
    assert (await way.do()).ok
    after = photo(folder)
    at = os.statvfs(small)
    remount(small, f"nr_inodes={at.f_files - at.f_ffree + free}")
    with pytest.raises(Unavailable) as full:
        await way.revert("undo")
    assert full.value.message == said.format(folder=folder) and "ree some space" in full.value.next_step
    assert "setfattr" not in full.value.next_step, "the folder isn't there to take it off"
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
    assert run._half_way(found).summary.endswith(f" half way. {found.message}"), "to try again would run it once more"


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


@pytest.mark.parametrize("tells", [True, False], ids=["renameat2", "without"])
@pytest.mark.parametrize("what", ["empty", "folder", "file"])
def test_a_folder_is_put_over_nothing_that_appeared_meanwhile(
    place: Path, monkeypatch: pytest.MonkeyPatch, what: str, tells: bool
) -> None:
    top, theirs = place / "top", place / "top" / "sub"
    theirs.mkdir(parents=True)
    real = handles.put_new

    def appearing(*arguments: Any) -> None:
        theirs.touch() if what == "file" else theirs.mkdir()
        if what == "folder":
            (theirs / "mine").touch()
        inodes.append(theirs.stat().st_ino)
        real(*arguments)

    inodes: list[int] = []
    with opened_path(top) as root:
        goal = Walk(bounds=Bounds()).run(root)
        theirs.rmdir()
        now = Walk(bounds=Bounds()).run(root)
        restore = restoring.Restore(root=root, now=now, goal=goal, name=b".goex-x", contents=nothing)
        todo = restoring.steps(now, goal)
        restore.stage(todo)
        if not tells:
            monkeypatch.setattr(handles, "_libc", SimpleNamespace(syncfs=lambda fd: 0))
        with monkeypatch.context() as patched, pytest.raises(Moved, match="sub was changed by someone else"):
            patched.setattr(restoring, "put_new", appearing)
            restore.apply(todo)
        assert inodes == [theirs.stat().st_ino], "it is still theirs"
        shutil.rmtree(theirs) if what != "file" else theirs.unlink()
        restore.stage(todo)
        restore.apply(todo)
        assert not restore.strays(todo, lambda *of: pytest.fail())
    assert [each.name for each in top.iterdir()] == ["sub"]


@pytest.mark.promise(60)
@pytest.mark.parametrize("tells", [True, False], ids=["renameat2", "without"])
@pytest.mark.parametrize("what", ["file", "link"])
def test_nor_is_a_file_put_over_one_that_appeared_since_the_last_look(
    place: Path, monkeypatch: pytest.MonkeyPatch, what: str, tells: bool
) -> None:
    """Nor before that look, if the file system can't tell."""
    for name in ("file", "other"):
        (place / name).touch()
    if what == "link":
        (place / "file").unlink()
        (place / "file").hardlink_to(place / "other")
    with opened_path(place) as root:
        goal = Walk(bounds=Bounds()).run(root)
        (place / "file").unlink()
        now = Walk(bounds=Bounds()).run(root)
        restore = restoring.Restore(root=root, now=now, goal=goal, name=b".goex-x", contents=nothing)
        todo = restoring.steps(now, goal)
        assert todo.links if what == "link" else todo.stage
        restore.stage(todo)

        def appearing(folder: int, name: bytes, path: bytes, entry: Entry | None) -> None:
            if tells:
                handles.expect(folder, name, path, entry)
            if path == b"file":
                (place / "file").write_text("theirs")
            if not tells:
                handles.expect(folder, name, path, entry)

        if not tells:
            monkeypatch.setattr(handles, "_libc", SimpleNamespace(syncfs=lambda fd: 0))
        with monkeypatch.context() as patched, pytest.raises(Moved, match="file was changed by someone else"):
            patched.setattr(restoring, "expect", appearing)
            restore.apply(todo)
        assert (place / "file").read_text() == "theirs"
        (place / "file").unlink()
        restore.stage(todo)
        restore.apply(todo)
    assert (place / "file").read_text() == "" and (place / "file").stat().st_nlink == (2 if what == "link" else 1)


def test_a_rename_that_fails_names_what_was_to_be_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "sub").mkdir()
    with opened_path(place) as root:
        goal = Walk(bounds=Bounds()).run(root)
        (place / "sub").rmdir()
        now = Walk(bounds=Bounds()).run(root)
        restore = restoring.Restore(root=root, now=now, goal=goal, name=b".goex-x", contents=nothing)
        todo = restoring.steps(now, goal)
        restore.stage(todo)

        def refused(stage: int, staged: bytes, *rest: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO), staged)

        monkeypatch.setattr(restoring, "put_new", refused)
        with pytest.raises(OSError, match="error") as caught:
            restore.apply(todo)
    assert translated(caught.value, str(place)).message == "The operating system refused: Input/output error (sub)."


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
    with opened_path(place) as fd, pytest.raises(Unkept, match=r"user\.big of in/file \(20,000 bytes\)"):
        set_metadata(fd, b"file", goal, at.st_ino, b"in/file")
    entries = {b"": goal._replace(kind="d", mode=0o755, xattrs=()), b"in": goal._replace(kind="d", mode=0o755)}
    copied = Manifest(entries=entries, taken=0, settled=False)
    with pytest.raises(Unavailable, match=r"user\.big of in \(.*setfattr -x"):
        workcopy.lay_out(place / "work" / "a1", copied, lambda: pytest.fail())  # before a program runs


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


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EILSEQ])
def test_a_name_that_a_file_system_has_no_place_for_is_to_be_checked(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(path: str) -> None:
        raise OSError(number, os.strerror(number), path)

    with monkeypatch.context() as patched, pytest.raises(InvalidInput, match=r"Check the name\."):
        patched.setattr(os, "lstat", refused)
        resolve(str(place / "odd"))


def test_a_replaced_file_s_lost_attributes_are_told() -> None:
    old = Entry("f", 0o640, 0, 0, 1, size=1, oid="x", xattrs=(("system.posix_acl_access", b"x"), ("user.note", b"y")))
    new = old._replace(oid="y", mode=0o644, xattrs=())
    lost = "system.posix_acl_access, user.note"
    assert change(b"a", old, new) == f"changed a, 640→644, {lost}"
    assert change(b"a", old, old._replace(uid=1, xattrs=())) == f"owner a 0:0→1:0, {lost}"
    assert change(b"a", old, Entry("l", 0o777, 0, 0, 1, target=b"b")) == f"changed a: file→link → b, {lost}"
