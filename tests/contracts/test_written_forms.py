"""What is digested, journaled, sealed and passed on as JSON has the bytes that it had, and is read back as it was.

tests/vectors/written.json was made by the code before `policies.typed_json`, when each type had functions of its own.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from policies.actions import Action, Outcome, Plan
from policies.digest import digest
from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from policies.typed_json import from_json
from tests.contracts.written import ACTIONS, EXAMPLES, PLANS, VECTORS, written

KNOWN = json.loads(VECTORS.read_text())


def test_each_example_has_its_vector() -> None:
    assert set(KNOWN) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_written_as_it_was(name: str) -> None:
    assert canonical(written(EXAMPLES[name])).decode("utf-8") == KNOWN[name]["text"]


@pytest.mark.promise(2)
@pytest.mark.parametrize("name", PLANS)
def test_digested_as_it_was(name: str) -> None:
    assert digest(PLANS[name], agent="scout") == KNOWN[name]["digest"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_read_as_it_was_written(name: str) -> None:
    example: Any = EXAMPLES[name]
    if isinstance(example, Outcome):
        example = replace(example, next_step="", details=())
    assert read(type(example), json.loads(KNOWN[name]["text"])) == example
    if name in ACTIONS:
        assert from_json(Action, json.loads(KNOWN[name]["text"]), "It") == example


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_unknown_is_refused(name: str) -> None:
    """The digest of a plan that is read wouldn't cover it."""
    value = json.loads(KNOWN[name]["text"])
    with pytest.raises((InvalidInput, TypeError, ValueError)):
        read(type(EXAMPLES[name]), {**value, "unknown": 1} if isinstance(value, dict) else [*value, 1])


@pytest.mark.promise(2)
@pytest.mark.parametrize("name", PLANS)
def test_nothing_in_a_plan_is_left_out_of_its_digest(name: str) -> None:
    """Whatever is added anywhere is refused, or gives another digest."""
    for where, changed in added(json.loads(KNOWN[name]["text"])):
        with contextlib.suppress(InvalidInput):
            assert digest(from_json(Plan, changed, "It"), agent="scout") != KNOWN[name]["digest"], where


def added(value: Any, at: str = "$") -> Iterator[tuple[str, Any]]:
    """`value` with a name added to one of its objects, for each."""
    if isinstance(value, dict):
        yield at, {**value, "unknown": 1}
        for key, inner in value.items():
            yield from ((where, {**value, key: changed}) for where, changed in added(inner, f"{at}.{key}"))
    if isinstance(value, list):
        for place, inner in enumerate(value):
            for where, changed in added(inner, f"{at}[{place}]"):
                yield where, [*value[:place], changed, *value[place + 1 :]]


def read(kind: Any, value: Any) -> Any:
    return kind.from_json(value) if hasattr(kind, "from_json") else from_json(kind, value, "It")
