"""Transactions that are held: over the end of a session and of a server, until commit or undo, in nobody's way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from policies.errors import Conflict, Unavailable, Unsupported
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Limits, Policy
from runtimes.sql.postgres import held
from tests.runtimes.sql.postgres.support import LIMITS, again, job, session, state
from tests.services.postgres import Made, Postgres
from tests.support.interrupting import interrupting

POLICIES: tuple[Policy, ...] = ("reversal", "versioning")
_TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, n int)",
    "INSERT INTO t SELECT i, i FROM generate_series(1, 4) i",
    "CREATE TABLE kid (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE)",
    "INSERT INTO kid VALUES (1, 1)",
)


@pytest.fixture(scope="module")
def shared(postgres: Postgres) -> Made:
    return postgres.make()


@pytest.fixture
def made(shared: Made) -> Made:
    with shared.admin() as admin:
        for (gid,) in admin.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()").fetchall():
            admin.execute(f"ROLLBACK PREPARED '{gid}'")
    return again(shared, *_TABLES)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Postgres]:
    """A server that tests may kill and configure."""
    with Postgres() as server:
        yield server


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "sql", ["UPDATE t SET n = 0", "DELETE FROM t WHERE id = 1", "ALTER TABLE t ADD COLUMN m int", "DROP TABLE kid"]
)
@pytest.mark.parametrize("end", ["commit", "undo"])
def test_held_until_commit_or_undo_by_whoever_comes(made: Made, sql: str, end: str) -> None:
    before = state(made)
    with session(made) as on:
        work = job(on, sql, "versioning")
        on.run(work)
        assert on.settle(work).state == "held"
    with session(made) as on:
        assert on.settle(work).state == "held"
        if end == "commit":
            on.commit(work)
            on.commit(work)  # once more changes nothing
            assert state(made) != before or "kid" not in str(state(made))
            assert on.settle(work).state == "done"
        else:
            assert on.compare(work, "undo") is not None
            on.revert(work, "undo")
            assert on.revert(work, "undo").notes
            assert on.settle(work).state == "undone"
            assert state(made) == before
            with pytest.raises(Conflict, match="rolled back"):
                on.commit(work)


@pytest.mark.promise(77)
def test_it_is_held_over_a_kill_of_the_server(mortal: Postgres) -> None:
    made = mortal.make(*_TABLES)
    before = state(made)
    with session(made) as on:
        undone = job(on, "UPDATE t SET n = 10 WHERE id = 1", "versioning")
        committed = job(on, "UPDATE t SET n = 20 WHERE id = 2", "versioning")
        on.run(undone)
        on.run(committed)
        mortal.kill()
        mortal.start()
        assert on.settle(undone).state == on.settle(committed).state == "held"
        assert state(made) == before
        on.revert(undone, "undo")
        on.commit(committed)
        mortal.kill()
        mortal.start()
        assert (on.settle(undone).state, on.settle(committed).state) == ("undone", "done")
    assert state(made)["public.t"] == ["(1,1)", "(2,20)", "(3,3)", "(4,4)"]


def test_after_undo_it_can_be_held_again_by_its_rows(made: Made) -> None:
    before = state(made)
    with session(made) as on:
        work = job(on, "UPDATE t SET n = n * 10; INSERT INTO t VALUES (9, 9)", "versioning")
        on.run(work)
        for _ in range(2):
            on.revert(work, "undo")
            assert on.settle(work).state == "undone"
            on.revert(work, "redo")
            assert on.revert(work, "redo").notes, "once more changes nothing"
            assert state(made) == before, "nobody sees it"
            assert on.settle(work).state == "held"
        on.commit(work)
        assert state(made)["public.t"] == ["(1,10)", "(2,20)", "(3,30)", "(4,40)", "(9,9)"]
        assert on.settle(work).state == "done"
        on.revert(work, "undo")
        assert state(made) == before
        cascade = job(on, "DELETE FROM t WHERE id = 1", "versioning")
        on.run(cascade)
        assert not on.settle(cascade).again
        on.revert(cascade, "undo")
        with pytest.raises(Unsupported, match="can't be done again"):
            on.revert(cascade, "redo")
    assert state(made) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW seen AS SELECT id FROM t",
        "CREATE OR REPLACE VIEW looked AS SELECT id, n + 1 AS n FROM t",
        "DROP VIEW looked",
        "ALTER TABLE t ADD CONSTRAINT own FOREIGN KEY (n) REFERENCES t (id)",
        "ALTER TABLE kid DROP CONSTRAINT kid_t_fkey",
        "ALTER TABLE t ADD COLUMN m int; UPDATE t SET m = 1",
    ],
)
def test_a_definition_that_somebody_ended_by_hand_is_known_by_its_number(postgres: Postgres, sql: str) -> None:
    made = postgres.make(*_TABLES, "CREATE VIEW looked AS SELECT id, n FROM t")
    for end, said in (("ROLLBACK", "nothing"), ("COMMIT", "done")):
        with session(made) as on:
            work = job(on, sql, "versioning")
            on.run(work)
            with made.connect() as other:
                other.autocommit = True
                other.execute(f"{end} PREPARED '{held.gid_of(work.id)}'")
            assert on.settle(work).state == on.settle(work).state == said
            if said == "done":
                on.commit(work)  # so it was
                with pytest.raises(Unsupported):
                    on.revert(work, "undo")


_SHAPES = (
    "CREATE TABLE keyless (a text, b int)",
    "INSERT INTO keyless VALUES ('x', 1), ('x', 1), ('%s', NULL), ('y', 2)",
    "CREATE TABLE places (id int PRIMARY KEY, place int UNIQUE, note text)",
    "INSERT INTO places SELECT i, i, '%' FROM generate_series(1, 5) i",
    'CREATE TABLE "odd %s" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "a%b" int, '
    'twice int GENERATED ALWAYS AS ("a%b" * 2) STORED)',
    'INSERT INTO "odd %s" ("a%b") VALUES (1), (2)',
    "CREATE TABLE own (id int PRIMARY KEY, up int REFERENCES own)",
    "INSERT INTO own VALUES (1, NULL), (2, 1), (3, 2)",
    "CREATE TABLE watched (id int PRIMARY KEY, n int)",
    "INSERT INTO watched VALUES (1, 1), (2, 2)",
    "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := NEW.n + 1; RETURN NEW; END $$",
    "CREATE TRIGGER more BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION more()",
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM keyless WHERE a = 'x'",
        "UPDATE keyless SET b = 7 WHERE a = 'x'",
        "UPDATE places SET place = place + 10, note = 'moved %s'",
        "UPDATE places SET place = NULL WHERE id > 2; UPDATE places SET place = 9 - id WHERE place IS NULL",
        'INSERT INTO "odd %s" ("a%b") VALUES (5)',
        'DELETE FROM "odd %s"',
        "DELETE FROM own",
        "UPDATE watched SET n = n + 5",
    ],
)
def test_any_shape_of_rows_is_held_again_as_it_was(postgres: Postgres, sql: str) -> None:
    made = postgres.make(*_SHAPES)
    before = state(made)
    with session(made) as on:
        twin = job(on, sql)
        on.run(twin)
        after = state(made)
        on.revert(twin, "undo")
        assert state(made) == before
        work = job(on, sql, "versioning")
        on.run(work)
        on.revert(work, "undo")
        on.revert(work, "redo")
        assert on.settle(work).state == "held" and state(made) == before
        on.commit(work)
        assert state(made).keys() == after.keys() and on.settle(work).state == "done"
        if "odd" not in sql:  # its counter moved on
            assert state(made) == after


def test_what_somebody_changed_since_isnt_held_again(made: Made) -> None:
    with session(made) as on:
        work = job(on, "UPDATE t SET n = 0 WHERE id = 1", "versioning")
        on.run(work)
        on.revert(work, "undo")
        with made.connect() as other:
            other.execute("UPDATE t SET n = 99 WHERE id = 1")
        before = state(made)
        with pytest.raises(Conflict, match="aren't as they were"):
            on.revert(work, "redo")
        assert on.settle(work).state == "undone" and state(made) == before


def test_what_changed_nothing_isnt_held(made: Made) -> None:
    with session(made) as on:
        work = job(on, "UPDATE t SET n = 0 WHERE id = 99", "versioning")
        on.run(work)
        assert on.settle(work).state == "done"
        on.commit(work)
    with made.admin() as admin:
        assert admin.execute(
            "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
        ).fetchone() == (0,)


def test_what_was_committed_can_be_taken_back_by_its_rows(made: Made) -> None:
    before = state(made)
    with session(made) as on:
        work = job(on, "UPDATE t SET n = n * 10", "versioning")
        on.run(work)
        on.commit(work)
        on.revert(work, "undo")
    assert state(made) == before


@pytest.mark.sampled(1)
@pytest.mark.promise(77)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
def test_whoever_holds_the_same_rows_is_named_at_once(made: Made, policy: str) -> None:
    with session(made) as first, session(made, Limits(lock_seconds=0.5, seconds=200)) as second:
        held = job(first, "UPDATE t SET n = 0 WHERE id = 1", "versioning")
        first.run(held)
        for sql in (
            "UPDATE t SET n = 5 WHERE id = 1",
            "DELETE FROM t",
            "DELETE FROM t WHERE id = 1",
            "TRUNCATE kid; DELETE FROM t",
        ):
            began = time.monotonic()
            with pytest.raises(Conflict, match=held.id) as caught:
                second.run(job(second, sql, policy))  # type: ignore[arg-type]
            assert held.id in caught.value.next_step
            assert time.monotonic() - began < 100
        other = job(second, "UPDATE t SET n = 7 WHERE id = 2", policy)  # type: ignore[arg-type]
        second.run(other)
        second.revert(other, "undo")
        assert [row[0] for row in _read(made)] == [1, 2, 3, 4], "readers see what was, and wait for nothing"
        first.revert(held, "undo")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extra", [(), ("CREATE VIEW looked AS SELECT id, n FROM t",)])
@pytest.mark.parametrize("looked", [False, True])
def test_a_table_whose_change_is_held_says_by_whom(postgres: Postgres, extra: tuple[str, ...], looked: bool) -> None:
    """Also to who reads it, and where the catalog can't be read for it; another held change isn't blamed."""
    made = postgres.make(*_TABLES, "CREATE TABLE apart (id int PRIMARY KEY)", *extra)
    with session(made) as first, session(made, Limits(lock_seconds=0.5, seconds=20)) as second:
        prepared = job(second, "SELECT n FROM t")
        unrelated = job(first, "INSERT INTO apart VALUES (1)", "versioning")
        first.run(unrelated)
        if extra:  # whose text, when the catalog was read, took a lock of a reader on t
            with pytest.raises(Conflict, match=unrelated.id):
                first.run(job(first, "ALTER TABLE t ADD COLUMN m int", "versioning"))
            first.revert(unrelated, "undo")
        held = job(first, "ALTER TABLE t ADD COLUMN m int", "versioning")
        first.run(held)
        with pytest.raises(Conflict, match=held.id) as caught:
            second.run(prepared if looked else job(second, "SELECT n FROM t"))
        assert f"goex commit {held.id}, or goex undo {held.id}" in caught.value.next_step
        assert unrelated.id not in str(caught.value)
        first.revert(held, "undo")
        assert second.run(prepared).results
        with made.admin() as other:
            other.execute("BEGIN; LOCK TABLE t")
            with pytest.raises(Conflict, match="Another session"):
                second.run(prepared)
            other.execute("ROLLBACK")
        if not extra:
            first.revert(unrelated, "undo")


def test_a_held_change_is_not_blamed_for_what_a_session_holds(postgres: Postgres) -> None:
    """Where the catalog can't be read, which tables an action needs isn't known."""
    made = postgres.make(*_TABLES, "CREATE TABLE apart (id int PRIMARY KEY)")
    with session(made) as first, session(made, Limits(lock_seconds=0.5, seconds=20)) as second:
        held = job(first, "ALTER TABLE apart ADD COLUMN m int", "versioning")
        first.run(held)
        with made.admin() as other:
            other.execute("CREATE VIEW shown AS SELECT n FROM t")
            other.execute("BEGIN; LOCK TABLE t")
            with pytest.raises(Conflict, match="Another session"):
                second.run(job(second, "SELECT n FROM t"))
            other.execute("ROLLBACK")
        first.revert(held, "undo")


def test_undo_of_rows_that_are_held_says_by_whom(made: Made) -> None:
    with session(made) as first, session(made, Limits(lock_seconds=0.5, seconds=20)) as second:
        done = job(first, "UPDATE t SET n = 5 WHERE id = 1")
        first.run(done)
        held = job(second, "UPDATE t SET n = 6 WHERE id = 1", "versioning")
        second.run(held)
        with pytest.raises(Conflict, match=held.id):
            first.revert(done, "undo")
        second.revert(held, "undo")
        first.revert(done, "undo")


@pytest.mark.promise(77)
def test_held_rows_are_named_as_ours_after_the_server_was_killed(mortal: Postgres) -> None:
    made = mortal.make(*_TABLES)
    with session(made) as on:
        held = job(on, "UPDATE t SET n = 0 WHERE id = 1", "versioning")
        on.run(held)
        redone = job(on, "UPDATE kid SET t = 2", "versioning")
        on.run(redone)
        on.revert(redone, "undo")
        on.revert(redone, "redo")
    mortal.kill()
    mortal.start()
    with session(made, Limits(lock_seconds=0.5, seconds=20)) as on:
        for sql, who in (
            ("UPDATE t SET n = 5 WHERE id = 1", held),
            ("DELETE FROM kid", redone),
            ("DELETE FROM t WHERE id = 2", redone),  # what was held points to it
        ):
            for policy in POLICIES:
                with pytest.raises(Conflict, match=who.id):
                    on.run(job(on, sql, policy))
        on.revert(held, "undo")
        on.revert(redone, "undo")


def test_another_programs_lock_isnt_waited_for_long(made: Made) -> None:
    with made.connect(autocommit=False) as other, session(made, Limits(lock_seconds=0.3, seconds=20)) as on:
        other.execute("UPDATE t SET n = 0 WHERE id = 1")
        with pytest.raises(Conflict, match="Another session"):
            on.run(job(on, "UPDATE t SET n = 1"))
        other.execute("PREPARE TRANSACTION 'theirs'")
        with pytest.raises(Conflict, match="another program"):
            on.run(job(on, "UPDATE t SET n = 1"))
    with made.connect() as other:
        other.execute("ROLLBACK PREPARED 'theirs'")


def test_what_cant_be_held_is_refused_and_reversal_offered(postgres: Postgres) -> None:
    made = postgres.make(
        *_TABLES,
        "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_notify('x', ''); RETURN NULL; END $$",
        "CREATE TRIGGER tell AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tell()",
        "CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN EXECUTE 'NOT' || 'IFY x'; RETURN NULL; END $$",
        "CREATE TRIGGER hide AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION hide()",
    )
    before = state(made)
    with session(made) as on:
        with pytest.raises(Unsupported) as caught:
            job(on, "UPDATE t SET n = 0", "versioning")
        assert "reversal" in caught.value.next_step
        hidden = job(on, "DELETE FROM t", "versioning")
        with pytest.raises(Unsupported) as caught:
            on.run(hidden)
        assert "reversal" in caught.value.next_step
        assert on.settle(hidden).state == "nothing"
        assert state(made) == before
        work = job(on, "UPDATE t SET n = 0")
        assert "notifies" in str(on.survey(work.program, "reversal", work.limits).notes)


@pytest.fixture
def holding(mortal: Postgres) -> Iterator[Callable[[int], None]]:
    """Start that server anew, with room for so many held transactions."""

    def anew(setting: str) -> None:
        with mortal.connect() as admin:
            admin.execute(f"ALTER SYSTEM {setting}".encode())
        mortal.restart()

    yield lambda number: anew(f"SET max_prepared_transactions = {number}")
    anew("RESET max_prepared_transactions")


def test_a_server_that_holds_none_or_no_more(mortal: Postgres, holding: Callable[[int], None]) -> None:
    made = mortal.make(*_TABLES)
    holding(1)
    with session(made) as on:
        first, second = (job(on, f"UPDATE t SET n = 0 WHERE id = {i}", "versioning") for i in (1, 2))
        on.run(first)
        with pytest.raises(Unavailable, match="hold one more"):
            on.run(second)
        assert on.settle(second).state == "nothing"
        on.revert(first, "undo")
        on.run(second)
        on.commit(second)
    holding(0)
    with session(made) as on:
        assert "can't be held" in str(on.schema().notes)
        with pytest.raises(Unsupported, match="max_prepared_transactions") as caught:
            job(on, "UPDATE t SET n = 0", "versioning")
        assert "reversal" in caught.value.next_step


def test_a_constraint_that_was_put_off_fails_before_it_is_held(postgres: Postgres) -> None:
    made = postgres.make(
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE k (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
    )
    for policy in ("versioning", "reversal"):
        with session(made) as on:
            work = job(on, "INSERT INTO k VALUES (5)", policy)  # type: ignore[arg-type]
            with pytest.raises(Conflict, match="foreign key"):
                on.run(work)
            assert on.settle(work).state == "nothing"
    with made.admin() as admin:
        assert admin.execute(
            "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
        ).fetchone() == (0,)


def test_interrupting_rolls_back(made: Made) -> None:
    before = state(made)
    with session(made, Limits(lock_seconds=1.0, seconds=300)) as on:
        work = job(on, "UPDATE t SET n = (SELECT count(*) FROM generate_series(1, 100000000000) g)")
        began = time.monotonic()
        with interrupting(on, after=0.5), pytest.raises(Conflict, match="stopped"):
            on.run(work)
        assert time.monotonic() - began < 200
        assert state(made) == before
        assert on.settle(work).state == "nothing"
        on.run(job(on, "UPDATE t SET n = 1 WHERE id = 1"))


def _read(made: Made) -> list[tuple[int, ...]]:
    with made.connect() as other:
        return other.execute("SELECT id FROM t ORDER BY id").fetchall()


@pytest.mark.promise(75)
def test_what_stands_behind_a_view_is_named_or_it_isnt_held(postgres: Postgres) -> None:
    made = postgres.make(
        "CREATE TABLE t (id int PRIMARY KEY, n int)",
        "CREATE TABLE log (what text)",
        "CREATE VIEW plain AS SELECT id, n FROM t",
        "CREATE VIEW ruled AS SELECT id, n FROM t",
        "CREATE RULE to_log AS ON UPDATE TO ruled DO INSTEAD INSERT INTO log VALUES ('seen')",
    )
    with made.admin() as admin:
        admin.execute("CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        admin.execute("CREATE FOREIGN TABLE f (id int, n int) SERVER files OPTIONS (filename '/dev/null')")
        admin.execute("CREATE SCHEMA hidden; CREATE TABLE hidden.t (id int, n int)")
        admin.execute("CREATE VIEW elsewhere AS SELECT * FROM f; CREATE VIEW unseen AS SELECT * FROM hidden.t")
        admin.execute(f"GRANT ALL ON f, elsewhere, unseen TO {made.user}")
    with session(made) as on:

        def reached(view: str) -> set[tuple[str, str]]:
            program = check(f"UPDATE {view} SET n = 0", on.schema(), database="")
            return {(one.table, one.verb) for one in on.survey(program, "versioning", LIMITS).reached}

        assert reached("plain") == {("plain", "update"), ("t", "update")}
        assert {("log", "insert"), ("t", "update")} <= reached("ruled")
        assert reached("unseen") == {("unseen", "update"), ("hidden.t", "update")}
        with pytest.raises(Unsupported, match="another server"):
            reached("elsewhere")
