"""What the documents say is what the code does: generated pages are current, each promise has a test, links lead on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goex import config
from goex.cli.main import INTERRUPTED
from goex.journal.states import render_table
from policies.errors import ExitStatus
from tools import assurance, reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def test_architecture_shows_the_table_that_the_code_has() -> None:
    assert render_table().strip() in (ROOT / "ARCHITECTURE.md").read_text()


@pytest.mark.parametrize(("page", "text"), [("cli.md", reference.cli), ("grpc.md", reference.grpc)])
def test_the_reference_is_what_the_code_says(page: str, text: object) -> None:
    """Mend a drift with `make reference`."""
    assert callable(text)
    assert (ROOT / "docs" / "reference" / page).read_text() == text()


def test_every_setting_is_described() -> None:
    said = (ROOT / "docs" / "reference" / "settings.md").read_text()
    source = Path(config.__file__).read_text()
    keys = re.findall(r"\.(?:text|texts|integer|number|size|flag|either|take|switch)\(\s*\"(\w+)\"", source)
    assert len(keys) > 30
    assert [key for key in dict.fromkeys(keys) if key not in said and key not in ("path", "users", "profiles")] == []


def test_every_exit_status_is_described() -> None:
    said = (ROOT / "docs" / "reference" / "exit-status.md").read_text()
    assert set(re.findall(r"^\| (\d+) \|", said, re.MULTILINE)) == {str(int(one)) for one in (*ExitStatus, INTERRUPTED)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    found = _LINK.findall(page.read_text())
    assert [one for one in found if not (page.parent / one).exists()] == []


def test_the_agents_that_the_rules_of_the_guide_name_are_added_first() -> None:
    said = (ROOT / "docs" / "guides" / "rules.md").read_text()
    example = said.split("```")[1]
    named = set(re.findall(r'Agent::"([\w-]+)"', example)) - {"person"}
    assert named
    assert [name for name in named if f"goex agents add {name}" not in said[: said.index(example)]] == []


@pytest.mark.parametrize(("page", "most"), [("README.md", 8), ("ARCHITECTURE.md", 14), ("SECURITY.md", 16)])
def test_the_papers_stay_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_bytes()) <= most * 1024


def test_every_promise_has_a_test_and_every_mark_a_promise() -> None:
    said = assurance.promises((ROOT / "SECURITY.md").read_text())
    tests = assurance.marked(ROOT / "tests")
    assert len(said) >= 70
    assert sorted(said) == list(range(1, len(said) + 1))
    assert [f"P{number} has no test" for number in said if not tests.get(number)] == []
    assert [f"P{number} is no promise" for number in tests if number not in said] == []


def test_the_page_of_promises_is_what_the_tests_say() -> None:
    """Mend a drift with `make reference`."""
    said = assurance.promises((ROOT / "SECURITY.md").read_text())
    assert (ROOT / "docs" / "assurance.md").read_text() == assurance.render(said, assurance.marked(ROOT / "tests"))


def test_a_promise_without_its_test_is_noticed(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_a.py").write_text(
        "import pytest\n\n\nclass TestA:\n    @pytest.mark.promise(1, 3)\n    def test_it(self): ...\n\n\n"
        "@pytest.mark.promise(2)\ndef helper(): ...\n"
    )
    assert assurance.marked(tests) == {
        1: ["tests/test_a.py::TestA::test_it"],
        3: ["tests/test_a.py::TestA::test_it"],
    }


def test_promises_are_told_apart() -> None:
    found = assurance.promises("P1. One\n  goes on\nP2. Two\nP3. Three\n\nno promise\n# P4\n")
    assert found == {1: "One goes on", 2: "Two", 3: "Three"}
    with pytest.raises(ValueError, match="twice"):
        assurance.promises("P1. One\nP1. One again\n")
