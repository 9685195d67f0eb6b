"""Of a sampled test's cases, `make test` runs some, whatever their order, and `make thorough` the others too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import left_out, untested

ROOT = Path(__file__).parents[1]
PROGRAM = """
import pytest
@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", {numbers})
def test_it(number):
    pass
@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(2))
def test_few(number):
    pass
def test_other():
    pass
"""
SETTINGS = "[pytest]\nmarkers =\n  sampled(count): s\n  thorough: t\n"


def ran(folder: Path, numbers: str, *arguments: str) -> set[str]:
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_cases.py").write_text(PROGRAM.format(numbers=numbers))
    command = [sys.executable, "-m", "pytest", "-v", "--strict-markers", "-p", "tests.sampling"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command += ["-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    return {line.partition("::")[2].split()[0] for line in done.stdout.splitlines() if " PASSED" in line}


def test_some_run_and_the_others_are_left_to_the_thorough(tmp_path: Path) -> None:
    some = ran(tmp_path, "range(20)", "-m", "not thorough")
    assert sum(name.startswith("test_it[") for name in some) == 3
    assert {"test_few[0]", "test_few[1]", "test_other"} <= some
    others = ran(tmp_path, "range(20)", "-m", "thorough")
    assert len(others) == 17
    assert not others & some
    assert ran(tmp_path, "range(19, -1, -1)", "-m", "not thorough") == some


def test_what_is_named_runs_whole(tmp_path: Path) -> None:
    assert len(ran(tmp_path, "range(20)", "-m", "not thorough", "test_cases.py::test_it")) == 20


@pytest.mark.parametrize("count", [0, 3, 50])
def test_a_new_case_takes_the_place_of_one_at_most(count: int) -> None:
    names = [f"case {number}" for number in range(50)]
    kept = set(names) - left_out(names, count)
    assert len(kept) == count
    assert len(kept - ({*names, "new"} - left_out([*names, "new"], count))) <= 1


PROMISES = """
import pytest
@pytest.mark.promise(1)
@pytest.mark.thorough
def test_long():
    pass
@pytest.mark.promise(2, 3)
@pytest.mark.parametrize("size", [1, pytest.param(10, marks=pytest.mark.thorough)])
def test_some(size):
    pass
@pytest.mark.promise(3)
@pytest.mark.thorough
def test_another():
    pass
"""


def test_a_promise_that_only_long_tests_break_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n  promise: p\n  thorough: t\n")
    assert untested(pytester.getitems(PROMISES)) == [1]
