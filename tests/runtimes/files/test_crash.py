"""kill -9 in the middle of everything: of the snapshot, the run, the applying, the undo.

A forked child does one step of an action and is killed by SIGKILL right before one of its system calls that change
something, chosen by a seed out of all that it makes. What it leaves is settled by a new runtime.
"""

# ruff: noqa: PTH101, PTH106, PTH108, PTH211

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest

from policies.actions import Plan, Revert
from policies.errors import GoexError
from runtimes.files import records
from runtimes.files import restore as restoring
from runtimes.files.runtime import FilesRuntime
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import DiskRecords, context, runtime
from tests.runtimes.files.photo import Photo, photo

_CHANGING = (
    "rename",
    "unlink",
    "rmdir",
    "mkdir",
    "link",
    "symlink",
    "mknod",
    "chmod",
    "chown",
    "utime",
    "write",
    "ftruncate",
    "setxattr",
    "fsync",
)


def furnish(folder: Path, owner: int) -> None:
    for name in ("a", "b", "c"):
        (folder / name).write_text(name * 10)
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "file").write_text("file")
    os.link(folder / "a", folder / "sub" / "a")
    (folder / "link").symlink_to("a")
    os.setxattr(folder / "b", "user.x", b"y")
    for path in (folder, *folder.rglob("*")):
        os.utime(path, ns=(0, 1_500_000_000_000_000_001), follow_symlinks=False)
        os.chown(path, owner, owner, follow_symlinks=False)


def deed(folder: Path) -> None:
    (folder / "a").write_text("changed in place")
    os.unlink(folder / "b")
    (folder / "sub" / "deep" / "file").unlink()
    os.rmdir(folder / "sub" / "deep")
    (folder / "sub" / "deep").write_text("a file now")
    (folder / "new").mkdir()
    for number in range(5):
        (folder / "new" / str(number)).write_text(str(number))
    os.chmod(folder / "c", 0o600)
    os.unlink(folder / "link")
    os.symlink("/etc", folder / "link")


Step = Callable[[FilesRuntime], Coroutine[Any, Any, object]]


def in_child(step: Step, state: Path, kill_at: int) -> int:
    """Do `step` in a child that kills itself right before its change number `kill_at` (-1: never).

    Returns how many changes it made, or -1 when it was killed.
    """
    counter = state / "count"
    child = os.fork()
    if child == 0:
        made = 0
        try:

            def counted(function: Callable[..., Any]) -> Callable[..., Any]:
                def wrapped(*arguments: Any, **options: Any) -> Any:
                    nonlocal made
                    if made == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    made += 1
                    return function(*arguments, **options)

                return wrapped

            for name in _CHANGING:
                setattr(os, name, counted(getattr(os, name)))
            restoring.put_new = counted(restoring.put_new)
            asyncio.run(step(new_runtime(state)))
            counter.write_text(str(made))
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return -1
    assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return int(counter.read_text())


def new_runtime(state: Path) -> FilesRuntime:
    large = state / "large-from"
    options = {"large": int(large.read_text())} if large.exists() else {}
    return runtime(state, UnsafeNoSandbox(deed), **options)


def names(seen: Photo) -> dict[bytes, object]:
    return {path: (facts[0], facts[4]) for path, facts in seen.items()}


