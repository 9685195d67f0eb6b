"""Draws docs/plots/mapping-cost.svg: what search and mapping cost against the catalog's size.

`python -m tools.plots.cost`. Catalogs of about 1,000 to 28,000 methods are imported from Google's documents, taken in a
fixed order that has nothing to do with what they are; the services that come with GoEx are in each. The same requests
are asked of all catalogs in turn, so that whatever else the machine does falls on all alike. Times differ from machine
to machine; whether they grow faster than the catalog doesn't: the exponent is fitted and printed, and above 1 the exit
status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.importing.google import package_folder
from mapper.mapper import Mapper
from policies.actions import Intent
from tools.bench import catalogs, fresh
from tools.bench.catalogs import Built
from tools.bench.measure import Timings
from tools.bench.memory import REQUESTS

OUT = Path(__file__).resolve().parents[2] / "docs" / "plots" / "mapping-cost.svg"
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 10**9)  # imported methods, at most; the last: all
LINEAR = 1.0
_RED, _BLUE, _GREY = "#b2182b", "#2166ac", "#8a8a8a"


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the pictures: the key of its figures, its title, its unit, and what the figures may be at most."""

    key: str
    title: str
    unit: str
    goal: float


PANELS = (
    Panel("search", "search, p50", "ms", 5),
    Panel("map", "embedded mapping, p50", "ms", 15),
    Panel("memory", "memory, whole process", "MB", 150),
    Panel("import", "import with its search index", "s", 60),
)


@dataclass(slots=True)
class Costs:
    """The figures of one catalog, by the panels' keys."""

    methods: int
    values: dict[str, float] = field(default_factory=dict)


def count(resources: Any) -> int:
    """How many methods a discovery document has."""
    found = len(resources.get("methods", {}))
    return found + sum(count(each) for each in resources.get("resources", {}).values())


def parts(documents: Path, sizes: Sequence[int]) -> Iterator[tuple[Path, ...]]:
    """For each size, growing: what there was before, and the next documents of the fixed order that still fit."""
    left = [file for file in documents.glob("*.json") if file.name != "index.json"]
    left.sort(key=lambda file: hashlib.sha256(file.name.encode()).digest())
    methods = {file: count(json.loads(file.read_bytes())) for file in left}
    taken: list[Path] = []
    for size in sizes:
        room = size - sum(methods[file] for file in taken)
        for file in tuple(left):
            if methods[file] <= room:
                taken.append(file)
                left.remove(file)
                room -= methods[file]
        yield tuple(taken)


def build(folder: Path, documents: Path, files: Sequence[Path]) -> Built:
    """The catalog of these documents, in a folder that isn't there yet."""
    (folder / "documents").mkdir(parents=True)
    for file in (*files, documents / "index.json"):
        if file.exists():
            shutil.copyfile(file, folder / "documents" / file.name)
    return catalogs.build(folder / "catalog.db", folder / "documents")


async def measured(made: Sequence[Built], requests: Sequence[str], warm: int = 20) -> list[Costs]:
    """What the catalogs cost, in their order."""
    opened = []
    for each in made:
        catalog = Catalog.open(each.path)
        embedded = EmbeddedProposer(catalog)
        opened.append((embedded.index, Mapper(catalog, embedded)))
    times: list[dict[str, list[float]]] = [{"search": [], "map": []} for _ in made]
    warm = min(warm, len(requests))
    for text in (*requests[:warm], *requests):
        for (index, mapper), into in zip(opened, times, strict=True):
            began = time.perf_counter()
            index.search(text)
            searched = time.perf_counter()
            await mapper.map(Intent(text=text))
            into["search"].append((searched - began) * 1e3)
            into["map"].append((time.perf_counter() - searched) * 1e3)
    costs = []
    for each, into in zip(made, times, strict=True):
        values = {key: Timings(tuple(found[warm:])).p50 for key, found in into.items()}
        values["memory"] = fresh.run("map", each.path, REQUESTS)["mb"]
        values["import"] = each.seconds
        costs.append(Costs(each.methods, values))
    return costs


