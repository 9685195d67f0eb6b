"""One connection, as the rest of this folder uses it: statements, COPY out and in, transactions. Errors are GoEx's."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import Any

import psycopg
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from policies.errors import GoexError
from runtimes.sql.contract import Limits, Place
from runtimes.sql.postgres import connection
from runtimes.sql.postgres.errors import Lost, translated
from vault.secret import Secret


class Link:
    """BEGIN, PREPARE and COMMIT are statements here: nothing below ends a transaction behind their back."""

    def __init__(self, place: Place, password: Secret, limits: Limits) -> None:
        self._engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: connection.connect(place, password, limits),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            use_native_hstore=False,
        )
        self._connection: Connection | None = None
        self.fresh = True  # no transaction has written on this connection yet

    @property
    def connection(self) -> Connection:
        """The connection; a new one where the last broke."""
        if self._connection is not None and (self._connection.invalidated or self._raw(self._connection).closed):
            self.drop()
        if self._connection is None:
            with translated():
                self._connection = self._engine.connect().execution_options(no_parameters=True)
            self.fresh = True
        return self._connection

    @staticmethod
    def _raw(connection: Connection) -> psycopg.Connection[Any]:
        raw = connection.connection.driver_connection
        assert isinstance(raw, psycopg.Connection)
        return raw

    @property
    def raw(self) -> psycopg.Connection[Any]:
        return self._raw(self.connection)

    def do(self, sql: str, *, prepares: bool = False) -> psycopg.Cursor[Any]:
        """Run statements that have no parameters; the cursor holds what the (last) one gave. `prepares`: it only reads
        a statement, so that the server speaks of its text alone."""
        with translated(prepares=prepares):
            return self.connection.exec_driver_sql(sql).cursor  # type: ignore[return-value]

    def rows(self, sql: str) -> int:
        """Run a statement that gives no rows; how many it was about."""
        with translated():
            return self.connection.exec_driver_sql(sql).rowcount

    def ask(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; `parameters` stand for its %s."""
        with translated():
            return [tuple(row) for row in self.connection.exec_driver_sql(sql, parameters or None)]

    def ask_again(self, name: str, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query without parameters that is asked often: it is planned once a connection, under `name`.

        Functions of the database run on this connection too, and may have dropped it, or put another in its place.
        """
        made = f"PREPARE {name} AS {sql}"
        there = self.ask("SELECT statement FROM pg_catalog.pg_prepared_statements WHERE name = %s", name)
        if there != [(made,)]:
            if there:
                self.do(f"DEALLOCATE {name}")
            self.do(made)
        return self.ask(f"EXECUTE {name}")

    def copy_out(self, sql: str) -> Generator[bytes, None, None]:
        """The lines of COPY … TO STDOUT, in text form, as they come."""
        with translated(), self.raw.cursor() as cursor, cursor.copy(sql) as copy:
            for piece in copy:
                yield bytes(piece)

    def copy_in(self, sql: str, pieces: Iterable[bytes]) -> None:
        with translated(), self.raw.cursor() as cursor, cursor.copy(sql) as copy:
            for piece in pieces:
                copy.write(piece)

    def begin(self, more: str = "") -> None:
        """A transaction that sees one state of the database, and fails where somebody else changes its rows."""
        self.do(f"BEGIN ISOLATION LEVEL REPEATABLE READ {more}")

    def rollback(self) -> None:
        """End whatever transaction there is. Never raises: a connection that can't even do that is dropped."""
        connection = self._connection
        if connection is None:
            return
        if connection.invalidated:
            self.drop()
            return
        try:
            status = self._raw(connection).info.transaction_status
            if status == psycopg.pq.TransactionStatus.ACTIVE:  # in the middle of a COPY: only closing ends it at once
                self.drop()
            elif status != psycopg.pq.TransactionStatus.IDLE:
                self.do("ROLLBACK")
        except (GoexError, psycopg.Error, AssertionError):
            self.drop()

    def revive(self) -> None:
        """See that the connection is there: one that broke since it was last used is replaced."""
        if self._connection is not None:
            try:
                self.do("SELECT 1")
            except Lost:
                self.drop()

    def cancel(self) -> None:
        """From another thread: stop the statement that runs."""
        connection = self._connection
        if connection is not None:
            with suppress(Exception):  # it may be gone by now
                self._raw(connection).cancel_safe(timeout=5)

    def drop(self) -> None:
        """Close the connection, whatever state it is in: what wasn't committed or prepared rolls back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                self._raw(connection).close()
            with suppress(Exception):
                connection.invalidate()
            with suppress(Exception):
                connection.close()

    def close(self) -> None:
        self.drop()
        with suppress(Exception):
            self._engine.dispose()
