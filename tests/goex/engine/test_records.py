"""Sealed records: the newest version is what is read, and nothing else can be put in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from goex.engine.records import SealedRecords
from goex.journal.chain import Journal
from goex.journal.schema import records as table
from policies.errors import Conflict
from policies.jsonvalue import parse


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


def test_one_that_was_deleted_isnt_read_as_one_that_never_was(journal: Journal) -> None:
    of(journal).put("state", b"first")
    with journal.engine.begin() as connection:
        connection.execute(delete(table))
    with pytest.raises(Conflict):
        of(journal).get("state")


def test_what_was_forgotten_may_be_written_anew(journal: Journal) -> None:
    of(journal).put("state", b"first")
    of(journal).forget()
    assert of(journal).get("state") is None
    of(journal).put("state", b"second")
    assert of(journal).get("state") == b"second"


DAMAGED = {
    "altered": "UPDATE records SET sealed = sealed || x'00' WHERE action_id = 'a-1'",
    "another type": "UPDATE records SET sealed = 'text' WHERE action_id = 'a-1'",
    "of another name": "UPDATE records SET name = 'else' WHERE action_id = 'a-1'",
    "another's": "UPDATE records SET sealed = (SELECT sealed FROM records WHERE action_id = 'a-2')",
    "missing": "DELETE FROM records WHERE action_id = 'a-1'",
    "all missing": "DELETE FROM records",
    "unheard of": "INSERT INTO records VALUES ('a-3', 'state', x'00')",
    "forgotten": "INSERT INTO records VALUES ('a-4', 'state', x'00')",
    "not text": "UPDATE records SET name = CAST(x'ff' AS TEXT) WHERE action_id = 'a-1'",
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("statement", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
def test_what_was_done_to_it_shows_when_the_journal_is_verified(journal: Journal, statement: str, sealed: bool) -> None:
    """The hashes stand in the chain, so no key of the vault's is needed for that."""
    for action in ("a-1", "a-2", "a-4"):
        of(journal, action).put("state", action.encode())
    of(journal, "a-4").forget()
    if sealed:
        journal.lock()
    assert journal.verify().good
    with journal.engine.begin() as connection:
        connection.exec_driver_sql(statement)
    found = journal.verify()
    assert not found.good and "sealed" in found.problem


def test_what_is_written_while_the_journal_is_verified_is_no_damage(journal: Journal) -> None:
    of(journal).put("state", b"first")
    of(journal, "a-2").put("state", b"first")
    todo = [
        lambda: of(journal).put("state", b"second"),
        of(journal, "a-2").forget,
        lambda: of(journal).put("more", b""),
    ]

    def meanwhile(_: int) -> None:
        while todo:
            todo.pop()()

    found = journal.verify(meanwhile)
    assert found.good and found.rows == 5 and not todo, found.problem


def test_what_is_altered_after_all_was_compared_shows_where_a_row_spoke_of_it(journal: Journal) -> None:
    of(journal).put("state", b"first")
    seen: list[int] = []

    def meanwhile(count: int) -> None:
        if not seen:
            of(journal).put("state", b"second")
            with journal.engine.begin() as connection:
                connection.execute(update(table).values(sealed=b"else"))
        seen.append(count)

    assert not journal.verify(meanwhile).good and seen == [1, 2]


def test_each_row_is_read_once_however_many_names_are_asked_for(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(text: str) -> Any:
        read.append(text)
        return parse(text)

    monkeypatch.setattr("goex.engine.records.parse", counted)
    asking = of(journal)
    for number in range(20):
        assert asking.get(f"piece.{number}") is None
        asking.put(f"piece.{number}", b"first")
        of(journal).put(f"piece.{number}", b"second")
        assert asking.get(f"piece.{number}") == b"second"
    assert asking.get("piece.0") == b"second" and len(read) == 40
    of(journal).forget()
    assert asking.get("piece.0") is None
    of(journal).put("piece.0", b"third")
    assert asking.get("piece.0") == b"third" and asking.get("piece.1") is None and len(read) == 41
