"""What `check` lets through does on the real servers what the text that was sent does there: the same rows come back,
and the same rows are in the tables afterwards. And what it counts is what was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg
import pymysql
import pytest

from runtimes.sql.checking.check import check
from runtimes.sql.checking.functions import FUNCTIONS, MARIADB_GEOMETRIES
from runtimes.sql.contract import Dialect, Statement
from tests.runtimes.sql.checking import allowed
from tests.runtimes.sql.checking.schemas import MADE, shop
from tests.services.mariadb import MariaDb, find_server
from tests.services.postgres import Postgres

Run = Callable[[str], tuple[list[tuple[Any, ...]], int]]  # rows that came back, rows that were written

_TABLES = ("users", "orders", "archive")
_MOVING = re.compile(r"now|current_|curdate|utc_|random|uuid|timestampdiff|datediff|unixepoch|julianday|age\(", re.I)
_DATA = ("select", "insert", "update", "delete")


def _state(run: Run) -> list[Any]:
    return [sorted(run(f"SELECT * FROM {table}")[0], key=repr) for table in _TABLES]


def _compare(dialect: Dialect, texts: str, fresh: Callable[[], Any]) -> None:
    """`fresh()` is a context manager that gives `run` on the shop as it was made."""
    wrong = []
    for text in texts.strip().splitlines():
        program = check(text, shop(dialect), database="shop")
        (statement,) = program.statements
        try:
            sent = after_sent = None
            if statement.verb in _DATA:
                with fresh() as run:
                    sent, after_sent = run(text.rstrip(";")), _state(run)
            with fresh() as run:
                counted = run(statement.count_sql)[0][0][0] if statement.count_sql else None
                made = run(statement.sql)
                after_made = _state(run) if statement.verb in _DATA else None
        except Exception as error:  # the server's own: which one, for the message
            wrong.append(f"{text}\n   {statement.sql}\n   {statement.count_sql}\n   {type(error).__name__}: {error}")
            continue
        if (
            sent is not None
            and not _MOVING.search(text)
            and (sorted(sent[0], key=repr) != sorted(made[0], key=repr) or after_sent != after_made)
        ):
            wrong.append(f"{text}\n   {statement.sql}\n   {sent} {made}\n   {after_sent} {after_made}")
        if counted is not None and not _count_fits(statement, counted, made[1], dialect):
            wrong.append(f"{text}\n   {statement.count_sql}\n   counted {counted}, wrote {made[1]}")
    assert not wrong, "\n".join(wrong)


def _count_fits(statement: Statement, counted: int, written: int, dialect: Dialect) -> bool:
    """As many as were written; an upper bound where rows that are there already may be skipped or replaced."""
    if statement.verb not in ("update", "delete", "insert"):
        return True
    if re.search(r"CONFLICT|DUPLICATE|IGNORE|REPLACE", statement.sql):
        return counted >= 1
    if dialect is Dialect.MARIADB and statement.verb == "update":  # which says how many it changed, not found
        return counted >= written
    return counted == written


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    if find_server() is None:
        pytest.skip("no MariaDB: run make services")
    with MariaDb() as server:
        yield server


@pytest.mark.promise(68)
def test_what_is_let_through_means_the_same_to_postgresql(postgres: Postgres) -> None:
    made = postgres.make(*MADE[Dialect.POSTGRESQL])
    with made.connect() as connection:

        @contextmanager
        def fresh() -> Iterator[Run]:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")

                def run(text: str) -> tuple[list[tuple[Any, ...]], int]:
                    cursor.execute(text)  # type: ignore[call-overload]
                    rows = cursor.fetchall() if cursor.description is not None else []
                    return rows, cursor.rowcount

                try:
                    yield run
                finally:
                    cursor.execute("ROLLBACK")

        _compare(Dialect.POSTGRESQL, allowed.EVERYWHERE.strip() + allowed.POSTGRESQL, fresh)


@pytest.mark.promise(68)
def test_what_is_let_through_means_the_same_to_mariadb(mariadb: MariaDb) -> None:
    with mariadb.connect() as connection:
        whole = False

        @contextmanager
        def fresh() -> Iterator[Run]:
            nonlocal whole
            with connection.cursor() as cursor:
                if not whole:
                    cursor.execute("DROP DATABASE IF EXISTS shop")
                    cursor.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
                    cursor.execute("USE shop")
                    for each in MADE[Dialect.MARIADB]:
                        cursor.execute(each)
                    connection.commit()
                    whole = True
                cursor.execute("BEGIN")

                def run(text: str) -> tuple[list[tuple[Any, ...]], int]:
                    nonlocal whole
                    if text.upper().startswith(("CREATE", "ALTER", "DROP", "TRUNCATE")):
                        whole = False  # these commit
                    count = cursor.execute(text)
                    rows = list(cursor.fetchall()) if cursor.description is not None else []
                    return rows, count

                yield run
                cursor.execute("ROLLBACK")

        _compare(Dialect.MARIADB, allowed.EVERYWHERE.strip() + allowed.MARIADB, fresh)


@pytest.mark.promise(68)
def test_what_is_let_through_means_the_same_to_sqlite() -> None:
    @contextmanager
    def fresh() -> Iterator[Run]:
        connection = apsw.Connection(":memory:")
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        connection.execute("PRAGMA foreign_keys = ON")
        for each in MADE[Dialect.SQLITE]:
            connection.execute(each)

        def run(text: str) -> tuple[list[tuple[Any, ...]], int]:
            before = connection.total_changes()
            rows = list(connection.execute(text))
            changed = connection.total_changes() - before
            return rows, changed if text.upper().startswith("INSERT") else connection.changes()

        yield run
        connection.close()

    _compare(Dialect.SQLITE, allowed.EVERYWHERE.strip() + allowed.SQLITE, fresh)


@pytest.mark.promise(69)
def test_sqlite_itself_finds_no_table_or_column_that_isnt_in_the_uses() -> None:
    """Its authorizer is told of everything that a statement would touch: all of it has to be in what `check` says."""
    seen: set[tuple[str, str, str]] = set()
    verbs = {apsw.SQLITE_INSERT: "insert", apsw.SQLITE_UPDATE: "update", apsw.SQLITE_DELETE: "delete"}

    def authorize(code: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
        if code == apsw.SQLITE_READ:
            seen.add(("select", str(first), str(second)))
        elif code in verbs:
            seen.add((verbs[code], str(first), str(second or "")))
        return apsw.SQLITE_OK

    connection = apsw.Connection(":memory:")
    for each in MADE[Dialect.SQLITE]:
        connection.execute(each)
    schema = shop(Dialect.SQLITE)
    looked = 0
    for text in (allowed.EVERYWHERE.strip() + allowed.SQLITE).splitlines():
        (statement,) = check(text, schema, database="main").statements
        if statement.verb not in _DATA:
            continue
        seen.clear()
        connection.authorizer = authorize
        explained = statement.sql.startswith("EXPLAIN ")
        connection.execute(statement.sql if explained else f"EXPLAIN {statement.sql}").fetchall()
        connection.authorizer = None
        said = {(use.table, use.verb): use.columns for use in statement.uses}
        for verb, table, column in seen:
            if table not in schema.tables:
                continue  # its own tables, and json_each's
            looked += 1
            if explained and verb != "select":  # it is prepared, and doesn't run
                assert (table, "select") in said, (text, verb, table)
                continue
            if verb == "select" and any(of == table and was != "select" for of, was in said):
                # A write looks at its own rows' keys, and at whatever its foreign keys and indexes need.
                continue
            assert (table, verb) in said, (text, verb, table)
            columns = said[table, verb]
            assert not columns or not column or column in (*columns, "ROWID"), (text, verb, table, column)
    assert looked > 100


@pytest.mark.promise(69)
def test_postgresql_asks_for_no_privilege_that_isnt_in_the_uses(postgres: Postgres) -> None:
    """Each statement runs as a role that may do what `check` says that it does, column by column, and nothing else."""
    made = postgres.make(*MADE[Dialect.POSTGRESQL])
    schema = shop(Dialect.POSTGRESQL)
    role = f"probe_{made.database}"
    denied, ran = [], 0
    with made.admin(autocommit=False) as connection:
        connection.execute(f"CREATE ROLE {role}")  # type: ignore[arg-type]
        connection.execute(f"GRANT USAGE ON SCHEMA public, stock TO {role}")  # type: ignore[arg-type]
        connection.commit()
        for text in (allowed.EVERYWHERE.strip() + allowed.POSTGRESQL).splitlines():
            (statement,) = check(text, schema, database="shop").statements
            if statement.verb not in (*_DATA, "truncate") or "RESTART IDENTITY" in text:  # that takes the owner
                continue
            if re.match(r"EXPLAIN.*(UPDATE|INSERT|DELETE) ", text) or "SKIP LOCKED" in text:
                continue  # a write's own rights, though it isn't run; and a lock's, which changes nothing
            for use in statement.uses:
                columns = "" if not use.columns or use.verb == "delete" else f" ({', '.join(use.columns)})"
                table = use.table if "." in use.table else f"public.{use.table}"
                columns = columns.replace("Label", '"Label"')
                connection.execute(f"GRANT {use.verb}{columns} ON {table} TO {role}")  # type: ignore[arg-type]
            connection.execute(f"SET LOCAL ROLE {role}")  # type: ignore[arg-type]
            try:
                connection.execute(statement.sql)  # type: ignore[call-overload]
                ran += 1
            except psycopg.errors.InsufficientPrivilege as error:
                denied.append((text, str(error), statement.uses))
            except psycopg.Error:
                pass  # for what the rows are: the other test compares that
            connection.rollback()
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")  # type: ignore[arg-type]
        connection.commit()
    assert not denied
    assert ran > 100


# What PostgreSQL itself calls neither stable nor immutable, and is listed all the same: chance, the clock, and nextval,
# which only the INSERT into its sequence's own table may call.
_CHANCE = {"random", "gen_random_uuid", "clock_timestamp", "timeofday", "nextval"}
# The grammar's own, which no catalog has.
_GRAMMAR = {"array", "coalesce", "nullif", "greatest", "least", "grouping", "all", "any", "some", "row", "trim"}


@pytest.mark.promise(69)
def test_postgresql_calls_no_listed_function_one_that_changes_something(postgres: Postgres) -> None:
    names = sorted(FUNCTIONS[Dialect.POSTGRESQL])
    with postgres.make().connect() as connection:
        known = connection.execute(
            "SELECT proname, provolatile, proparallel, lanname FROM pg_proc JOIN pg_language l ON l.oid = prolang "
            "WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY(%s)",
            [names],
        ).fetchall()
    assert {name for name, volatile, _, _ in known if volatile == "v"} <= _CHANCE
    # It would change the transaction's state; current_schema does where pg_temp comes first in the search_path.
    assert {name for name, _, parallel, _ in known if parallel == "u"} <= {"nextval", "current_schema"}
    assert {language for *_, language in known} <= {"internal", "c", "sql"}
    missing = set(names) - {name for name, *_ in known} - _GRAMMAR
    assert not missing


@pytest.mark.promise(69)
def test_mariadb_has_every_listed_function(mariadb: MariaDb) -> None:
    """Of a name that isn't its own it would call what somebody made. Geometries are its own with as many arguments as
    `MARIADB_GEOMETRIES` says."""
    foreign = []
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        cursor.execute("USE shop")
        for name in sorted(FUNCTIONS[Dialect.MARIADB]):
            least, most = MARIADB_GEOMETRIES.get(name, (0, None))
            for number in range(least, (4 if most is None else most) + 1):
                try:
                    cursor.execute(f"SELECT {name}({', '.join(['1'] * number)})")
                    cursor.fetchall()
                except pymysql.err.MySQLError as error:  # whatever else it has to say of the arguments
                    if error.args[0] in (1305, 1630):  # there is no function of that name
                        foreign.append((name, number))
    assert not foreign


@pytest.mark.promise(69)
def test_sqlite_has_every_listed_function() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("SELECT * FROM json_each('1'), json_tree('1')")  # it makes these when they are first named
    known = {name for (name,) in connection.execute("SELECT name FROM pragma_function_list")}
    known |= {name for (name,) in connection.execute("SELECT name FROM pragma_module_list")}
    known |= {f"pragma_{name}" for (name,) in connection.execute("SELECT name FROM pragma_pragma_list")}
    assert not FUNCTIONS[Dialect.SQLITE] - known
