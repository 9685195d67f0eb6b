"""A state database that can't be read: whoever reads it is told so in words, with a next step."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

from goex.engine.core import Core
from goex.engine.keys import KeyUnknown
from goex.engine.records import SealedRecords
from goex.engine.reseal import reseal
from goex.journal.actions import EVERYBODYS
from goex.journal.chain import Journal
from goex.journal.errors import JournalFailed
from goex.journal.schema import open_engine
from goex.journal.search import Wanted, find_rows
from goex.journal.states import State
from tests.goex.engine.conftest import Desk

READS: dict[str, Callable[[Core], object]] = {
    "rows": lambda core: core.journal.rows(),
    "rows as they were written": lambda core: core.journal.authentic(1),
    "the head": lambda core: core.journal.head(),
    "verifying": lambda core: core.journal.verify(),
    "searching": lambda core: find_rows(core.journal, Wanted()),
    "one action": lambda core: core.actions.get("a-1"),
    "one's action": lambda core: core.actions.find("a-1", EVERYBODYS),
    "actions": lambda core: core.actions.those(["a-1"]),
    "actions in a state": lambda core: core.actions.in_states([State.DONE]),
    "reverts": lambda core: core.actions.reverts_of("a-1"),
    "the newest": lambda core: core.actions.newest(),
    "the newest ids": lambda core: core.actions.newest_ids(EVERYBODYS),
    "one question": lambda core: core.approvals.get("q-1"),
    "questions of an action": lambda core: core.approvals.of_action("a-1"),
    "questions": lambda core: core.approvals.pending(),
    "settled questions": lambda core: core.approvals.recent(),
    "grants": lambda core: core.grant_store.grants(everything=True),
    "grants of a task": lambda core: core.grant_store.of_task("a-1"),
    "grants at the start": lambda core: core.grant_store.load(b"k" * 32),
    "records": lambda core: SealedRecords(core.journal, core.vault, "a-1", "bot").get("state"),
    "records anew": lambda core: reseal(core.journal, core.vault, lambda *_: None),
}


@pytest.fixture
def damaged(desk: Desk, tmp_path: Path) -> Iterator[Core]:
    whole = desk.core.journal.engine
    (tmp_path / "state.db").write_bytes(b"no database " * 1000)
    desk.core.journal.engine = open_engine(tmp_path / "state.db")
    yield desk.core
    desk.core.journal.engine = whole


@pytest.mark.sampled(4)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_damaged_one(damaged: Core, read: Callable[[Core], object]) -> None:
    with pytest.raises(JournalFailed, match="can't be used: file is not a database") as caught:
        read(damaged)
    assert caught.value.next_step.startswith("goex doctor")


async def test_a_key_in_a_damaged_one(desk: Desk, damaged: Core) -> None:
    with pytest.raises(KeyUnknown):
        desk.engine.keys.keyed("k1", desk.asker())


def test_one_that_another_process_holds(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.engine.dispose()
    event.listen(journal.engine, "connect", lambda link, _: link.execute("PRAGMA busy_timeout=200"), insert=True)
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JournalFailed, match="Another process holds the state database"):
            journal.rows()
