"""The copy that a program worked on is kept for the next one, which gets the folder as it is in spite of all."""

from __future__ import annotations

import os
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import pytest

from runtimes.files import kept_copies, tree, workcopy
from runtimes.files.runtime import FilesRuntime
from runtimes.sandbox.contract import SandboxFailed
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a folder of one's own is worked on itself")


class Programs:
    """A sandbox whose programs look at what they got, and then do what they are told."""

    def __init__(self) -> None:
        self.got: dict[str, str] = {}
        self.inodes: dict[str, int] = {}
        self.deed: Callable[[Path], object] = lambda folder: None
        self.sandbox = UnsafeNoSandbox(self._run)

    def _run(self, folder: Path) -> None:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        self.got = {str(path.relative_to(folder)): path.read_text() for path in files}
        self.inodes = {str(path.relative_to(folder)): path.stat().st_ino for path in files}
        self.deed(folder)


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
def runtime(state: Path, programs: Programs) -> FilesRuntime:
    return FilesRuntime(programs.sandbox, state / "snapshots")


@pytest.fixture
def folder(roots: Path) -> Path:
    (roots / "in").mkdir()
    (roots / "a").write_text("one")
    (roots / "in" / "b").write_text("two")
    return roots


HELD = {"a": "one", "in/b": "two"}


def copies(state: Path) -> list[Path]:
    return sorted((state / "snapshots" / "copies").glob("*/tree"))


async def run(runtime: FilesRuntime, folder: Path, number: int) -> Way:
    way = Way(runtime, folder, action_id=f"a{number}")
    outcome = await way.do()
    assert way.plan is not None and way.plan.resolved["mode"] == "copy"
    assert outcome.ok, outcome.summary
    return way


def keeping_times(path: Path, deed: Callable[[], object]) -> None:
    at = path.stat()
    deed()
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))


def rewritten(top: Path) -> None:
    keeping_times(top / "a", lambda: (top / "a").write_text("ONE"))


def replaced(top: Path) -> None:
    def swap() -> None:
        (top / "new").write_text("ONE")
        (top / "new").rename(top / "a")

    keeping_times(top / "a", swap)


def mapped(top: Path) -> None:
    def write() -> None:
        with (top / "a").open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), b"ONE", 0)

    keeping_times(top / "a", write)


def added(top: Path) -> None:
    (top / "in" / "c").write_text("three")


def removed(top: Path) -> None:
    (top / "in" / "b").unlink()
    (top / "in").rmdir()


def linked(top: Path) -> None:
    (top / "a").unlink()
    os.link(top / "in" / "b", top / "a")


def led_away(top: Path) -> None:
    (top / "a").unlink()
    (top / "a").symlink_to("/etc/hostname")


TAMPERED = [rewritten, replaced, mapped, added, removed, linked, led_away]


async def test_the_next_program_gets_the_same_copy(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs
) -> None:
    await run(runtime, folder, 1)
    first = programs.inodes
    await run(runtime, folder, 2)
    assert (programs.got, programs.inodes) == (HELD, first)
    assert len(copies(state)) == 1
    assert copies(state)[0].parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("tamper", TAMPERED)
async def test_whatever_is_done_to_a_kept_copy_the_next_program_gets_the_folder(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs, tamper: Callable[[Path], None]
) -> None:
    await run(runtime, folder, 1)
    tamper(copies(state)[0])
    way = await run(runtime, folder, 2)
    assert programs.got == HELD
    assert {name: (folder / name).read_text() for name in HELD} == HELD, "and nothing of that is the program's doing"
    assert way.context.records.get("after") is not None


@pytest.mark.sampled(5)
@pytest.mark.parametrize("deed", TAMPERED)
async def test_a_program_hides_nothing_of_what_it_did_to_a_kept_copy(
    runtime: FilesRuntime, folder: Path, programs: Programs, deed: Callable[[Path], None]
) -> None:
    await run(runtime, folder, 1)
    programs.deed = deed
    way = await run(runtime, folder, 2)
    programs.deed = lambda top: None
    await run(runtime, folder, 3)
    assert programs.got != HELD or (folder / "a").is_symlink(), "it was applied to the folder"
    outcome = await way.revert("undo")
    assert outcome.ok, outcome.summary
    assert {name: (folder / name).read_text() for name in HELD} == HELD and not (folder / "a").is_symlink()
    await run(runtime, folder, 4)
    assert programs.got == HELD


