"""Undo and redo of an action in a folder in which others worked since: what they did elsewhere stays, what they did to
what it changed is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import Conflict
from runtimes.files import restore as restoring
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo


@pytest.fixture(params=["owned", "roots"])
def folder(request: pytest.FixtureRequest) -> Path:
    """Directly worked on, and worked on as a copy."""
    return Path(request.getfixturevalue(request.param))


def deed(top: Path) -> None:
    """A file is changed, one is moved, one is deleted in a folder, a folder with one is made."""
    (top / "changed").write_text("two")
    (top / "old name").rename(top / "new name")
    (top / "folder" / "deleted").unlink()
    (top / "made").mkdir()
    (top / "made" / "inner").write_text("inner")


def time_of(path: Path) -> int:
    return path.stat().st_mtime_ns


async def done(folder: Path, state: Path) -> Way:
    (folder / "folder").mkdir()
    for name in ("changed", "old name", "folder/deleted", "folder/kept", "other"):
        (folder / name).write_text("one")
    for name in ("folder", "other"):
        os.utime(folder / name, ns=(0, 5))
    os.utime(folder, ns=(0, 7))
    way = Way(runtime(state, UnsafeNoSandbox(deed)), folder)
    assert (await way.do()).ok
    return way


@pytest.mark.promise(60)
async def test_a_file_that_came_and_went_is_in_nobodys_way(folder: Path, state: Path) -> None:
    way = await done(folder, state)
    (folder / "download.part").write_text("x")
    (folder / "download.part").unlink()
    touched = time_of(folder)
    outcome = await way.revert("undo")
    assert outcome.ok and "What others changed since is left" in outcome.summary
    assert (folder / "changed").read_text() == "one" and not (folder / "made").exists()
    assert (folder / "old name").exists() and (folder / "folder" / "deleted").read_text() == "one"
    assert time_of(folder) == touched, "the time at which somebody last worked in it"
    assert time_of(folder / "folder") == 5, "nobody worked in this one"


@pytest.mark.promise(60)
async def test_what_others_did_elsewhere_stays_through_undo_and_redo(folder: Path, state: Path) -> None:
    way = await done(folder, state)
    (folder / "theirs").write_text("theirs")
    (folder / "other").write_text("theirs")
    (folder / "folder" / "kept").unlink()
    now = photo(folder)
    assert (await way.revert("undo")).ok
    assert ((folder / "theirs").read_text(), (folder / "other").read_text()) == ("theirs", "theirs")
    assert not (folder / "folder" / "kept").exists()
    assert (folder / "changed").read_text() == (folder / "old name").read_text() == "one"
    (folder / "more of theirs").write_text("theirs")
    redone = await way.revert("redo")
    assert redone.ok and "What others changed since is left" in redone.summary
    assert (folder / "more of theirs").read_text() == "theirs"
    (folder / "more of theirs").unlink()
    reached = photo(folder)
    assert reached.pop(b"") and now.pop(b"") and reached == now, "all but the time of the folder itself"


THEIRS: dict[str, tuple[Callable[[Path], object], str, Callable[[Path], object]]] = {
    "its content": (
        lambda top: (top / "changed").write_text("theirs"), "changed changed", lambda top: (top / "changed").unlink()
    ),
    "its mode": (
        lambda top: (top / "new name").chmod(0o600), "mode new name", lambda top: (top / "new name").unlink()
    ),
    "its time": (
        lambda top: os.utime(top / "made" / "inner", ns=(0, 1)), "touched made/inner",
        lambda top: (top / "made" / "inner").unlink(),
    ),
    "one of its own in the old place": (
        lambda top: (top / "old name").write_text("theirs"), "created old name", lambda top: (top / "old name").unlink()
    ),
    "a file in a folder that was made": (
        lambda top: (top / "made" / "theirs").write_text("x"), "created made/theirs",
        lambda top: (top / "made" / "theirs").unlink(),
    ),
    "the folder of what was deleted is gone": (
        lambda top: ((top / "folder" / "kept").unlink(), (top / "folder").rmdir()), "deleted folder",
        lambda top: (top / "folder").mkdir(),
    ),
    "a second name": (
        lambda top: (top / "second").hardlink_to(top / "changed"), "links changed",
        lambda top: (top / "second").unlink(),
    ),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.promise(60)
@pytest.mark.parametrize("what", THEIRS)
async def test_what_others_did_to_it_is_refused_by_name(folder: Path, state: Path, what: str) -> None:
    way = await done(folder, state)
    there = time_of(folder / "made" / "inner")
    do, line, away = THEIRS[what]
    do(folder)
    now = photo(folder)
    with pytest.raises(Conflict, match="nothing was touched") as caught:
        await way.revert("undo")
    assert any(each.startswith(line) for each in caught.value.difference), caught.value.difference
    assert photo(folder) == now
    if line.startswith("created"):
        assert "Move these away" in caught.value.next_step
        away(folder)
        assert (await way.revert("undo")).ok
    elif what == "its time":
        assert "content, mode and time" in caught.value.next_step
        os.utime(folder / "made" / "inner", ns=(0, there))
        assert (await way.revert("undo")).ok


async def test_an_undo_that_stopped_half_way_goes_on_among_others(
    folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = await done(folder, state)
    (folder / "theirs").write_text("before it began")
    place = restoring.Restore._place

    def failing(self: restoring.Restore, *rest: object) -> None:
        place(self, *rest)  # type: ignore[arg-type]
        raise OSError(5, "the disk has a fault")

    with monkeypatch.context() as patch:
        patch.setattr(restoring.Restore, "_place", failing)
        stopped = await way.revert("undo")
        assert not stopped.ok and "run it again" in stopped.summary
    (folder / "more").write_text("while it was cut off")
    assert (await way.revert("undo")).ok
    assert ((folder / "theirs").read_text(), (folder / "more").read_text()) == (
        "before it began",
        "while it was cut off",
    )
    assert (folder / "changed").read_text() == (folder / "old name").read_text() == "one"
    assert (folder / "folder" / "deleted").read_text() == "one" and not (folder / "made").exists()
