"""One program on several folders: taken back all of them or none, also after kill -9, also when one of them changed."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Action, Files, Outcome, Plan
from policies.errors import Conflict, InvalidInput, Unavailable, Unsupported
from policies.limits import Confinement
from policies.rules.facts import Situation, questions
from policies.typed_json import from_json, to_json
from runtimes.files import records
from runtimes.files.runtime import FilesRuntime
from runtimes.sandbox.contract import WORK, SandboxFailed
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import DiskRecords, Way, runtime
from tests.runtimes.files.photo import Photo, photo, without_left

PROGRAM = "mv docs/a photos/b; echo new > docs/c; rm photos/p; mkdir music/d"

# Where it doesn't matter how each folder is worked on, or both ways are met at once.
MIXED = pytest.mark.parametrize(
    "folders", ["mixed", *(pytest.param(way, marks=pytest.mark.thorough) for way in ("direct", "copy"))], indirect=True
)


@pytest.fixture(params=["direct", "copy", "mixed"])
def folders(request: pytest.FixtureRequest, place: Path) -> list[Path]:
    made = []
    for number, name in enumerate(("docs", "photos", "music")):
        folder = place / name
        folder.mkdir()
        (folder / ("a" if number == 0 else "p")).write_text(name)
        if os.geteuid() == 0 and request.param != "copy":
            for path in (folder, *folder.iterdir()):
                os.chown(path, 1000, 1000)
        if request.param == "mixed" and number == 1:  # it has a name that leads elsewhere: worked on as a copy
            os.link(folder / "p", place / "outside")
        made.append(folder)
    return made


def way(made: Any, folders: list[Path], records: Any = None, program: str = PROGRAM) -> Way:
    found = Way(made, folders[0], records=records)
    more = tuple(str(folder) for folder in folders[1:])
    found.action = Files(folder=str(folders[0]), language="shell", program=program, more=more)
    return found


def photos(folders: list[Path]) -> list[Photo]:
    return [photo(folder) for folder in folders]


async def test_all_of_them_are_done_undone_and_redone(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    before = photos(folders)
    found = way(made, folders)
    outcome = await found.do()
    assert outcome.ok and outcome.touched, outcome.summary
    assert len(made._sandbox.jobs) == 1, "one program"  # type: ignore[attr-defined]
    assert "docs: deleted a" in outcome.changes and "photos: created b" in outcome.changes
    after = photos(folders)
    assert (folders[1] / "b").read_text() == "docs" and after[2] != before[2]
    for verb, goal in (("undo", before), ("redo", after), ("undo", before)):
        assert (await found.revert(verb)).ok
        assert photos(folders) == goal
    assert from_json(Action, to_json(found.action), "It") == found.action
    await found.revert("commit")
    assert not list((state / "snapshots").glob("*.git"))


@MIXED
async def test_what_it_prints_is_heard_once_whichever_folder_is_ready_last(folders: list[Path], state: Path) -> None:
    heard: list[bytes] = []
    found = way(runtime(state), folders, program="echo hello")
    found.context = replace(found.context, output=lambda stream, data: heard.append(data))
    assert (await found.do()).ok
    assert b"".join(heard) == b"hello\n"


@MIXED
async def test_the_plan_names_each_and_each_is_a_need_of_its_own(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    found = way(made, folders)
    plan = await made.assess(found.action, found.context)
    assert [need.account for need in plan.needs] == [str(folder) for folder in folders]
    assert all(any(f"{WORK}/{folder.name}: Folder: {folder}" in line for line in plan.lines) for folder in folders)
    limits = Confinement(folders=(str(folders[0]), str(folders[1])))
    assert "confined" in limits.refusal(plan, agent="bot", situation=Situation())
    limits = Confinement(folders=(str(folders[0].parent),))
    assert not limits.refusal(plan, agent="bot", situation=Situation())
    asked = questions(plan, agent="bot", situation=Situation(), now=datetime.now(UTC))
    assert [one.resource for one in asked] == [("Folder", str(folder)) for folder in folders]
    assert [one.context["folder"] for one in asked] == [str(folder) for folder in folders]
    assert (await found.do()).ok
    footprint = await made.footprint(plan, found.context)
    assert footprint.writes == {f"files{folder}" for folder in folders}


@MIXED
@pytest.mark.promise(67)
async def test_a_change_in_one_refuses_all_and_touches_none(folders: list[Path], state: Path) -> None:
    found = way(runtime(state), folders)
    assert (await found.do()).ok
    (folders[2] / "d" / "mine").write_text("mine")
    now = photos(folders)
    with pytest.raises(Conflict) as refused:
        await found.revert("undo")
    assert refused.value.difference == ("created d/mine",)
    assert photos(folders) == now


@MIXED
async def test_a_change_before_the_run_begins_nothing(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    found = await way(made, folders).prepared()
    (folders[1] / "mine").write_text("mine")
    now = photos(folders)
    with pytest.raises(Conflict):
        await made.execute(_plan(found), found.context)
    assert photos(folders) == now
    assert not made._sandbox.jobs  # type: ignore[attr-defined]


@MIXED
async def test_a_sandbox_that_does_not_begin_leaves_all_as_they_were(folders: list[Path], state: Path) -> None:
    before = photos(folders)
    made = runtime(state, UnsafeNoSandbox(fail=SandboxFailed("no", began=False)))
    with pytest.raises(SandboxFailed):
        await way(made, folders).do()
    assert photos(folders) == before


@pytest.mark.sampled(2)
async def test_what_cannot_be_recorded_of_one_is_undone_in_all(folders: list[Path], state: Path) -> None:
    from runtimes.files.tree import Bounds

    before = photos(folders)
    found = way(
        runtime(state, bounds=Bounds(files=5)), folders, program="touch docs/x; cd music; seq 1100 | xargs touch"
    )
    outcome = await found.do()
    direct = _plan(found).resolved["parts"][2]["mode"] == "direct"
    assert not outcome.ok and outcome.touched == direct, outcome.summary
    if direct:
        assert (folders[0] / "x").exists() and (folders[2] / "1100").exists()
        assert (await found.revert("undo")).ok
        assert len(list(folders[2].glob(".goex-left-*/*"))) == 1100
        with pytest.raises(Unsupported, match="never recorded"):  # as soon as it is asked for
            await found.runtime.assess_revert(replace(_undo(found), verb="redo"), _plan(found), found.context)
    assert [without_left(folder) for folder in folders] == before


@MIXED
async def test_what_cannot_be_recorded_of_one_is_left_when_another_fails(
    folders: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtimes.files import workcopy
    from runtimes.files.tree import Bounds

    before = photos(folders)
    found = way(
        runtime(state, bounds=Bounds(files=5)), folders, program="touch docs/x; cd music; seq 1100 | xargs touch"
    )
    await found.prepared()
    modes = [part["mode"] for part in _plan(found).resolved["parts"]]
    if modes != ["direct", "copy", "direct"]:
        pytest.skip("needs a folder that is worked on directly, and one that isn't")

    def full(*arguments: Any) -> Any:
        raise Unavailable("The disk is full.")

    monkeypatch.setattr(workcopy, "take_in", full)
    outcome = await found.runtime.execute(_plan(found), found.context)
    assert not outcome.ok and outcome.touched
    assert "disk is full" in outcome.summary and "was left as it is" in outcome.summary
    assert "couldn't be taken back" not in outcome.summary and "can't be recorded" in outcome.summary
    assert (folders[0] / "x").exists() and (folders[2] / "1100").exists()
    assert (await found.revert("undo")).ok
    assert [without_left(folder) for folder in folders] == before


@MIXED
async def test_a_dry_run_shows_all_of_them_and_touches_none(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    before = photos(folders)
    found = way(made, folders)
    shown = await made.dry_run(await made.assess(found.action, found.context), found.context)
    texts = [line.text for line in shown.lines]
    assert shown.ok and texts.index("In /work/docs:") < texts.index("deleted a") < texts.index("In /work/photos:")
    assert photos(folders) == before


@MIXED
async def test_a_dry_run_that_is_to_be_kept_is_refused_before_anything_runs(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    found = way(made, folders)
    plan = await made.assess(found.action, found.context)
    with pytest.raises(InvalidInput, match="can't be kept") as refused:
        await made.dry_run(plan, replace(found.context, keep=True))
    assert "--keep" in refused.value.next_step
    assert not made._sandbox.jobs  # type: ignore[attr-defined]


@MIXED
async def test_a_dry_run_of_an_undo_shows_all_of_them_and_touches_none(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    found = way(made, folders)
    assert (await found.do()).ok
    for verb, changes in (("undo", ("created a", "deleted b")), ("redo", ("deleted a", "created b"))):
        revert = replace(_undo(found), verb=verb)
        plan = await made.assess_revert(revert, _plan(found), found.context)
        now = photos(folders)
        shown = await made.dry_revert(revert, plan, _plan(found), found.context)
        assert photos(folders) == now
        texts = [line.text for line in shown.lines]
        places = [texts.index(f"In {folder}:") for folder in folders]
        assert shown.ok and places[0] < texts.index(changes[0]) < places[1] < texts.index(changes[1]) < places[2]
        assert all(f"{folder.name}: The folder would be as it was" in shown.summary for folder in folders)
        assert (await made.execute_revert(revert, plan, _plan(found), found.context, found.context)).ok
    (folders[2] / "d" / "mine").write_text("mine")
    revert = _undo(found)
    with pytest.raises(Conflict):
        await made.dry_revert(revert, plan, _plan(found), found.context)


@MIXED
async def test_a_dry_run_of_an_undo_of_what_was_not_recorded_says_so(folders: list[Path], state: Path) -> None:
    from runtimes.files.tree import Bounds

    found = way(
        runtime(state, bounds=Bounds(files=5)), folders, program="touch docs/x; cd music; seq 1100 | xargs touch"
    )
    await found.do()
    if _plan(found).resolved["parts"][2]["mode"] != "direct":
        pytest.skip("what is made of a copy is recorded, or refused")
    now = photos(folders)
    plan = await found.runtime.assess_revert(_undo(found), _plan(found), found.context)
    shown = await found.runtime.dry_revert(_undo(found), plan, _plan(found), found.context)
    texts = [line.text for line in shown.lines]
    assert shown.ok and texts.count(f"Folder: {folders[2]}") == 1
    assert f"Folder: {folders[0]}" not in texts, "each folder's own lines"
    assert texts.index(f"In {folders[0]}:") < texts.index("deleted x") < texts.index(f"In {folders[2]}:")
    assert photos(folders) == now


@MIXED
async def test_a_program_that_only_reads_has_one_folder(folders: list[Path], state: Path) -> None:
    made = runtime(state)
    found = way(made, folders, program="cat docs/a")
    with pytest.raises(InvalidInput, match="only reads"):
        await made.assess(replace(found.action, reads=True), found.context)


@MIXED
async def test_a_part_that_ends_before_the_run_keeps_no_other_waiting(
    folders: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(state)
    found = await way(made, folders).prepared()
    before = photos(folders)
    execute = FilesRuntime.execute

    async def refusing(self: FilesRuntime, plan: Plan, *rest: Any) -> Any:
        if "parts" not in plan.resolved and plan.resolved["folder"] == str(folders[2]):
            return Outcome(ok=False, summary="It is refused.", touched=False)
        return await execute(self, plan, *rest)

    monkeypatch.setattr(FilesRuntime, "execute", refusing)
    outcome = await asyncio.wait_for(made.execute(_plan(found), found.context), 300)
    assert not outcome.ok and not outcome.touched, outcome.summary
    assert photos(folders) == before and not made._sandbox.jobs  # type: ignore[attr-defined]


async def test_folders_in_one_another_or_of_two_owners_are_refused(place: Path, state: Path) -> None:
    (place / "a" / "b").mkdir(parents=True)
    (place / "c").mkdir()
    made = runtime(state)
    for pair in ([place / "a", place / "a" / "b"], [place / "a" / "b", place / "a"], [place / "a", place / "a"]):
        with pytest.raises(InvalidInput, match="lie in one another"):
            await way(made, pair).do()
    if os.geteuid() == 0:
        os.chown(place / "c", 1000, 1000)
        with pytest.raises(InvalidInput, match="different users"):
            await way(made, [place / "a", place / "c"]).do()


async def test_two_folders_of_one_name_have_places_of_their_own(place: Path, state: Path) -> None:
    pair = [place / "x" / "docs", place / "y" / "docs"]
    for folder in pair:
        folder.mkdir(parents=True)
        os.chown(folder, 1000 if os.geteuid() == 0 else -1, -1)
    assert (await way(runtime(state), pair, program="echo 1 > docs/f; echo 2 > docs-2/f").do()).ok
    assert [(folder / "f").read_text() for folder in pair] == ["1\n", "2\n"]


@MIXED
async def test_a_folder_that_fails_half_way_brings_the_others_back(
    folders: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(state)
    found = way(made, folders)
    assert (await found.do()).ok
    after = photos(folders)
    bring = FilesRuntime.execute_revert

    async def failing(self: FilesRuntime, revert: Any, revert_plan: Plan, *rest: Any) -> Any:
        if revert_plan.resolved["folder"] == str(folders[2]) and revert.verb == "undo":
            raise Unavailable("The disk is full.")
        return await bring(self, revert, revert_plan, *rest)

    several = made._several
    monkeypatch.setattr(FilesRuntime, "execute_revert", failing)
    revert_plan = await several.assess_revert(_undo(found), _plan(found), found.context)
    with pytest.raises(Unavailable):
        await several.execute_revert(_undo(found), revert_plan, _plan(found), found.context, found.context)
    assert photos(folders) == after


@MIXED
@pytest.mark.promise(67)
async def test_what_cannot_be_moved_back_is_moved_last(
    folders: list[Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtimes.files.tree import Bounds

    program = "touch photos/x music/x; cd docs; seq 1100 | xargs touch"
    found = way(runtime(state, bounds=Bounds(files=5)), folders, program=program)
    await found.do()
    if _plan(found).resolved["parts"][0]["mode"] != "direct":
        pytest.skip("what is made of a copy is recorded, or refused")
    after = photos(folders)
    revert = FilesRuntime.execute_revert

    async def failing(self: FilesRuntime, revert_: Any, revert_plan: Plan, plan: Plan, *rest: Any) -> Any:
        if "parts" not in plan.resolved and plan.resolved["folder"] == str(folders[2]):
            raise Unavailable("The disk is full.")
        return await revert(self, revert_, revert_plan, plan, *rest)

    monkeypatch.setattr(FilesRuntime, "execute_revert", failing)
    with pytest.raises(Unavailable, match="full"):
        await found.revert("undo")
    assert photos(folders) == after


@pytest.mark.promise(67)
@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_killed_between_the_folders_it_is_finished_by_running_it_again(place: Path, state: Path, verb: str) -> None:
    pair = [place / "docs", place / "photos", place / "music"]
    for number, folder in enumerate(pair):
        folder.mkdir()
        (folder / ("a" if number == 0 else "p")).write_text(folder.name)
        for path in (folder, *folder.iterdir()):
            os.chown(path, 1000 if os.geteuid() == 0 else -1, -1)
    kept = DiskRecords(state / "records")
    found = way(runtime(state), pair, kept)
    before = photos(pair)
    assert asyncio.run(found.do()).ok
    after = photos(pair)
    if verb == "redo":
        assert asyncio.run(found.revert("undo")).ok
    goal, at = (before, "before") if verb == "undo" else (after, "after")
    child = os.fork()
    if child == 0:
        write = records.write_state

        def killing(own: Any, noted: records.State) -> None:
            write(own, noted)
            if noted.at == at and own.number == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        records.write_state = killing  # type: ignore[assignment]
        asyncio.run(_again(state, pair, kept, found, verb))
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert [photo(folder) == goal[number] for number, folder in enumerate(pair)] == [True, True, False]
    assert asyncio.run(_again(state, pair, kept, found, verb)).ok
    assert photos(pair) == goal


async def _again(state: Path, folders: list[Path], records: Any, found: Way, verb: str) -> Any:
    again = way(runtime(state), folders, records)
    again.plan = found.plan
    return await again.revert(verb)


@pytest.mark.parametrize("number", [0, 1])
def test_killed_while_it_is_recorded_all_can_be_taken_back(place: Path, state: Path, number: int) -> None:
    pair = [place / "docs", place / "photos", place / "music"]
    for index, folder in enumerate(pair):
        folder.mkdir()
        (folder / ("a" if index == 0 else "p")).write_text(folder.name)
        for path in (folder, *folder.iterdir()):
            os.chown(path, 1000 if os.geteuid() == 0 else -1, -1)
    kept = DiskRecords(state / "records")
    found = way(runtime(state), pair, kept)
    asyncio.run(found.prepared())
    before = photos(pair)
    child = os.fork()
    if child == 0:
        write = records.write_state

        def killing(own: Any, noted: records.State) -> None:
            if noted.at == "after" and own.number == number:
                os.kill(os.getpid(), signal.SIGKILL)
            write(own, noted)

        records.write_state = killing  # type: ignore[assignment]
        asyncio.run(runtime(state).execute(_plan(found), found.context))
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    settled = asyncio.run(runtime(state).settle(_plan(found), found.context))
    assert settled.outcome is not None and settled.outcome.touched
    after = photos(pair)
    assert asyncio.run(_again(state, pair, kept, found, "undo")).ok
    assert photos(pair) == before
    assert asyncio.run(_again(state, pair, kept, found, "redo")).ok
    assert photos(pair) == after


def _plan(found: Way) -> Plan:
    assert found.plan is not None
    return found.plan


def _undo(found: Way) -> Any:
    from policies.actions import Revert

    return Revert(verb="undo", target=found.context.action_id)
