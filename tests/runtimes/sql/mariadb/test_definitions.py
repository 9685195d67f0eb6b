"""A definition that the server has committed is never said to have been refused, whatever fails right afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from policies.errors import Unavailable
from runtimes.sql.contract import Doubtful
from runtimes.sql.mariadb import definitions, errors, settle
from runtimes.sql.mariadb.definitions import Definition
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError


class FakeServer:
    """A connection that is lost right after the statement; the table is there from then on, or gone."""

    id = 1
    broken = False

    def __init__(self, there: bool, *, lost: bool) -> None:
        self.there, self.lost, self.ran = there, lost, ""

    def run(self, sql: str) -> None:
        if "TABLES" not in sql:  # LOCK and UNLOCK
            self.ran, self.there = sql, not self.there

    def one(self, sql: str) -> tuple[str, str]:
        if self.ran and self.lost:
            raise ServerError(2013, errors.lost())
        if not self.there:
            raise ServerError(1146, errors.lost())
        return "more", "CREATE TABLE `more` (`id` int)"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return []

    def drop(self) -> None:
        self.broken = True

    def calm(self) -> None:
        """Nothing was interrupted."""


class FullDisk:
    """Records of which only the first is taken."""

    def __init__(self, most: int) -> None:
        self.most = most

    def put(self, name: str, data: bytes) -> None:
        self.most -= 1
        if self.most < 0:
            raise Unavailable("The disk is full.")

    def get(self, name: str) -> bytes | None:
        return None


def job(records: FullDisk) -> Any:
    statement = SimpleNamespace(sql="CREATE TABLE more (id INT)", verb="create")
    return SimpleNamespace(program=SimpleNamespace(statements=(statement,)), records=records)


@pytest.mark.parametrize(("lost", "most"), [(True, 9), (False, 1)])
def test_what_ran_is_in_doubt_when_its_end_cannot_be_noted(
    monkeypatch: pytest.MonkeyPatch, lost: bool, most: int
) -> None:
    monkeypatch.setattr(settle, "started", lambda wire: 1)
    server: Any = FakeServer(there=False, lost=lost)
    with pytest.raises(Doubtful):
        definitions.run(server, job(FullDisk(most)), Definition("more", "DROP TABLE `more`", "", lock=True))
    assert server.ran and server.broken


def test_what_was_taken_back_is_in_doubt_when_the_server_is_lost_right_after_it() -> None:
    defined = {"table": "more", "undo": "DROP TABLE `more`", "lost": "", "lock": True, "before": ""}
    defined["after"] = "CREATE TABLE `more` (`id` int)"
    note = Note(at="committed", connection=1, started=1, exact=False, definition=defined)
    server: Any = FakeServer(there=True, lost=True)
    with pytest.raises(Doubtful):
        definitions.revert(server, job(FullDisk(9)), note, "undo")
    assert server.ran == "DROP TABLE `more`"
