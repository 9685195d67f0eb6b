"""What is within a line's bounds: no other argument, none missing, each value as it says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from policies import tasks
from policies.actions import Need, Plan, Sql, UndoClass
from policies.errors import InvalidInput
from policies.grants import Grant, Width
from policies.services import Risk
from policies.task_cover import covering_task
from policies.tasks import Allowance, Task, within
from runtimes.files import plans

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
        ({"amount": {"most": 3}}, {"amount": 0}, True),
        ({"amount": {"most": 3}}, {"amount": -1}, False),
        ({"amount": {"most": 3}}, {"amount": -1000.5}, False),
        ({"amount": {"least": -5, "most": 3}}, {"amount": -1}, True),
        ({"amount": {"least": -5}}, {"amount": 10}, True),
        ({"amount": {"most": -1}}, {"amount": -2}, False),
        ({"amount": {"most": 3}}, {"amount": [1]}, False),
        ({"body.a.b": {"is": 1}}, {"body": {"a": {"b": 1}}}, True),
        ({"body.a.b": {"is": 1}}, {"body": {"a.b": 1}}, False),
        ({"body.a.b": {"is": 1}}, {"body": {"a.b": 1, "a": {"b": 2}}}, False),
        ({"body.a": {"is": 1}}, {"body": {"a": 1}, "body.a": 2}, False),
    ],
)
def test_arguments_are_within_their_bounds(bounds: Any, arguments: Any, held: bool) -> None:
    assert within(bounds, arguments) is held


@pytest.mark.parametrize(("lines", "says"), [(0, '"allows"'), (21, "several tasks")])
def test_a_task_of_too_many_lines_or_of_none_says_what_to_do(lines: int, says: str) -> None:
    line = Allowance(service="slack", method="users.list")
    with pytest.raises(InvalidInput, match=f"1 to 20 lines, and this one {lines}") as refused:
        Task(title="", allows=(line,) * lines)
    assert says in refused.value.next_step


NOW = datetime(2026, 1, 1, tzinfo=UTC)
INSERT, OTHER = "INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)"


def plan_of(*statements: str) -> Plan:
    """As `runtimes.sql.plans` makes one: a permission for each table and verb, which has each statement's text once."""
    texts = tuple({"statement": sql} for sql in dict.fromkeys(statements))
    need = Need(service="db", account="shop", scope="a:insert", risk=Risk.WRITE, methods=("insert",), arguments=texts)
    return Plan(
        action=Sql(database="shop", statements="; ".join(statements)),
        needs=(need,),
        undo_class=UndoClass.EXACT,
        undo_text="",
        resolved={"database": "shop", "program": {"statements": [{"sql": sql} for sql in statements]}},
        bounds={"rows": 5},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )


def line_of(times: int, uses: int = 0) -> Grant:
    return Grant(
        id="g-1",
        agent="bot",
        service="db",
        account="shop",
        scope="a:insert",
        width=Width.TASK,
        created=NOW,
        expires=NOW + timedelta(hours=1),
        by="the person",
        why="a-1",
        methods=("a:insert",),
        times=times,
        uses=uses,
        within={"rows": {"any": True}},
    )


@pytest.mark.promise(92)
@pytest.mark.parametrize(
    ("statements", "times", "uses", "used"),
    [
        ((INSERT,), 1, 0, 1),
        ((INSERT, OTHER), 1, 0, 0),
        ((INSERT, INSERT), 1, 0, 0),
        ((INSERT, OTHER, INSERT), 3, 0, 3),
        ((INSERT, OTHER), 3, 2, 0),
    ],
)
def test_each_statement_is_one_use_of_its_line(statements: tuple[str, ...], times: int, uses: int, used: int) -> None:
    found = covering_task(plan_of(*statements), (line_of(times, uses),), agent="bot", session="s", now=NOW)
    assert len(found) == used


@pytest.mark.promise(92)
@pytest.mark.parametrize(("minutes", "held"), [(-1, False), (0, True), (59, True), (60, False)])
def test_a_task_holds_from_its_beginning_to_its_end(minutes: int, held: bool) -> None:
    """Not before it either: that is a clock that was set back."""
    now = NOW + timedelta(minutes=minutes)
    assert bool(covering_task(plan_of(INSERT), (line_of(1),), agent="bot", session="s", now=now)) is held


@pytest.mark.parametrize(
    ("service", "method", "arguments", "said"),
    [
        ("files", "files.write", {}, "by any program, which can read, change and delete everything there"),
        ("files", "files.read", None, "by any program, which can read everything there"),
        ("db", "a:insert", {}, "nothing, since it doesn't say how many rows"),
        ("db", "a:insert", {"rows": {"most": 9}}, "rows at most 9"),
        ("db", "a:select", None, "any arguments"),
        ("slack", "auth.test", {}, "no arguments"),
    ],
)
def test_a_line_says_what_it_allows(service: str, method: str, arguments: Mapping[str, Any] | None, said: str) -> None:
    line = Allowance(service=service, method=method, account="/w", arguments=arguments, times=3)
    assert line.text == f"{service}.{method} as /w, at most 3 times: {said}"


def test_a_folder_is_named_as_its_runtime_names_it() -> None:
    assert (tasks.FILES, tasks.READ_SCOPE) == (plans.SERVICE, plans.READ_SCOPE)
