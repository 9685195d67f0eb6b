"""What a program left and nobody could record: it is left as it is, and an undo moves it aside and deletes nothing."""

# By paths and os calls, as the runtime does not do it.

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import pickle
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Outcome, Plan, Revert, UndoClass
from policies.errors import Conflict, Unavailable, Unsupported
from runtimes.files import records, restore, tree
from runtimes.files.aside import _Aside
from runtimes.files.handles import Handles, Moved, put_new
from runtimes.files.restore import Restore
from runtimes.files.run import Run
from runtimes.files.runtime import FilesRuntime
from runtimes.files.snapshot import Repository
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Deed, DiskRecords, Way, context, runtime
from tests.runtimes.files.photo import Photo, photo, without_left
from tests.runtimes.files.test_modes import Many, after_crash, keep_plan, many, on_disk
from tests.runtimes.files.test_unprivileged import as_user, everything_imported, mine

__all__ = ["everything_imported", "many", "mine"]  # fixtures

MINE = {"report.txt": "three days of work", "old.txt": "edited by the person"}


class KilledError(BaseException):
    """The daemon is gone."""


@pytest.fixture
def folder(owned: Path) -> Path:
    (owned / "old.txt").write_text("old")
    (owned / "sub" / "inner").mkdir(parents=True)
    (owned / "sub" / "a").write_text("a")
    os.link(owned / "sub" / "a", owned / "sub" / "inner" / "b")
    (owned / "tagged").write_text("tagged")
    os.setxattr(owned / "tagged", "user.tag", b"mine")
    at = owned.stat()
    for path in owned.rglob("*"):
        os.chown(path, at.st_uid, at.st_gid)
    return owned


def owner(path: Path) -> tuple[int, int]:
    at = path.stat()
    return at.st_uid, at.st_gid


