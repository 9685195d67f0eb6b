"""What a tool answers stays within its bound, and says what it left out."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from goex.mcp.results import FOREIGN, fitted, of_action, of_error
from goex.rpc import goex_pb2 as pb
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


def answered(block: dict[str, Any], *, cut: bool = False) -> types.CallToolResult:
    """An action whose answer holds a block of a tool's content."""
    view = pb.ActionView(id="a-1", ending=pb.Ending(status="done", changed="no", undo="none"))
    value = canonical([{"body": {"content": [{"type": "text", "text": "a dot"}, block]}}]).decode()
    return of_action(view, pb.ResultReply(value_json=value, cut=cut))


PICTURE = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}


def test_a_picture_is_one_after_the_line_that_calls_it_data() -> None:
    own, foreign, picture = answered(PICTURE).content
    assert isinstance(own, types.TextContent) and isinstance(foreign, types.TextContent)
    assert foreign.text.startswith(FOREIGN) and "a dot" in foreign.text and PICTURE["data"] not in foreign.text
    assert picture == types.ImageContent(type="image", data=PICTURE["data"], mime_type="image/png")
    assert PICTURE["data"] not in str(answered(PICTURE).structured_content)


@pytest.mark.parametrize(
    ("more", "cut"),
    [({"mimeType": "image/svg+xml"}, False), ({"data": "no base64!"}, False), ({"data": 7}, False), ({}, True)],
    ids=["a document", "no picture", "a number", "cut"],
)
def test_what_isnt_whole_or_a_picture_stays_data(more: dict[str, Any], cut: bool) -> None:
    block = {**PICTURE, **more}
    result = answered(block, cut=cut)
    assert [each.type for each in result.content] == ["text", "text"]
    assert result.structured_content is not None
    assert result.structured_content["data"][0]["body"]["content"][1] == block
