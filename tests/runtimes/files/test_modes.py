"""Modes that keep GoEx's own user out: lifted while they are in the way, put back by whoever only looks; file systems
that keep none; and attributes that can't be listed."""

# The tests set their scenes with blocking calls: nothing else runs in their loop.
# ruff: noqa: PTH101, PTH116, ASYNC240

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policies.actions import Files
from policies.errors import Conflict, InvalidInput, Unavailable
from runtimes.files import folder as folders
from runtimes.files import records, workcopy
from runtimes.files import tree as trees
from runtimes.files.handles import Handles
from runtimes.files.restore import Restore, steps
from runtimes.files.tree import UNLISTED, Entry, Manifest
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Deed, DiskRecords, Way, context, runtime
from tests.runtimes.files.photo import photo
from tests.runtimes.files.test_unprivileged import as_user, everything_imported, mine

__all__ = ["everything_imported", "mine"]  # fixtures
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")


def mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def way(mine: Path, deed: Callable[[Path], object] | None = None, **options: Any) -> Way:
    return Way(runtime(mine.parent / "state", UnsafeNoSandbox(deed)), mine, **options)


def on_disk(mine: Path) -> DiskRecords:
    return DiskRecords(mine.parent / "state" / "records")


def keep_plan(made: Way) -> None:
    (Path(made.action.folder).parent / "state" / "plan").write_bytes(pickle.dumps(made.plan))


def after_crash(mine: Path) -> Way:
    again = way(mine, records=on_disk(mine))
    again.plan = pickle.loads((mine.parent / "state" / "plan").read_bytes())
    return again


@pytest.fixture
def fixed(mine: Path) -> Iterator[Path]:
    """A file that nobody can change, until the test is over."""
    made = mine / "g"
    made.write_text("g")
    os.chown(made, 65534, 65534)
    yield made
    with suppress(FileNotFoundError):
        subprocess.run(["chattr", "-i", str(made)], check=False, capture_output=True)


# ---- lifted modes ----


@pytest.mark.parametrize("closed", [0o500, 0o600, 0o000])
def test_a_refused_undo_leaves_modes_as_they_are(mine: Path, fixed: Path, closed: int) -> None:
    async def begin() -> None:
        (mine / "sub").mkdir()
        (mine / "sub" / "f").write_text("f")

        def deed(top: Path) -> None:
            (top / "g").write_text("G")
            (top / "sub" / "f").write_text("F")
            os.chmod(top / "sub", closed)

        made = way(mine, deed, records=on_disk(mine))
        assert (await made.do()).ok
        keep_plan(made)

    async def refused() -> None:
        noted = (on_disk(mine).folder / "state").read_bytes()
        with pytest.raises(Conflict, match="nothing was touched"):
            await after_crash(mine).revert("undo")
        assert mode(mine / "sub") == closed
        assert (on_disk(mine).folder / "state").read_bytes() == noted

    async def undo() -> None:
        assert (await after_crash(mine).revert("undo")).ok
        assert (mine / "sub" / "f").read_text() == "f"

    as_user(begin)
    if subprocess.run(["chattr", "+i", str(fixed)], capture_output=True, check=False).returncode:
        pytest.skip("this file system, or user, knows no immutable files")
    as_user(refused)
    subprocess.run(["chattr", "-i", str(fixed)], check=True)
    as_user(undo)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("closed", [0o500, 0o600])
@pytest.mark.parametrize("where", ["fixed", "keep_out", "stage"])
def test_an_undo_that_was_killed_while_it_looked_is_finished(mine: Path, where: str, closed: int) -> None:
    def deed(top: Path) -> None:
        (top / "sub" / "f").write_text("F")
        os.chmod(top / "sub", closed)

    killed_then_undone(mine, deed, where)


