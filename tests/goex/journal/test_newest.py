"""The newest actions are found without a look at each one's texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from goex.journal.actions import EVERYBODYS, Actions, Whose
from goex.journal.chain import Journal, moment
from goex.journal.schema import actions
from goex.journal.search import Wanted, find_ids
from policies.services import Risk

AT = "2026-01-02T00:00:00.000000Z"


@pytest.mark.parametrize(
    "whose", [EVERYBODYS, Whose(agent="bot"), Whose(session="conn-1"), Whose(agent="bot", since=AT)]
)
@pytest.mark.parametrize("point", [{}, {"before": 9}, {"until": AT}])
def test_a_change_among_reads_is_found_by_the_index_of_risks(
    tmp_path: Path, whose: Whose, point: dict[str, Any]
) -> None:
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    columns: dict[str, Any] = {column.name: "" for column in actions.columns}
    columns |= {"agent": "bot", "session": "conn-1", "created": AT, "detached": False}
    with journal.engine.begin() as connection:
        for number in range(1, 10):
            risk = Risk.WRITE if number in (4, 6) else Risk.READ
            connection.execute(insert(actions), {**columns, "id": f"a-{number}", "number": number, "risk": risk})
    asked: list[tuple[str, Any]] = []

    @event.listens_for(journal.engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        asked.append((statement, parameters))

    assert Actions(journal).newest_ids(whose, risk=Risk.WRITE, **point) == ("a-6", "a-4")
    since = moment(whose.since) if whose.since else None
    wanted = Wanted(agent=whose.agent, session=whose.session, since=since, before=point.get("before", 0))
    assert find_ids(journal, replace(wanted, risk=Risk.WRITE)) == ("a-6", "a-4")
    assert len(find_ids(journal, replace(wanted, risk=Risk.READ))) == 8 + (not wanted.before)
    selects = [each for each in asked if each[0].startswith("SELECT")]
    assert len(selects) == 3
    for number, (statement, parameters) in enumerate(selects):
        with journal.read() as connection:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        assert any("COVERING INDEX actions_risk" in step for step in plan), plan
        assert number == 2 or not any(step.startswith("SCAN") for step in plan), plan
    journal.close()
