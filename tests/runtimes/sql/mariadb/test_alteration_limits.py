"""What an alteration isn't sure of is refused before it runs, and what others did is never lost by it."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from policies.errors import Conflict, Unsupported
from runtimes.sql.mariadb import definitions
from runtimes.sql.mariadb.definitions_foreseen import shown
from tests.runtimes.sql.mariadb.support import Base, Killed, Notes, Unnoted


def _before_the_lock(monkeypatch: pytest.MonkeyPatch, base: Base, theirs: str) -> None:
    """Somebody else's statement, between the plan of an action and its lock."""
    locked = definitions._locked
    waiting = [theirs]

    @contextmanager
    def late(wire: Any, found: Any) -> Iterator[None]:
        if waiting:
            base.run(waiting.pop())
        with locked(wire, found):
            yield

    monkeypatch.setattr(definitions, "_locked", late)


def _defined(base: Base, table: str = "t") -> str:
    return str(base.run(f"SHOW CREATE TABLE {table}")[0][1])


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        ("s VARCHAR(9) DEFAULT '😀'", "ALTER TABLE t ALTER s SET DEFAULT 'x'"),
        ("s VARCHAR(9) DEFAULT '😀'", "ALTER TABLE t MODIFY s VARCHAR(20) DEFAULT '😀'"),
        ("s ENUM('😀')", "ALTER TABLE t MODIFY s ENUM('😁', 'x')"),
        ("s ENUM('x', '😀') COMMENT 'why'", "ALTER TABLE t ALTER s SET DEFAULT 'x'"),
    ],
)
def test_a_character_that_the_server_shows_as_a_question_mark_isnt_put_back(base: Base, column: str, sql: str) -> None:
    base.run(f"CREATE TABLE t (id INT PRIMARY KEY, {column}) CHARACTER SET utf8mb4; INSERT INTO t VALUES (1, '😀')")
    with pytest.raises(Unsupported, match="taken back exactly"):
        base.job(sql)


def test_a_question_mark_in_a_comment_stands_against_nothing(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) DEFAULT 'a' COMMENT 'it''s, why?')")
    before, job = _defined(base), base.job("ALTER TABLE t ALTER s SET DEFAULT 'b'")
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
    assert _defined(base) == before


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("sql", "theirs"),
    [
        ("ALTER TABLE t ALTER n SET DEFAULT 9", "ALTER TABLE t ALTER n SET DEFAULT 7"),
        ("ALTER TABLE t MODIFY state ENUM('a', 'b')", "ALTER TABLE t MODIFY state ENUM('a', 'c')"),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS one INT", "ALTER TABLE t ADD COLUMN one INT"),
        ("ALTER TABLE t DROP INDEX by_n", "ALTER TABLE t DROP INDEX by_n, ADD INDEX by_n (n, id)"),
        ("DROP INDEX by_n ON t", "ALTER TABLE t DROP INDEX by_n, ADD INDEX by_n (n, id)"),
        ("CREATE INDEX by_id ON t (id, n)", "ALTER TABLE t COMMENT = 'theirs'"),
        ("ALTER TABLE t MODIFY state ENUM('a', 'b')", "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.n = 1"),
    ],
)
def test_what_somebody_defined_meanwhile_stays(
    base: Base, monkeypatch: pytest.MonkeyPatch, sql: str, theirs: str
) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, n INT DEFAULT 5, state ENUM('a'), KEY by_n (n))")
    job = base.job(sql)
    _before_the_lock(monkeypatch, base, theirs)
    with base.session() as session:
        with pytest.raises(Conflict, match="otherwise meanwhile") as refused:
            session.run(job)
        assert refused.value.next_step
        assert session.settle(job).state == "nothing"
    monkeypatch.undo()
    left = _defined(base)
    with base.session() as session:
        assert session.schema()  # nothing is locked any more
    base.run("INSERT INTO t (id) VALUES (1)")
    assert _defined(base) == left


def test_rows_that_come_meanwhile_are_no_other_definition(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
    job = base.job("ALTER TABLE t ADD COLUMN one INT")
    _before_the_lock(monkeypatch, base, "INSERT INTO t (n) VALUES (1), (2)")
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
    assert base.run("SELECT * FROM t") == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE child MODIFY up VARCHAR(30)",
        "ALTER TABLE parent MODIFY id VARCHAR(30) NOT NULL",
        "ALTER TABLE child MODIFY kind ENUM('a', 'b')",
        "ALTER TABLE child ALTER COLUMN up SET DEFAULT 'x'",
        "ALTER TABLE parent ALTER COLUMN id SET DEFAULT 'x'",
    ],
)
def test_a_column_of_a_foreign_key_isnt_written_down_anew(base: Base, sql: str) -> None:
    base.run(
        "CREATE TABLE parent (id VARCHAR(20) NOT NULL PRIMARY KEY, kind ENUM('a'), KEY by_kind (kind));"
        "CREATE TABLE child (up VARCHAR(20), kind ENUM('a'), FOREIGN KEY (uP) REFERENCES parent (iD),"
        " FOREIGN KEY (kind) REFERENCES parent (kind))"
    )
    with pytest.raises(Unsupported, match="taken back exactly"):
        base.job(sql)


@pytest.mark.promise(60)
def test_undo_of_more_values_leaves_a_trigger_that_writes_one_of_them(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, state ENUM('a'))")
    before, job = _defined(base), base.job("ALTER TABLE t MODIFY state ENUM('a', 'b')")
    with base.session() as session:
        session.run(job)
        base.run(
            "CREATE VIEW v AS SELECT id, state FROM t;"  # which undo breaks not
            "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.state = 'b'"
        )
        with pytest.raises(Conflict, match="undo would break it") as refused:
            session.revert(job, "undo")
        assert refused.value.difference == ("trigger r: was made, or made anew, since",)
        base.run("DROP TRIGGER r")
        session.revert(job, "undo")
    assert _defined(base) == before


