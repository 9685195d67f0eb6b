"""`files.unchanged_55k_s`: a program that does nothing, on a tree of 55,000 files and 707 MB that nothing has changed.

The value is the whole action as an agent's gRPC client sees it, from `Execute` to the last event, in a real daemon, on
a standing grant; an action before has taken the first snapshot. `….owned_by_root` is the same where the tree belongs to
root, so that the program works on a copy. The floor is one more `restic backup` of the same tree into a repository
that has it already, in turn with ours. Without restic (apt) nothing is measured, and that is said.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runtimes.sandbox import images
from tests.support.daemon import Daemon
from tests.support.journey import Journey, shell
from tools.bench.measure import Row, Timings, row, timed

NAME = "files.unchanged_55k_s"
FILES, BYTES = 55_000, 707 * 10**6
ROUNDS = 5
_IN_A_FOLDER = 11
_OWNER = 1000
_MOST = 600.0  # seconds
_AGE = 61.0  # seconds: what is younger is read anew


async def measure(*, files: int = FILES, size: int = BYTES, rounds: int = ROUNDS, age: float = _AGE) -> tuple[Row, ...]:
    if shutil.which("restic") is None:
        print("restic isn't installed (apt), so this is left out …", end=" ", file=sys.stderr, flush=True)
        return ()
    await asyncio.to_thread(images.build, "base")
    return await asyncio.to_thread(_measure, files, size, rounds, age)


def grow(top: Path, files: int, size: int) -> None:
    """Make the tree, the same each time: sizes spread as in a tree of packages, `size` bytes in all, contents that no
    two files share and no compressor shrinks."""
    chance = random.Random(11)
    weights = [chance.lognormvariate(0.0, 1.4) for _ in range(files)]
    scale, left = size / sum(weights), size
    for number, weight in enumerate(weights):
        folder = top / f"p{number // 1100:02d}" / f"m{number // _IN_A_FOLDER:04d}"
        if number % _IN_A_FOLDER == 0:
            folder.mkdir(parents=True)
        most = left if number == files - 1 else min(left, int(weight * scale))
        (folder / f"f{number % _IN_A_FOLDER:02d}").write_bytes(chance.randbytes(most))
        left -= most


def _measure(files: int, size: int, rounds: int, age: float) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as place:
        top, repository = Path(place) / "tree", Path(place) / "restic"
        top.mkdir()
        grow(top, files, size)
        _restic(repository, "init")
        if os.geteuid() != 0:
            return (_beside(NAME, top, repository, rounds, age),)
        Path(place).chmod(0o755)
        rows = [_beside(f"{NAME}.owned_by_root", top, repository, rounds, age)]
        for path in (top, *top.rglob("*")):
            os.chown(path, _OWNER, _OWNER)
        return (_beside(NAME, top, repository, rounds, age), *rows)


def _beside(name: str, top: Path, repository: Path, rounds: int, age: float) -> Row:
    values: list[float] = []
    floors: list[float] = []
    os.sync()
    with Daemon() as daemon:
        token = daemon.add_agent("bench")
        request = shell(top, "true")
        granted = Journey(daemon, request, token=token, seconds=_MOST).approve("permanent")
        assert granted.action.state == "done", granted
        _restic(repository, "backup", str(top))
        _wait(top, age)
        for _ in range(rounds + 1):
            with timed(values):
                finished = Journey(daemon, request, token=token, seconds=_MOST).finished()
            assert finished.action.state == "done", finished
            with timed(floors):
                _restic(repository, "backup", str(top))
    value, floor = (Timings(tuple(each / 1000 for each in side[1:])) for side in (values, floors))
    return row(name, value, "restic backup, once more", floor, unit="s")


def _wait(top: Path, age: float) -> None:
    """Wait until nothing in it is younger than that."""
    newest = max(path.lstat().st_ctime for path in top.rglob("*"))
    time.sleep(max(0.0, newest + age - time.time()))


def _restic(repository: Path, *arguments: str) -> None:
    env = {**os.environ, "RESTIC_PASSWORD": "bench", "RESTIC_CACHE_DIR": f"{repository}.cache"}
    argv = ["restic", "--quiet", "--repo", str(repository), *arguments]
    subprocess.run(argv, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
