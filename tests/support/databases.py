"""The three kinds of databases as tests use them: a place for GoEx, and beside it a plain connection that seeds,
changes and dumps. What assertions stand on never goes through GoEx.

`dump` is schema and rows, exactly: every value with its type, every definition, no counters.
"""

# SQL here is made of the tests' own names.

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import apsw
import pymysql
from psycopg import sql as pg

from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect, Driver, Job, Limits, Place, Policy, Ran, Session, Verb
from tests.services.mariadb import MariaDb
from tests.services.postgres import Made, Postgres
from vault.secret import Secret

Dump = Mapping[str, Any]
LIMITS = Limits(lock_seconds=0.4, seconds=200.0)


class Kept(dict[str, bytes]):
    """Records in memory."""

    def put(self, name: str, data: bytes) -> None:
        self[name] = bytes(data)


class Ground(Protocol):
    """One database of a test's own."""

    @property
    def dialect(self) -> Dialect: ...
    @property
    def driver(self) -> Driver: ...
    @property
    def place(self) -> Place: ...
    @property
    def secret(self) -> Secret: ...
    @property
    def database(self) -> str:
        """As `check` wants it."""
        ...

    def execute(self, *statements: str) -> None:
        """Somebody else's statements, each committed."""
        ...

    def rows(self, query: str) -> list[tuple[Any, ...]]: ...
    def dump(self) -> Dump: ...
    def empty(self) -> None:
        """Drop everything."""
        ...

    def locked(self, table: str) -> contextlib.AbstractContextManager[None]:
        """Somebody else holds the rows of that table."""
        ...

    def literal(self, value: object) -> str: ...


def session(ground: Ground, limits: Limits = LIMITS) -> contextlib.closing[Session]:
    """Open it as GoEx does."""
    return contextlib.closing(ground.driver.open(ground.place, ground.secret, limits))


BACK_AND_FORTH: tuple[Literal["undo", "redo"], ...] = ("undo", "redo", "undo")


@dataclass
class Asked:
    """An action on a ground, as the runtime would lead it: each step with a connection of its own."""

    ground: Ground
    text: str
    policy: Policy = "reversal"
    rows: int = 0  # 0: what the survey found
    limits: Limits = LIMITS
    records: Kept = field(default_factory=Kept)
    id: str = field(default_factory=lambda: f"act_{secrets.token_hex(8)}")
    job: Job | None = None

    def plan(self) -> Job:
        """Read, check, survey."""
        with session(self.ground, self.limits) as at:
            schema = at.schema()
            program = check(self.text, schema, database=self.ground.database)
            found = at.survey(program, self.policy, self.limits)
        self.job = Job(
            id=self.id,
            program=program,
            policy=self.policy,
            rows=self.rows or sum(one.rows for one in found.reached),
            limits=self.limits,
            records=self.records,
            schema_hash=schema.hash,
            strategy=found.strategy,
        )
        return self.job

    def run(self) -> Ran:
        job = self.job or self.plan()
        with session(self.ground, self.limits) as at:
            return at.run(job)

    def planned(self) -> Job:
        assert self.job is not None, "plan it first"
        return self.job

    def trial(self) -> Ran:
        job = self.job or self.plan()
        with session(self.ground, self.limits) as at:
            return at.trial(job)

    def revert(self, verb: Literal["undo", "redo"]) -> Ran:
        with session(self.ground, self.limits) as at:
            return at.revert(self.planned(), verb)

    def compare(self, verb: Literal["undo", "redo"]) -> Ran:
        with session(self.ground, self.limits) as at:
            return at.compare(self.planned(), verb)

    def commit(self) -> None:
        with session(self.ground, self.limits) as at:
            at.commit(self.planned())

    @property
    def state(self) -> str:
        with session(self.ground, self.limits) as at:
            return at.settle(self.planned()).state


# ---- SQLite


