"""`make huge`: a program on a folder of a million files, taken back. Takes minutes, and a few GB of the disk.

It prints how long each step took and the most memory that the process has used. The exit status is 1 when something
isn't as it was afterwards, or when memory was more than 4 kB for each file.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from policies.actions import Revert
from runtimes.files.runtime import FilesRuntime
from runtimes.files.tree import Bounds
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, context

FILES = 1_000_000
_IN_A_FOLDER = 1000
_MOST = 4000  # bytes for each file


def grow(top: Path, files: int) -> None:
    for number in range(files):
        folder = top / f"m{number // _IN_A_FOLDER:05d}"
        if number % _IN_A_FOLDER == 0:
            folder.mkdir()
        with (folder / f"f{number % _IN_A_FOLDER:04d}").open("w") as file:
            file.write(f"file {number}\n")
        if os.geteuid() == 0:
            os.chown(folder / f"f{number % _IN_A_FOLDER:04d}", 1000, 1000)
    if os.geteuid() == 0:
        for folder in (top, *top.iterdir()):
            os.chown(folder, 1000, 1000)


def deed(top: Path) -> None:
    for folder in list(top.iterdir())[::100]:
        (folder / "f0000").write_text("changed")


async def timed(what: str, step: Coroutine[Any, Any, Any]) -> Any:
    began = time.perf_counter()
    found = await step
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{what}: {time.perf_counter() - began:.1f} s, {most:.0f} MB at most", flush=True)
    return found


async def run(files: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="goex-huge-") as place:
        top = Path(place) / "tree"
        top.mkdir()
        grow(top, files)
        os.sync()
        bounds = Bounds(files=files * 2 + 10_000)
        runtime = FilesRuntime(UnsafeNoSandbox(deed), Path(place) / "state" / "snapshots", bounds=bounds)
        way = Way(runtime, top)
        plan = await timed("assess", runtime.assess(way.action, way.context))
        await timed("snapshot", runtime.prepare(plan, way.context))
        outcome = await timed("run, and snapshot of what it left", runtime.execute(plan, way.context))
        well = outcome.ok and (top / "m00000" / "f0001").read_text() == "file 1\n"
        revert = Revert(verb="undo", target="a1")
        reverting = await timed("assess undo", runtime.assess_revert(revert, plan, way.context))
        outcome = await timed("undo", runtime.execute_revert(revert, reverting, plan, way.context, context("r")))
        well = well and outcome.ok
        for number in range(0, files, _IN_A_FOLDER):
            text = (top / f"m{number // _IN_A_FOLDER:05d}" / "f0000").read_text()
            well = well and text == f"file {number}\n"
    return well and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 <= max(files * _MOST, 400 << 20)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make huge", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    well = asyncio.run(run(parser.parse_args(arguments).files))
    print("All is as it was." if well else "That isn't as it should be.")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
