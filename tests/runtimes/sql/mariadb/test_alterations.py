"""Definitions that change or add several things of one table: back to the letter, and nobody's value is lost."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Conflict, Unsupported
from tests.runtimes.sql.mariadb.support import Base

TABLES = (
    "CREATE TABLE up (id INT PRIMARY KEY, v INT) COMMENT 'up'; INSERT INTO up VALUES (1, 1);"
    "CREATE TABLE t (id INT PRIMARY KEY, state ENUM('new', 'it''s, old') NOT NULL DEFAULT 'new', marks SET('a', 'b'),"
    " small TINYTEXT, body MEDIUMTEXT, n INT DEFAULT 5, up_id INT, KEY by_n (n),"
    " CONSTRAINT t_up FOREIGN KEY (up_id) REFERENCES up (id));"
    "CREATE TABLE words (id INT PRIMARY KEY, title CHAR(9), body TEXT, KEY a (id), FULLTEXT KEY found (title, body));"
    "INSERT INTO t VALUES (1, 'new', 'a', 'x', 'y', 1, 1), (2, 'it''s, old', 'a,b', NULL, '', NULL, NULL);"
    "INSERT INTO words VALUES (1, 'one', 'fat cat'), (2, NULL, NULL)"
)
EXACT = (
    "ALTER TABLE t ADD COLUMN one INT, ADD COLUMN two VARCHAR(9) NOT NULL DEFAULT 'x' AFTER id",
    "ALTER TABLE t ADD COLUMN one INT, ADD INDEX by_one (one), ADD UNIQUE KEY by_both (n, id)",
    "ALTER TABLE t ADD INDEX by_state (state, small(10) DESC)",
    "ALTER TABLE t ADD CONSTRAINT once UNIQUE (id, n)",
    "ALTER TABLE words DROP INDEX a",
    "ALTER TABLE t ALTER COLUMN n SET DEFAULT 9",
    "ALTER TABLE t ALTER state DROP DEFAULT",
    "ALTER TABLE t MODIFY COLUMN state ENUM('new', 'it''s, old', 'gone') NOT NULL DEFAULT 'new'",
    "ALTER TABLE t MODIFY marks SET('a', 'b', 'c', 'd')",
    "ALTER TABLE t MODIFY small TEXT",
    "ALTER TABLE t MODIFY body LONGTEXT",
    "ALTER TABLE words ADD COLUMN lang CHAR(2) DEFAULT 'de'",
    "ALTER TABLE words RENAME COLUMN title TO name",
    "CREATE INDEX by_title ON words (title(5))",
    # Without an opposite statement of their own: by the difference of the definitions.
    "ALTER TABLE t DROP INDEX by_n",
    "ALTER TABLE t ADD INDEX (n)",
    "ALTER TABLE t DROP FOREIGN KEY t_up",
    "ALTER TABLE t ADD COLUMN one INT, RENAME COLUMN n TO m, ADD INDEX by_m (m)",
    "ALTER TABLE t DROP FOREIGN KEY t_up, DROP INDEX t_up, ADD INDEX by_both (n, id)",
    "ALTER TABLE t CHANGE COLUMN n amount INT DEFAULT 7 AFTER id",
    "ALTER TABLE t CHANGE n m INT DEFAULT 5, CHANGE small n TINYTEXT",
    "ALTER TABLE up ADD CONSTRAINT up_t FOREIGN KEY (v) REFERENCES t (id)",  # with an index that the server makes
    "ALTER TABLE words DROP INDEX found",
    "ALTER TABLE words ADD FULLTEXT INDEX more (body)",
    "CREATE FULLTEXT INDEX more ON t (small, body)",
    "ALTER TABLE words RENAME COLUMN body TO text, DROP INDEX a",
    "ALTER TABLE t COMMENT = 'it''s, why?'",
    "ALTER TABLE up COMMENT = '', ADD COLUMN one INT",
    # The values that they lose or change are kept.
    "ALTER TABLE t DROP COLUMN n",
    "ALTER TABLE t DROP COLUMN state, DROP COLUMN small",
    "ALTER TABLE t ADD COLUMN one INT, DROP COLUMN n",
    "ALTER TABLE t DROP COLUMN n, ADD COLUMN n VARCHAR(9) DEFAULT 'x'",
    "ALTER TABLE words DROP COLUMN title",
    "ALTER TABLE t ADD COLUMN one INT, ADD COLUMN two INT NOT NULL",
    "ALTER TABLE t ADD COLUMN twice INT AS (n * 2) STORED",
    "ALTER TABLE t MODIFY COLUMN state ENUM('it''s, old', 'new') NOT NULL DEFAULT 'new'",
    "ALTER TABLE t MODIFY COLUMN marks SET('a', 'b', 'c') NOT NULL",
    "ALTER TABLE t MODIFY COLUMN body TEXT",
    "ALTER TABLE t MODIFY COLUMN small TEXT CHARACTER SET latin1",
    "ALTER TABLE t MODIFY COLUMN n BIGINT",
    "ALTER TABLE t MODIFY COLUMN n VARCHAR(20) FIRST",
    "ALTER TABLE t CHANGE COLUMN n rounded FLOAT, DROP COLUMN body",
)


def _defined(base: Base) -> list[str]:
    return [str(base.run(f"SHOW CREATE TABLE {table}")[0][1]) for table in ("t", "up", "words")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sql", EXACT)
def test_it_is_taken_back_to_the_letter_and_done_again(base: Base, sql: str) -> None:
    base.run(TABLES)
    before = _defined(base), base.dump()
    job = base.job(sql)
    with base.session() as session:
        session.run(job)
        after = _defined(base), base.dump()
        assert after[0] != before[0] and session.settle(job).state == "done"
        session.revert(job, "undo")
        assert (_defined(base), base.dump()) == before and session.settle(job).state == "undone"
        session.revert(job, "redo")
        assert (_defined(base), base.dump()) == after
        session.revert(job, "undo")
        assert (_defined(base), base.dump()) == before


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("sql", "theirs", "back"),
    [
        (
            "ALTER TABLE t MODIFY COLUMN state ENUM('new', 'it''s, old', 'gone') NOT NULL DEFAULT 'new'",
            "UPDATE t SET state = 'gone' WHERE id = 1",
            "UPDATE t SET state = 'new' WHERE id = 1",
        ),
        (
            "ALTER TABLE t MODIFY marks SET('a', 'b', 'c')",
            "UPDATE t SET marks = 'a,c' WHERE id = 1",
            "UPDATE t SET marks = 'a' WHERE id = 1",
        ),
        (
            "ALTER TABLE t MODIFY small TEXT",
            "UPDATE t SET small = REPEAT('ü', 128) WHERE id = 1",  # 256 bytes
            "UPDATE t SET small = 'x' WHERE id = 1",
        ),
        (
            "ALTER TABLE t ADD COLUMN one INT, ADD COLUMN two INT DEFAULT 3",
            "UPDATE t SET two = 4 WHERE id = 2",
            "UPDATE t SET two = 3 WHERE id = 2",
        ),
    ],
)
def test_what_somebody_wrote_since_isnt_lost(base: Base, sql: str, theirs: str, back: str) -> None:
    base.run(TABLES)
    before, job = (_defined(base), base.dump()), base.job(sql)
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = base.dump()
        with pytest.raises(Conflict, match="would lose it"):
            session.revert(job, "undo")
        assert base.dump() == left
        base.run(back)
        session.revert(job, "undo")
    assert (_defined(base), base.dump()) == before


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    "theirs",
    [
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.one = 3",
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.two = 3",
        "CREATE VIEW w AS SELECT id, two FROM t",
    ],
)
def test_what_stands_on_one_of_two_new_columns_keeps_both(base: Base, theirs: str) -> None:
    base.run(TABLES)
    job = base.job("ALTER TABLE t ADD COLUMN one INT, ADD COLUMN two INT")
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        with pytest.raises(Conflict, match="undo would break it"):
            session.revert(job, "undo")
        assert session.settle(job).state == "done"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ALTER TABLE t ADD INDEX by_up (up_id)", "taken back exactly"),  # the foreign key's own index would go
        ("CREATE TABLE fresh (id INT); INSERT INTO up VALUES (3, 3)", "one of several"),
        ("CREATE TABLE fresh LIKE up; INSERT INTO fresh SELECT * FROM up; DELETE FROM up", "one of several"),
        ("CREATE TABLE fresh LIKE up; INSERT INTO fresh VALUES (1, 2); INSERT INTO fresh SELECT 3, v FROM fresh",
         "one of several"),
        ("ALTER TABLE t ALTER COLUMN up_id SET DEFAULT 1", "taken back exactly"),  # of a foreign key
        ("ALTER TABLE up ALTER COLUMN id SET DEFAULT 1", "taken back exactly"),  # and what one points to
        ("ALTER TABLE t DROP COLUMN n, ADD INDEX by_up (up_id)", "taken back exactly"),
        ("ALTER TABLE t ADD COLUMN made DATETIME DEFAULT NOW()", "taken back exactly"),  # another value at each time
        ("ALTER TABLE t DROP COLUMN id", "tells its rows apart|can't be put back|defined exactly"),
    ],
)  # fmt: skip
def test_what_would_not_be_exact_is_refused_and_changes_nothing(base: Base, sql: str, said: str) -> None:
    base.run(TABLES)
    before = _defined(base), base.dump()
    with pytest.raises(Unsupported, match=said) as refused:
        base.job(sql)
    assert refused.value.next_step
    assert (_defined(base), base.dump()) == before
