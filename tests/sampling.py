"""Tests with `@pytest.mark.sampled(count)`: so many of their cases run in `make test`, all of them in `make thorough`.

The cases are chosen by a digest of their names: the same ones everywhere, with no regard to their order, and a new case
changes the choice of at most one other. A test that is named on the command line (`file.py::test`) runs whole.
Each promise of SECURITY.md keeps a test that runs in `make test`: a run of all tests without one for it doesn't begin.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import pytest

ALL = Path(__file__).resolve().parent


def left_out(names: list[str], count: int) -> set[str]:
    """All of these names but `count`, which the smallest digests choose."""
    return set(sorted(names, key=lambda name: sha256(name.encode()).digest())[count:])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any("::" in each for each in config.args):
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one in cases.values():
        mark = of_one[0].get_closest_marker("sampled")
        assert mark is not None
        unchosen = left_out([item.nodeid for item in of_one], mark.args[0])
        for item in of_one:
            if item.nodeid in unchosen:
                item.add_marker("thorough")
    if [Path(each).resolve() for each in config.args] == [ALL] and (lost := untested(items)):
        raise pytest.UsageError(f"Only make thorough tries to break promises {lost} of SECURITY.md.")


def untested(items: list[pytest.Item]) -> list[int]:
    """The promises of which all tests are thorough ones."""
    named: dict[int, set[bool]] = defaultdict(set)
    for item in items:
        for mark in item.iter_markers("promise"):
            for number in mark.args:
                named[number].add(item.get_closest_marker("thorough") is None)
    return sorted(number for number, quick in named.items() if quick == {False})
