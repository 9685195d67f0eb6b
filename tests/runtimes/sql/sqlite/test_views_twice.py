"""Views that read others several times over: SQLite takes long to prepare them, and looking at them ends in time."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest

from policies.errors import Conflict, Unsupported
from runtimes.sql.sqlite import session as sqlite_session
from runtimes.sql.sqlite.schema import read_schema
from tests.support.databases import Asked, SqliteGround, session

DEEP = 7


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    views = (f"CREATE VIEW v{n} AS SELECT x.a, y.b FROM v{n - 1} AS x, v{n - 1} AS y" for n in range(1, DEEP))
    made.execute("CREATE TABLE t (a, b)", "CREATE VIEW v0 AS SELECT a, b FROM t", *views)
    return made


def test_looking_at_views_ends_and_says_why(ground: SqliteGround, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_session, "_SCHEMA_SECONDS", 0.0)
    with session(ground) as at, pytest.raises(Unsupported, match="this database's views read"):
        at.schema()


def test_views_that_are_looked_at_in_time_are_told(ground: SqliteGround) -> None:
    with session(ground) as at:
        assert set(at.schema().tables[f"v{DEEP - 1}"].stands_on) == {"t", *(f"v{n}" for n in range(DEEP - 1))}


def test_looking_ends_within_one_view(ground: SqliteGround) -> None:
    """The clock is looked at while SQLite prepares, not only between one view and the next."""
    seen: list[None] = []

    def in_time(*_: object) -> int:
        seen.append(None)
        if len(seen) > 1000:
            raise apsw.InterruptError
        return apsw.SQLITE_OK

    db = ground.connect()
    db.authorizer = in_time
    with pytest.raises(apsw.InterruptError):
        read_schema(db)
    assert len(seen) < 1100 and db.authorizer is in_time


@pytest.mark.parametrize("text", ["SELECT a FROM v6", "CREATE TABLE n (a); INSERT INTO n SELECT a FROM v6"])
def test_preparing_a_statement_ends_in_time(ground: SqliteGround, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Asked(ground, text).plan().program
    with session(ground) as at:
        at.schema()
        clock = iter(range(10**9))
        monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
        with pytest.raises(Conflict, match="too long"):
            at.survey(program, "reversal", sqlite_session.Limits(seconds=20))
