"""The runtime itself as an ordinary user, on that user's folders: root passes checks that it doesn't."""

# ruff: noqa: PTH101

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import struct
import tempfile
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from policies.errors import InvalidInput, Unavailable
from runtimes.files.restore import Restore
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo
from tests.runtimes.files.test_round import PROGRAM, furnish

_UID = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")


def as_user(work: Callable[[], Coroutine[Any, Any, None]], uid: int = _UID) -> None:
    """Do `work` in a child of that uid; its failure is this test's."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            asyncio.run(work())
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, text


@pytest.fixture(scope="module", autouse=True)
def everything_imported() -> None:
    """Another user may not be able to read this interpreter's modules: what is imported late is imported now."""
    with tempfile.TemporaryDirectory() as state, tempfile.TemporaryDirectory() as folder:

        async def once() -> None:
            way = Way(runtime(Path(state)), Path(folder), "echo x > a")
            await way.do()
            await way.revert("undo")

        asyncio.run(once())


@pytest.fixture
def mine(place: Path) -> Path:
    """A folder of the user's, with a state folder beside it."""
    for name in ("mine", "state"):
        (place / name).mkdir()
        os.chown(place / name, _UID, _UID)
    return place / "mine"


def test_an_undo_where_a_default_acl_closes_new_folders_to_their_owner(mine: Path) -> None:
    """Also the staging folder, of the undo that is refused as of the one that isn't."""

    async def work() -> None:
        (mine / "sub" / "inner").mkdir(parents=True)
        (mine / "sub" / "file").write_text("mine")
        entries = ((0x01, 5), (0x04, 5), (0x20, 5))  # u::r-x, g::r-x, o::r-x
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, 0xFFFFFFFF) for tag, bits in entries)
        os.setxattr(mine, "system.posix_acl_default", acl)
        before = photo(mine)
        way = Way(runtime(mine.parent / "state", UnsafeNoSandbox(lambda top: shutil.rmtree(top / "sub"))), mine)
        assert (await way.do()).ok
        after = photo(mine)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Unavailable):
            patch.setattr(Restore, "_sync", full)
            patch.setattr(Restore, "_fsync", full)
            await way.revert("undo")
        assert photo(mine) == after
        undone = await way.revert("undo")
        assert undone.ok, undone.summary
        assert photo(mine) == before

    try:
        os.getxattr(mine, "system.posix_acl_default")
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            pytest.skip("no ACLs here")
    as_user(work)


def full(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_undo_and_redo_on_an_own_folder(mine: Path) -> None:
    async def work() -> None:
        furnish(mine)
        before = photo_of_own(mine)
        way = Way(runtime(mine.parent / "state"), mine, PROGRAM)
        outcome = await way.do()
        assert outcome.ok, outcome.stderr
        after = names(mine)
        undone = await way.revert("undo")
        assert undone.ok, undone.summary
        assert photo_of_own(mine) == before
        assert (await way.revert("redo")).ok
        assert names(mine) == after
        assert (await way.revert("undo")).ok
        assert photo_of_own(mine) == before

    as_user(work)


def photo_of_own(folder: Path) -> object:
    return photo(folder)


def names(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), os.lstat(path).st_mode) for path in folder.rglob("*"))


def test_closed_folders_and_read_only_files_are_restored(mine: Path) -> None:
    async def work() -> None:
        (mine / "ro").mkdir()
        (mine / "ro" / "file").write_text("x")
        os.setxattr(mine / "ro" / "file", "user.a", b"b")
        os.chmod(mine / "ro" / "file", 0o400)
        os.chmod(mine / "ro", 0o500)
        os.chmod(mine, 0o500)
        before = photo(mine)

        def deed(top: Path) -> None:
            os.chmod(top, 0o700)
            os.chmod(top / "ro", 0o700)
            (top / "ro" / "file").unlink()
            (top / "ro" / "other").write_text("secret")
            os.chmod(top / "ro" / "other", 0)
            os.chmod(top / "ro", 0)

        way = Way(runtime(mine.parent / "state", UnsafeNoSandbox(deed)), mine)
        assert (await way.do()).ok
        assert os.lstat(mine / "ro").st_mode & 0o777 == 0
        assert (await way.revert("undo")).ok
        assert photo(mine) == before
        assert (await way.revert("redo")).ok
        assert os.lstat(mine / "ro").st_mode & 0o777 == 0
        assert (await way.revert("undo")).ok
        assert photo(mine) == before

    as_user(work)


def test_other_people_s_folders_are_refused(mine: Path, owned: Path) -> None:
    async def work() -> None:
        with pytest.raises(InvalidInput, match=r"GoEx doesn't work on .* belongs to another user"):
            await Way(runtime(mine.parent / "state"), owned).prepared()

    as_user(work)


def test_other_people_s_files_in_an_own_folder_are_refused(mine: Path) -> None:
    (mine / "theirs").write_text("x")

    async def work() -> None:
        with pytest.raises(InvalidInput, match="another user"):
            await Way(runtime(mine.parent / "state"), mine).prepared()

    as_user(work)


def test_what_cannot_be_read_is_refused_and_stays_as_it_is(mine: Path) -> None:
    async def work() -> None:
        (mine / "closed").mkdir(mode=0)
        with pytest.raises(InvalidInput, match="can't be read"):
            await Way(runtime(mine.parent / "state"), mine).prepared()
        assert os.lstat(mine / "closed").st_mode & 0o777 == 0
        (mine / "closed").rmdir()
        (mine / "file").write_text("x")
        os.chmod(mine / "file", 0)
        with pytest.raises(InvalidInput, match="can't be read"):
            await Way(runtime(mine.parent / "state"), mine).prepared()
        assert os.lstat(mine / "file").st_mode & 0o777 == 0

    as_user(work)


def test_others_cannot_read_the_snapshots(mine: Path) -> None:
    (mine / "a").write_text("secret")
    os.chown(mine / "a", _UID, _UID)
    state = mine.parent / "state"

    async def work() -> None:
        await Way(runtime(state), mine).do()

    async def spy() -> None:
        with pytest.raises(PermissionError):
            list((state / "snapshots").iterdir())

    as_user(work)
    as_user(spy, 1000)
