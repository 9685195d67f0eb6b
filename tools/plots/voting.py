"""Draws docs/plots/voting.svg: what samples and noise do to a vote. `python -m tools.plots.voting [--catalog FILE]`.

The figures are those of `tools.plots.simulation` from a seed, so the same code draws the same picture.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from mapper.catalog import Catalog
from tools.plots.simulation import ADAPTIVE, FIXED, Noise, NoisyModel, Result, simulate

OUT = Path(__file__).resolve().parents[2] / "docs" / "plots" / "voting.svg"
ERRORS = (0.0, 0.05, 0.15, 0.3, 0.5)
FAVOURITES = {0.0: "independent errors", 0.6: "60 % of the errors alike", 1.0: "all errors alike"}
COLOURS = ("#b2182b", "#ef8a62", "#9ecae1", "#2166ac")
Results = dict[float, dict[str, Result]]


def measured(catalog: Catalog, count: int) -> dict[float, Results]:
    model = NoisyModel(catalog, seed=7)
    cases = model.cases(count)
    found: dict[float, Results] = {}
    for favourite in FAVOURITES:
        for error in ERRORS:
            noise = Noise(error=error, favourite=favourite)
            found.setdefault(favourite, {})[error] = made = simulate(model, catalog, cases, noise)
            for name, result in made.items():
                shares = ", ".join(
                    f"{key.removesuffix('_pct')} {value:.2f} %" for key, value in asdict(result).items() if "pct" in key
                )
                print(
                    f"{favourite:.1f} {error:4.0%} {name:>8}: {result.samples_mean:5.2f} samples, {shares}", flush=True
                )
    return found


def draw(found: dict[float, Results], out: Path) -> None:
    plt.rcParams.update({"svg.hashsalt": "goex", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False})
    plt.rcParams["axes.spines.right"] = False
    figure, rows = plt.subplots(
        3, 3, figsize=(10.5, 7.6), sharex=True, sharey="row", layout="constrained", height_ratios=(3, 2, 2)
    )
    for column, (favourite, title) in enumerate(FAVOURITES.items()):
        rows[0][column].set_title(title)
        _excessive(rows[0][column], found[favourite])
        _adaptive(rows[1][column], found[favourite], "samples_mean", "{:.1f}")
        _adaptive(rows[2][column], found[favourite], "agreement_pct", "{:.1f}")
        rows[1][column].set_ylim(0, 12)
        rows[2][column].axhline(99, color=COLOURS[0], linewidth=1)
        rows[2][column].set_ylim(98, 100.6)
        rows[2][column].set_xlabel("wrong samples, %")
        rows[2][column].set_xticks([100 * error for error in ERRORS])
    rows[0][0].set_ylabel("excessive scopes, decided\nwithout asking, % of requests")
    rows[1][0].set_ylabel("adaptive:\nsamples asked for, mean")
    rows[2][0].set_ylabel("adaptive:\ndecided as ten samples, %")
    rows[0][2].legend(frameon=False, loc="upper left")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=110)
    if out.suffix == ".svg":  # the writer leaves spaces at line ends
        out.write_text("".join(f"{line.rstrip()}\n" for line in out.read_text().splitlines()))
    plt.close(figure)


def _excessive(axes: Axes, results: Results) -> None:
    across = [100 * error for error in ERRORS]
    for k, colour in zip(FIXED, COLOURS, strict=True):
        rates = [results[error][str(k)].scope_excessive_pct for error in ERRORS]
        axes.plot(across, rates, color=colour, marker="o", markersize=3, label=f"{k} sample{'s' if k > 1 else ''}")
    rates = [results[error][ADAPTIVE].scope_excessive_pct for error in ERRORS]
    axes.plot(across, rates, color="black", linestyle="--", marker="D", markersize=4, label="adaptive, at most 10")
    axes.grid(axis="y", color="#e5e5e5")


def _adaptive(axes: Axes, results: Results, what: str, form: str) -> None:
    across = [100 * error for error in ERRORS]
    values = [float(getattr(results[error][ADAPTIVE], what)) for error in ERRORS]
    axes.plot(across, values, color="black", linestyle="--", marker="D", markersize=4)
    for at, value in zip(across, values, strict=True):
        axes.annotate(
            form.format(value).removesuffix(".0"),
            (at, value),
            xytext=(0, 6),
            textcoords="offset points",
            fontsize=7,
            ha="center",
        )
    axes.grid(axis="y", color="#e5e5e5")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", type=Path, help="an imported catalog, instead of the bundled services")
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    catalog = Catalog.open(given.catalog) if given.catalog else Catalog.bundled()
    draw(measured(catalog, given.cases), given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
