"""MariaDB: `runtimes.sql.contract.Driver`."""

from __future__ import annotations

from runtimes.sql.contract import Dialect, Limits, Place, Session
from runtimes.sql.mariadb.session import MariaDbSession
from vault.secret import Secret


class MariaDbDriver:
    """Servers from MariaDB 10.5 on, by PyMySQL."""

    @property
    def dialect(self) -> Dialect:
        return Dialect.MARIADB

    def open(self, place: Place, password: Secret, limits: Limits) -> Session:
        """See `Driver.open`."""
        return MariaDbSession(place, password, limits)
