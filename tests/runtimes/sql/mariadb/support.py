"""A database on a real server, an action on it, and what is in its tables: read as root, never through GoEx."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect, Job, Limits, Place, Policy, Session, Survey
from runtimes.sql.drivers import MariaDbDriver
from tests.services.mariadb import MariaDb
from vault.secret import Secret

LIMITS = Limits(lock_seconds=1.0, seconds=200.0)
PASSWORD = "correct-horse"


@dataclass
class Notes:
    """Records in memory. `order` holds the names in the order in which they were put."""

    kept: dict[str, bytes] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def put(self, name: str, data: bytes) -> None:
        self.kept[name] = data
        self.order.append(name)

    def get(self, name: str) -> bytes | None:
        return self.kept.get(name)


@dataclass
class Base:
    """One database and GoEx's user in it."""

    server: MariaDb
    name: str
    user: str
    limits: Limits = LIMITS

    @property
    def place(self) -> Place:
        return Place(dialect=Dialect.MARIADB, socket=self.server.socket, database=self.name, user=self.user)

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """As root."""
        return self.server.run(text, self.name)

    @contextmanager
    def session(self, place: Place | None = None) -> Iterator[Session]:
        session = MariaDbDriver().open(place or self.place, Secret(PASSWORD), self.limits)
        try:
            yield session
        finally:
            session.close()

    def job(self, sql: str, policy: Policy = "reversal", *, rows: int = 1000, limits: Limits | None = None) -> Job:
        """The action as it would be planned now. Raises what its survey raises."""
        with self.session() as session:
            schema = session.schema()
            program = check(sql, schema, database=self.name)
            found = session.survey(program, policy, limits or self.limits)
            return Job(
                id=secrets.token_hex(6),
                program=program,
                policy=policy,
                rows=rows,
                limits=limits or self.limits,
                records=Notes(),
                schema_hash=schema.hash,
                strategy=found.strategy,
            )

    def survey(self, sql: str, policy: Policy = "reversal") -> Survey:
        with self.session() as session:
            return session.survey(check(sql, session.schema(), database=self.name), policy, self.limits)

    def held(self) -> list[bytes]:
        return [row[3] for row in self.server.run("XA RECOVER")]

    def definitions(self) -> dict[str, str]:
        """How each table and view is defined, with its counter."""
        with self.server.connect(self.name) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            names = [str(name) for (name,) in cursor.fetchall()]
            found = {}
            for name in names:
                cursor.execute(f"SHOW CREATE TABLE `{name}`")
                found[name] = str(cursor.fetchall()[0][1])
            return found

    def dump(self) -> dict[str, list[str]]:
        """Every row of every table by its bytes, generated columns too, in an order that says nothing."""
        columns: dict[str, list[str]] = {}
        found: dict[str, list[str]] = {}
        with self.server.connect(self.name) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_name FROM information_schema.tables"
                f" WHERE table_schema = '{self.name}' AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
            )
            tables = [str(table) for (table,) in cursor.fetchall()]
            cursor.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns"
                f" WHERE table_schema = '{self.name}' ORDER BY ordinal_position"
            )
            for table, name, kind in cursor.fetchall():
                field = f"IFNULL(HEX(CAST({_lossless(str(name), str(kind))} AS BINARY)), 'NULL')"
                columns.setdefault(str(table), []).append(field)
            for table in tables:
                cursor.execute(f"SELECT CONCAT_WS('.', {', '.join(columns[table])}) FROM `{table}`")
                found[table] = sorted(str(row[0]) for row in cursor.fetchall())
        return found


def _lossless(name: str, kind: str) -> str:
    return f"`{name}` * 1e0" if kind == "float" else f"`{name}` + 0" if kind in ("enum", "set", "bit") else f"`{name}`"


def again(job: Job, sql_job: Job) -> Job:
    """The same action with what another recorded."""
    return replace(job, records=sql_job.records)


class Killed(BaseException):
    """The end of a process."""


class Unnoted(Notes):
    """Records of a process that dies when it would note how its statement ended."""

    def put(self, name: str, data: bytes) -> None:
        if b'"committed"' in data:
            raise Killed
        super().put(name, data)
