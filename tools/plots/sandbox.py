"""Draws docs/plots/sandbox.svg: one line of Python in a container, in GoEx's way and in others'.

`python -m tools.plots.sandbox`. It measures what `tools.bench.beside` says, all in turn in one run. Times differ from
machine to machine; that ours is the shortest doesn't, and the exit status is 1 where it isn't.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

from tools.bench import beside
from tools.bench.measure import Row

OUT = Path(__file__).resolve().parents[2] / "docs" / "plots" / "sandbox.svg"
OURS = "GoEx: waited, used once"
_BLUE, _GREY = "#2166ac", "#8a8a8a"


def draw(rows: Sequence[Row], out: Path) -> None:
    """Bars on a logarithmic axis, the shortest first; a line ends at the 95th percentile."""
    bars = sorted([(OURS, rows[0].value, rows[0].p95)] + [(row.floor_name, row.floor, row.floor_p95) for row in rows],
                  key=lambda bar: bar[1])  # fmt: skip
    plt.rcParams["svg.hashsalt"] = "goex"
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    names, medians, late = zip(*bars, strict=True)
    axes.barh(names, medians, color=[_BLUE if name == OURS else _GREY for name in names])
    axes.hlines(names, medians, late, color="black", linewidth=0.8)
    for name, median in zip(names, medians, strict=True):
        axes.annotate(f"{median:.1f}", (median, name), (4, 5), textcoords="offset points", fontsize=8, va="bottom")
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds, median and 95th percentile")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def main() -> int:
    rows = asyncio.run(beside.measure())
    draw(rows, OUT)
    for row in rows:
        print(f"{row.floor_name}: {row.floor:.1f} ms; ours {row.value:.1f}")
    return 0 if all(row.value < row.floor for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
