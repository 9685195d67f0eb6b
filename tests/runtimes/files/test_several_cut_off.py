"""An undo of several folders that was killed half way, and then one of them changed: all are taken back, or none."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Files, Outcome, Plan, Revert
from policies.errors import Conflict, GoexError, Unavailable
from runtimes.files import records
from runtimes.files.quota import Full, Quota
from runtimes.files.runtime import FilesRuntime
from tests.runtimes.files.desk import DiskRecords, Way, context, runtime
from tests.runtimes.files.photo import Photo, photo

PROGRAM = "mv docs/a photos/b; echo new > docs/c; rm photos/p; mkdir music/d"
UNDO = Revert(verb="undo", target="a1")
BACK = "before"


@dataclass(slots=True)
class Scene:
    """Three folders that an action changed, and the plan of its undo, as it was allowed."""

    folders: list[Path]
    state: Path
    way: Way
    before: list[Photo]
    after: list[Photo]
    undo: Plan

    def photos(self) -> list[Photo]:
        return [photo(folder) for folder in self.folders]

    def states(self) -> list[str]:
        return [records.read_state(_Own(self.way.context.records, number)).at for number in range(3)]

    @property
    def plan(self) -> Plan:
        assert self.way.plan is not None
        return self.way.plan

    def finish(self) -> Outcome:
        """What the daemon does with an undo that was under way, when it starts again."""
        made = runtime(self.state)
        return asyncio.run(made.execute_revert(UNDO, self.undo, self.plan, self.way.context, context("r1")))

    def ask(self) -> Outcome:
        """What another undo does."""
        self.way.runtime = runtime(self.state)
        return asyncio.run(self.way.revert("undo"))

    def killed(self, step: Callable[[], object], at: int, *, after: bool) -> bool:
        """Do `step` in a child that is killed at its state number `at`, before it is written or after. Returns whether
        it came that far."""
        child = os.fork()
        if child == 0:
            write, made = records.write_state, 0

            def killing(own: Any, noted: records.State) -> None:
                nonlocal made
                if made == at and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                write(own, noted)
                if made == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                made += 1

            records.write_state = killing
            try:
                step()
            except GoexError:
                pass
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed by itself"
        return os.WIFSIGNALED(status)


@dataclass(frozen=True, slots=True)
class _Own:
    records: Any
    number: int

    def get(self, name: str) -> bytes | None:
        return self.records.get(f"{name}.{self.number}")  # type: ignore[no-any-return]

    def put(self, name: str, data: bytes) -> None:
        raise AssertionError("only read")


@pytest.fixture(params=["direct", "copy"])
def scenes(request: pytest.FixtureRequest, place: Path) -> Callable[[], Scene]:
    if os.geteuid() != 0:
        pytest.skip("needs root for folders of several owners")
    numbers = iter(range(1000))

    def make() -> Scene:
        top = place / str(next(numbers))
        folders = [top / name for name in ("docs", "photos", "music")]
        for number, folder in enumerate(folders):
            folder.mkdir(parents=True)
            (folder / ("a" if number == 0 else "p")).write_text(folder.name)
            for path in (folder, *folder.iterdir()):
                os.chown(path, *([1000, 1000] if request.param == "direct" else [0, 0]))
        state = top / "state"
        state.mkdir(mode=0o700)
        way = Way(runtime(state), folders[0], records=DiskRecords(state / "records"))
        more = tuple(str(folder) for folder in folders[1:])
        way.action = Files(folder=str(folders[0]), language="shell", program=PROGRAM, more=more)
        before = [photo(folder) for folder in folders]
        assert asyncio.run(way.do()).ok
        after = [photo(folder) for folder in folders]
        assert way.plan is not None
        undo = asyncio.run(way.runtime.assess_revert(UNDO, way.plan, way.context))
        return Scene(folders, state, way, before, after, undo)

    return make


class Meanwhile:
    """Somebody saves a file where the undo will have to work, and takes it away again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.at = folder.stat()
        (folder / "mine").write_text("mine")

    def leave(self) -> None:
        (self.folder / "mine").unlink()
        os.utime(self.folder, ns=(self.at.st_atime_ns, self.at.st_mtime_ns))


