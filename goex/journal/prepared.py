"""Statements of SQLAlchemy that are run for each step of each action, compiled once and handed to the driver.

For these few its own way of running one takes longer than SQLite does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ClauseElement, Connection
from sqlalchemy.dialects.sqlite import dialect

_SQLITE = dialect(paramstyle="named")


class Prepared:
    """One statement. Its columns and parameters must be of types that the driver takes as they are: text, bytes,
    numbers."""

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._texts: dict[tuple[str, ...], str] = {}  # by the columns that are set

    def run(self, connection: Connection, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run it in the connection's transaction. Raises sqlite3.Error."""
        names = tuple(values)
        text = self._texts.get(names)
        if text is None:
            text = self._texts[names] = str(self._statement.compile(dialect=_SQLITE, column_keys=names))
        return driver(connection).execute(text, dict(values))


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's connection below SQLAlchemy's."""
    found = connection.connection.driver_connection
    assert isinstance(found, sqlite3.Connection)
    return found