def nested(top: Path) -> None:
    """More levels than are taken."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(230):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


def person_works(top: Path) -> None:
    for name, text in MINE.items():
        (top / name).write_text(text)


def contents(top: Path) -> set[str]:
    """What all the files in it hold, wherever they are."""
    return {Path(at, name).read_text() for at, _, names in os.walk(top) for name in names}


def left(top: Path) -> Path:
    (found,) = top.glob(".goex-left-*")
    return found


async def went_wrong(folder: Path, state: Path, deed: Deed, **options: Any) -> tuple[Way, Outcome]:
    way = Way(runtime(state, UnsafeNoSandbox(deed), **options), folder)
    return way, await way.do()


def plan_of(way: Way) -> Plan:
    assert way.plan is not None
    return way.plan


def direct(way: Way) -> None:
    if plan_of(way).resolved["mode"] != "direct":
        pytest.skip("needs root, for a folder of somebody else's that is worked on directly")


@pytest.mark.promise(61)
@pytest.mark.parametrize("what", ["too deep", "written to"])
async def test_after_a_kill_nothing_is_written_before_somebody_asks(
    folder: Path, state: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deed(top: Path) -> None:
        (top / "made").write_text("by the program")
        raise KilledError

    way = await Way(runtime(state, UnsafeNoSandbox(deed)), folder).prepared()
    direct(way)
    before = photo(folder)
    with pytest.raises(KilledError):
        await way.runtime.execute(plan_of(way), way.context)
    person_works(folder)
    if what == "too deep":
        nested(folder)
    else:
        _never_read(monkeypatch)
    now = photo(folder)
    for _ in range(2):
        settled = await runtime(state).settle(plan_of(way), way.context)
        assert settled.outcome is None and settled.evidence
        assert photo(folder) == now
    monkeypatch.undo()  # it could be recorded by now, with what the person did since
    assert (await way.revert("undo")).ok
    assert without_left(folder) == before
    assert {name: (left(folder) / name).read_text() for name in MINE} == MINE


def _never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(self: Run, stripped: list[str]) -> Any:
        raise Conflict("app.log changed while it was being read.", next_step="Wait until nothing else writes to it.")

    monkeypatch.setattr(Run, "_record_after", busy)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_file_that_cannot_be_read_costs_nobody_their_work(place: Path, state: Path) -> None:
    mine, own = place / "mine", place / "own"
    for path in (mine, own):
        path.mkdir()
        os.chown(path, 65534, 65534)
    (mine / "build.log").write_text("made as root")
    (mine / "build.log").chmod(0o600)
    (mine / "build.log").rename(place / "build.log")

    async def work() -> None:
        (mine / "old.txt").write_text("old")

        def deed(top: Path) -> None:
            (top / "old.txt").write_text("by the program")
            (place / "own" / "go").touch()
            while not (mine / "build.log").exists():
                pass
            raise KilledError

        way = await Way(runtime(own, UnsafeNoSandbox(deed)), mine).prepared()
        before = photo(mine)
        with pytest.raises(KilledError):
            await way.runtime.execute(plan_of(way), way.context)
        person_works(mine)
        settled = await runtime(own).settle(plan_of(way), way.context)
        assert settled.outcome is None and "build.log can't be read" in settled.evidence[0]
        assert {name: (mine / name).read_text() for name in MINE} == MINE
        way.runtime = runtime(own)
        assert (await way.revert("undo")).ok
        kept = left(mine)
        assert {name: (kept / name).read_text() for name in MINE} == MINE
        assert (kept / "build.log").stat().st_uid == 0, "it can be moved, if not read"
        (kept / "build.log").unlink()
        assert without_left(mine) == before

    watcher = os.fork()
    if watcher == 0:
        while not (own / "go").exists():
            pass
        (place / "build.log").rename(mine / "build.log")
        os._exit(0)
    try:
        as_user(work)
    finally:
        os.waitpid(watcher, 0)


@pytest.mark.promise(58)
async def test_what_is_too_much_is_left_and_an_undo_moves_it_aside(folder: Path, state: Path) -> None:
    before = photo(folder)

    def deed(top: Path) -> None:
        nested(top)
        person_works(folder)
        (top / "sub" / "inner" / "b").unlink()
        (top / "sub" / "inner" / "b").write_text("no link any more")
        os.setxattr(top / "tagged", "user.tag", b"another")
        (top / "sub" / "new").mkdir(mode=0o500)

    way, outcome = await went_wrong(folder, state, deed)
    direct(way)
    assert not outcome.ok and outcome.touched and not outcome.unsure and "can't be recorded" in outcome.summary
    assert {name: (folder / name).read_text() for name in MINE} == MINE
    plan = await way.runtime.assess_revert(Revert(verb="undo", target="a1"), plan_of(way), way.context)
    assert "moved aside report.txt" in plan.lines and "moved aside d" in plan.lines
    assert plan.undo_class is UndoClass.IRREVERSIBLE
    undone = await way.revert("undo")
    assert undone.ok and left(folder).name in undone.summary
    assert without_left(folder) == before
    kept = left(folder)
    assert {name: (kept / name).read_text() for name in MINE} == MINE
    assert (kept / "sub" / "inner" / "b").read_text() == "no link any more"
    assert os.getxattr(kept / "tagged", "user.tag") == b"another"
    assert owner(kept) == owner(folder) and kept.stat().st_mode & 0o777 == 0o700
    with pytest.raises(Unsupported, match="never recorded"):
        await way.revert("redo")
    with pytest.raises(Unsupported, match="undone already"):
        await way.revert("undo")
    settled = await way.runtime.settle(plan_of(way), way.context)
    assert settled.outcome is None


async def test_a_log_that_is_always_written_to_takes_nothing_back(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = await Way(runtime(state, UnsafeNoSandbox(person_works)), folder).prepared()
    direct(way)
    before = photo(folder)
    _never_read(monkeypatch)
    outcome = await way.runtime.execute(plan_of(way), way.context)
    assert not outcome.ok and outcome.touched and outcome.unsure and "app.log changed" in outcome.summary
    assert {name: (folder / name).read_text() for name in MINE} == MINE
    monkeypatch.undo()
    assert (await way.revert("undo")).ok
    assert without_left(folder) == before and set(MINE.values()) <= contents(left(folder))


async def test_what_is_over_by_the_second_time_is_recorded(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = photo(folder)
    real = Run._record_after
    failed: list[bool] = []

    async def once(self: Run, stripped: list[str]) -> Any:
        if not failed:
            failed.append(True)
            raise Conflict("It changed.")
        return await real(self, stripped)

    monkeypatch.setattr(Run, "_record_after", once)
    way, outcome = await went_wrong(folder, state, person_works)
    assert outcome.ok and (await way.revert("undo")).ok
    assert photo(folder) == before


@pytest.mark.promise(61)
async def test_cut_off_anywhere_it_loses_nothing_and_is_finished(
    place: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its moves fails once. The person goes on working; asking what an undo would do touches nothing."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a folder of somebody else's that is worked on directly")
    number, ended = 0, False
    while not ended:
        folder = place / f"f{number}"
        (folder / "sub").mkdir(parents=True)
        (folder / "old.txt").write_text("old")
        (folder / "sub" / "a").write_text("a")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 1000, 1000)
        before = photo(folder)

        def deed(top: Path) -> None:
            nested(top)
            (top / "old.txt").write_text("by the program")
            (top / "sub" / "a").write_text("the program's a")

        way = Way(
            runtime(state / str(number), UnsafeNoSandbox(deed)), folder, records=DiskRecords(state / f"r{number}")
        )
        await way.do()
        plan = await way.runtime.assess_revert(Revert(verb="undo", target="a1"), plan_of(way), way.context)
        with monkeypatch.context() as patched:
            made = _fail_at(patched, number, folder)
            outcome = await way.runtime.execute_revert(
                Revert(verb="undo", target="a1"), plan, plan_of(way), way.context, context("r1")
            )
            ended = made() <= number
        assert outcome.ok == ended, outcome.summary
        if not ended:
            assert "half way" in outcome.summary and "Nothing was deleted" in outcome.summary
            assert records.read_state(way.context.records).at == "between"
            person_works(folder)
            (folder / "sub" / "later").write_text("a day later")
            now = photo(folder)
            way.runtime = runtime(state / str(number))
            assert (await way.runtime.settle(plan_of(way), way.context)).outcome is None
            await way.runtime.assess_revert(Revert(verb="undo", target="a1"), plan_of(way), way.context)
            assert photo(folder) == now
            assert (await way.revert("undo")).ok
            assert {"a day later", *MINE.values()} <= contents(left(folder))
        assert without_left(folder) == before
        assert "the program's a" in contents(left(folder))
        assert not [path for path in folder.glob(".goex-*") if path != left(folder)]
        number += 1
    assert number > 4


def _fail_at(patched: pytest.MonkeyPatch, number: int, folder: Path) -> Callable[[], int]:
    """Let the rename of that number fail, of those in the folder; the answer says how many were asked for."""
    made = 0

    def failing(real: Callable[..., None]) -> Callable[..., None]:
        def rename(*arguments: Any, **options: Any) -> None:
            nonlocal made
            if "src_dir_fd" in options or real is put_new:
                made += 1
                if made - 1 == number:
                    raise OSError(errno.EIO, "Input/output error")
            real(*arguments, **options)

        return rename

    patched.setattr(os, "rename", failing(os.rename))
    patched.setattr(restore, "put_new", failing(put_new))
    return lambda: made


@pytest.mark.promise(60)
async def test_what_is_done_between_the_yes_and_the_undo_is_not_moved(folder: Path, state: Path) -> None:
    way, _ = await went_wrong(folder, state, nested)
    direct(way)
    revert = Revert(verb="undo", target="a1")
    plan = await way.runtime.assess_revert(revert, plan_of(way), way.context)
    person_works(folder)
    now = photo(folder)
    with pytest.raises(Conflict, match="nothing was touched"):
        await way.runtime.execute_revert(revert, plan, plan_of(way), way.context, context("r1"))
    assert photo(folder) == now


async def test_names_that_are_in_each_other_s_way_are_both_kept(folder: Path, state: Path) -> None:
    """The kept folder gets what is moved later beside what it has."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a folder of somebody else's that is worked on directly")
    fd = os.open(folder, os.O_RDONLY)
    try:
        for text in ("one", "two"):
            (folder / "new").write_text(text)
            _Aside(fd, b".goex-left-x").move((b"new",))
        (folder / "new").mkdir()
        (folder / "new" / "in it").write_text("three")
        _Aside(fd, b".goex-left-x").move((b"new/in it",))
    finally:
        os.close(fd)
    assert contents(folder / ".goex-left-x") == {"one", "two", "three"}


