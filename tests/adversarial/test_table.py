"""docs/attacks.md is what the tests are: each row names tests that exist, by parameter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtimes.sandbox.defences import Defence
from tests.adversarial import container_attacks, table


def test_the_page_shows_the_attacks_that_there_are() -> None:
    """Mend a drift with `python -m tests.adversarial.table --write`."""
    text = table.PAGE.read_text()
    assert (text.count(table.BEGIN), text.count(table.END)) == (1, 1)
    assert table.in_page(text) == table.render()


def test_there_are_enough_each_stands_once_and_each_names_tests_that_exist(request: pytest.FixtureRequest) -> None:
    names = [attack.name for attack in table.ATTACKS]
    assert len(set(names)) == len(names) >= 60
    assert len({attack.tries for attack in table.ATTACKS if not attack.tries.startswith("the same")}) >= 60
    named = {test for one in table.ATTACKS for test in (one.test, one.control)}
    collected = request.config.stash[table.COLLECTED]
    missing = sorted(named - collected)
    if missing:  # in this run, which may be of this file alone
        files = {test.partition("::")[0] for test in missing}
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"]
        said = subprocess.run(
            [*command, *sorted(files)], cwd=table.ROOT, capture_output=True, text=True, check=True
        ).stdout
        missing = sorted(set(missing) - set(said.splitlines()))
    assert missing == []


def test_every_defence_of_a_container_has_an_attack() -> None:
    by_rows = {defence for defence in Defence if any(defence.value in one.refused_by for one in container_attacks.ROWS)}
    assert set(Defence) == by_rows


def test_the_table_is_one_line_an_attack() -> None:
    lines = table.render().splitlines()
    assert len(lines) == len(table.ATTACKS) + 2
    assert {line.count(" | ") for line in lines[2:]} == {4}
