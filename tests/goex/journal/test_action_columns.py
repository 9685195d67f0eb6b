"""Each column of the table of actions, altered: told as such by whoever reads it, and found by verifying."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goex.engine.events import Problem
from goex.journal.actions import EVERYBODYS, ActionRow, Actions
from goex.journal.chain import Journal
from goex.journal.errors import JournalBroken
from goex.journal.schema import actions as table
from goex.journal.search import Wanted, find_actions
from goex.journal.states import Event, State
from goex.journal.usage import usage
from policies.actions import Code, Ended, Files, Outcome, Revert
from policies.errors import Conflict, GoexError, Unavailable
from policies.typed_json import to_json
from tools.bench import journals

KEY = b"k" * 32
ID = "a-000000000001"
BYTES = b"\x01\xff"
TEXTS = ("agent", "session", "kind", "intent", "request", "plan", "digest", "target", "source", "outcome")
UNREADABLE: dict[str, tuple[Any, ...]] = dict.fromkeys(TEXTS, (BYTES,)) | {
    "state": ("", "nope", "DONE", 3, BYTES),
    "created": ("", "nope", "2026-11-01", "2026-13-01T00:00:00.000000Z", "2026-11-01T00:00:00.000+00:00", BYTES),
    "updated": ("", "nope", 7, BYTES),
    "number": ("x", -1, 1.5, BYTES),
    "risk": ("x", -1, 1.5, BYTES),
    "problem": (
        *("{", "[]", "7", "{}", "null", BYTES, '{"code":"x","details":[],"message":5}', '{"code":"x","message":"m"}'),
        '{"code":"x","details":5,"message":"m"}',
        '{"code":"x","details":[5],"message":"m"}',
        '{"code":"x","details":[],"message":"m","more":1}',
        '{"code":"x","details":[],"exit_status":"1","message":"m"}',
    ),
}
LONG = ("{", "[]", "7", "{}", "null", '{"ok":1,"summary":""}', '{"ok":true,"results":3,"summary":""}')
CHANGED = {
    "kind": ("", "files", "revert"),
    "target": ("a-000000000002",),
    "detached": (7, "yes", BYTES),
    "plan": ("", "{", "7", "null", "{}", '{"action":3}'),
}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    opened.unlock(KEY)
    journals.fill(opened, 30)
    yield opened
    opened.close()


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, Any], Any]:
    """Writes a column of one action as whoever has the file would; returns what was there."""

    def altered(column: str, value: Any) -> Any:
        with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as database:
            (was,) = database.execute(f"SELECT {column} FROM actions WHERE id = ?", (ID,)).fetchone()
            database.execute(f"UPDATE actions SET {column} = ? WHERE id = ?", (value, ID))
        return was

    return altered


def ways(kept: Actions, journal: Journal, target: str = "") -> dict[str, Callable[[], object]]:
    """Each way to read the action."""
    return {
        "get": lambda: kept.get(ID),
        "find": lambda: kept.find(ID, EVERYBODYS),
        "those": lambda: kept.those([ID]),
        "newest": lambda: kept.newest(),
        "found": lambda: find_actions(journal, Wanted()),
        "reverts": lambda: kept.reverts_of(target),
    }


def said(ask: Callable[[], object], column: str) -> None:
    with pytest.raises(JournalBroken, match=f"Action {ID} isn't what was written: its {column} was altered") as caught:
        ask()
    assert "goex log --verify" in caught.value.next_step and "put back" in caught.value.next_step


@pytest.mark.sampled(5)
@pytest.mark.promise(81)
@pytest.mark.parametrize(("column", "value"), [(name, value) for name, some in UNREADABLE.items() for value in some])
def test_what_can_not_be_read_is_told_by_name(
    journal: Journal, put: Callable[[str, Any], Any], column: str, value: Any
) -> None:
    kept = Actions(journal)
    was = put(column, value)
    for name, ask in ways(kept, journal).items():
        if (name, column) not in {("reverts", "target")}:
            said(ask, column)
    left = kept.in_states(State)
    assert [row.id for row in left] == ["a-000000000000", "a-000000000002"], "of the others nothing is wrong"
    assert not journal.verify().good
    put(column, was)
    for ask in ways(kept, journal).values():
        ask()  # at once: nothing still sees what was there
    assert len(kept.in_states(State)) == 3 and journal.verify().good


@pytest.mark.promise(81)
@pytest.mark.parametrize("value", LONG)
def test_an_outcome_is_read_where_it_is_asked_for_alone(
    journal: Journal, put: Callable[[str, Any], Any], value: str
) -> None:
    kept = Actions(journal)
    put("outcome", value)
    said(lambda: kept.get(ID), "outcome")
    said(lambda: kept.find(ID, EVERYBODYS), "outcome")
    assert len(kept.newest()) == 3
    assert not journal.verify().good


@pytest.mark.sampled(9)
@pytest.mark.promise(81)
@pytest.mark.parametrize(("column", "value"), [(name, value) for name, some in CHANGED.items() for value in some])
def test_what_reads_well_and_says_something_else_is_found_by_verifying(
    journal: Journal, put: Callable[[str, Any], Any], column: str, value: Any
) -> None:
    was = put(column, value)
    found = journal.verify()
    assert not found.good and ID in found.problem
    put(column, was)
    assert journal.verify().good


@pytest.mark.parametrize("value", ["{", "[]", "null", '{"kind":"nope"}', '{"calls":3,"kind":"calls"}', "7"])
def test_a_request_or_plan_that_is_none_is_told(journal: Journal, put: Callable[[str, Any], Any], value: str) -> None:
    for column, ask in (("request", ActionRow.action), ("plan", ActionRow.the_plan)):
        was = put(column, value)
        row = Actions(journal).get(ID)
        said(lambda ask=ask, row=row: ask(row), column)  # type: ignore[misc]
        put(column, was)


@pytest.mark.parametrize("plan", ["{", "7", '{"needs":3}', '{"needs":[3]}', '{"needs":[{"methods":[{}]}]}'])
def test_what_grants_were_used_for_is_told_all_the_same(
    journal: Journal, put: Callable[[str, Any], Any], plan: str
) -> None:
    put("plan", plan)
    assert usage(journal, ()) == {}


ERRORS: tuple[GoexError, ...] = (
    GoexError("m"),
    Unavailable("m", next_step="n"),
    Conflict("m", next_step="n", difference=("d", "e")),
)
ENDS = (
    Outcome(ok=True, summary=""),
    Outcome(ok=False, summary="s", ended=Ended.EXITED, exit_code=0, results=(None, {"status": 1}), unsure=True),
    Outcome(
        ok=False, summary="s", stdout="o", stderr="e", cut=3, changes=("created a",), refused=({"request": "GET"},)
    ),
)


@pytest.mark.parametrize("ended", [*ENDS, *ERRORS])
def test_what_goex_writes_reads(journal: Journal, ended: Outcome | GoexError) -> None:
    kept = Actions(journal)
    with journal.transaction() as transaction:
        row = _received(kept, transaction, "a-new", Files(folder="/tmp", language="shell", program="true"))
        if isinstance(ended, Outcome):
            row = kept.step(transaction, row, Event.ASSESS)
            for event in (Event.ALLOW, Event.PREPARE, Event.RUN):
                row = kept.step(transaction, row, event)
            kept.step(transaction, row, Event.FINISH, outcome=ended)
        else:
            kept.step(transaction, row, Event.REJECT, problem=to_json(Problem.of(ended)))
    kept.get("a-new")
    assert len(find_actions(journal, Wanted())) == 4 and journal.verify().good


@pytest.mark.parametrize("state", State)
def test_each_state_reads(journal: Journal, put: Callable[[str, Any], Any], state: State) -> None:
    put("state", str(state))
    assert Actions(journal).get(ID).state is state


def test_honest_actions_of_each_shape_verify(journal: Journal) -> None:
    """Words that became nothing, a request too long to be kept of what never ran, and an undo."""
    kept = Actions(journal)
    with journal.transaction() as transaction:
        row = _received(kept, transaction, "a-words", None)
        kept.step(transaction, row, Event.REJECT, problem=to_json(Problem.of(GoexError("m"))))
        row = _received(kept, transaction, "a-mapped", None)
        kept.step(transaction, row, Event.MAP, action=Code(language="python", program="p" * 9_000, services=("slack",)))
        row = _received(kept, transaction, "a-long", Files(folder="/tmp", language="shell", program="p" * 9_000))
        kept.step(transaction, row, Event.WITHDRAW)
        _received(kept, transaction, "a-undo", Revert(verb="undo", target=ID))
    assert kept.get("a-long").request == "" and kept.get("a-undo").target == ID
    found = journal.verify()
    assert found.good, found.problem


@pytest.mark.promise(81)
def test_a_plan_that_came_while_the_log_was_verified_is_compared_too(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two looks, of which the second holds the writer up, an action is assessed, and altered."""
    from goex.journal.walk import Walk

    real, seen = Walk.compare_plans, []

    def meanwhile(walk: Walk, connection: Any) -> str:
        seen.append(1)
        said = real(walk, connection)
        if len(seen) == 1:
            _assessed(journal)
            with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as database:
                database.execute("UPDATE actions SET plan = '{}' WHERE id = 'a-late'")
        return said

    monkeypatch.setattr(Walk, "compare_plans", meanwhile)
    found = journal.verify()
    assert len(seen) == 2 and found.problem == "The plan of action a-late isn't the one that was decided on."


def _assessed(journal: Journal) -> None:
    kept = Actions(journal)
    plan = kept.get(ID).the_plan()
    with journal.transaction() as transaction:
        row = _received(kept, transaction, "a-late", plan.action)
        kept.step(transaction, row, Event.ASSESS, plan=plan)


def _received(kept: Actions, transaction: Any, id: str, action: Any) -> ActionRow:
    return kept.create(
        transaction,
        id=id,
        agent="tester",
        session="s",
        intent="" if action else "words",
        action=action,
        source="test",
        detached=False,
    )


def test_each_column_is_among_these() -> None:
    assert set(table.c.keys()) == {"id", *UNREADABLE, *CHANGED}
