"""The drawing of costs, over a few documents: what is imported at which size, the fitted growth, what is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mapper.importing.documents import discovery, method, write
from tools.plots import cost
from tools.plots.cost import PANELS, Costs


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(1, 7):
        name = f"service{number}"
        methods = {f"m{each}": method(f"{name}.things.m{each}", path=f"v1/m{each}") for each in range(number)}
        write(folder, discovery(name=name, methods=methods))
    return folder


def test_a_size_holds_what_the_smaller_one_did_and_no_more_than_it_may(documents: Path) -> None:
    small, middle, everything = cost.parts(documents, (5, 10, 10**9))
    assert small == middle[: len(small)] and middle == everything[: len(middle)]
    assert len(everything) == 6
    assert [small, middle, everything] == list(cost.parts(documents, (5, 10, 10**9)))
    held = [sum(int(file.name[len("service")]) for file in files) for files in (small, middle, everything)]
    assert held[0] <= 5 and held[1] <= 10 and held[2] == 21


def test_methods_of_nested_resources_are_counted() -> None:
    methods: dict[str, object] = {"a": {}, "b": {}}
    assert cost.count({"methods": methods, "resources": {"x": {"methods": methods, "resources": {"y": {}}}}}) == 4


def test_growth_is_fitted_and_what_is_faster_than_linear_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    linear = [Costs(size, {panel.key: size / 1e4 for panel in PANELS}) for size in (1_000, 8_000, 28_000)]
    square = [Costs(each.methods, {**each.values, "map": each.methods**2 / 1e8}) for each in linear]
    slow = [Costs(each.methods, {**each.values, "map": each.methods**0.5}) for each in linear]
    assert cost.exponent(linear, "map") == pytest.approx(1)
    assert cost.exponent(square, "map") == pytest.approx(2)
    assert cost.say(slow)
    assert not cost.say(square)
    assert "map: methods^2.00" in capsys.readouterr().out


@pytest.mark.thorough
def test_a_tiny_run_draws(documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cost.svg"
    cost.main(["--documents", str(documents), "--sizes", "5", "100", "--requests", "3", "--out", str(out)])
    said = capsys.readouterr().out
    assert "search: methods^" in said and "memory" in said
    drawn = out.read_text()
    assert "embedded mapping, p50" in drawn and "at most 15 ms" in drawn
    assert not any(line != line.rstrip() for line in drawn.splitlines())
