"""`files.snapshot_20k_s`, `files.incremental_s`, `files.undo_s`, `files.large_1gb_s`: what taking folders back costs.

The tree is 20,000 files in 400 folders, sizes spread as in source trees (median 2 kB). All that GoEx writes is brought
to the disk before the time is taken; git and cp leave that to the kernel.

* snapshot: preparing the first action on the folder, into an empty place. Floor: `git add -A` into an empty repository.
* incremental: preparing the next action after 10 files have changed, by the same process. Floor: `git add -A`.
* undo: assessing and executing the undo of an action that changed 10 files. Floor: `git checkout -- .`, which makes
  those 10 files what the index says and neither looks for what others changed nor sets times and modes.
* large: preparing the first action on a folder with one file of 1 GB of random bytes. Floor: `cp --reflink=never` and
  then its SHA-256 by the same library.
"""

# Nothing else waits for this loop.
# ruff: noqa: ASYNC221, ASYNC251

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from policies.actions import Plan, Revert
from runtimes.files.runtime import FilesRuntime
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, context
from tools.bench.measure import Row, Timings, row, timed

NAME = "files.snapshot_20k_s"
FILES = 20_000
_IN_A_FOLDER = 50
_CHANGED = 10
_SETTLED = 2.1  # seconds after which change times are trusted
LARGE = 10**9


def grow(top: Path, files: int = FILES) -> None:
    """Make the tree, the same each time. It belongs to an ordinary user, so that programs would work on it itself."""
    chance = random.Random(7)
    words = [f"w{chance.getrandbits(24):x}" for _ in range(3000)]
    owner = 1000 if os.geteuid() == 0 else -1
    for number in range(files):
        folder = top / f"p{number // 1000:02d}" / f"m{number // _IN_A_FOLDER:03d}"
        if number % _IN_A_FOLDER == 0:
            folder.mkdir(parents=True)
        size = min(int(chance.lognormvariate(7.6, 1.0)), 200_000)
        text = " ".join(chance.choices(words, k=size // 7 + 1))[:size]
        (folder / f"f{number % _IN_A_FOLDER:02d}.py").write_text(text)
    for path in (top, *top.rglob("*")):
        os.chown(path, owner, owner)


def change(top: Path, round: int) -> None:
    """Write other text into ten files, spread over the tree."""
    found = sorted(top.glob("p*/m*"))
    for number in range(_CHANGED):
        (found[number * len(found) // _CHANGED] / "f00.py").write_text(f"round {round}, file {number}\n" * 40)


def git(top: Path, repository: Path, *arguments: str) -> None:
    """git as one uses it, but for its repository's place."""
    where = (f"--git-dir={repository}", f"--work-tree={top}", "-c", "safe.directory=*")
    subprocess.run(["git", *where, *arguments], cwd=top, check=True, stdout=subprocess.DEVNULL)


async def measure(*, files: int = FILES, rounds: int = 5, large: int = LARGE, large_rounds: int = 3) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as place:
        top = Path(place) / "tree"
        top.mkdir()
        grow(top, files)
        os.sync()
        time.sleep(_SETTLED)
        first = await _first(Path(place), top, rounds)
        later, undone = await _later(Path(place), top, rounds)
        shutil.rmtree(top)
        big = await _large(Path(place), large, large_rounds)
    return (
        _row(NAME, first, "git add -A, empty repository"),
        _row("files.incremental_s", later, "git add -A, 10 files changed"),
        _row("files.undo_s", undone, "git checkout of 10 files"),
        _row("files.large_1gb_s", big, "cp --reflink=never, SHA-256"),
    )


def _row(name: str, timings: tuple[list[float], list[float]], floor: str) -> Row:
    values, floors = (Timings(tuple(each / 1000 for each in side)) for side in timings)
    return row(name, values, floor, floors, unit="s")


def _runtime(place: Path, top: Path) -> FilesRuntime:
    made = iter(range(10**6))
    sandbox = UnsafeNoSandbox(lambda folder: change(folder, next(made)))
    return FilesRuntime(sandbox, place / "state" / "snapshots")


async def _prepare(way: Way, into: list[float]) -> Plan:
    way.plan = await way.runtime.assess(way.action, way.context)
    with timed(into):
        await way.runtime.prepare(way.plan, way.context)
    return way.plan


async def _first(place: Path, top: Path, rounds: int) -> tuple[list[float], list[float]]:
    values: list[float] = []
    floors: list[float] = []
    for _ in range(rounds + 1):
        await _prepare(Way(_runtime(place, top), top), values)
        shutil.rmtree(place / "state")
        repository = place / "plain.git"
        subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
        with timed(floors):
            git(top, repository, "add", "-A")
        shutil.rmtree(repository)
    return values[1:], floors[1:]


async def _later(
    place: Path, top: Path, rounds: int
) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    """Actions one after another, each of which changes ten files and is undone; git beside it in the same way."""
    snapshots: tuple[list[float], list[float]] = [], []
    undos: tuple[list[float], list[float]] = [], []
    runtime, repository = _runtime(place, top), place / "plain.git"
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    await _prepare(Way(runtime, top, action_id="first"), [])
    git(top, repository, "add", "-A")
    time.sleep(_SETTLED)
    for number in range(rounds + 1):
        change(top, 1000 + number)
        way = Way(runtime, top, action_id=f"a{number}")
        plan = await _prepare(way, snapshots[0])
        with timed(snapshots[1]):
            git(top, repository, "add", "-A")
        outcome = await runtime.execute(plan, way.context)
        assert outcome.ok and len(outcome.changes) == _CHANGED, outcome.summary
        revert = Revert(verb="undo", target=way.context.action_id)
        with timed(undos[0]):
            reverting = await runtime.assess_revert(revert, plan, way.context)
            outcome = await runtime.execute_revert(revert, reverting, plan, way.context, context("r"))
        assert outcome.ok and len(outcome.changes) == _CHANGED, outcome.summary
        change(top, number)
        with timed(undos[1]):
            git(top, repository, "checkout", "--", ".")
    shutil.rmtree(repository)
    shutil.rmtree(place / "state")
    return (snapshots[0][1:], snapshots[1][1:]), (undos[0][1:], undos[1][1:])


async def _large(place: Path, size: int, rounds: int) -> tuple[list[float], list[float]]:
    top, copy = place / "large", place / "copy"
    top.mkdir()
    with (top / "file").open("wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(os.urandom(min(1 << 20, size - start)))
    for path in (top, top / "file"):
        os.chown(path, 1000 if os.geteuid() == 0 else -1, -1)
    os.sync()
    values: list[float] = []
    floors: list[float] = []
    for _ in range(rounds + 1):
        await _prepare(Way(_runtime(place, top), top), values)
        shutil.rmtree(place / "state")
        with timed(floors):
            subprocess.run(["cp", "--reflink=never", str(top / "file"), str(copy)], check=True)
            with copy.open("rb") as file:
                hashlib.file_digest(file, "sha256")
        copy.unlink()
    return values[1:], floors[1:]
