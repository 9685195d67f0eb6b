"""SQLite: the person's own file, through apsw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw

from policies.errors import InvalidInput
from runtimes.sql.contract import Dialect, Limits, Place, Session
from runtimes.sql.sqlite import location
from runtimes.sql.sqlite.connection import Connection
from runtimes.sql.sqlite.errors import while_running
from runtimes.sql.sqlite.session import SqliteSession
from vault.secret import Secret


class SqliteDriver:
    """Opens databases by their file. `protected` are GoEx's own folders, where nothing is opened."""

    dialect = Dialect.SQLITE

    def __init__(self, protected: Sequence[Path] = ()) -> None:
        self._protected = tuple(protected)

    def open(self, place: Place, password: Secret, limits: Limits) -> Session:
        """A file has no password; whoever may write to it may open it."""
        if place.dialect is not Dialect.SQLITE:
            raise InvalidInput(f"This isn't a SQLite database: {place.dialect}.")
        connection = Connection(location.find(place.path, protected=self._protected), limits)
        try:
            return SqliteSession(connection, limits)
        except apsw.Error as error:
            connection.close()
            raise while_running(error) from error
        except BaseException:
            connection.close()
            raise
