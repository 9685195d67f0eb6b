"""What to do where a foreign key is broken, said alike by every engine."""

from __future__ import annotations

import apsw
import psycopg
import pytest

from policies.errors import GoexError
from runtimes.sql.contract import FOREIGN_KEY
from runtimes.sql.mariadb import errors as mariadb
from runtimes.sql.postgres import errors as postgres
from runtimes.sql.sqlite import errors as sqlite


def _sqlite(statement: str) -> GoexError:
    connection = apsw.Connection(":memory:")
    connection.execute("PRAGMA foreign_keys = ON; CREATE TABLE a (id INTEGER PRIMARY KEY, n INT UNIQUE)")
    connection.execute("CREATE TABLE b (a REFERENCES a); INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1)")
    with pytest.raises(apsw.ConstraintError) as refused:
        connection.execute(statement)
    return sqlite.while_running(refused.value)


def test_a_broken_foreign_key_says_in_which_order_to_go() -> None:
    said = [
        _sqlite("DELETE FROM a"),
        _sqlite("INSERT INTO b VALUES (7)"),
        *(mariadb.translated(number) for number in (1451, 1217, 1452, 1216)),
        postgres.translate(psycopg.errors.ForeignKeyViolation()),
    ]
    assert {one.next_step for one in said} == {FOREIGN_KEY}
    others = [
        _sqlite("INSERT INTO a VALUES (2, 1)"),
        mariadb.translated(1062),
        postgres.translate(psycopg.errors.UniqueViolation()),
    ]
    assert {one.next_step for one in others} == {"Mend the rows, or ask for it otherwise."}