@pytest.mark.promise(60)
async def test_what_is_stored_through_a_mapping_is_a_later_change(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves no time until the page is on the disk, however long that takes."""
    monkeypatch.setattr(tree, "_SETTLED_NS", 50_000_000)
    data = folder / "data.bin"
    data.write_bytes(b"0" * 4096)
    os.chown(data, *owner(folder))
    with data.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as mapped:
        mapped[:5] = b"first"

        def deed(top: Path) -> None:
            with (top / "data.bin").open("r+b") as other:
                other.seek(100)
                other.write(b"PROGRAM")
            mapped[5] = mapped[5]
            time.sleep(0.3)

        way, outcome = await went_wrong(folder, state, deed)
        assert outcome.ok
        await asyncio.sleep(0.3)
        mapped[200:210] = b"THE PERSON"
        with pytest.raises(Conflict):
            await way.revert("undo")
    assert b"THE PERSON" in data.read_bytes()


async def test_a_snapshot_has_what_was_stored_through_a_mapping(folder: Path, state: Path) -> None:
    data = folder / "data.bin"
    data.write_bytes(b"0" * 4096)
    os.chown(data, *owner(folder))
    made: FilesRuntime = runtime(state)
    with data.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as mapped:
        mapped[:5] = b"first"
        await asyncio.sleep(0.2)
        assert (await Way(made, folder, "echo x > other").do()).ok
        await asyncio.sleep(0.2)
        mapped[200:210] = b"THE PERSON"
        way = Way(made, folder, "rm data.bin", action_id="a2")
        assert (await way.do()).ok
        assert (await way.revert("undo")).ok
    assert b"THE PERSON" in data.read_bytes()


@pytest.mark.promise(61)
async def test_an_undo_right_after_a_kill_counts_nothing_as_the_program_s(folder: Path, state: Path) -> None:
    """Nobody has looked at the folder since: what is there may be anybody's."""

    def deed(top: Path) -> None:
        (top / "made").write_text("by the program")
        raise KilledError

    way = await Way(runtime(state, UnsafeNoSandbox(deed)), folder).prepared()
    direct(way)
    before = photo(folder)
    with pytest.raises(KilledError):
        await way.runtime.execute(plan_of(way), way.context)
    person_works(folder)
    way.runtime = runtime(state)
    plan = await way.runtime.assess_revert(Revert(verb="undo", target="a1"), plan_of(way), way.context)
    assert any("GoEx was stopped" in line for line in plan.lines)
    assert (await way.revert("undo")).ok
    assert without_left(folder) == before
    assert {name: (left(folder) / name).read_text() for name in MINE} == MINE


# ---- what can't be moved ----


@pytest.fixture
def flagged() -> Iterator[Callable[[Path], None]]:
    found: list[Path] = []

    def flag(path: Path) -> None:
        if subprocess.run(["chattr", "+a", str(path)], capture_output=True, check=False).returncode:
            pytest.skip("this file system, or user, knows no files that are appended to alone")
        found.append(path)

    yield flag
    for path in found:
        subprocess.run(["chattr", "-a", str(path)], check=False, capture_output=True)


async def test_a_file_that_nobody_can_move_is_said_before_anything_is_touched(
    folder: Path, state: Path, flagged: Callable[[Path], None]
) -> None:
    def deed(top: Path) -> None:
        nested(top)
        person_works(top)
        (top / "z.log").write_text("log")

    way, _ = await went_wrong(folder, state, deed)
    direct(way)
    flagged(folder / "z.log")
    now = photo(folder)
    with pytest.raises(Conflict, match="can't be moved") as refused:
        await way.revert("undo")
    assert refused.value.difference == ("can't be moved: z.log",)
    assert photo(folder) == now and records.read_state(way.context.records).at == "running"
    await asyncio.to_thread(subprocess.run, ["chattr", "-a", str(folder / "z.log")], check=True)
    assert (await way.revert("undo")).ok
    assert (left(folder) / "z.log").read_text() == "log"


async def unrecorded(mine: Path, deed: Deed, monkeypatch: pytest.MonkeyPatch) -> None:
    """An action in a child of the user's, for a later child to take back."""
    with monkeypatch.context() as patched:
        _never_read(patched)
        made = Way(runtime(mine.parent / "state", UnsafeNoSandbox(deed)), mine, records=on_disk(mine))
        await made.prepared()
        (mine.parent / "state" / "before").write_bytes(pickle.dumps(photo(mine)))
        assert not (await made.runtime.execute(plan_of(made), made.context)).ok
        keep_plan(made)


def taken_back(mine: Path) -> bool:
    before: Photo = pickle.loads((mine.parent / "state" / "before").read_bytes())
    return without_left(mine) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_s_folder_is_said_before_anything_is_touched(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin() -> None:
        (mine / "old.txt").write_text("old")
        await unrecorded(mine, person_works, monkeypatch)

    async def refused() -> None:
        now = photo(mine)
        with pytest.raises(Conflict, match="can't be moved") as said:
            await after_crash(mine).revert("undo")
        assert said.value.difference == ("can't be moved: z",)
        assert photo(mine) == now and records.read_state(on_disk(mine)).at == "running"

    async def undo() -> None:
        assert (await after_crash(mine).revert("undo")).ok
        assert taken_back(mine)

    as_user(begin)
    (mine / "z").mkdir()
    as_user(refused)
    (mine / "z").rmdir()
    as_user(undo)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_attributes_that_cannot_be_taken_off_are_said_before_anything_is_touched(
    mine: Path, many: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deed(top: Path) -> None:
        person_works(top)
        os.setxattr(top, "user.many", b"v")

    async def work() -> None:
        (mine / "old.txt").write_text("old")
        await unrecorded(mine, deed, monkeypatch)
        now = photo(mine)
        with pytest.raises(Conflict, match="can't be moved"):
            await after_crash(mine).revert("undo")
        assert photo(mine) == now
        os.removexattr(mine, "user.many")
        assert (await after_crash(mine).revert("undo")).ok
        assert taken_back(mine)

    as_user(work)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_closed_folder_that_is_moved_stays_closed(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deed(top: Path) -> None:
        (top / "shut").mkdir()
        (top / "shut" / "in").write_text("in")
        (top / "shut").chmod(0o500)

    async def work() -> None:
        await unrecorded(mine, deed, monkeypatch)
        assert (await after_crash(mine).revert("undo")).ok
        assert taken_back(mine)
        kept = left(mine) / "shut"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o500 and (kept / "in").read_text() == "in"

    as_user(work)


async def test_a_log_that_is_still_written_to_is_moved(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = folder / "app.log"
    log.write_bytes(b"0" * (1 << 20))
    os.chown(log, *owner(folder))
    before = photo(folder)
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.0002):
            os.write(file, b"one more line\n")

    writer = threading.Thread(target=write)

    def deed(top: Path) -> None:
        (top / "made").write_text("by the program")
        writer.start()

    try:
        _never_read(monkeypatch)
        way, _ = await went_wrong(folder, state, deed)
        monkeypatch.undo()
        direct(way)
        for tries in reversed(range(20)):  # on a busy machine a line may come in while it is moved: then it says so
            try:
                assert (await way.revert("undo")).ok
                break
            except Conflict:
                if not tries:
                    raise
        assert without_left(folder) == before
        assert (left(folder) / "app.log").stat().st_size > 1 << 20
    finally:
        ended.set()
        if writer.ident is not None:
            writer.join()
        os.close(file)


@pytest.mark.parametrize("what", ["file", "link"])
def test_what_is_in_the_place_of_the_kept_folder_stops_it(folder: Path, what: str) -> None:
    (folder / "new").write_text("new")
    place = folder / ".goex-left-x"
    if what == "file":
        place.write_text("mine")
    else:
        place.symlink_to("sub")
    fd = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(Moved, match="goex-left-x"):
            _Aside(fd, b".goex-left-x").move((b"new",))
    finally:
        os.close(fd)
    assert (folder / "new").read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which gives the kept folder away")
def test_a_folder_put_in_the_place_of_the_kept_one_is_not_given_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "new").write_text("new")
    real = os.mkdir

    def swapped(name: bytes, mode: int, *, dir_fd: int) -> None:
        real(name, mode, dir_fd=dir_fd)
        (folder / os.fsdecode(name) / "root's").write_text("secret")

    monkeypatch.setattr(os, "mkdir", swapped)
    fd = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(Moved):
            _Aside(fd, b".goex-left-x").move((b"new",))
    finally:
        os.close(fd)
    assert owner(folder / ".goex-left-x") == (0, 0) and (folder / "new").exists()


# ---- what is said ----


async def test_a_dry_run_of_it_says_what_would_be_moved(folder: Path, state: Path) -> None:
    way, _ = await went_wrong(folder, state, nested)
    direct(way)
    now = photo(folder)
    revert = Revert(verb="undo", target="a1")
    plan = await way.runtime.assess_revert(revert, plan_of(way), way.context)
    found = await way.runtime.dry_revert(revert, plan, plan_of(way), way.context)
    assert found.ok and "moved aside d" in [line.text for line in found.lines]
    assert photo(folder) == now


async def test_where_nothing_was_moved_nobody_is_sent_to_look_for_it(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        _never_read(patched)
        way, _ = await went_wrong(folder, state, lambda top: (top / "old.txt").unlink())
    direct(way)
    with monkeypatch.context() as patched:
        _fail_at(patched, 0, folder)
        halted = await way.revert("undo")
    assert "half way" in halted.summary and "Nothing was deleted." in halted.summary
    assert ".goex-left" not in halted.summary
    assert (await way.revert("undo")).ok


async def test_of_two_errors_the_first_is_told(folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way, _ = await went_wrong(folder, state, nested)
    direct(way)

    def fail(said: str) -> Callable[..., None]:
        def failing(*arguments: Any) -> None:
            raise Unavailable(said)

        return failing

    with monkeypatch.context() as patched:
        patched.setattr(Restore, "stage", fail("The disk is full."))
        patched.setattr(Restore, "unstage", fail("It can't be cleared."))
        with pytest.raises(Unavailable, match="disk is full"):
            await way.revert("undo")
    assert records.read_state(way.context.records).at == "between"
    assert (await way.revert("undo")).ok


async def test_bits_that_a_first_try_took_off_are_told(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deed(top: Path) -> None:
        (top / "tool").write_text("x")
        os.chown(top / "tool", *owner(folder))
        (top / "tool").chmod(0o4755)

    way = await Way(runtime(state, UnsafeNoSandbox(deed)), folder).prepared()
    direct(way)
    real = Repository.save
    failed: list[bool] = []

    def once(self: Repository, *arguments: Any, **options: Any) -> Any:
        made = real(self, *arguments, **options)
        if not failed:
            failed.append(True)
            raise Unavailable("The disk is full.")
        return made

    monkeypatch.setattr(Repository, "save", once)
    outcome = await way.runtime.execute(plan_of(way), way.context)
    assert failed and stat.S_IMODE((folder / "tool").stat().st_mode) == 0o755
    assert [line for line in outcome.changes if "set-user-id" in line and "tool" in line], outcome.changes


def test_handles_that_cannot_be_had_leave_nothing_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Handles, path: bytes, fd: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Handles, "_lift", refused)
    fd = os.open(folder, os.O_RDONLY)
    try:
        there = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(OSError, match="Read-only"):
            Handles(fd)
        assert len(list(Path("/proc/self/fd").iterdir())) == there
    finally:
        os.close(fd)
