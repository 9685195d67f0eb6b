"""A MongoDB action killed at its points, over the wire: some of them, chosen by a seed, or all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtimes.mongo import connection
from tests.crash.mongo_wire import STEPS, MongoSite
from tests.crash.points import Moment, Point, Victim
from tests.services.nx import Nx, find_binary

EACH = 2
MOMENTS: tuple[tuple[Moment, Victim], ...] = (("before", "process"), ("after", "process"), ("during", "process"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoSite]:
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        yield MongoSite(server, Path(tmp_path_factory.mktemp("mongo")))


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_lost_or_doubled(
    site: MongoSite, step: str, thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_SECONDS", 0.5)
    site.count("do")
    names = site.count(step)
    points = [Point(n, moment, victim) for n in range(1, len(names) + 1) for moment, victim in MOMENTS]
    points += [Point(n, "before", "server") for n in range(1, len(names) + 1)]
    dice = random.Random(f"mongo {step}")
    ends: set[str] = set()
    for seed, point in enumerate(dice.sample(points, len(points) if thorough else min(EACH, len(points)))):
        found = site.crash(step, point, seed=seed)
        assert not found.problems, (point, names[point.number - 1], found.problems)
        ends.add(found.ended)
    assert ends <= {"do": {"nothing", "part", "done"}, "undo": {"undone"}, "redo": {"undone", "done"}}[step]
    print(f"{step}: {len(points)} points, ends {sorted(ends)}")
