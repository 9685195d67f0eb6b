"""What the documents say is what the code does: the transition table is the code's, each promise has a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from goex.journal.states import render_table

ROOT = Path(__file__).resolve().parents[2]
_PROMISE = re.compile(r"^(?:[-*] +)?\**P(\d+)\.", re.MULTILINE)
_TEST = re.compile(r"(tests/[\w/.-]+\.py)::(\w+(?:::\w+)*)")


def promises(text: str) -> dict[int, str]:
    """Number → the promise's text, which ends at the next promise, a heading or an empty line."""
    starts = list(_PROMISE.finditer(text))
    found: dict[int, str] = {}
    for here in starts:
        body = re.split(r"\n\s*\n|\n#", text[here.end() :])[0]
        body = _PROMISE.split(body)[0]
        assert int(here[1]) not in found, f"P{here[1]} stands there twice"
        found[int(here[1])] = body
    return found


def missing_tests(body: str) -> list[str]:
    """The tests that a promise names and that aren't there. No name at all is missing too."""
    named = _TEST.findall(body)
    return [f"{file}::{name}" for file, name in named if not has_test(ROOT / file, name.split("::"))] or (
        [] if named else ["(names no test)"]
    )


def has_test(file: Path, names: list[str]) -> bool:
    if not file.is_file():
        return False
    within: list[ast.stmt] = ast.parse(file.read_text()).body
    for name in names:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        matching = [node for node in within if isinstance(node, kinds) and node.name == name]
        if not matching:
            return False
        within = matching[0].body
    return names[-1].startswith(("test", "Test"))


def test_architecture_shows_the_table_that_the_code_has() -> None:
    assert render_table().strip() in (ROOT / "ARCHITECTURE.md").read_text()


def test_every_promise_names_a_test_that_exists() -> None:
    found = promises((ROOT / "SECURITY.md").read_text())
    assert sorted(found) == list(range(1, len(found) + 1))
    assert len(found) >= 10
    assert {f"P{number}": missing for number, body in found.items() if (missing := missing_tests(body))} == {}


HERE = "tests/acceptance/test_documents.py"


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        (f"x [{HERE}::test_architecture_shows_the_table_that_the_code_has]", 0),
        (f"x [{HERE}::test_that_is_not_there]", 1),
        (f"x [{HERE}::has_test]", 1),
        ("x [tests/nowhere.py::test_a]", 1),
        ("x, trust us", 1),
    ],
)
def test_a_promise_without_its_test_is_noticed(body: str, missing: int) -> None:
    assert len(missing_tests(body)) == missing


def test_promises_are_told_apart() -> None:
    found = promises("P1. One [a]\n  goes on\n- **P2.** Two\nP3. Three\n\nno promise\n# P4\n")
    assert {number: " ".join(body.split()) for number, body in found.items()} == {
        1: "One [a] goes on",
        2: "** Two",
        3: "Three",
    }
