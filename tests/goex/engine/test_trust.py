"""A row of actions is believed when the chain says each part of it, and when the chain itself is what was written."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from goex.engine.trust import confirmed
from goex.journal.actions import ActionRow, Actions
from goex.journal.chain import Journal
from goex.journal.errors import JournalBroken
from goex.journal.states import Event, State
from policies.actions import Files, Need, Plan, UndoClass
from policies.services import Risk

KEY = b"k" * 32
PLAN = Plan(
    action=Files(folder="/x", language="shell", program="true"),
    needs=(Need(service="files", account="/x", scope="run", risk=Risk.WRITE, methods=("run",)),),
    undo_class=UndoClass.COMPENSATING,
    undo_text="takes it back",
    resolved={},
    bounds={},
    catalog_hash="",
    image_id="i",
    limits={},
    lines=(),
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    made.unlock(KEY)
    made.append("note")
    return made


@pytest.fixture
def row(journal: Journal) -> ActionRow:
    actions = Actions(journal)
    with journal.transaction() as transaction:
        made = actions.create(
            transaction,
            id="a-1",
            agent="bot",
            session="conn-1",
            intent="",
            action=PLAN.action,
            source="a test",
            detached=True,
        )
        made = actions.step(transaction, made, Event.ASSESS, plan=PLAN)
        made = actions.step(transaction, made, Event.ASK)
    journal.append("note")
    return made


def edit(tmp_path: Path, statement: str) -> None:
    with sqlite3.connect(tmp_path / "state.db") as database:
        assert database.execute(statement).rowcount > 0
    database.close()


def test_a_row_as_it_was_written_is_believed(journal: Journal, row: ActionRow) -> None:
    assert confirmed(journal, [row]) == {"a-1"}
    assert confirmed(journal, []) == frozenset()


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "altered",
    [
        {"agent": "other"},
        {"session": "conn-2"},
        {"digest": "0" * 64},
        {"digest": ""},
        {"state": State.RUNNING},
        {"updated": "2020-01-01T00:00:00.000000Z"},
        {"state": State.RECEIVED},  # it was so, and isn't any more
        {"id": "a-2"},
        {"intent": "what nobody said"},
        {"request": ""},
        {"source": "your own terminal"},
        {"outcome": '{"touched":false}'},
        {"problem": "{}"},
        {"number": 1},
        {"created": "2020-01-01T00:00:00.000000Z"},
        {"risk": 1},
    ],
    ids=str,
)
def test_each_part_that_the_chain_does_not_say_is_noticed(
    journal: Journal, row: ActionRow, altered: dict[str, str]
) -> None:
    assert confirmed(journal, [replace(row, **altered)]) == frozenset()


def test_one_that_is_altered_takes_no_other_with_it(journal: Journal, row: ActionRow) -> None:
    assert confirmed(journal, [replace(row, id="a-2"), row]) == {"a-1"}


ALTERED = {
    "a row of the chain says another state": "update journal set to_state = 'running' where kind = 'ask'",
    "another one names the action": "update journal set agent = 'other' where kind = 'receive'",
    "facts are edited": "update journal set facts = replace(facts, 'conn-1', 'conn-2') where kind = 'receive'",
    "the newest row is cut": "delete from journal where number = (select max(number) from journal)",
    "a row between is cut": "delete from journal where kind = 'assess'",
    "a row is put in at the end": "insert into journal select number + 10, at, action_id, agent, kind, from_state, "
    "to_state, facts, hash, mac from journal where kind = 'ask'",
    "a row before it is edited": "update journal set hash = x'00' where number = 1",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ALTERED)
def test_nothing_is_believed_of_a_chain_that_was_altered(
    name: str, journal: Journal, row: ActionRow, tmp_path: Path
) -> None:
    """Whatever the rows of actions say then: here they say what the altered chain says, and what was written."""
    edit(tmp_path, ALTERED[name])
    named = replace(row, agent="other", session="conn-2")
    versions = [row, replace(row, state=State.RUNNING), replace(row, agent="other"), replace(row, session="conn-2")]
    if "put in at the end" in name:  # beyond the end that the head vouches for: it isn't read at all
        assert confirmed(journal, [replace(row, state=State.RUNNING)]) == frozenset()
        return
    for version in (*versions, named):
        assert confirmed(journal, [version]) == frozenset(), version


def test_authentic_rows_are_those_up_to_the_head(journal: Journal, row: ActionRow, tmp_path: Path) -> None:
    assert [each.number for each in journal.authentic(2)] == list(range(2, journal.count + 1))
    edit(tmp_path, f"delete from journal where number = {journal.count}")
    with pytest.raises(JournalBroken):
        journal.authentic(2)


def test_nothing_is_authentic_before_the_key_is_there(journal: Journal, row: ActionRow, tmp_path: Path) -> None:
    journal.close()
    opened = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    with pytest.raises(JournalBroken):
        opened.authentic(1)
    assert confirmed(opened, [row]) == frozenset()
    opened.unlock(KEY)
    assert confirmed(opened, [row]) == {"a-1"}
    opened.close()