def killed_then_undone(mine: Path, deed: Deed, where: str) -> None:
    async def begin() -> None:
        (mine / "sub").mkdir()
        (mine / "sub" / "f").write_text("f")
        made = way(mine, deed, records=on_disk(mine))
        (mine.parent / "state" / "before").write_bytes(pickle.dumps(photo(mine)))
        assert (await made.do()).ok
        keep_plan(made)

    async def killed() -> None:
        real = getattr(Restore, where)

        def dying(self: Restore, todo: Any) -> Any:
            Handles.__exit__ = lambda *arguments: os._exit(0)  # type: ignore[method-assign]
            return real(self, todo)

        setattr(Restore, where, dying)
        await after_crash(mine).revert("undo")
        raise AssertionError("it wasn't killed")

    async def undo() -> None:
        assert (await after_crash(mine).revert("undo")).ok
        assert photo(mine) == pickle.loads((mine.parent / "state" / "before").read_bytes())

    as_user(begin)
    as_user(killed)
    as_user(undo)


def test_what_others_made_meanwhile_keeps_no_folder_open(mine: Path) -> None:
    """A cut-off restore has let GoEx into a folder that the action hadn't changed itself."""

    async def begin() -> None:
        (mine / "sub").mkdir()
        (mine / "sub" / "f").write_text("f")
        os.chmod(mine / "sub", 0o500)
        made = way(mine, lambda top: (top / "sub" / "f").write_text("F"), records=on_disk(mine))
        assert (await made.do()).ok
        keep_plan(made)

    async def killed() -> None:
        Restore._folders = lambda *arguments: os._exit(0)  # type: ignore[method-assign]
        await after_crash(mine).revert("undo")
        raise AssertionError("it wasn't killed")

    async def undo() -> None:
        assert mode(mine / "sub") != 0o500
        (mine / "other").write_text("made by somebody else")
        assert (await after_crash(mine).revert("undo")).ok
        assert mode(mine / "sub") == 0o500
        assert (mine / "sub" / "f").read_text() == "f"
        assert (mine / "other").read_text() == "made by somebody else"

    as_user(begin)
    as_user(killed)
    as_user(undo)


def test_a_closed_folder_stays_closed_when_a_file_in_it_gets_its_mode_back(mine: Path) -> None:
    async def work() -> None:
        (mine / "sub").mkdir()
        (mine / "sub" / "f").write_text("f")
        for closed in (0o500, 0o400):
            os.chmod(mine / "sub", 0o500)
            os.chmod(mine / "sub" / "f", 0o644)
            before = photo(mine)

            def deed(top: Path, closed: int = closed) -> None:
                os.chmod(top / "sub" / "f", 0o600)
                os.chmod(top / "sub", closed)

            made = way(mine, deed, action_id=f"a{closed}")
            assert (await made.do()).ok
            undone = await made.revert("undo")
            assert undone.ok, undone.summary
            assert photo(mine) == before
            redone = await made.revert("redo")
            assert redone.ok, redone.summary
            assert mode(mine / "sub") == closed
            assert (await made.revert("undo")).ok

    as_user(work)


def test_lookers_put_modes_back_as_they_go_on(mine: Path) -> None:
    async def work() -> None:
        for name in ("a", "b"):
            (mine / name / "in").mkdir(parents=True)
            os.chmod(mine / name, 0o600)
        root = os.open(mine, os.O_RDONLY)
        with Handles(root) as handles:
            handles.folder(b"a/in")
            assert (mode(mine / "a"), mode(mine / "b")) == (0o700, 0o600)
            handles.folder(b"b/in")
            assert (mode(mine / "a"), mode(mine / "b")) == (0o600, 0o700)
        assert (mode(mine / "a"), mode(mine / "b")) == (0o600, 0o600)
        with Handles(root) as handles:
            handles.folder(b"a")
            os.chmod(mine / "a", 0o750)  # by somebody else
        assert mode(mine / "a") == 0o750
        with Handles(root, writes=True, keep=True) as handles:
            handles.folder(b"b")
        assert mode(mine / "b") == 0o700
        os.close(root)

    as_user(work)


