"""`make crash`: each step of calls, folders and databases, all that can be killed there or fail; writes docs/crash.md.

ARGS: points for each row of a server (default 12; 0 for one point of each of four steps), rounds with the whole daemon
for each kind (default 8), a seed.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.crash import shim

TABLE = Path(__file__).parents[2] / "docs" / "crash.md"


def main() -> int:
    scratch = Path(tempfile.mkdtemp(prefix="goex-shim-"))
    shim.reload_with_shim(scratch, "tests.crash.run")  # comes back with the library loaded, or without a compiler
    shim.spare_this_process()
    shutil.rmtree(scratch, ignore_errors=True)
    numbers = [int(each) for each in sys.argv[1:]]
    most, rounds, seed = [*numbers, *(12, 8, random.SystemRandom().randrange(2**32))[len(numbers) :]][:3]
    from tests.crash.matrix import Matrix, databases

    print(f"{most} points a row, {rounds} rounds of the daemon a kind, seed {seed}", flush=True)
    matrix = Matrix(
        random.Random(seed), max(1, most), max(1, most * 3), one=most == 0, report=lambda text: print(text, flush=True)
    )
    began = time.monotonic()
    databases(matrix)
    if rounds:
        from tests.crash.daemons import daemons

        daemons(matrix, rounds)
    seconds = time.monotonic() - began
    found = len(matrix.problems)
    print(f"\n{matrix.points} points, {found} problems, {seconds:.0f} s. {'; '.join(matrix.missing)}")
    if rounds and matrix.points >= 500:
        TABLE.write_text(page(matrix, f"{most} {rounds} {seed}"))
        print(f"Written: {TABLE}")
    with suppress(OSError):
        shutil.rmtree(shim.folder(), ignore_errors=True)
    return 1 if found else 0


def page(matrix: object, arguments: str) -> str:
    """The table as it goes into the docs."""
    from tests.crash.matrix import Matrix

    assert isinstance(matrix, Matrix)
    lines = [
        "# What was killed, and how it ended",
        "",
        f'Written by `make crash ARGS="{arguments}"`: {matrix.points} points, {len(matrix.problems)} problems.',
        "",
        "A point is one moment of one step, in which something is killed with -9 or begins to fail. Then everything is",
        "started anew, the probe says what became of the action, and that is held against the data. *ended as* is the",
        "probe's word. A problem is: a word that isn't true of the data, data that are neither before nor after, an",
        "undo that doesn't give exactly what was there, or something that is left behind.",
        "",
        "| runtime | step | what was killed or failed | points | ended as | problems |",
        "|---|---|---|---:|---|---:|",
    ]
    for row in matrix.rows:
        ended = ", ".join(f"{name} {count}" for name, count in sorted(row.ended.items()))
        lines.append(f"| {row.runtime} | {row.step} | {row.killed} | {row.points} | {ended} | {len(row.problems)} |")
    if matrix.missing:
        lines += ["", f"Not tried on that machine: {'; '.join(matrix.missing)}."]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
