"""What is within a line's bounds: no other argument, none missing, each value as it says."""

from __future__ import annotations

from typing import Any

import pytest

from policies.tasks import within

WHERE = {"to": {"is": "ann"}, "text": {"any": True}}
BODY = {"body.to": {"in": ["ann", "bob"]}, "body.amount": {"most": 10}, "body.note": {"any": True}}


@pytest.mark.promise(92)
@pytest.mark.parametrize(
    ("bounds", "arguments", "held"),
    [
        (WHERE, {"to": "ann", "text": "hello"}, True),
        (WHERE, {"to": "ann"}, True),
        (WHERE, {"text": "hello"}, False),
        (WHERE, {"to": "eve", "text": "hello"}, False),
        (WHERE, {"to": ["ann"]}, False),
        (WHERE, {"to": "ann", "bcc": "eve"}, False),
        (WHERE, {}, False),
        ({}, {}, True),
        ({}, {"to": "ann"}, False),
        (None, {"to": "ann"}, True),
        (BODY, {"body": {"to": ["ann", "bob"], "amount": 10}}, True),
        (BODY, {"body": {"to": ["ann", "eve"], "amount": 10}}, False),
        (BODY, {"body": {"to": "ann", "amount": 11}}, False),
        (BODY, {"body": {"to": "ann", "amount": True}}, False),
        (BODY, {"body": {"to": "ann", "amount": "1"}}, False),
        (BODY, {"body": {"to": "ann", "amount": 1, "from": "eve"}}, False),
        (BODY, {"body": {"to": "ann", "amount": 1}, "query": "x"}, False),
        (BODY, {"body": "to ann"}, False),
        (BODY, {"body": {}}, False),
        ({"amount": {"least": 1, "most": 3}}, {"amount": 0}, False),
        ({"amount": {"least": 1, "most": 3}}, {"amount": 2.5}, True),
        ({"to": {"is": 1}}, {"to": True}, False),
        ({"to": {"is": 1}}, {"to": 1.0}, False),
        ({"to": {"is": "caf\u00e9"}}, {"to": "cafe\u0301"}, False),
        ({"to": {"is": "ann"}}, {"to": "ann "}, False),
        ({"to": {"is": "ann"}}, {"To": "ann"}, False),
        ({"to": {"is": None}}, {}, False),
        ({"to": {"in": ["ann"]}}, {"to": []}, False),
        ({"to": {"in": ["ann"]}}, {"to": [["ann"]]}, False),
        ({"to": {"in": ["ann"]}}, {"to": None}, False),
        ({"to": {"in": ["ann"]}}, {"to": {"$from": 0, "path": "$.to"}}, False),
        ({"amount": {"most": 3}}, {"amount": 10**400}, False),
        ({"amount": {"most": 3}}, {"amount": [1]}, False),
        ({"body.a.b": {"is": 1}}, {"body": {"a": {"b": 1}}}, True),
        ({"body.a.b": {"is": 1}}, {"body": {"a.b": 1}}, False),
        ({"body.a.b": {"is": 1}}, {"body": {"a.b": 1, "a": {"b": 2}}}, False),
        ({"body.a": {"is": 1}}, {"body": {"a": 1}, "body.a": 2}, False),
    ],
)
def test_arguments_are_within_their_bounds(bounds: Any, arguments: Any, held: bool) -> None:
    assert within(bounds, arguments) is held
