"""A definition that the server has committed is never said to have been refused, whatever fails right afterwards; and
what somebody else did since is never lost, nor taken for an undo."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from policies.errors import Conflict, InvalidInput, Unavailable
from runtimes.sql.contract import Doubtful
from runtimes.sql.mariadb import definitions, errors, settle
from runtimes.sql.mariadb.definitions_reversed import Definition
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError
from tests.runtimes.sql.mariadb.support import Base


class FakeServer:
    """A connection that is lost right after the statement; the table is there from then on, or gone."""

    id = 1
    broken = False

    def __init__(self, there: bool, *, lost: bool) -> None:
        self.there, self.lost, self.ran = there, lost, ""

    def run(self, sql: str) -> None:
        if "TABLES" not in sql:  # LOCK and UNLOCK
            self.ran, self.there = sql, not self.there

    def undecoded(self, sql: str) -> tuple[tuple[bytes, bytes]]:
        if self.ran and self.lost:
            raise ServerError(2013, errors.lost())
        if not self.there:
            raise ServerError(1146, errors.lost())
        return ((b"more", b"CREATE TABLE `more` (`id` int)"),)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [(1,)] if "UPTIME" in sql else []

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


@pytest.mark.sampled(5)
@pytest.mark.promise(76)
@pytest.mark.parametrize(
    ("column", "theirs", "back"),
    [
        ("c varchar(9) DEFAULT 'abc'", "'ABC'", "'abc'"),
        ("c varchar(9) DEFAULT 'abc'", "'abc '", "'abc'"),
        ("c varchar(9) DEFAULT 'abc'", "NULL", "'abc'"),
        ("c varchar(9) CHARACTER SET latin1 DEFAULT 'e'", "x'E9'", "'e'"),
        ("c text DEFAULT 'abc'", "'Abc'", "DEFAULT"),
        ("c varchar(9)", "''", "NULL"),
        ("c enum('a', 'b') DEFAULT 'a'", "'b'", "'a'"),
        ("c double DEFAULT 0.1", "0.1 + 1e-17 * 3", "0.1"),
        ("c float DEFAULT 16777216", "16777215", "16777216"),
        ("c decimal(9,2) DEFAULT 1.50", "1.51", "1.5"),
        ("c bit(9) DEFAULT 5", "6", "5"),
        ("c datetime(6) DEFAULT '2024-01-01'", "'2024-01-01 00:00:00.000001'", "'2024-01-01'"),
        ("c json", "'1'", "NULL"),
        ("c uuid", "UUID()", "NULL"),
        ("c blob DEFAULT 'a'", "'A'", "'a'"),
    ],
)
def test_undo_of_a_new_column_loses_nobodys_value(base: Base, column: str, theirs: str, back: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    added = base.job(f"ALTER TABLE t ADD COLUMN {column}")
    with base.session() as session:
        session.run(added)
        base.run(f"UPDATE t SET c = {theirs} WHERE id = 1")
        with pytest.raises(Conflict, match="would lose it"):
            session.revert(added, "undo")
        assert len(base.run("SELECT c FROM t")) == 2
        base.run(f"UPDATE t SET c = {back} WHERE id = 1")
        session.revert(added, "undo")
    assert base.run("SELECT * FROM t ORDER BY id") == [(1,), (2,)]


@pytest.mark.promise(76)
@pytest.mark.parametrize("theirs", ["DROP TABLE new", "RENAME TABLE new TO newer", "RENAME TABLE new TO elsewhere.new"])
def test_a_renamed_table_that_is_gone_is_not_taken_for_undone(base: Base, theirs: str) -> None:
    base.run("CREATE TABLE old (id INT PRIMARY KEY); INSERT INTO old VALUES (1)")
    renamed = base.job("RENAME TABLE old TO new")
    base.run("CREATE DATABASE IF NOT EXISTS elsewhere")
    try:
        with base.session() as session:
            session.run(renamed)
            base.run(theirs)
            for asked in (session.compare, session.revert):
                with pytest.raises(Conflict, match="isn't defined as it was left") as caught:
                    asked(renamed, "undo")
                assert caught.value.difference == ("new: is gone",)
            assert session.settle(renamed).state == "done"
    finally:
        base.run("DROP DATABASE elsewhere")


@pytest.mark.promise(76)
def test_a_renamed_table_whose_old_name_somebody_took(base: Base) -> None:
    base.run("CREATE TABLE up (id INT PRIMARY KEY)")
    base.run("CREATE TABLE `o``ld` (id INT PRIMARY KEY, u INT, FOREIGN KEY (u) REFERENCES up (id))")
    renamed = base.job("ALTER TABLE `o``ld` RENAME TO new")
    with base.session() as session:
        session.run(renamed)
        base.run("CREATE TABLE `o``ld` (id INT)")
        with pytest.raises(Conflict) as caught:
            session.revert(renamed, "undo")
        assert caught.value.difference == ("o`ld: is there now",)
        base.run("DROP TABLE `o``ld`")
        session.revert(renamed, "undo")
        assert session.settle(renamed).state == "undone"
        assert session.revert(renamed, "undo").notes == ("It is so already: nothing was changed.",)
        session.revert(renamed, "redo")
        assert session.settle(renamed).state == "done"
        session.revert(renamed, "undo")
    assert {name for (name,) in base.run("SHOW TABLES")} == {"up", "o`ld"}


REFUSED = {
    "CREATE TABLE n (id VARCHAR(4000) PRIMARY KEY)": "a key is too long",
    "CREATE TABLE n (id INT PRIMARY KEY, pid INT, KEY (pid), FOREIGN KEY (pid) REFERENCES p (id))": "foreign key",
    "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (pid) REFERENCES p (id)": "foreign key",
    "CREATE TABLE n (id INT PRIMARY KEY, id2 INT PRIMARY KEY)": "two primary keys",
    "CREATE TABLE n (id INT AUTO_INCREMENT)": "AUTO_INCREMENT",
    "CREATE TABLE n (a VARCHAR(70000))": r"a column is too long \(a\)",
    "CREATE TABLE n (id TEXT PRIMARY KEY)": "a key of texts has no length",
    "CREATE TABLE n (a DECIMAL(70,2))": "more digits",
    "CREATE VIEW w (a, b) AS SELECT id FROM p": "a view names more or fewer columns",
    "ALTER TABLE p RENAME TO `x y `": "such a name",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(76)
@pytest.mark.parametrize("sql", REFUSED)
def test_a_definition_that_the_server_does_not_take_is_refused_and_never_in_doubt(base: Base, sql: str) -> None:
    base.run(
        "CREATE TABLE p (id BIGINT PRIMARY KEY, a INT); CREATE TABLE c (id INT PRIMARY KEY, pid INT, UNIQUE (pid))"
    )
    with base.session() as session, pytest.raises(InvalidInput, match=REFUSED[sql]):
        session.run(base.job(sql))
    assert base.run("SHOW TABLES") == [("c",), ("p",)]


def test_columns_that_no_table_can_have_are_refused_when_it_is_planned(base: Base) -> None:
    with pytest.raises(InvalidInput, match="a key is too long"):
        base.job("CREATE TABLE n (id VARCHAR(4000) PRIMARY KEY)")
    base.run("CREATE TABLE p (id INT PRIMARY KEY)")
    job = base.job("CREATE TABLE n (id INT PRIMARY KEY REFERENCES p (id))")  # a temporary table can't have that
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
    assert base.run("SHOW TABLES") == [("p",)]


@pytest.mark.parametrize(("number", "after", "doubt"), [(4999, False, False), (4999, True, True), (1030, False, False)])
def test_an_error_without_words_is_in_doubt_only_where_something_was_changed(
    monkeypatch: pytest.MonkeyPatch, number: int, after: bool, doubt: bool
) -> None:
    monkeypatch.setattr(settle, "started", lambda wire: 1)
    server: Any = FakeServer(there=False, lost=False)
    ran = server.run

    def run(sql: str) -> None:
        if "TABLES" in sql or after:
            ran(sql)
        if "TABLES" not in sql:
            raise ServerError(number, errors.translated(number))

    server.run = run
    with pytest.raises(Doubtful if doubt else ServerError):
        definitions.run(server, job(FullDisk(9)), Definition("more", "DROP TABLE `more`", "", lock=True))
    assert server.broken is doubt


@pytest.mark.promise(76)
def test_an_undo_that_the_server_refuses_leaves_a_done_action_done(base: Base) -> None:
    base.run("CREATE TABLE p (id INT PRIMARY KEY, a INT NOT NULL)")
    job = base.job("CREATE UNIQUE INDEX i ON p (a)")
    with base.session() as session:
        session.run(job)
        base.run("CREATE TABLE child (id INT PRIMARY KEY, pa INT, FOREIGN KEY (pa) REFERENCES p (a))")
        with pytest.raises(Conflict, match="A foreign key needs that index"):
            session.revert(job, "undo")
        assert session.settle(job).state == "done"
        base.run("DROP TABLE child")
        session.revert(job, "undo")
        assert session.settle(job).state == "undone"
