"""Rows that a table's own rules wouldn't let in, made while the server didn't look: they come back as they were, or
aren't touched. Also values that no strict session would write."""

from __future__ import annotations

import pytest

from policies.errors import Conflict, Unsupported
from tests.runtimes.sql.mariadb.support import Base

KEYS = """
CREATE TABLE p (id INT PRIMARY KEY, s VARCHAR(20) UNIQUE);
CREATE TABLE c (id INT PRIMARY KEY, p INT, s VARCHAR(20), n INT, KEY (p), FOREIGN KEY (p) REFERENCES p (id),
 FOREIGN KEY (s) REFERENCES p (s));
CREATE TABLE g (c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE);
INSERT INTO p VALUES (1, 'a'), (2, 'b');
SET foreign_key_checks = 0;
INSERT INTO c VALUES (1, 1, 'a', 0), (2, 77, 'b', 0), (3, NULL, 'nobody''s', 0), (4, 78, NULL, 0);
INSERT INTO g VALUES (1), (1), (2), (99);
SET foreign_key_checks = 1
"""
VALUES = """
SET sql_mode = 'ALLOW_INVALID_DATES';
CREATE TABLE v (id INT PRIMARY KEY, d DATE, t DATETIME, e ENUM('x','y') NOT NULL, m SET('p','q'), z TIMESTAMP NOT NULL,
 y YEAR, b BIT(3), f VARCHAR(4) CHARACTER SET latin1 COLLATE latin1_german2_ci, u VARCHAR(9) COLLATE utf8mb4_bin,
 k INT CHECK (k > 0), w VARCHAR(10) AS (CONCAT(f, k)) STORED, UNIQUE (u, y));
SET check_constraint_checks = 0;
INSERT IGNORE INTO v (id, d, t, e, m, z, y, b, f, u, k) VALUES (1, '0000-00-00', '2024-00-15 01:02:03', 'no such', '',
 '0000-00-00', 0, b'101', 'ß', 'A', -1),
 (2, '2024-02-31', '0000-00-00', '', 'p,q', '2020-01-01', 2155, 0, 'ss', 'a', 0),
 (0, '9999-11-31', NULL, 'y', NULL, '1970-01-01 00:00:01', NULL, NULL, '', NULL, NULL);
"""


def there_and_back(base: Base, sql: str) -> None:
    before = base.dump()
    job = base.job(sql)
    with base.session() as session:
        session.run(job)
        after = base.dump()
        assert after != before
        for verb, wanted in (("undo", before), ("redo", after), ("undo", before)):
            session.revert(job, verb)  # type: ignore[arg-type]
            assert base.dump() == wanted


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM c WHERE id = 2",
        "DELETE FROM c WHERE id > 2",
        "DELETE FROM c",
        "DELETE FROM g",
        "UPDATE c SET n = 5",
        "UPDATE c SET p = 2",
        "UPDATE c SET p = NULL, s = 'a' WHERE id <> 1",
        "DELETE c FROM c LEFT JOIN p ON p.id = c.p WHERE p.id IS NULL",
        "DELETE FROM c; DELETE FROM p",
        "INSERT INTO p VALUES (5, 'e')",
        "REPLACE INTO c VALUES (2, 1, 'a', 9)",
        "INSERT INTO c VALUES (4, 1, 'a', 1) ON DUPLICATE KEY UPDATE p = 1",
    ],
)
def test_a_row_that_points_to_nothing_comes_back_as_it_was(base: Base, sql: str) -> None:
    base.run(KEYS)
    there_and_back(base, sql)


def test_a_row_whose_parent_went_since_isnt_put_back(base: Base) -> None:
    """Only what pointed to nothing before may do so again."""
    base.run(KEYS)
    job = base.job("DELETE FROM c")
    with base.session() as session:
        session.run(job)
        base.run("DELETE FROM p WHERE id = 1")
        before = base.dump()
        with pytest.raises(Conflict, match="aren't there"):
            session.revert(job, "undo")
    assert base.dump() == before


@pytest.mark.parametrize(
    "sql", ["INSERT INTO p VALUES (77, 'x')", "UPDATE p SET s = 'nobody''s' WHERE id = 2 AND 0 = 0"]
)
def test_what_a_broken_key_points_to_isnt_put_in(base: Base, sql: str) -> None:
    base.run(KEYS + ("; DELETE FROM c WHERE id = 2" if "UPDATE" in sql else ""))
    before = base.dump()
    with base.session() as session, pytest.raises(Unsupported, match="couldn't take it out") as caught:
        session.run(base.job(sql))
    assert "versioning" in caught.value.next_step and base.dump() == before
    job = base.job(sql, "versioning")
    with base.session() as session:
        session.run(job)
    with base.session() as session:
        session.revert(job, "undo")
    assert base.dump() == before


def test_a_key_into_a_table_that_isnt_there(base: Base) -> None:
    base.run(
        "SET foreign_key_checks = 0;"
        " CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES gone (id)); INSERT INTO c VALUES (1, 5)"
    )
    there_and_back(base, "DELETE FROM c")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM v",
        "UPDATE v SET k = 1, d = NULL, t = NULL, e = 'x', m = 'p', z = NOW(), y = 1999",
        "UPDATE v SET k = 4, f = 'x', u = CONCAT('q', id)",
        "DELETE FROM v WHERE id = 0",
    ],
)
def test_values_that_no_strict_session_writes(base: Base, sql: str) -> None:
    base.run(VALUES)
    there_and_back(base, sql)
