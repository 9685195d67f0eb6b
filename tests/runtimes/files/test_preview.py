"""Preview, then apply: what a dry run made is brought into the folder, exactly that, and taken back as exactly."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from policies.actions import Action, Files, Plan
from policies.errors import Conflict, Unavailable
from policies.typed_json import from_json, to_json
from runtimes.base import DryRun
from runtimes.files import previews
from runtimes.files.runtime import FilesRuntime
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.photo import photo

PROGRAM = "rm -f a; mkdir -p new; od -An -N16 -tx1 /dev/urandom > new/chance; ln -s new link; cp big bigger"


@pytest.fixture(params=["owned", "roots"], ids=["direct", "copy"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    (found / "a").write_text("a")
    (found / "big").write_bytes(os.urandom(70_000))
    (found / "kept").write_text("kept")
    for path in (found, *found.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
        os.utime(path, ns=(0, 1_600_000_000_000_000_001))
    return found


async def previewed(made: FilesRuntime, folder: Path, *, keep: bool = True, undo: str = "") -> DryRun:
    action = Files(folder=str(folder), language="shell", program=PROGRAM, undo=undo)
    of_it = dataclasses.replace(context("dry-1"), keep=keep)
    return await made.dry_run(await made.assess(action, of_it), of_it)


def applying(made: FilesRuntime, folder: Path, preview: str, program: str = PROGRAM) -> Way:
    way = Way(made, folder)
    way.action = Files(folder=str(folder), language="shell", program=program, preview=preview)
    return way


@pytest.mark.promise(67)
async def test_exactly_what_was_previewed_is_applied_and_undone(folder: Path, state: Path) -> None:
    made = runtime(state)
    before = photo(folder)
    found = await previewed(made, folder)
    assert found.ok and found.preview == "dry-1"
    (chance,) = [line.text for line in found.lines if line.kind == "added" and len(line.text.split()) == 16]
    assert photo(folder) == before
    way = applying(made, folder, found.preview)
    jobs = len(made._sandbox.jobs)  # type: ignore[attr-defined]
    outcome = await way.do()
    assert outcome.ok and outcome.touched, outcome.summary
    assert len(made._sandbox.jobs) == jobs, "no program runs"  # type: ignore[attr-defined]
    assert (folder / "new" / "chance").read_text().split() == chance.split(), "a second run would have another"
    assert not (folder / "a").exists() and (folder / "bigger").read_bytes() == (folder / "big").read_bytes()
    assert way.plan is not None and any("isn't run again" in line for line in way.plan.lines)
    assert "created new/chance" in way.plan.lines
    assert from_json(Action, to_json(way.action), "It") == way.action
    after = photo(folder)
    assert (await way.revert("undo")).ok
    assert photo(folder) == before
    assert (await way.revert("redo")).ok
    assert photo(folder) == after


@pytest.mark.promise(67)
async def test_a_folder_that_changed_since_is_refused_and_nothing_is_touched(folder: Path, state: Path) -> None:
    made = runtime(state)
    found = await previewed(made, folder)
    (folder / "kept").write_text("mine")
    now = photo(folder)
    way = applying(made, folder, found.preview)
    with pytest.raises(Conflict) as refused:
        await way.do()
    assert refused.value.difference == ("changed kept",)
    assert photo(folder) == now


async def test_a_preview_is_of_one_program_and_ends(folder: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = runtime(state)
    found = await previewed(made, folder)
    with pytest.raises(Conflict, match="another program"):
        await applying(made, folder, found.preview, "rm -rf ./*").do()
    with pytest.raises(Unavailable, match="no preview"):
        await applying(made, folder, "dry-2").do()
    with pytest.raises(Unavailable, match="no preview"):
        await applying(made, folder, "../../dry-1").do()
    prepared = await applying(made, folder, found.preview).prepared()
    monkeypatch.setattr(previews, "KEPT_SECONDS", -1)
    with pytest.raises(Unavailable, match="hour"):
        await made.execute(_plan(prepared), prepared.context)
    await made.forget(_plan(prepared), prepared.context)
    await made.reap()
    assert not list((state / "snapshots").glob("*.git")), "what nobody applied takes no room"


async def test_nothing_is_kept_unless_it_is_asked_for(folder: Path, state: Path) -> None:
    found = await previewed(runtime(state), folder, keep=False)
    assert found.ok and not found.preview
    assert not list((state / "snapshots").glob("*.git"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("undo", "said", "kind"),
    [
        ("rm -r new link bigger; printf a > a; chmod 666 a", "but for times", "note"),
        (
            "rm -r new link bigger; printf a > a; chmod 666 a; touch -d @1600000000.000000001 a .",
            "exactly",
            "note",
        ),
        ("rm -r new link bigger", "doesn't put everything back: 1 deleted", "warning"),
        ("rm -r new link bigger; printf b > a; chmod 666 a", "doesn't put everything back: 1 changed", "warning"),
        ("exit 3", "failed. The program ended with exit status 3", "warning"),
    ],
    ids=["but-times", "exact", "lacks", "other", "fails"],
)
async def test_a_proposed_undo_is_judged_by_the_states(
    roots: Path, state: Path, undo: str, said: str, kind: str
) -> None:
    """The verdict is ours: what the program and its undo made of the copy, never what either says."""
    (roots / "a").write_text("a")
    (roots / "a").chmod(0o666)
    (roots / "big").write_text("big")
    for path in (roots, roots / "a"):
        os.utime(path, ns=(0, 1_600_000_000_000_000_001))
    before = photo(roots)
    found = await previewed(runtime(state), roots, keep=False, undo=undo)
    judged = [line for line in found.lines if "proposed undo" in line.text]
    assert [line.kind for line in judged] == [kind] and said in judged[0].text
    assert any("Undo doesn't use it" in line.text for line in found.lines)
    assert photo(roots) == before


def _plan(way: Way) -> Plan:
    assert way.plan is not None
    return way.plan
