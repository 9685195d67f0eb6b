"""What was cut off, or failed, half way: nothing of it makes an undo impossible later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies.actions import Files, Revert
from policies.errors import Unavailable, Unsupported
from runtimes.files import collect, records
from runtimes.files.action_folder import ActionFolder
from runtimes.files.restore import Restore
from runtimes.sandbox.contract import Job, Profile, Result
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.photo import photo

UNDO = Revert(verb="undo", target="a1")


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.promise(67)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folders are copied for their programs")
async def test_a_folder_that_cannot_be_applied_takes_the_others_back(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("docs", "photos", "music")]
    for folder in folders:
        folder.mkdir()
        (folder / "x").write_text(folder.name)
    (tmp_path / "state").mkdir()

    class Saving(UnsafeNoSandbox):
        """Somebody saves a file into one of the folders while the program runs on the copies."""

        async def run(self, job: Job, profile: Profile, output: object = None) -> Result:
            result = await super().run(job, profile, output)  # type: ignore[arg-type]
            (folders[1] / "mine").write_text("saved meanwhile")
            return result

    made = runtime(tmp_path / "state", Saving())
    way = Way(made, folders[0], action_id="a1")
    way.action = Files(
        folder=str(folders[0]),
        language="shell",
        program="mv docs/x photos/y; echo n > music/n",
        more=tuple(str(folder) for folder in folders[1:]),
    )
    before = [tree(folder) for folder in folders]
    outcome = await way.do()
    assert not outcome.ok
    after = [before[0], {**before[1], "mine": "saved meanwhile"}, before[2]]
    assert [tree(folder) for folder in folders] == after
    (folders[1] / "mine").unlink()
    with pytest.raises(Unsupported, match="changed nothing"):
        await made.assess_revert(UNDO, way.plan, way.context)
    assert not (await made.footprint(way.plan, way.context)).writes, "nothing of it is of use any more"
    settled = await made.settle(way.plan, way.context)  # its end wasn't written yet
    assert settled.outcome is not None and not settled.outcome.touched
    assert [tree(folder) for folder in folders] == before  # asking for an undo applied nothing either


@pytest.mark.promise(66)
async def test_a_collection_that_was_cut_off_deletes_no_only_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "keep").write_bytes(os.urandom(20_000))
    (folder / "gone").write_bytes(os.urandom(900_000))
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, 1000, 1000)
    (tmp_path / "state").mkdir()
    made = runtime(tmp_path / "state")
    kept = (folder / "keep").read_bytes()
    assert (await Way(made, folder, "rm gone", action_id="a1").do()).ok
    later = Way(made, folder, "rm keep", action_id="a2")
    assert (await later.do()).ok
    repository = made._repository(str(folder))
    packs = repository.path / "objects" / "pack"
    delete = collect._delete

    class Killed(BaseException):
        pass

    def killed(pack: Path) -> None:
        if pack.stat().st_size > 900_000:
            raise Killed
        delete(pack)

    repository.drop("a1")
    there = set(packs.glob("*.pack"))
    monkeypatch.setattr(collect, "_delete", killed)
    with pytest.raises(Killed):
        repository.collect()
    monkeypatch.setattr(collect, "_delete", delete)
    written = set(packs.glob("*.pack")) - there
    assert written
    for pack in written:
        os.utime(pack, ns=(1, 1))  # as where the clock was set back meanwhile
    made._repository(str(folder)).collect()
    assert (await later.revert("undo")).ok
    assert (folder / "keep").read_bytes() == kept


class Cut(BaseException):
    """What a kill does to a coroutine, as far as it can be had within a process."""


async def cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_the_middle: bool) -> Way:
    """An action on a copy of root's folder that was killed when its changes were noted, or half applied."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text(name)
    (tmp_path / "state").mkdir()
    way = await Way(
        runtime(tmp_path / "state"), folder, "for i in a b c; do echo new > $i; done; echo d > d"
    ).prepared()
    placed = 0
    place = Restore._place

    async def killed_before(*arguments: object, **options: object) -> list[str]:
        raise Cut

    def killed_between(self: Restore, *arguments: object) -> None:
        nonlocal placed
        placed += self.durable  # the copy itself is laid out by one that isn't
        if placed == 3:
            raise Cut
        place(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        if in_the_middle:
            patch.setattr(Restore, "_place", killed_between)
        else:
            patch.setattr(ActionFolder, "bring", killed_before)
        with pytest.raises(Cut):
            assert way.plan is not None
            await way.runtime.execute(way.plan, way.context)
    return way


@pytest.mark.promise(58)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folders are copied for their programs")
async def test_asking_for_an_undo_applies_nothing_that_was_only_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = await cut_off(tmp_path, monkeypatch, in_the_middle=False)
    assert way.plan is not None
    before = photo(tmp_path / "folder")
    made = runtime(tmp_path / "state")
    with pytest.raises(Unsupported, match="changed nothing"):
        await made.assess_revert(UNDO, way.plan, way.context)
    assert photo(tmp_path / "folder") == before
    settled = await made.settle(way.plan, way.context)
    assert settled.outcome is not None and not settled.outcome.touched
    assert photo(tmp_path / "folder") == before


@pytest.mark.promise(58)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folders are copied for their programs")
async def test_asking_for_an_undo_of_what_was_half_applied_changes_nothing_and_the_undo_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = await cut_off(tmp_path, monkeypatch, in_the_middle=True)
    assert way.plan is not None
    folder = tmp_path / "folder"
    half = photo(folder)
    assert sum(tree(folder)[name] == "new\n" for name in "abc") in (1, 2)
    made = way.runtime = runtime(tmp_path / "state")
    plan = await made.assess_revert(UNDO, way.plan, way.context)
    assert photo(folder) == half
    dry = await made.dry_revert(UNDO, plan, way.plan, way.context)
    assert dry.ok and photo(folder) == half
    assert (await way.revert("undo")).ok
    assert tree(folder) == {name: name for name in "abc"}
    undone = photo(folder)
    settled = await made.settle(way.plan, way.context)
    assert settled.outcome is None and photo(folder) == undone, "a look applies nothing again"
    assert (await way.revert("redo")).ok
    assert tree(folder) == {**dict.fromkeys("abc", "new\n"), "d": "d\n"}
    assert (await way.revert("undo")).ok
    assert photo(folder) == undone


async def test_a_committed_action_counts_as_one_that_changed_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "state").mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 1000, 1000)
    way = await Way(runtime(tmp_path / "state"), folder, "echo x > y").prepared()
    assert way.plan is not None
    assert not (await way.runtime.footprint(way.plan, way.context)).writes, "it has not begun"
    assert (await way.runtime.footprint(way.plan, context("a1"))).writes, "its records are gone"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folders are copied for their programs")
async def test_a_redo_that_is_cut_off_is_not_said_to_be_an_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = await cut_off(tmp_path, monkeypatch, in_the_middle=True)
    assert way.plan is not None
    assert (await way.revert("undo")).ok

    def failing(self: Restore, *arguments: object) -> None:
        raise Unavailable("The disk fails.")

    with monkeypatch.context() as patch:
        patch.setattr(Restore, "_place", failing)
        outcome = await way.revert("redo")
    assert not outcome.ok and outcome.summary.startswith("It stopped half way")  # also where an undo moves it back
    assert records.read_state(way.context.records).at == "between"
    settled = await way.runtime.settle(way.plan, way.context)
    assert settled.outcome is None and settled.evidence[0].startswith("Doing it again was begun")
    assert (await way.revert("undo")).ok
    assert tree(tmp_path / "folder") == {name: name for name in "abc"}