def halves(scenes: Callable[[], Scene], *, after: bool) -> Iterator[Scene]:
    """The undo killed at each state that it writes before it comes to the last folder."""
    for at in range(100):
        scene = scenes()
        assert scene.killed(scene.finish, at, after=after)
        if scene.states()[2] != "after":
            assert at > 2
            return
        yield scene


def some(chosen: set[tuple[object, ...]], *values: Iterable[object]) -> list[Any]:
    """All combinations; those that aren't chosen are left to `make thorough`."""
    return [pytest.param(*one, marks=() if one in chosen else pytest.mark.thorough) for one in product(*values)]


@pytest.mark.promise(67)
@pytest.mark.parametrize(
    ("scenes", "after", "turn"),
    some({("direct", False, 0)}, ("direct", "copy"), (False, True), (0, 1)),
    indirect=["scenes"],
)
def test_what_was_taken_back_before_the_kill_is_brought_back(
    scenes: Callable[[], Scene], after: bool, turn: int
) -> None:
    seen = set()
    for number, scene in enumerate(halves(scenes, after=after)):
        seen.add(tuple(scene.states()))
        meanwhile = Meanwhile(scene.folders[2] / "d")
        last = photo(scene.folders[2])
        with pytest.raises(Conflict) as refused:
            (scene.ask if (number + turn) % 2 else scene.finish)()
        assert refused.value.difference == ("created d/mine",)
        assert scene.photos() == [*scene.after[:2], last]
        assert scene.states() == ["after"] * 3
        meanwhile.leave()
        assert scene.ask().ok
        assert scene.photos() == scene.before
    states = [("after",) * 3, ("between", "after", "after"), (BACK, "after", "after"), (BACK, BACK, "after")]
    assert {*states[after:]} <= seen


@pytest.mark.promise(67)
@pytest.mark.parametrize(
    ("scenes", "after"),
    some({("copy", True)}, ("direct", "copy"), (False, True)),
    indirect=["scenes"],
)
def test_bringing_back_is_finished_after_a_kill_too(scenes: Callable[[], Scene], after: bool) -> None:
    seen = set()
    for at in range(100):
        scene = scenes()
        assert scene.killed(scene.finish, 3, after=True)
        assert scene.states() == [BACK, BACK, "after"]
        meanwhile = Meanwhile(scene.folders[2] / "d")
        last = photo(scene.folders[2])
        cut_off = scene.killed(scene.finish, at, after=after)
        seen.add(tuple(scene.states()))
        if cut_off:
            with pytest.raises(Conflict):
                scene.finish()
        assert scene.photos() == [*scene.after[:2], last]
        meanwhile.leave()
        assert scene.ask().ok
        assert scene.photos() == scene.before
        if not cut_off:
            break
    assert {(BACK, "between", "after"), (BACK, "after", "after"), ("between", "after", "after")} <= seen


@pytest.mark.promise(67)
def test_asking_moves_nothing_and_says_what_would_be_moved_back(scenes: Callable[[], Scene]) -> None:
    scene = scenes()
    assert scene.killed(scene.finish, 1, after=True)
    assert scene.states() == [BACK, "after", "after"]
    meanwhile = Meanwhile(scene.folders[2] / "d")
    now = scene.photos()
    made = runtime(scene.state)

    async def ask() -> tuple[Plan, Any]:
        plan = await made.assess_revert(UNDO, scene.plan, scene.way.context)
        return plan, await made.dry_revert(UNDO, plan, scene.plan, scene.way.context)

    plan, dry = asyncio.run(ask())
    assert scene.photos() == now
    assert "can't be finished" in plan.lines[0] and plan.lines[1] == "created d/mine"
    assert f"Folder: {scene.folders[0]}" in plan.lines and f"Folder: {scene.folders[1]}" not in plan.lines
    assert [need.account for need in plan.needs] == [str(folder) for folder in scene.folders]
    assert plan.action == UNDO and not dry.ok
    meanwhile.leave()  # what was shown isn't what it would do any more
    with pytest.raises(Conflict, match="wasn't asked for"):
        asyncio.run(made.execute_revert(UNDO, plan, scene.plan, scene.way.context, context("r1")))
    assert scene.photos() == scene.after
    assert scene.ask().ok
    assert scene.photos() == scene.before