def test_a_user_attribute_of_a_closed_file_is_taken_off(mine: Path) -> None:
    async def work() -> None:
        (mine / "f").write_text("f")
        before = photo(mine)

        def deed(top: Path) -> None:
            os.setxattr(top / "f", "user.a", b"b")
            os.chmod(top / "f", 0o200)

        made = way(mine, deed)
        assert (await made.do()).ok
        undone = await made.revert("undo")
        assert undone.ok, undone.summary
        assert photo(mine) == before

    as_user(work)


# ---- the folder itself closed ----


@pytest.mark.parametrize("closed", [0o300, 0o100, 0o600, 0o000])
def test_a_program_that_closes_the_folder_itself_is_undone(mine: Path, closed: int) -> None:
    async def work() -> None:
        (mine / "old").write_text("old")
        os.setxattr(mine, "user.a", b"b")
        before = photo(mine)

        def deed(top: Path) -> None:
            (top / "old").write_text("destroyed")
            os.chmod(top, closed)

        made = way(mine, deed)
        outcome = await made.do()
        assert outcome.ok, outcome.summary
        for _ in range(2):
            undone = await made.revert("undo")
            assert undone.ok, undone.summary
            assert photo(mine) == before
            assert (await made.revert("redo")).ok
            assert mode(mine) == closed
        os.chmod(mine, 0o700)
        with pytest.raises(Conflict, match="Someone changed what this action had changed"):
            await made.revert("undo")
        os.chmod(mine, closed)  # as the refusal says
        assert (await made.revert("undo")).ok
        assert photo(mine) == before

    as_user(work)


def test_no_program_is_begun_on_a_closed_folder(mine: Path) -> None:
    async def work() -> None:
        os.chmod(mine, 0o300)
        with pytest.raises(InvalidInput, match="can't be opened"):
            await way(mine).prepared()
        os.chmod(mine, 0o700)
        made = way(mine)
        made.plan = await made.runtime.assess(made.action, made.context)
        os.chmod(mine, 0o300)
        with pytest.raises(InvalidInput, match="can't be read"):
            await made.runtime.prepare(made.plan, made.context)
        assert mode(mine) == 0o300

    as_user(work)


# ---- file systems that keep no modes ----


@pytest.mark.parametrize(
    ("kind", "options", "fit"),
    [
        ("vfat", "rw,fmask=0022,dmask=0022,codepage=437", False),
        ("exfat", "rw", False),
        ("ntfs3", "rw,uid=1000", False),
        ("cifs", "rw,uid=1000,file_mode=0755,dir_mode=0755", False),
        ("9p", "rw,aname=drvfs;path=C:\\;uid=1000", False),
        ("ext4", "rw", True),
        ("hfsplus", "rw,umask=22,uid=0,gid=0", True),
    ],
)
async def test_a_file_system_without_modes_is_refused_before_anything_runs(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch, kind: str, options: str, fit: bool
) -> None:
    def there(path: str, table: object) -> tuple[str, str]:
        return (kind, options) if path == str(owned) else ("ext4", "rw")

    monkeypatch.setattr(folders, "_file_system", there)
    assess = runtime(state).assess
    action = Files(folder=str(owned), language="shell", program="true")
    if fit:
        await assess(action, context())
    else:
        with pytest.raises(InvalidInput, match="keeps no modes and owners"):
            await assess(action, context())
    await assess(Files(folder=str(owned), language="shell", program="true", reads=True), context())