def test_a_value_that_no_enum_has_is_refused_before_it_runs(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, state ENUM('a')); INSERT INTO t VALUES (1, 'a')")
    sql, wrong = "ALTER TABLE t MODIFY state ENUM('a', 'b')", "INSERT IGNORE INTO t VALUES (2, 'wrong')"
    before, job = _defined(base), base.job(sql)
    _before_the_lock(monkeypatch, base, wrong)
    with base.session() as session, pytest.raises(Unsupported, match="couldn't put back"):
        session.run(job)
    with pytest.raises(Unsupported, match="couldn't put back") as refused:
        base.job(sql)
    assert refused.value.next_step and _defined(base) == before


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD COLUMN one INT",
        "CREATE INDEX by_both ON t (long_one, id)",
        "ALTER TABLE t DROP INDEX by_long",
        "ALTER TABLE t RENAME COLUMN n TO m",
    ],
)
def test_beside_a_full_text_index_it_is_known_what_a_statement_leaves(base: Base, sql: str) -> None:
    base.run(
        "CREATE TABLE p (id INT PRIMARY KEY);"
        "CREATE TABLE t (id INT PRIMARY KEY, long_one VARCHAR(400), n INT, body TEXT, title TEXT, p INT,"
        " FULLTEXT KEY f (body), FULLTEXT KEY g (title, body), KEY by_p (p), KEY by_long (long_one),"
        " CONSTRAINT to_p FOREIGN KEY (p) REFERENCES p (id), CONSTRAINT more CHECK (n > 0))"
        " ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4"
    )
    before, dying, kept = _defined(base), Unnoted(), Notes()
    job = replace(base.job(sql), records=dying)
    with base.session() as session, pytest.raises(Killed):
        session.run(job)
    kept.kept = dying.kept
    job = replace(job, records=kept)
    with base.session() as session:
        assert session.settle(job).state == "done"
        session.revert(job, "undo")
    assert _defined(base) == before


@pytest.mark.parametrize("sql", ["ALTER TABLE t RENAME COLUMN body TO text", "CREATE INDEX by_body ON t (body(300))"])
def test_what_only_another_engine_could_try_is_refused_where_it_differs(base: Base, sql: str) -> None:
    """MyISAM has no key of more than 1000 bytes."""
    base.run(
        "CREATE TABLE t (id INT PRIMARY KEY, long_one VARCHAR(400), body TEXT, FULLTEXT KEY f (body)"
        f"{', KEY by_long (long_one)' if 'RENAME' in sql else ''}) CHARACTER SET utf8mb4"
    )
    before = _defined(base)
    with pytest.raises(Unsupported, match=r"defined exactly as it was"):
        base.job(sql)
    assert _defined(base) == before


@pytest.mark.promise(60)
def test_the_last_of_64_values_of_a_set_is_seen(base: Base) -> None:
    values = [f"'v{number}'" for number in range(64)]
    base.run(
        f"CREATE TABLE t (id INT PRIMARY KEY, s SET({', '.join(values[:63])}));"
        f"INSERT INTO t VALUES (1, {(1 << 63) - 1})"
    )
    before = _defined(base), base.dump()
    job = base.job(f"ALTER TABLE t MODIFY s SET({', '.join(values)})")
    with base.session() as session:
        session.run(job)
        base.run("UPDATE t SET s = 'v63'")
        with pytest.raises(Conflict, match="would lose it"):
            session.revert(job, "undo")
        base.run(f"UPDATE t SET s = {(1 << 63) - 1}")
        session.revert(job, "undo")
    assert (_defined(base), base.dump()) == before


def test_a_default_of_bytes_that_are_no_text_is_refused_and_the_connection_goes_on(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, b BINARY(2) DEFAULT x'FFFE'); CREATE TABLE u (id INT PRIMARY KEY)")
    for sql in (
        "ALTER TABLE t ADD COLUMN n INT",
        "CREATE TABLE v (b VARBINARY(2) DEFAULT x'FFFE')",
        "CREATE TABLE v (id INT REFERENCES u (id), b VARBINARY(2) DEFAULT x'FFFE')",
    ):
        with pytest.raises(Unsupported, match="a default that isn't text") as refused:
            base.job(sql)
        assert refused.value.next_step
    with base.session() as session:
        session.schema()
        wire = session._wire  # type: ignore[attr-defined]
        with pytest.raises(Unsupported, match="isn't text"):
            shown(wire, "t")
        assert wire.one("SELECT 'ü', 2") == ("ü", 2)


@pytest.mark.parametrize(
    "sql",
    ["ALTER TABLE t ADD CONSTRAINT once UNIQUE other (n)", "ALTER TABLE t DROP INDEX BY_N", "DROP INDEX By_N ON t"],
)
def test_an_index_is_known_by_the_name_that_the_server_gives_it(base: Base, sql: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY by_n (n))")
    before, job = _defined(base), base.job(sql)
    with base.session() as session:
        session.run(job)
        assert _defined(base) != before
        session.revert(job, "undo")
    assert _defined(base) == before


def test_the_last_key_of_an_earlier_action_isnt_told(base: Base) -> None:
    base.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE) AUTO_INCREMENT = 40")
    with base.session() as session:
        session.run(base.job("INSERT INTO t (n) VALUES (1)"))
        session.run(base.job("INSERT IGNORE INTO t (n) VALUES (1); INSERT INTO t VALUES (5, LAST_INSERT_ID())"))
    assert base.run("SELECT id, n FROM t ORDER BY id") == [(5, 0), (40, 1)]