class Scene:
    """A folder, a state folder and an action on it, each time anew."""

    def __init__(self, place: Path, number: int, owner: int, large: int = 0) -> None:
        self.folder = place / f"f{number}"
        self.folder.mkdir()
        self.state = place / f"s{number}"
        self.state.mkdir()
        if large:
            (self.state / "large-from").write_text(str(large))
        furnish(self.folder, owner)
        self.before = photo(self.folder)
        self.context = context("a1", DiskRecords(self.state / "records"))
        self.plan: Plan = asyncio.run(self._assess())

    async def _assess(self) -> Plan:
        from policies.actions import Files

        action = Files(folder=str(self.folder), language="shell", program="true")
        return await new_runtime(self.state).assess(action, self.context)

    async def prepare(self, runtime: FilesRuntime) -> None:
        await runtime.prepare(self.plan, self.context)

    async def execute(self, runtime: FilesRuntime) -> None:
        await runtime.execute(self.plan, self.context)

    def revert(self, verb: str) -> Step:
        async def step(runtime: FilesRuntime) -> None:
            revert = Revert(verb=verb, target="a1")  # type: ignore[arg-type]
            plan = await runtime.assess_revert(revert, self.plan, self.context)
            outcome = await runtime.execute_revert(revert, plan, self.plan, self.context, context("r1"))
            assert outcome.ok, outcome.summary

        return step

    def run(self, step: Step) -> None:
        asyncio.run(step(new_runtime(self.state)))

    def leftovers(self) -> list[Path]:
        found = [path for path in (self.state / "snapshots").rglob("*") if "tmp_" in path.name]
        found += (self.state / "snapshots").glob("*.git/lfs/tmp/*")
        return [*found, *self.folder.glob(".goex*"), *(self.state / "snapshots").glob("work/*")]


WAYS = {"direct": (1000, 0), "copy": (0, 0), "large": (1000, 5)}
# Large contents are met in `make test` where they are kept and where it runs, and in `make thorough` everywhere.
SMALL = pytest.mark.parametrize(
    "scenes",
    [pytest.param(way, id=name, marks=pytest.mark.thorough if name == "large" else ()) for name, way in WAYS.items()],
    indirect=True,
)


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def scenes(request: pytest.FixtureRequest, place: Path) -> Callable[[int], Scene]:
    if os.geteuid() != 0:
        pytest.skip("needs root for folders of several owners")
    return lambda number: Scene(place, number, *request.param)


class Points(Protocol):
    """Some of so many points: the first, the last, and what a seed chooses."""

    def __call__(self, total: int, seed: str) -> list[int]: ...


@pytest.fixture
def points(thorough: bool) -> Points:
    def choose(total: int, seed: str) -> list[int]:
        chosen = random.Random(seed)
        return sorted({0, total - 1, *(chosen.randrange(total) for _ in range(100 if thorough else 1))})

    return choose


def test_killed_while_the_snapshot_is_taken(scenes: Callable[[int], Scene], points: Points) -> None:
    dry = scenes(0)
    total = in_child(dry.prepare, dry.state, -1)
    for number, point in enumerate(points(total, "prepare"), 1):
        scene = scenes(number)
        assert in_child(scene.prepare, scene.state, point) == -1
        assert photo(scene.folder) == scene.before
        settled = asyncio.run(new_runtime(scene.state).settle(scene.plan, scene.context))
        assert settled.outcome is not None and not settled.outcome.touched
        scene.run(scene.prepare)
        scene.run(scene.execute)
        scene.run(scene.revert("undo"))
        assert photo(scene.folder) == scene.before
        assert not scene.leftovers()


def test_killed_while_it_runs_or_is_applied(scenes: Callable[[int], Scene], points: Points) -> None:
    dry = scenes(0)
    dry.run(dry.prepare)
    total = in_child(dry.execute, dry.state, -1)
    whole = names(photo(dry.folder))
    seen = set()
    for number, point in enumerate(points(total, "execute"), 1):
        scene = scenes(number)
        scene.run(scene.prepare)
        assert in_child(scene.execute, scene.state, point) == -1
        settled = asyncio.run(new_runtime(scene.state).settle(scene.plan, scene.context))
        assert settled.outcome is not None, settled.evidence
        again = asyncio.run(new_runtime(scene.state).settle(scene.plan, scene.context))
        assert again.outcome is not None and again.outcome.touched == settled.outcome.touched
        now = photo(scene.folder)
        assert settled.outcome.touched == (now != scene.before)
        seen.add(settled.outcome.touched)
        if scene.plan.resolved["mode"] == "copy":
            assert now == scene.before or names(now) == whole, "half of the changes were applied"
        if settled.outcome.touched:
            scene.run(scene.revert("undo"))
            assert photo(scene.folder) == scene.before
            scene.run(scene.revert("redo"))
            assert photo(scene.folder) == now
            scene.run(scene.revert("undo"))
        assert photo(scene.folder) == scene.before
        assert not scene.leftovers()
    assert seen == {True, False}


