"""Sealed records: the newest version is what is read, and nothing else can be put in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update

from goex.engine.records import SealedRecords
from goex.journal.chain import Journal
from goex.journal.schema import records as table
from policies.errors import Conflict


class Sealer:
    """Seals by marking: what is tested here is which version is read, not how it is sealed."""

    def seal_payload(self, name: str, data: bytes) -> bytes:
        return name.encode() + b"|" + data

    def open_payload(self, name: str, sealed: bytes) -> bytes:
        assert sealed.startswith(name.encode() + b"|")
        return sealed.partition(b"|")[2]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    made.unlock(b"k" * 32)
    return made


def of(journal: Journal, action_id: str = "a-1") -> SealedRecords:
    return SealedRecords(journal, Sealer(), action_id, "tester")


def test_a_second_version_replaces_the_first(journal: Journal) -> None:
    of(journal).put("state", b"first")
    of(journal).put("state", b"second")
    of(journal).put("other", b"else")
    of(journal, "a-2").put("state", b"another action's")
    assert of(journal).get("state") == b"second"
    assert of(journal).get("other") == b"else"
    assert of(journal, "a-2").get("state") == b"another action's"
    assert of(journal).get("absent") is None
    assert journal.verify().good


def test_an_older_version_that_is_put_back_is_refused(journal: Journal) -> None:
    of(journal).put("state", b"first")
    with journal.read() as connection:
        older = connection.execute(select(table.c.sealed)).scalar_one()
    of(journal).put("state", b"second")
    with journal.engine.begin() as connection:
        connection.execute(update(table).values(sealed=older))
    with pytest.raises(Conflict):
        of(journal).get("state")


def test_what_was_forgotten_is_gone_for_that_action_alone(journal: Journal) -> None:
    of(journal).put("state", b"first")
    of(journal, "a-2").put("state", b"kept")
    of(journal).forget()
    assert of(journal).get("state") is None
    assert of(journal, "a-2").get("state") == b"kept"