@pytest.mark.promise(67)
def test_where_it_cannot_be_brought_back_either_nothing_more_is_moved(scenes: Callable[[], Scene]) -> None:
    scene = scenes()
    assert scene.killed(scene.finish, 1, after=True)
    one, other = Meanwhile(scene.folders[2] / "d"), Meanwhile(scene.folders[0])
    (scene.folders[0] / "a").write_text("other")
    now = scene.photos()
    with pytest.raises(Conflict):
        scene.ask()
    outcome = scene.finish()
    assert not outcome.ok and outcome.touched and "couldn't be moved back" in outcome.summary
    assert scene.photos() == now
    one.leave()
    other.leave()


@pytest.mark.promise(67)
def test_what_stops_half_way_while_it_is_brought_back_is_never_said_to_be(
    scenes: Callable[[], Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scenes()
    assert scene.killed(scene.finish, 1, after=True)
    meanwhile = Meanwhile(scene.folders[2] / "d")
    execute = FilesRuntime.execute_revert

    async def half(self: FilesRuntime, revert: Revert, *arguments: Any) -> Outcome:
        if revert.verb == "redo":
            return Outcome(ok=False, summary="It stopped half way.", touched=True)
        return await execute(self, revert, *arguments)

    monkeypatch.setattr(FilesRuntime, "execute_revert", half)
    outcome = scene.finish()
    assert not outcome.ok and outcome.touched and "couldn't be moved back" in outcome.summary
    assert "It stopped half way." in outcome.summary
    meanwhile.leave()


@pytest.mark.sampled(2)
@pytest.mark.promise(67)
@pytest.mark.parametrize("stuck", [False, True])
def test_others_that_cannot_be_taken_back_after_a_failure_are_never_said_to_be(
    scenes: Callable[[], Scene], monkeypatch: pytest.MonkeyPatch, stuck: bool
) -> None:
    """One folder's part fails, and taking the others back stops half way."""
    scene = scenes()
    assert scene.ask().ok
    revert, execute = FilesRuntime.execute_revert, FilesRuntime.execute

    async def failing(self: FilesRuntime, plan: Plan, *rest: Any) -> Outcome:
        outcome = await execute(self, plan, *rest)
        if plan.resolved["folder"] == str(scene.folders[2]):
            raise Unavailable("The disk is full.")
        return outcome

    async def half(self: FilesRuntime, *arguments: Any) -> Outcome:
        if "parts" not in arguments[2].resolved and arguments[2].resolved["folder"] == str(scene.folders[1]):
            if stuck:
                raise Unavailable("The disk fails.")
            return Outcome(ok=False, summary="It stopped half way.", touched=True)
        return await revert(self, *arguments)

    monkeypatch.setattr(FilesRuntime, "execute", failing)
    monkeypatch.setattr(FilesRuntime, "execute_revert", half)
    way = Way(runtime(scene.state), scene.folders[0], action_id="a2")
    way.action = scene.way.action
    outcome = asyncio.run(way.do())
    assert not outcome.ok and outcome.touched
    assert "couldn't be taken back" in outcome.summary and "were taken back" not in outcome.summary


@pytest.mark.sampled(1)
@pytest.mark.promise(66, 67)
def test_what_was_moved_before_a_kill_makes_no_room(scenes: Callable[[], Scene]) -> None:
    scene = scenes()
    assert scene.killed(scene.finish, 2, after=False)
    assert scene.states() == [BACK, "after", "after"]
    other = scene.state.parent / "other"
    other.mkdir()
    quota = Quota(snapshots=scene.state / "snapshots", most=0)
    assert [each.action for each in quota.undone()] == ["a1-0"]
    with pytest.raises(Full):
        asyncio.run(Way(runtime(scene.state, quota=quota.used()), other, action_id="a2").do())
    meanwhile = Meanwhile(scene.folders[2] / "d")
    with pytest.raises(Conflict):
        scene.finish()
    assert scene.states() == ["after"] * 3
    meanwhile.leave()
    assert scene.ask().ok
    assert asyncio.run(Way(runtime(scene.state, quota=quota.used()), other, action_id="a3").do()).ok
    assert not quota.undone(), "undone in all of them, it may go"
