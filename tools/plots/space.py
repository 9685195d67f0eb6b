"""Draws docs/plots/files-space.svg: how the snapshots of a folder grow over 100 actions.

`python -m tools.plots.space`. One folder of source-like files; each action writes other text into ten of them, and all
can be undone. Drawn: what the snapshots take on the disk when all of them are kept, and when what is older than the
last 20 is committed; beside them a copy of the folder for each action. The exit status is 1 when an action takes more
than twice what it has written, and a fixed part for each.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

from policies.actions import Plan
from runtimes.files.runtime import FilesRuntime
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way
from tools.bench.folders import change, grow

OUT = Path(__file__).resolve().parents[2] / "docs" / "plots" / "files-space.svg"
FILES = 2_000
ACTIONS = 100
KEPT = 20
_FIXED = 64 * 1024  # bytes an action may take besides what it has written: manifests, commits, labels
_RED, _BLUE, _GREEN, _GREY = "#b2182b", "#2166ac", "#1b7837", "#8a8a8a"


def used(folder: Path) -> int:
    """Bytes on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


async def grown(place: Path, *, files: int, actions: int, kept: int) -> list[int]:
    """What the snapshots take after each action; older ones than the last `kept` are committed (0: none)."""
    top, snapshots = place / "tree", place / "state" / "snapshots"
    top.mkdir()
    grow(top, files)
    rounds = iter(range(10**6))
    runtime = FilesRuntime(UnsafeNoSandbox(lambda folder: change(folder, next(rounds))), snapshots)
    done: list[tuple[Way, Plan]] = []
    sizes = []
    for number in range(actions):
        way = Way(runtime, top, action_id=f"a{number}")
        assert (await way.do()).ok and way.plan is not None
        done.append((way, way.plan))
        if kept and len(done) > kept:
            old, plan = done.pop(0)
            await runtime.forget(plan, old.context)
        sizes.append(used(snapshots))
    return sizes


def draw(folder: int, everything: Sequence[int], recent: Sequence[int], kept: int, out: Path) -> None:
    plt.rcParams.update({"svg.hashsalt": "goex", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False})
    plt.rcParams["axes.spines.right"] = False
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    across = range(1, len(everything) + 1)
    axes.plot(across, [folder * each / 1e6 for each in across], color=_GREY, linestyle=":", label="a copy for each")
    axes.plot(across, [each / 1e6 for each in everything], color=_BLUE, label="GoEx, all can be undone")
    axes.plot(across, [each / 1e6 for each in recent], color=_GREEN, label=f"GoEx, the last {kept} can be undone")
    axes.axhline(folder / 1e6, color=_RED, linewidth=0.8, label="the folder itself")
    axes.set_xlabel("actions that changed ten files each")
    axes.set_ylabel("MB on the disk")
    axes.set_ylim(0, max(everything) * 1.6 / 1e6)
    axes.set_xlim(1, len(everything))
    axes.legend(frameon=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})
    out.write_text("".join(f"{line.rstrip()}\n" for line in out.read_text().splitlines()))
    plt.close(figure)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--actions", type=int, default=ACTIONS)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    sizes = []
    for kept in (0, KEPT):
        with tempfile.TemporaryDirectory(prefix="goex-space-") as place:
            sizes.append(asyncio.run(grown(Path(place), files=given.files, actions=given.actions, kept=kept)))
            folder = used(Path(place) / "tree")
            written = sum(path.stat().st_blocks * 512 for path in (Path(place) / "tree").glob("p*/m*/f00.py"))
    draw(folder, sizes[0], sizes[1], KEPT, given.out)
    each = (sizes[0][-1] - sizes[0][0]) / max(1, given.actions - 1)
    most = 2 * written + _FIXED
    print(
        f"The folder takes {folder / 1e6:.1f} MB. Its snapshots: {sizes[0][0] / 1e6:.1f} MB after one action,"
        f" {sizes[0][-1] / 1e6:.1f} MB after {given.actions}, {each / 1e3:.0f} kB for each; {sizes[1][-1] / 1e6:.1f} MB"
        f" when only the last {KEPT} are kept."
    )
    return 0 if each <= most else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