@dataclass
class SqliteGround:
    """A file in a folder of its own."""

    folder: Path
    name: str = "shop.db"
    dialect: Dialect = Dialect.SQLITE
    database: str = "main"
    secret: Secret = field(default_factory=lambda: Secret(b""))

    @property
    def driver(self) -> Driver:
        from runtimes.sql.drivers import SqliteDriver

        return SqliteDriver()

    @property
    def path(self) -> Path:
        return self.folder / self.name

    @property
    def place(self) -> Place:
        return Place(dialect=Dialect.SQLITE, path=str(self.path))

    def connect(self) -> apsw.Connection:
        made = apsw.Connection(str(self.path))
        made.set_busy_timeout(5000)
        return made

    def execute(self, *statements: str) -> None:
        with contextlib.closing(self.connect()) as db:
            for statement in statements:
                db.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.connect()) as db:
            return [tuple(row) for row in db.execute(query)]

    def dump(self) -> Dump:
        with contextlib.closing(self.connect()) as db:
            db.execute("BEGIN")
            found: dict[str, Any] = {
                "schema": db.execute(
                    "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name != 'sqlite_sequence'"
                    " ORDER BY type, name"
                ).fetchall(),
                "version": db.pragma("user_version"),
            }
            tables = db.execute("PRAGMA main.table_list").fetchall()
            for _, name, kind, _, without, _ in tables:
                if kind not in ("table", "virtual") or str(name).startswith("sqlite_"):
                    continue
                info = db.execute(f'PRAGMA main.table_xinfo("{name}")').fetchall()
                parts = [_exact(f'"{row[1]}"') for row in info if row[6] != 1]
                taken = {str(row[1]).casefold() for row in info}
                if not without and not taken & {"rowid", "_rowid_", "oid"}:
                    parts.append("rowid")
                found[f"rows of {name}"] = sorted(
                    db.execute(f'SELECT {", ".join(parts)} FROM "{name}"').fetchall(), key=repr
                )
            return found

    def empty(self) -> None:
        for path in self.folder.glob(f"{self.name}*"):
            path.unlink()
        with contextlib.closing(self.connect()) as db:
            db.execute("PRAGMA user_version = 7")

    @contextlib.contextmanager
    def locked(self, table: str) -> Iterator[None]:
        with contextlib.closing(self.connect()) as db:
            db.execute("BEGIN IMMEDIATE")
            yield
            db.execute("ROLLBACK")

    def literal(self, value: object) -> str:
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        return _literal(value)


def _exact(column: str) -> str:
    """A value with its type, told so that nothing is lost: also text that isn't UTF-8, and every bit of a float."""
    return (
        f"typeof({column}) || ':' || CASE typeof({column}) WHEN 'text' THEN hex({column}) WHEN 'blob' THEN"
        f" hex({column}) WHEN 'real' THEN printf('%!.20g', {column}) WHEN 'null' THEN '' ELSE {column} END"
    )


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


# ---- PostgreSQL


@dataclass
class PostgresGround:
    """A database in a running server."""

    server: Postgres
    made: Made = field(init=False)
    dialect: Dialect = Dialect.POSTGRESQL

    def __post_init__(self) -> None:
        self.made = self.server.make()

    @property
    def driver(self) -> Driver:
        from runtimes.sql.drivers import PostgresDriver

        return PostgresDriver()

    @property
    def place(self) -> Place:
        return self.made.place()

    @property
    def secret(self) -> Secret:
        return self.made.secret

    @property
    def database(self) -> str:
        return self.made.database

    def execute(self, *statements: str) -> None:
        with self.made.connect() as db:
            for statement in statements:
                db.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.made.connect() as db:
            return db.execute(query.encode()).fetchall()

    def dump(self) -> Dump:
        with self.made.connect(autocommit=False) as db:
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            found: dict[str, Any] = {}
            tables = db.execute(
                "SELECT c.oid, c.oid::regclass::text, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid ="
                " c.relnamespace WHERE n.nspname !~ '^pg_' AND n.nspname != 'information_schema' AND c.relkind IN"
                " ('r', 'p', 'v', 'm') ORDER BY 2"
            ).fetchall()
            definitions: list[dict[int, list[tuple[Any, ...]]]] = []
            for query in (
                "SELECT attrelid, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,"
                " (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum)"
                " FROM pg_attribute WHERE attrelid = ANY(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                "SELECT conrelid, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint WHERE conrelid ="
                " ANY(%s) ORDER BY 2",
                "SELECT indrelid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = ANY(%s) ORDER BY 2",
                "SELECT tgrelid, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = ANY(%s) AND NOT tgisinternal"
                " ORDER BY 2",
                "SELECT oid, relowner::regrole::text, relacl::text, obj_description(oid) FROM pg_class WHERE oid ="
                " ANY(%s)",
            ):
                of_tables: dict[int, list[tuple[Any, ...]]] = {}
                for of, *row in db.execute(query, ([oid for oid, *_ in tables],)):
                    of_tables.setdefault(of, []).append(tuple(row))
                definitions.append(of_tables)
            for oid, name, kind in tables:
                found[name] = [of_tables.get(oid, []) for of_tables in definitions]
                if kind in ("r", "p"):
                    query = pg.SQL("SELECT (t.*)::text FROM {} t ORDER BY 1").format(pg.SQL(name))
                    found[f"rows of {name}"] = db.execute(query).fetchall()
            found["functions"] = db.execute(
                "SELECT oid::regprocedure::text, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
                " ORDER BY 1"
            ).fetchall()
            return found

    def empty(self) -> None:
        with self.made.admin() as db:
            for (name,) in db.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
                db.execute(pg.SQL("ROLLBACK PREPARED {}").format(pg.Literal(name)))
        self.made.empty()

    @contextlib.contextmanager
    def locked(self, table: str) -> Iterator[None]:
        with self.made.connect(autocommit=False) as db:
            db.execute(f"SELECT * FROM {table} FOR UPDATE".encode())
            yield
            db.rollback()

    def literal(self, value: object) -> str:
        if isinstance(value, bytes):
            return f"'\\x{value.hex()}'::bytea"
        return _literal(value)


