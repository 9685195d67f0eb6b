"""What a tool answers stays within its bound, and says what it left out."""

from __future__ import annotations

from typing import Any

from goex.mcp.results import fitted, of_error
from policies.errors import InvalidInput, Unavailable
from policies.jsonvalue import canonical


def found(count: int, size: int) -> dict[str, Any]:
    return {"methods": [{"method": f"m{each}", "arguments": {"text": "x" * size}} for each in range(count)]}


def test_what_fits_is_left_as_it_is() -> None:
    assert fitted(found(3, 10), 1000) == found(3, 10)


def test_schemas_go_from_the_last_one_on() -> None:
    made = fitted(found(3, 400), 1000)["methods"]
    assert [isinstance(each["arguments"], dict) for each in made] == [True, True, False]


def test_then_whole_methods_go_and_the_rest_has_an_offset() -> None:
    made = fitted({**found(40, 400), "services": []}, 1000, offset=40)
    assert len(canonical(made)) <= 1000
    assert made["next_offset"] == 40 + len(made["methods"])
    assert fitted(found(40, 400), 1000)["left_out"] == 40 - len(fitted(found(40, 400), 1000)["methods"])


def test_one_method_is_whole_however_long() -> None:
    assert fitted(found(1, 5000), 1000) == found(1, 5000)


def test_an_error_is_the_agent_s_or_the_person_s() -> None:
    own, theirs = of_error(InvalidInput("Wrong.")), of_error(Unavailable("Away.", next_step="goex daemon start"))
    assert own.is_error and not theirs.is_error
    assert theirs.structured_content["next"] == (
        "Only the person can mend this; tell them, and stop: goex daemon start"
    )
