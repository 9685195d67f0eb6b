"""The server goes away with kill -9 right before or right after any statement: nothing is lost, nothing is doubled.

`make thorough` tries every place; else one in the middle, and all around what makes it permanent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal

import pytest
from sqlalchemy import event

from policies.errors import GoexError
from runtimes.sql.contract import Doubtful, Job, Policy
from runtimes.sql.postgres.session import PostgresSession
from tests.runtimes.sql.postgres.support import job, session, state
from tests.services.postgres import Made, Postgres

_SQL = "UPDATE t SET n = n + 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (7, 7)"


class Killing:
    """Counts the statements of a session, and kills the server before or after the chosen one."""

    def __init__(self, server: Postgres, on: PostgresSession, at: int) -> None:
        self._server, self._at, self.seen = server, at, 0
        self._engine = on._link._engine
        self._hooks: list[tuple[str, Callable[..., None]]] = [
            ("before_cursor_execute", self._count),
            ("after_cursor_execute", self._count),
        ]

    def _count(self, *_: Any) -> None:
        self.seen += 1
        if self.seen == self._at:
            self._server.kill()

    def __enter__(self) -> Killing:
        for name, hook in self._hooks:
            event.listen(self._engine, name, hook)
        return self

    def __exit__(self, *_: object) -> None:
        for name, hook in self._hooks:
            event.remove(self._engine, name, hook)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres() as running:  # what processes wrote is there after their end: no disk fails here
        yield running


@pytest.fixture
def made(server: Postgres) -> Iterator[Made]:
    yield server.make("CREATE TABLE t (id int PRIMARY KEY, n int)")


def fresh(made: Made) -> None:
    with made.admin() as admin:
        for (gid,) in admin.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()").fetchall():
            admin.execute(f"ROLLBACK PREPARED '{gid}'")
        admin.execute("TRUNCATE t; INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")


def places(
    server: Postgres,
    made: Made,
    prepared: Callable[[PostgresSession], Job],
    do: Callable[[PostgresSession, Job], object],
) -> int:
    """How many places there are."""
    fresh(made)
    with session(made) as on:
        work = prepared(on)
        with Killing(server, on, -1) as counted:
            do(on, work)
        return counted.seen


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    ("policy", "verb"),
    [
        ("reversal", "run"),  # which is committed at once
        ("reversal", "undo"),
        pytest.param("reversal", "redo", marks=pytest.mark.thorough),  # sets rows as an undo does
        *(("versioning", verb) for verb in ("run", "undo", "redo", "commit")),
    ],
)
def test_a_server_killed_anywhere_leaves_one_state_or_the_other(
    server: Postgres, made: Made, policy: Policy, verb: Literal["run", "undo", "redo", "commit"], thorough: bool
) -> None:
    held = "held" if policy == "versioning" else "done"

    def prepared(on: PostgresSession) -> Job:
        work = job(on, _SQL, policy)
        if verb != "run":
            on.run(work)
        if verb == "redo":
            on.revert(work, "undo")
        return work

    def do(on: PostgresSession, work: Job) -> object:
        if verb == "run":
            return on.run(work)
        return on.commit(work) if verb == "commit" else on.revert(work, verb)

    fresh(made)
    before = state(made)
    number = places(server, made, prepared, do)
    assert number > 4
    last = range(number - 3, number + 1)  # around what makes it permanent: every place
    for at in range(2, number + 1) if thorough else sorted({number // 2, *last}):
        fresh(made)
        with session(made) as on:
            work = prepared(on)
            failed: GoexError | None = None
            with Killing(server, on, at):
                try:
                    do(on, work)
                except GoexError as error:
                    failed = error
            on.close()
            if failed is None:  # it was killed after the last answer, or never
                server.kill()
            server.start()
            found = on.settle(work)
            assert found == on.settle(work), "asked twice it says the same"
            now = state(made)
            place = f"{policy} {verb} at {at} of {number}: {found} after {failed!r}"
            if found.state in ("nothing", "undone", "held"):
                assert now == before, place
            else:
                assert found.state == "done", place
                assert now["public.t"] == ["(1,2)", "(3,4)", "(7,7)"], place
            if verb == "run" and failed is not None and not isinstance(failed, Doubtful):
                assert found.state == "nothing", f"an error says that nothing was touched: {place}"
            if failed is None:
                assert found.state == {"run": held, "undo": "undone", "redo": held, "commit": "done"}[verb]
            if verb == "redo":
                assert found.state in (held, "undone"), place
            # Whatever it was: done to the end it is right.
            if verb in ("undo", "redo") or (verb == "run" and found.state in ("done", "held")):
                on.revert(work, "undo")
                assert state(made) == before, place
            elif verb == "commit":
                on.commit(work)
                assert state(made)["public.t"] == ["(1,2)", "(3,4)", "(7,7)"], place


@pytest.mark.sampled(2)
@pytest.mark.promise(78)
@pytest.mark.parametrize("verb", ["run", "commit"])
@pytest.mark.parametrize(
    "sql", ["CREATE VIEW v AS SELECT id FROM t", "ALTER TABLE t ADD CONSTRAINT own FOREIGN KEY (n) REFERENCES t (id)"]
)
def test_a_server_killed_while_a_definition_is_held_or_committed(
    server: Postgres, made: Made, sql: str, verb: Literal["run", "commit"]
) -> None:
    fresh(made)
    with session(made) as on:
        before = on.schema().hash

    def prepared(on: PostgresSession) -> Job:
        work = job(on, sql, "versioning")
        if verb == "commit":
            on.run(work)
        return work

    def do(on: PostgresSession, work: Job) -> None:
        on.run(work) if verb == "run" else on.commit(work)

    with session(made) as on:
        work = prepared(on)
        with Killing(server, on, -1) as counted:
            do(on, work)
        on.roll_back(work)
        back(made, sql)
    for at in range(counted.seen - 1, counted.seen + 2):
        with session(made) as on:
            work = prepared(on)
            with Killing(server, on, at), suppress(GoexError):
                do(on, work)
            on.close()
            server.kill()
            server.start()
            found = on.settle(work)
            assert found == on.settle(work)
            assert found.state in {"run": ["nothing", "held"], "commit": ["held", "done"]}[verb], found
            changed = on.schema().hash != before
            assert changed == (found.state == "done")
            if found.state == "held":
                on.revert(work, "undo")
                assert on.settle(work).state == "undone" and on.schema().hash == before
            back(made, sql)


def back(made: Made, sql: str) -> None:
    """Take one of the definitions back by hand, where it is there."""
    with made.connect() as other:
        other.execute("DROP VIEW IF EXISTS v" if "VIEW" in sql else "ALTER TABLE t DROP CONSTRAINT IF EXISTS own")


@pytest.mark.parametrize("did", ["run", "undo", "redo"])
def test_a_number_that_somebody_else_got_after_a_crash_isnt_believed(
    server: Postgres, made: Made, did: Literal["run", "undo", "redo"]
) -> None:
    """A transaction whose log never reached the disk leaves its number to the next: the rows say whose it is."""
    fresh(made)
    before = state(made)["public.t"]
    with session(made) as on:
        work = job(on, _SQL)
        on.run(work)
        after = state(made)["public.t"]
        if did != "undo":
            on.revert(work, "undo")
        from runtimes.sql.postgres import records

        first = records.steps(work.records)[0]
        with made.connect() as other:
            xid = int(other.execute("SELECT pg_current_xact_id()::text").fetchone()[0])  # type: ignore[index]
        if did == "run":
            work.records.put(records.STEPS, b"[]")
        records.keep_step(work.records, records.Step(did, xid, "", "before " + first.server))
        assert on.settle(work).state == {"run": "nothing", "undo": "done", "redo": "undone"}[did]
        assert state(made)["public.t"] == (after if did == "undo" else before)
        if did != "run":
            on.revert(work, did)
            assert state(made)["public.t"] == (before if did == "undo" else after), "it isn't taken for done"


def test_rows_and_their_transactions_number_prove_it_after_others_changed_some(server: Postgres, made: Made) -> None:
    fresh(made)
    with session(made) as on:
        work = job(on, _SQL)
        on.run(work)
        server.kill()
        server.start()
        with made.connect() as other:
            other.execute("UPDATE t SET n = 99 WHERE id = 1")
        assert on.settle(work).state == "done"
        with made.connect() as other:
            other.execute("UPDATE t SET n = 99")
        assert on.settle(work).state == "unknown", "nothing proves it any more, so that is said"


def test_a_session_that_was_cut_off_in_the_middle_leaves_nothing(server: Postgres, made: Made) -> None:
    fresh(made)
    before = state(made)
    with session(made) as on:
        work = job(on, _SQL)
        pid = on._link.ask("SELECT pg_backend_pid()")[0][0]

        cuts: list[str] = []

        def cut(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if "SET CONSTRAINTS" in statement and not cuts:
                cuts.append(statement)
                with made.admin() as admin:
                    admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

        event.listen(on._link._engine, "before_cursor_execute", cut)
        with pytest.raises(GoexError):
            on.run(work)
        assert on.settle(work).state == "nothing"
        assert state(made) == before
        on.run(work)
        on.revert(work, "undo")
    assert state(made) == before
