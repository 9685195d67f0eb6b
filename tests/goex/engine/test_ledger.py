"""The ledger's rows: each is held against its MAC, all together against the root that the journal holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goex.engine.ledger import Ledger, LedgerAltered
from goex.journal.chain import Journal
from policies.errors import Conflict, InvalidInput
from policies.grants import ANONYMOUS, Grant, Width

KEY = b"l" * 32
NOW = datetime(2026, 1, 2, tzinfo=UTC)
GRANT = Grant(
    id="g-1",
    agent="bot",
    service="chat",
    account="work",
    scope="write",
    width=Width.PERMANENT,
    created=NOW,
    expires=NOW + timedelta(days=1),
    by="the person",
    why="a-1",
)
OTHER = replace(GRANT, id="g-2", scope="read")


def clock() -> datetime:
    return NOW


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head", clock)
    made.unlock(b"k" * 32)
    return made


@pytest.fixture
def ledger(journal: Journal) -> Ledger:
    """With a live grant, a revoked one and an agent."""
    made = Ledger(journal, clock)
    made.load(KEY)
    with made.changing() as transaction:
        made.grant(transaction, (GRANT, OTHER), by="the person")
    made.revoke([OTHER.id], by="the person")
    made.add_agent("bot", by="the person")
    return made


Edit = Callable[[str], None]


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    def run(statement: str) -> None:
        with sqlite3.connect(tmp_path / "state.db") as database:
            assert database.execute(statement).rowcount > 0
        database.close()

    return run


def test_it_is_read_as_it_was_written(journal: Journal, ledger: Ledger) -> None:
    again = Ledger(journal, clock)
    again.load(KEY)
    assert again.grants() == (GRANT,)
    assert [agent.name for agent in again.agents()] == ["bot"]


@pytest.mark.parametrize(
    "column",
    ["agent", "service", "account", "scope", "session", "digest", "by", "why"],
)
@pytest.mark.parametrize("id", ["g-1", "g-2"])
def test_no_column_of_a_grant_can_be_written_also_of_a_past_one(
    journal: Journal, ledger: Ledger, edit: Edit, column: str, id: str
) -> None:
    """A past grant isn't under the root any more, and says who allowed what."""
    edit(f"update grants set \"{column}\" = 'x' where id = '{id}'")
    again = Ledger(journal, clock)
    with pytest.raises(LedgerAltered, match=rf"Grant {id} .* was altered"):
        again.load(KEY)
    assert not again.grants()
    assert not again.agents()


@pytest.mark.parametrize("statement", ["name = 'other'", "token_hash = x'00'"])
def test_no_column_of_an_agent_can_be_written(journal: Journal, ledger: Ledger, edit: Edit, statement: str) -> None:
    edit(f"update agents set {statement}")
    with pytest.raises(LedgerAltered, match=r"Agent .* was altered"):
        Ledger(journal, clock).load(KEY)


@pytest.mark.parametrize("statement", ["delete from grants where id = 'g-1'", "delete from agents"])
def test_a_row_that_is_gone_is_missed(journal: Journal, ledger: Ledger, edit: Edit, statement: str) -> None:
    edit(statement)
    with pytest.raises(LedgerAltered, match="removed"):
        Ledger(journal, clock).load(KEY)


def test_another_key_reads_nothing(journal: Journal, ledger: Ledger) -> None:
    with pytest.raises(LedgerAltered):
        Ledger(journal, clock).load(b"x" * 32)


def test_a_once_grant_is_consumed_once(ledger: Ledger) -> None:
    once = replace(GRANT, id="g-3", width=Width.ONCE, digest="d" * 64)
    with ledger.changing() as transaction:
        ledger.grant(transaction, (once,), by="the person")
    with ledger.changing() as transaction:
        ledger.consume(transaction, (once,))
        transaction.append("allow", facts={"ledger": ledger.root()})
    with pytest.raises(Conflict, match="used or revoked"), ledger.changing() as transaction:
        ledger.consume(transaction, (once,))


@pytest.mark.parametrize("width", [Width.SESSION, Width.PERMANENT])
def test_an_agent_without_a_name_is_given_nothing_that_stays(ledger: Ledger, width: Width) -> None:
    wide = replace(GRANT, id="g-4", agent=ANONYMOUS, width=width, session="s" if width is Width.SESSION else "")
    with pytest.raises(InvalidInput, match="once-grants only"), ledger.changing() as transaction:
        ledger.grant(transaction, (wide,), by="the person")
    assert ledger.grants() == (GRANT,)
