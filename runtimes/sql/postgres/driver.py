"""PostgreSQL behind the contract of `runtimes.sql.contract`: one session, one connection, one action at a time."""

from __future__ import annotations

from runtimes.sql.contract import Dialect, Limits, Place
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.session import PostgresSession
from vault.secret import Secret


class PostgresDriver:
    """`runtimes.sql.contract.Driver` for PostgreSQL."""

    @property
    def dialect(self) -> Dialect:
        return Dialect.POSTGRESQL

    def open(self, place: Place, password: Secret, limits: Limits) -> PostgresSession:
        """See the contract."""
        link = Link(place, password, limits)
        try:
            link.ask("SELECT 1")
        except BaseException:
            link.close()
            raise
        return PostgresSession(link, limits)
