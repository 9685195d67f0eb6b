"""Opens a database's session with its engine's library. Each engine is imported with its first use: they are large."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runtimes.sql.contract import Dialect, Driver, Limits, Place, Session
from vault.secret import Secret


def driver_of(dialect: Dialect, protected: tuple[Path, ...] = ()) -> Driver:
    """Return the driver of one kind of database. `protected` are folders in which no file of a database is opened."""
    match dialect:
        case Dialect.POSTGRESQL:
            return PostgresDriver()
        case Dialect.MARIADB:
            return MariaDbDriver()
        case Dialect.SQLITE:
            return SqliteDriver(protected)


class PostgresDriver:
    """PostgreSQL: one session, one connection, one action at a time."""

    def open(self, place: Place, password: Secret, limits: Limits) -> Session:
        """See `Driver.open`."""
        from runtimes.sql.postgres.link import Link
        from runtimes.sql.postgres.session import PostgresSession

        link = Link(place, password, limits)
        try:
            link.ask("SELECT 1")
        except BaseException:
            link.close()
            raise
        return PostgresSession(link)


class MariaDbDriver:
    """Servers from MariaDB 10.5 on, by PyMySQL."""

    def open(self, place: Place, password: Secret, limits: Limits) -> Session:
        """See `Driver.open`."""
        from runtimes.sql.mariadb.session import MariaDbSession

        return MariaDbSession(place, password, limits)


class SqliteDriver:
    """The person's own file, through apsw. `protected` are GoEx's own folders, where nothing is opened."""

    def __init__(self, protected: Sequence[Path] = ()) -> None:
        self._protected = tuple(protected)

    def open(self, place: Place, password: Secret, limits: Limits) -> Session:
        """See `Driver.open`. A file has no password; whoever may write to it may open it."""
        from runtimes.sql.sqlite import location
        from runtimes.sql.sqlite.connection import Connection
        from runtimes.sql.sqlite.session import SqliteSession

        return SqliteSession(Connection(location.find(place.path, protected=self._protected), limits))