def without_modes(mine: Path, shown: int) -> None:
    """Let new folders below `mine` have the mode that such a file system shows."""
    real = os.mkdir

    def mkdir(path: bytes, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        real(path, mode, dir_fd=dir_fd)
        if dir_fd is not None and str(Path(f"/proc/self/fd/{dir_fd}").readlink()).startswith(str(mine)):
            os.chmod(f"/proc/self/fd/{dir_fd}/{os.fsdecode(path)}", shown)

    os.mkdir = mkdir  # type: ignore[assignment]


def test_where_it_is_not_known_to_keep_none_undo_works_all_the_same(mine: Path) -> None:
    async def work() -> None:
        (mine / "old").write_text("old")
        (mine / "sub").mkdir()
        before = photo(mine)

        def deed(top: Path) -> None:
            (top / "old").write_text("destroyed")
            (top / "sub").rmdir()

        made = way(mine, deed)
        assert (await made.do()).ok
        without_modes(mine, 0o755)
        assert (await made.revert("undo")).ok
        assert photo(mine) == before

    as_user(work)


@pytest.mark.parametrize("open_", ["the new one", "the one that holds it"])
def test_what_others_may_write_to_is_not_used_and_nothing_is_left(mine: Path, open_: str) -> None:
    async def work() -> None:
        (mine / "old").write_text("old")
        os.chmod(mine, 0o777 if open_ == "the one that holds it" else 0o755)
        made = way(mine, lambda top: (top / "old").write_text("destroyed"))
        assert (await made.do()).ok
        after = photo(mine)
        without_modes(mine, 0o755 if open_ == "the one that holds it" else 0o777)
        for _ in range(2):
            with pytest.raises(Conflict):
                await made.revert("undo")
            assert photo(mine) == after
            assert records.read_state(made.context.records).at == "after"

    as_user(work)


def test_a_failed_clean_up_hides_no_error(mine: Path) -> None:
    async def work() -> None:
        (mine / "old").write_text("old")
        made = way(mine, lambda top: (top / "old").write_text("destroyed"))
        assert (await made.do()).ok

        def full(self: Restore, *arguments: object) -> None:
            raise OSError(errno.ENOSPC, "full")

        def broken(self: Restore) -> None:
            raise OSError(errno.EIO, "broken")

        real = Restore._make, Restore.unstage
        Restore._make, Restore.unstage = full, broken  # type: ignore[method-assign, assignment]
        with pytest.raises(Unavailable, match="The disk is full"):
            await made.revert("undo")
        assert records.read_state(made.context.records).at == "between"  # what was left is known, and cleared then
        Restore._make, Restore.unstage = real  # type: ignore[method-assign]
        assert (await made.revert("undo")).ok
        assert [path.name for path in mine.iterdir()] == ["old"]

    as_user(work)


def test_an_undo_that_was_killed_while_it_set_attributes_is_finished(mine: Path) -> None:
    """The file's mode is lifted meanwhile, to one that neither state has."""

    async def begin() -> None:
        (mine / "f").write_text("f")
        os.chmod(mine / "f", 0o444)
        made = way(mine, lambda top: tag(top / "f"), records=on_disk(mine))
        (mine.parent / "state" / "before").write_bytes(pickle.dumps(photo(mine)))
        assert (await made.do()).ok
        keep_plan(made)

    def tag(path: Path) -> None:
        os.chmod(path, 0o644)
        os.setxattr(path, "user.tag", b"the program's")

    async def killed() -> None:
        os.removexattr = lambda *arguments, **options: os._exit(0)
        await after_crash(mine).revert("undo")
        raise AssertionError("it wasn't killed")

    async def undo() -> None:
        assert mode(mine / "f") == 0o600
        assert (await after_crash(mine).revert("undo")).ok
        assert photo(mine) == pickle.loads((mine.parent / "state" / "before").read_bytes())

    as_user(begin)
    as_user(killed)
    as_user(undo)


# ---- attributes that can't be listed ----


class Many:
    """A stand-in for a file system that takes more names than the system lists: those with `user.many`."""

    def __init__(self, error: int = errno.E2BIG) -> None:
        self.error = error

    def list(self, path: Any, *, follow_symlinks: bool = True) -> list[str]:
        names = os.listxattr(path, follow_symlinks=follow_symlinks)
        if "user.many" in names:
            raise OSError(self.error, os.strerror(self.error))
        return names


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Many:
    made = Many()
    stand_in = SimpleNamespace(**{name: getattr(os, name) for name in dir(os)})
    stand_in.listxattr = made.list
    monkeypatch.setattr(trees, "os", stand_in)
    return made


def test_a_file_with_attributes_that_cannot_be_listed_is_made_anew(mine: Path, many: Many) -> None:
    async def work() -> None:
        for name in ("tagged", "plain", "other"):
            (mine / name).write_text("t")
        os.link(mine / "plain", mine / "linked")
        (mine / "sub" / "in").mkdir(parents=True)
        (mine / "sub" / "in" / "file").write_text("deep")
        os.setxattr(mine / "tagged", "user.tag", b"mine")
        before = photo(mine)

        def deed(top: Path) -> None:
            for name in ("tagged", "plain", "sub"):
                at = os.stat(top / name)
                os.setxattr(top / name, "user.many", b"v")
                os.utime(top / name, ns=(at.st_atime_ns, at.st_mtime_ns))

        made = way(mine, deed)
        outcome = await made.do()
        assert outcome.touched and any(UNLISTED[0] in line for line in outcome.changes), outcome.changes
        undone = await made.revert("undo")
        assert undone.ok, undone.summary
        assert photo(mine) == before
        with pytest.raises(Unavailable, match="more attributes than can be listed"):
            await made.revert("redo")
        assert photo(mine) == before

    as_user(work)


def test_the_folder_s_own_cannot_be_taken_off_and_nothing_is_touched(mine: Path, many: Many) -> None:
    async def work() -> None:
        (mine / "file").write_text("t")

        def deed(top: Path) -> None:
            os.setxattr(top, "user.many", b"v")
            (top / "file").write_text("changed")

        made = way(mine, deed)
        assert (await made.do()).touched
        after = photo(mine)
        with pytest.raises(Unavailable, match="more attributes than can be listed"):
            await made.revert("undo")
        assert photo(mine) == after

    as_user(work)


async def test_what_has_more_attributes_than_can_be_listed_is_refused_before_the_run(
    roots: Path, state: Path, many: Many
) -> None:
    (roots / "file").write_text("t")
    os.setxattr(roots / "file", "user.many", b"v")
    with pytest.raises(InvalidInput, match="more attributes than can be listed"):
        await Way(runtime(state), roots).prepared()
    many.error = errno.EOPNOTSUPP  # a file system that has none
    await Way(runtime(state), roots, action_id="a2").prepared()
    many.error = errno.EIO
    with pytest.raises(Unavailable, match="refused"):
        await Way(runtime(state, UnsafeNoSandbox()), roots, action_id="a3").prepared()


def test_of_a_copy_they_are_not_applied_and_said_so() -> None:
    root = Entry("d", 0o755, 0, 0, 1)
    file = Entry("f", 0o644, 0, 0, 1, size=1, oid="x", xattrs=(("user.a", b"b"),))
    before = Manifest(entries={b"": root, b"file": file}, taken=0, settled=False)
    handed = workcopy.given(before, 65534, 65534)
    many = handed.entries[b"file"]._replace(xattrs=(UNLISTED,), mtime=2)
    left = Manifest(entries={**handed.entries, b"file": many}, taken=0, settled=False)
    made, refused = workcopy.target(before, handed, left)
    assert made.entries[b"file"] == file._replace(mtime=2)
    assert refused == ["not applied: the attributes of file, which are more than can be listed"]


def test_steps_keep_what_is_the_same_and_replace_what_is_not() -> None:
    root = Entry("d", 0o755, 0, 0, 1, inode=1)
    many = Entry("f", 0o644, 0, 0, 1, size=1, oid="x", xattrs=(UNLISTED,), inode=2, links=2, group=b"a")
    now = Manifest(entries={b"": root, b"a": many, b"b": many}, taken=0, settled=False)
    assert not steps(now, now)
    goal = Manifest(
        entries={b"": root, **{name: many._replace(xattrs=()) for name in (b"a", b"b")}}, taken=0, settled=False
    )
    assert steps(now, goal).stage == (b"a",)
    shut = {name: many._replace(mode=0o600) for name in (b"a", b"b")}
    assert steps(now, Manifest(entries={b"": root, **shut}, taken=0, settled=False)).settle == (b"a",)