@pytest.mark.parametrize("change", [rewritten, replaced])
async def test_what_the_person_changed_meanwhile_is_what_the_next_program_gets(
    runtime: FilesRuntime, folder: Path, programs: Programs, change: Callable[[Path], None]
) -> None:
    await run(runtime, folder, 1)
    change(folder)
    await run(runtime, folder, 2)
    assert programs.got == {**HELD, "a": "ONE"}


async def test_the_copy_of_another_folder_put_in_its_place_is_made_this_ones(
    runtime: FilesRuntime, folder: Path, place: Path, state: Path, programs: Programs
) -> None:
    other = place / "other"
    other.mkdir()
    (other / "a").write_text("ten")
    await run(runtime, folder, 1)
    (own,) = copies(state)
    await run(runtime, other, 2)
    (its,) = set(copies(state)) - {own}
    own.parent.rename(state / "aside")
    its.parent.rename(own.parent)
    (state / "aside").rename(its.parent)
    await run(runtime, folder, 3)
    assert programs.got == HELD
    await run(runtime, other, 4)
    assert programs.got == {"a": "ten"}


async def test_without_looking_at_the_copy_a_change_would_reach_the_program(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: what these tests do to a copy shows where it isn't walked before its next use."""
    monkeypatch.setattr(workcopy, "_renewed", lambda work, goal, kept, repository: (goal, kept))
    await run(runtime, folder, 1)
    rewritten(copies(state)[0])
    await run(runtime, folder, 2)
    assert programs.got == {**HELD, "a": "ONE"}


async def test_without_change_times_a_change_would_reach_the_program(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: size, inode and modification time alone don't tell it."""
    monkeypatch.setattr(tree, "_settled", lambda ctime, taken: True)
    monkeypatch.setattr(tree, "_marks", attrgetter("st_ino", "st_size", "st_mtime_ns", "st_mode", "st_nlink"))
    marks = tree._lone
    monkeypatch.setattr(tree, "_lone", lambda entry: marks(entry)[1:])
    await run(runtime, folder, 1)
    rewritten(copies(state)[0])
    await run(runtime, folder, 2)
    assert programs.got == {**HELD, "a": "ONE"}


async def test_a_copy_whose_content_is_gone_is_made_anew(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs
) -> None:
    await run(runtime, folder, 1)
    inode = copies(state)[0].stat().st_ino
    (copies(state)[0]).rename(state / "gone")
    await run(runtime, folder, 2)
    assert programs.got == HELD
    assert copies(state)[0].stat().st_ino != inode


async def test_a_run_that_was_cut_off_leaves_no_copy(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs
) -> None:
    await run(runtime, folder, 1)
    programs.sandbox.fail = SandboxFailed("It didn't start.", next_step="")
    way = await Way(runtime, folder, action_id="a2").prepared()
    assert way.plan is not None
    with pytest.raises(SandboxFailed):
        await runtime.execute(way.plan, way.context)
    assert copies(state) == []
    assert not (state / "snapshots" / "work" / "a2").exists()


async def test_copies_go_with_their_folders_actions_and_with_an_earlier_daemon(
    runtime: FilesRuntime, folder: Path, state: Path, programs: Programs
) -> None:
    way = await run(runtime, folder, 1)
    assert len(copies(state)) == 1
    assert (await way.revert("commit")).ok
    assert copies(state) == []
    await run(runtime, folder, 2)
    assert len(copies(state)) == 1
    await FilesRuntime(programs.sandbox, state / "snapshots").reap()
    assert copies(state) == []


async def test_few_copies_are_kept_and_none_that_is_too_large(
    runtime: FilesRuntime, place: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(kept_copies._MOST + 1):
        top = place / f"f{number}"
        top.mkdir()
        (top / "a").write_text(str(number))
        await run(runtime, top, number)
    assert sorted((top / "a").read_text() for top in copies(state)) == ["1", "2"]
    monkeypatch.setattr(kept_copies, "_LARGEST", 0)
    await run(runtime, place / "f2", 7)
    assert [(top / "a").read_text() for top in copies(state)] == ["1"]
