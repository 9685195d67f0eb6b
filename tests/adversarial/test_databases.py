"""Whoever asks for a statement learns nothing of the rows before somebody allowed it, not by the work that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymongo import MongoClient, monitoring

from runtimes.mongo import session
from runtimes.mongo.connection import connect
from runtimes.mongo.operations import parse as parsed
from runtimes.sql.bounds import stepped
from runtimes.sql.checking.check import check
from tests.adversarial.database_scene import LIMITS, RIGHT, STATEMENTS, WRONG, Scene, scene
from tests.runtimes.mongo.test_connecting import entry
from tests.runtimes.sql.mariadb.support import Base
from tests.runtimes.sql.postgres.support import session as on_postgres
from tests.services.mariadb import MariaDb, find_server
from tests.services.nx import Nx, find_binary
from tests.services.postgres import Made, Postgres
from vault.secret import Secret

PASSWORD = "correct-horse"


@pytest.fixture
def people(tmp_path: Path) -> Scene:
    return scene(tmp_path)


def told_by(name: str) -> int:
    """How many steps a count may differ by: two for each of the three rows of `people`, in each statement."""
    return 2 * 3 * len(STATEMENTS[name].split(";"))


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.promise(73)
def test_a_right_guess_makes_no_more_work_than_a_wrong_one(people: Scene, name: str) -> None:
    """Step for step, and what is seen of it is the same: rules and limits judge the bound, permissions the tables."""
    (right, steps), (wrong, other) = people.assessed(name, RIGHT), people.assessed(name, WRONG)
    assert abs(steps - other) <= told_by(name), "a jump and a counter for each row that is found"
    assert stepped(right.bound or 0) == stepped(wrong.bound or 0)
    assert [(one.table, one.verb) for one in right.reached] == [(one.table, one.verb) for one in wrong.reached]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STATEMENTS)
def test_control_it_is_told_by_the_work_where_it_runs(people: Scene, name: str) -> None:
    assert abs(people.ran(name, RIGHT) - people.ran(name, WRONG)) > told_by(name)


def test_a_definition_that_does_not_end_is_not_run_to_be_assessed(people: Scene) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c"
    with people.session() as session:
        program = check(f"CREATE TABLE big AS {endless}", session.schema(), database="main")
        assert [one.rows for one in session.survey(program, "versioning", LIMITS).reached] == [0]


# ---- PostgreSQL, by what the server was asked

TABLE = (
    "CREATE TABLE people (id integer PRIMARY KEY, name varchar(40), secret varchar(40), city varchar(40))",
    "CREATE TABLE pets (id integer PRIMARY KEY, owner integer REFERENCES people (id) ON DELETE CASCADE)",
    "INSERT INTO people VALUES (1, 'one', 'violet', 'oslo'), (2, 'two', 'amber', 'rome'), (3, 'six', 'violet', 'qom')",
    "INSERT INTO pets VALUES (1, 1), (2, 1), (3, 2)",
)
POSTGRES = {
    "case": "UPDATE people SET name = name WHERE id = 1 AND 0 < CASE WHEN secret = 'violet' THEN"
    " (SELECT count(*) FROM generate_series(1, 100000)) ELSE 0 END",
    "samples": "DELETE FROM people WHERE secret ~ '^vio(l|l)*et$'",
    "cascade": "DELETE FROM people WHERE secret LIKE 'violet%' AND 1 / (id - 1) > 0",
    "insert_select": "INSERT INTO pets SELECT id + 10, id FROM people WHERE secret = 'violet'",
    "from": "UPDATE people SET name = 'x' FROM pets WHERE owner = people.id AND secret = 'violet'",
}


@pytest.fixture(scope="module")
def logging() -> Iterator[Postgres]:
    with Postgres(options={"log_statement": "all"}) as server:
        yield server


@pytest.fixture(scope="module")
def made(logging: Postgres) -> Made:
    return logging.make(*TABLE, "ANALYZE")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", POSTGRES)
def test_postgresql_reads_a_statement_and_plans_none(logging: Postgres, made: Made, name: str) -> None:
    with on_postgres(made) as session:
        program = check(POSTGRES[name], session.schema(), database="")
        before = len(logging.log)
        session.survey(program, "reversal", LIMITS)
    asked = [line for line in logging.log[before:].splitlines() if "viol" in line or "vio(" in line]
    assert asked and all("PREPARE goex_read AS" in line for line in asked), asked
    assert "EXPLAIN" not in logging.log[before:] and "EXECUTE" not in logging.log[before:]


@pytest.mark.parametrize("name", POSTGRES)
def test_control_a_plan_and_a_run_are_in_the_log(logging: Postgres, made: Made, name: str) -> None:
    before = len(logging.log)
    with made.connect() as connection:
        connection.execute(b"EXPLAIN " + POSTGRES[name].encode())
    assert "EXPLAIN" in logging.log[before:]


def test_postgresqls_planner_tries_a_condition_on_samples_and_a_reading_does_not(made: Made) -> None:
    """Why nothing is planned: an operator that says when it is called, on a column of which ANALYZE kept samples."""
    with made.admin() as admin:
        admin.execute("CREATE SCHEMA spies")
        admin.execute(
            "CREATE FUNCTION spies.tried(varchar, varchar) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE NOTICE 'tried %', $1; RETURN false; END $$"
        )
        admin.execute(
            "CREATE OPERATOR spies.=== (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = spies.tried,"
            " RESTRICT = matchingsel)"
        )
        told: list[str] = []
        admin.add_notice_handler(lambda diagnostic: told.append(str(diagnostic.message_primary)))
        condition = "DELETE FROM people WHERE secret OPERATOR(spies.===) 'x'::varchar"
        admin.execute(f"PREPARE spied AS {condition}".encode())
        assert told == []
        admin.execute(f"EXPLAIN {condition}".encode())
        assert "tried violet" in told


# ---- MariaDB, by its own log and its counters

MARIADB = {
    "case": "UPDATE people SET name = name WHERE id = 1 AND 0 < CASE WHEN secret = '{guess}' THEN"
    " (SELECT count(*) FROM people a, people b, people c) ELSE 0 END",
    "key": "DELETE FROM people WHERE id = 1 AND secret = '{guess}' AND name REGEXP '^(o|on|one)*$'",
    "cascade": "DELETE FROM people WHERE secret LIKE '{guess}%' AND id > (SELECT count(*) FROM pets)",
    "insert_select": "INSERT INTO pets SELECT id + 10, id FROM people WHERE secret = '{guess}'",
    "plain": "DELETE FROM people WHERE secret = '{guess}' AND name <> 'a' AND name <> 'b'",
}


@pytest.fixture(scope="module")
def base() -> Iterator[Base]:
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with MariaDb() as server, server.database(user="goex", password=PASSWORD) as name:
        made = Base(server, name, "goex")
        for statement in TABLE:
            made.run(statement)
        made.run(f"SET GLOBAL log_output = 'FILE', general_log_file = '{_log(made)}', general_log = 1")
        yield made


def _log(base: Base) -> Path:
    return base.server.folder / "data" / "asked.log"


def asked(base: Base, name: str, guess: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """What the server was asked while a statement was assessed, and the rows that it read for that."""
    start = len(_log(base).read_text())
    with base.session() as session:
        program = check(MARIADB[name].format(guess=guess), session.schema(), database=base.name)
        wire = session._wire  # type: ignore[attr-defined]
        before = wire.rows("SHOW SESSION STATUS LIKE 'Handler_read%'")
        session.survey(program, "reversal", LIMITS)
        after = wire.rows("SHOW SESSION STATUS LIKE 'Handler_read%'")
    lines = [line.split("\t") for line in _log(base).read_text()[start:].splitlines() if guess in line]
    read = [(one, int(now) - int(was)) for (one, was), (_, now) in zip(before, after, strict=True)]
    return [(line[-2].split()[-1], line[-1]) for line in lines], read


@pytest.mark.parametrize("name", MARIADB)
def test_mariadb_reads_a_statement_and_no_row_for_it(base: Base, name: str) -> None:
    (said, right), (_, wrong) = asked(base, name, RIGHT), asked(base, name, WRONG)
    assert right == wrong, "the same rows were read, whatever was guessed"
    run = [text for kind, text in said if kind != "Prepare"]
    assert all("count(CASE" in text for text in run), "but for the count that compares every row in full"
    assert bool(run) == (name == "plain")


def test_control_mariadbs_explain_tries_the_condition_on_a_row(base: Base) -> None:
    told = []
    for guess in (RIGHT, WRONG):
        with (
            pymysql.connect(
                unix_socket=base.server.socket, user=base.user, password=PASSWORD, database=base.name
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"EXPLAIN SELECT * FROM people WHERE id = 1 AND secret = '{guess}'")
            told.append(cursor.fetchall())
    assert told[0] != told[1] and "Impossible WHERE" in str(told[1])


# ---- MongoDB, by the commands that it got

MONGO = {
    "expression": '{"updateMany": "people", "filter": {"$expr": {"$eq": ["$secret", "violet"]}},'
    ' "update": {"$set": {"x": 1}}}',
    "pattern": '{"deleteMany": "people", "filter": {"secret": {"$regex": "^(v|vi|violet)*$"}}}',
    "plain": '{"deleteMany": "people", "filter": {"_id": {"$gt": 0}, "secret": "violet"}}',
}


class Heard(monitoring.CommandListener):
    def __init__(self) -> None:
        self.commands: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.commands.append(repr(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


@pytest.fixture(scope="module")
def documents() -> Iterator[Nx]:
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        with MongoClient[Any]("127.0.0.1", server.port) as client:
            client["shop"]["people"].insert_many([{"_id": 1, "secret": "violet"}, {"_id": 2, "secret": "jade"}])
        yield server


def heard(monkeypatch: pytest.MonkeyPatch, server: Nx, work: Any) -> list[str]:
    listener = Heard()
    monkeypatch.setattr(monitoring, "_LISTENERS", monitoring._LISTENERS._replace(command_listeners=[listener]))
    backend = connect(entry(server.url), Secret(""), LIMITS)
    try:
        work(backend)
    finally:
        backend.close()
    return listener.commands


@pytest.mark.parametrize("name", MONGO)
def test_mongodb_is_asked_for_no_filter(monkeypatch: pytest.MonkeyPatch, documents: Nx, name: str) -> None:
    commands = heard(monkeypatch, documents, lambda backend: session.survey(backend, parsed([MONGO[name]])))
    assert commands and not [one for one in commands if "viol" in one]


def test_control_a_count_is_heard(monkeypatch: pytest.MonkeyPatch, documents: Nx) -> None:
    commands = heard(monkeypatch, documents, lambda backend: backend.plain().count("people", {"secret": "violet"}, 10))
    assert [one for one in commands if "violet" in one]
