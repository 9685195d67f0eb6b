"""A session on a test's own database, and jobs for it, past the engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from runtimes.sql.checking.check import check
from runtimes.sql.contract import Job, Limits, Policy
from runtimes.sql.drivers import PostgresDriver
from runtimes.sql.postgres.session import PostgresSession
from tests.services.postgres import Made

LIMITS = Limits(lock_seconds=1.0, seconds=200.0)
_numbers = itertools.count(1)


class Notes:
    """Records that are kept in memory, with how often each was written."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        self.kept[name] = bytes(data)

    def get(self, name: str) -> bytes | None:
        return self.kept.get(name)


@contextmanager
def session(made: Made, limits: Limits = LIMITS, **place: bool) -> Iterator[PostgresSession]:
    """A session of GoEx's on that database."""
    opened = PostgresDriver().open(made.place(**place), made.secret, limits)
    try:
        yield opened
    finally:
        opened.close()


def job(
    on: PostgresSession, sql: str, policy: Policy = "reversal", *, rows: int = 1_000_000, limits: Limits = LIMITS
) -> Job:
    """What the runtime makes of statements: checked, and surveyed."""
    schema = on.schema()
    program = check(sql, schema, database="")
    on.survey(program, policy, limits)
    return Job(
        id=f"act-{next(_numbers)}",
        program=program,
        policy=policy,
        rows=rows,
        limits=limits,
        records=Notes(),
        schema_hash=schema.hash,
    )


def state(made: Made) -> dict[str, Any]:
    """Every row of every table, as text and in order: what exact means. With each trigger's switch."""
    found: dict[str, Any] = {}
    admin = made.observer()
    tables = admin.execute(
        "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
    ).fetchall()
    for (table,) in tables:
        found[table] = sorted(row[0] for row in admin.execute(f"SELECT (t.*)::text FROM ONLY {table} t"))
    found["triggers"] = admin.execute(
        "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"
    ).fetchall()
    found["functions"] = admin.execute("SELECT proname FROM pg_proc WHERE proname LIKE 'goex%' ORDER BY 1").fetchall()
    return found


class Shop:
    """A database of one test's own, with a session on it."""

    def __init__(self, made: Made, on: PostgresSession) -> None:
        self.made, self.on = made, on

    def there_and_back(self, sql: str, *, changes: bool = True) -> None:
        """Do, undo, redo, undo: each time exactly the one state or the other."""
        before = state(self.made)
        work = job(self.on, sql)
        self.on.trial(work)
        assert state(self.made) == before
        self.on.run(work)
        after = state(self.made)
        assert (after != before) is changes
        for verb, wanted, said in (("undo", before, "undone"), ("redo", after, "done")):
            self.on.compare(work, verb)
            self.on.revert(work, verb)
            assert state(self.made) == wanted, verb
            assert self.on.settle(work).state == said
            assert self.on.revert(work, verb).notes, "a second time it is so already"
            assert state(self.made) == wanted
        self.on.revert(work, "undo")
        assert state(self.made) == before and self.on.settle(work).state == "undone"


def again(made: Made, *statements: str) -> Made:
    """The same database with nothing in it but what those statements make."""
    made.empty()
    with made.connect() as owner:
        for statement in statements:
            owner.execute(statement.encode())
    return made


def tables(*statements: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shop", [statements], indirect=True, ids=["db"])