def exponent(costs: Sequence[Costs], key: str) -> float:
    """b of cost = a * methods^b, by least squares over the logarithms, to two places: 1 is linear."""
    slope, _ = np.polyfit(
        np.log([each.methods for each in costs]), np.log([each.values[key] for each in costs]), 1
    ).tolist()
    return round(float(slope), 2)


def draw(costs: Sequence[Costs], out: Path) -> None:
    plt.rcParams.update({"svg.hashsalt": "goex", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False})
    plt.rcParams["axes.spines.right"] = False
    figure, rows = plt.subplots(2, 2, figsize=(9, 6.4), sharex=True, layout="constrained")
    for axes, panel in zip(rows.flat, PANELS, strict=True):
        _panel(axes, panel, costs)
    for axes in rows[1]:
        axes.set_xlabel("methods in the catalog")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=110)
    if out.suffix == ".svg":  # the writer leaves spaces at line ends
        out.write_text("".join(f"{line.rstrip()}\n" for line in out.read_text().splitlines()))
    plt.close(figure)


def _panel(axes: Axes, panel: Panel, costs: Sequence[Costs]) -> None:
    across = [each.methods for each in costs]
    values = [each.values[panel.key] for each in costs]
    linear = [values[0] * each / across[0] for each in across]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axhline(panel.goal, color=_RED, linewidth=1)
    axes.plot(across, linear, color=_GREY, linestyle=":", linewidth=1)
    axes.plot(across, values, color=_BLUE, marker="o", markersize=4)
    low, high = min(panel.goal, *values) / 1.8, max(panel.goal, *values) * 3
    axes.set_ylim(low, high)
    axes.set_xlim(across[0] / 1.35, across[-1] * 1.35)
    axes.annotate(
        f"at most {panel.goal:g} {panel.unit}",
        (across[0] / 1.3, panel.goal), xytext=(0, 3), textcoords="offset points", color=_RED, fontsize=8,
    )  # fmt: skip
    seen = max(place for place, value in enumerate(linear) if value < high / 1.5)
    axes.annotate(
        "linear", (across[seen], linear[seen]), xytext=(-5, 1), textcoords="offset points", color=_GREY, fontsize=8,
        ha="right",
    )  # fmt: skip
    for at, value in zip(across, values, strict=True):
        axes.annotate(_short(value), (at, value), xytext=(0, -11), textcoords="offset points", fontsize=7, ha="center")
    axes.set_title(f"{panel.title}, {panel.unit}: grows as methods$^{{{exponent(costs, panel.key):.2f}}}$")
    axes.set_xticks(across, [f"{each:,}" for each in across])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.minorticks_off()
    axes.grid(axis="y", color="#e5e5e5")


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 20 else f"{value:.0f}"


def say(costs: Sequence[Costs]) -> bool:
    """Print the figures. Returns whether each grows no faster than the catalog."""
    for each in costs:
        print(f"{each.methods:>7,} methods: " + ", ".join(f"{p.key} {each.values[p.key]:.2f} {p.unit}" for p in PANELS))
    grown = {panel.key: exponent(costs, panel.key) for panel in PANELS}
    for panel in PANELS:
        last = costs[-1].values[panel.key]
        print(
            f"{panel.key}: methods^{grown[panel.key]:.2f}; {last:.1f} {panel.unit} at the largest, "
            f"{'within' if last <= panel.goal else 'beyond'} {panel.goal:g}"
        )
    linear = all(each <= LINEAR for each in grown.values())
    print("At most linear." if linear else "Some cost grows faster than the catalog.")
    return linear


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, help="a folder of discovery documents, not the installed package's")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    documents = given.documents or package_folder()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="goex-cost-") as folder:
        made = []
        for number, files in enumerate(parts(documents, given.sizes)):
            made.append(build(Path(folder) / str(number), documents, files))
            print(f"{made[-1].methods:,} methods imported in {made[-1].seconds:.1f} s", flush=True)
        costs = asyncio.run(measured(made, catalogs.requests()[: given.requests]))
    draw(costs, given.out)
    return 0 if say(costs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