# ---- MariaDB


@dataclass
class MariaDbGround:
    """A database in a running server, for a user who may everything in it and nothing elsewhere."""

    server: MariaDb
    database: str
    dialect: Dialect = Dialect.MARIADB
    user: str = "goex"
    password: str = "pw-of-the-tests"

    @property
    def driver(self) -> Driver:
        from runtimes.sql.drivers import MariaDbDriver

        return MariaDbDriver()

    @property
    def place(self) -> Place:
        return Place(
            dialect=Dialect.MARIADB,
            host="localhost",
            port=self.server.port,
            socket=self.server.socket,
            database=self.database,
            user=self.user,
            tls="none",
        )

    @property
    def secret(self) -> Secret:
        return Secret(self.password)

    def connect(self, **more: Any) -> Any:
        return self.server.connect(self.database, **more)

    def execute(self, *statements: str) -> None:
        with self.connect() as db, db.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as db, db.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def dump(self) -> Dump:
        with self.connect(autocommit=False) as db, db.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SHOW FULL TABLES")
            found: dict[str, Any] = {}
            for name, kind in sorted(cursor.fetchall()):
                cursor.execute(f"SHOW CREATE TABLE `{name}`")
                found[name] = re.sub(r" AUTO_INCREMENT=\d+", "", str(cursor.fetchone()[1]))
                if kind != "BASE TABLE":
                    continue
                cursor.execute(f"SHOW COLUMNS FROM `{name}`")
                columns = ", ".join(f"HEX(`{row[0]}`), `{row[0]}`" for row in cursor.fetchall())
                cursor.execute(f"SELECT {columns} FROM `{name}`")
                found[f"rows of {name}"] = sorted(repr(row) for row in cursor.fetchall())
            cursor.execute(
                "SELECT trigger_name, action_timing, event_manipulation, action_statement FROM"
                " information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1"
            )
            found["triggers"] = list(cursor.fetchall())
            return found

    def empty(self) -> None:
        with self.connect() as db, db.cursor() as cursor:
            cursor.execute("XA RECOVER")
            for _, gtrid, bqual, data in cursor.fetchall():
                text = data if isinstance(data, str) else data.decode("latin-1")
                with contextlib.suppress(pymysql.err.MySQLError):
                    cursor.execute(f"XA ROLLBACK '{text[:gtrid]}','{text[gtrid : gtrid + bqual]}'")
            cursor.execute("SET foreign_key_checks = 0")
            cursor.execute("SHOW FULL TABLES")
            for name, kind in cursor.fetchall():
                cursor.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} IF EXISTS `{name}`")

    @contextlib.contextmanager
    def locked(self, table: str) -> Iterator[None]:
        with self.connect(autocommit=False) as db, db.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} FOR UPDATE")
            yield
            db.rollback()

    def literal(self, value: object) -> str:
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        return _literal(value).replace("\\", "\\\\") if isinstance(value, str) else _literal(value)


def verbs(ran: Ran) -> dict[tuple[str, Verb], int]:
    """Rows by table and verb, whatever caused it."""
    found: dict[tuple[str, Verb], int] = {}
    for one in ran.reached:
        found[one.table, one.verb] = found.get((one.table, one.verb), 0) + one.rows
    return found