@SMALL
@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_killed_while_it_is_taken_back(scenes: Callable[[int], Scene], verb: str, points: Points) -> None:
    other = "redo" if verb == "undo" else "undo"

    def ready(number: int) -> tuple[Scene, Photo]:
        scene = scenes(number)
        scene.run(scene.prepare)
        scene.run(scene.execute)
        after = photo(scene.folder)
        if verb == "redo":
            scene.run(scene.revert("undo"))
        return scene, after

    dry, _ = ready(0)
    total = in_child(dry.revert(verb), dry.state, -1)
    for number, point in enumerate(points(total, verb), 1):
        scene, after = ready(number)
        goals = {"undo": scene.before, "redo": after}
        assert in_child(scene.revert(verb), scene.state, point) == -1
        begun = records.read_state(scene.context.records).at == "between"
        if begun or photo(scene.folder) != goals[verb]:
            # It is finished, or turned round half way.
            then = other if begun and number % 2 == 0 else verb
            scene.run(scene.revert(then))
            assert photo(scene.folder) == goals[then]
        assert not scene.leftovers()


@SMALL
@pytest.mark.promise(66)
def test_a_disk_that_fails_to_sync_loses_nothing(
    scenes: Callable[[int], Scene], points: Points, thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsync says EIO, once, at each of a few points of every step: what wasn't done is said, and can be done again."""
    real, calls, fail_at = os.fsync, 0, -1

    def failing(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls - 1 == fail_at:
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    def run(scene: Scene, step: Step, at: int) -> None:
        nonlocal calls, fail_at
        calls, fail_at = 0, at
        try:
            scene.run(step)
        except (GoexError, AssertionError, OSError):
            assert at >= 0
        finally:
            fail_at = -1

    monkeypatch.setattr(os, "fsync", failing)
    dry = scenes(0)
    totals = []
    for step in (dry.prepare, dry.execute, dry.revert("undo")):
        run(dry, step, -1)
        totals.append(calls)
    number = 0
    for which, total in enumerate(totals):
        chosen = points(total, f"sync {which}")
        for point in chosen[:: max(1, len(chosen) // 9)] if thorough else (chosen[0], chosen[-1]):
            number += 1
            scene = scenes(number)
            steps = [scene.prepare, scene.execute, scene.revert("undo")]
            for earlier in steps[:which]:
                run(scene, earlier, -1)
            run(scene, steps[which], point)
            if which == 0:
                assert photo(scene.folder) == scene.before
                scene.run(scene.prepare)
                scene.run(scene.execute)
            elif which == 1:
                settled = asyncio.run(new_runtime(scene.state).settle(scene.plan, scene.context))
                assert settled.outcome is not None, settled.evidence
                assert settled.outcome.touched == (photo(scene.folder) != scene.before)
            if photo(scene.folder) != scene.before or records.read_state(scene.context.records).at == "between":
                scene.run(scene.revert("undo"))
            assert photo(scene.folder) == scene.before


def test_leftovers_are_what_a_killed_git_leaves(state: Path, owned: Path) -> None:
    """The clean-up that the tests above rely on does find something: a pack that git was writing."""
    from tests.runtimes.files.desk import Way

    (owned / "a").write_text("a")
    way = Way(runtime(state), owned)
    asyncio.run(way.prepared())
    (repository,) = (state / "snapshots").glob("*.git")
    left = [repository / "objects/pack/tmp_pack_x", repository / "refs/goex/a1/before.lock"]
    for path in left:
        path.write_bytes(b"half")
    asyncio.run(way.do())
    assert not any(path.exists() for path in left)
    assert shutil.which("git") is not None
    checked = subprocess.run(
        ["git", "--git-dir", str(repository), "fsck", "--full", "--strict"], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
