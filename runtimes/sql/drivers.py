"""Which engine drives which dialect. Each is imported with its first use: their libraries are large."""

from __future__ import annotations

from pathlib import Path

from runtimes.sql.contract import Dialect, Driver


def driver_of(dialect: Dialect, protected: tuple[Path, ...] = ()) -> Driver:
    """The driver of one kind of database. `protected` are folders in which no file of a database is opened."""
    match dialect:
        case Dialect.POSTGRESQL:
            from runtimes.sql.postgres.driver import PostgresDriver

            return PostgresDriver()
        case Dialect.MARIADB:
            from runtimes.sql.mariadb.driver import MariaDbDriver

            return MariaDbDriver()
        case Dialect.SQLITE:
            from runtimes.sql.sqlite.driver import SqliteDriver

            return SqliteDriver(protected)
