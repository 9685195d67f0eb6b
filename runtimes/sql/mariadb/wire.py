"""One connection to the server. Every round trip goes through SQLAlchemy's engine; transactions are said in SQL.

The session's settings are fixed: the text was checked as they read it, and the server's or the person's own must not
change what it means.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import re
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool

from policies.errors import GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.contract import Limits, Place
from runtimes.sql.mariadb import bulk, errors
from vault.secret import Secret

STRICT = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_CREATE_USER"
# What was recorded was in the table: no rule of today's keeps it out, and whether it is the same is compared after.
LENIENT = "NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES"
_CONNECT_SECONDS = 10
# What fires no trigger, whatever it names.
_QUIET = re.compile(
    r"(SELECT|SHOW|EXPLAIN|PREPARE|DEALLOCATE|SET (?!STATEMENT)|XA|START|COMMIT|ROLLBACK|SAVEPOINT|KILL"
    r"|CREATE|ALTER|DROP|(UN)?LOCK)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[0-9A-Za-z$_]+")
_OLDEST = (10, 5)  # RETURNING, and XA transactions that outlive their connection


@dataclass(frozen=True, slots=True)
class Did:
    """What a statement did. `matched` and `changed` are -1 where the server doesn't say."""

    affected: int
    matched: int = -1
    changed: int = -1
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    more: int = 0  # rows that were left out


class Refusing:
    """An authentication plugin that would send the password as it is: not without TLS."""

    def __init__(self, connection: Any) -> None:
        pass

    def authenticate(self, packet: Any) -> NoReturn:
        raise pymysql.err.OperationalError(2061, "this way of logging in needs TLS")


class Wire:
    """One connection, made at once. Raises Unavailable."""

    def __init__(self, place: Place, password: Secret, limits: Limits) -> None:
        self.place, self.limits, self._password = place, limits, password
        self.triggered: frozenset[tuple[str, str]] = frozenset()  # tables and events, as the schema was read last
        self._stopping = False
        self._lock = threading.Lock()
        self._until = math.inf
        self._raw: Any = None
        self.engine = create_engine(
            "mysql+pymysql://", creator=self._connect, poolclass=NullPool, isolation_level="AUTOCOMMIT"
        )
        self._connection: Connection | None = None
        self._made = False
        self.id = 0
        self.version = ""
        try:
            with self._translating():
                self._connection = self.engine.connect().execution_options(no_parameters=True)
            self._made = True
            self._settle_in()
        except GoexError as error:
            self.close()
            if isinstance(error, Unavailable | Unsupported):
                raise
            raise Unavailable(f"The database can't be used: {error.message}", next_step=error.next_step) from None
        except BaseException:
            self.close()
            raise

    # ---- connecting

    def _connect(self) -> Any:
        place = self.place
        options: dict[str, Any] = {}
        if place.socket:
            options = {"unix_socket": place.socket, "ssl_disabled": True}
        else:
            options = {"host": place.host, "port": place.port or 3306}
            if place.tls == "verify":
                try:
                    options["ssl"] = ssl.create_default_context(cadata=place.ca_pem or None)
                except ssl.SSLError:
                    raise InvalidInput("The entry's certificate authority can't be read.") from None
            elif _is_loopback(place.host):
                options["ssl_disabled"] = True
        if place.tls != "verify" and not place.socket:
            options["auth_plugin_map"] = {"mysql_clear_password": Refusing, "dialog": Refusing}
        slow = self.limits.seconds + self.limits.lock_seconds + 15
        self._raw = pymysql.connect(
            user=place.user,
            password=self._password.reveal(),
            database=place.database,
            charset="utf8mb4",
            autocommit=True,
            local_infile=False,
            client_flag=CLIENT.TRANSACTIONS,  # neither several statements at once, nor "found rows" for "affected rows"
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=slow,
            write_timeout=slow,
            program_name="goex",
            cursorclass=bulk.LineCursor,
            **options,
        )
        return self._raw

    def _settle_in(self) -> None:
        lock = self.limits.lock_seconds
        self.run(
            f"SET SESSION sql_mode = '{STRICT}', time_zone = '+00:00', autocommit = 1, completion_type = 0,"
            " tx_isolation = 'REPEATABLE-READ', tx_read_only = 0, foreign_key_checks = 1, unique_checks = 1,"
            " check_constraint_checks = 1, sql_auto_is_null = 0, sql_safe_updates = 0, sql_select_limit = DEFAULT,"
            " sql_if_exists = 0, sql_big_selects = 1, insert_id = 0, default_week_format = 0, lc_time_names = 'en_US',"
            " div_precision_increment = 4, group_concat_max_len = 1048576, max_sort_length = 1048576,"
            " auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT, low_priority_updates = 0,"
            " in_predicate_conversion_threshold = 0, optimizer_max_sel_args = 64000, eq_range_index_dive_limit = 10,"
            " updatable_views_with_limit = 0, old_mode = '', timestamp = DEFAULT,"
            f" innodb_lock_wait_timeout = {max(1, math.ceil(lock))}, lock_wait_timeout = {max(1, math.ceil(lock))},"
            f" idle_transaction_timeout = 0, wait_timeout = {math.ceil(self.limits.seconds) + 3600},"
            f" max_statement_time = {max(1.0, self.limits.seconds):.3f}"
        )
        self.run("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
        self.run("ROLLBACK AND NO CHAIN NO RELEASE")  # what the server's init_connect may have begun
        number, self.version, mode, database = self.one(
            "SELECT CONNECTION_ID(), VERSION(), @@SESSION.sql_mode, DATABASE()"
        )
        self.id = int(number)
        found = tuple(int(part) for part in self.version.split("-")[0].split(".")[:2])
        if "mariadb" not in self.version.lower() or found < _OLDEST:
            raise Unsupported(
                f"The server is {self.version[:60]}; GoEx drives MariaDB from {'.'.join(map(str, _OLDEST))} on.",
                next_step="Use such a server.",
            )
        if set(mode.split(",")) != set(STRICT.split(",")):
            raise Unsupported("The server doesn't keep to the sql_mode that GoEx sets.")
        if str(database) != self.place.database:
            raise Unsupported("The server calls this database by another name.", next_step=f"Name it {database}.")

    # ---- round trips

    def run(self, sql: str, *, prepares: str = "") -> Did:
        """One statement, all of its rows. `prepares`: the statement that it only prepares, of which names are told."""
        with self._translating(sql, prepares):
            result = self._open.exec_driver_sql(sql)
            columns = tuple(result.keys()) if result.returns_rows else ()
            rows = tuple(tuple(row) for row in result.fetchall()) if result.returns_rows else ()
            affected = int(result.rowcount)
            result.close()
        return _did(self._raw, affected, columns, rows)

    def limited(self, sql: str, most: int) -> Did:
        """A query's first rows; the others are only counted."""
        with self._translating(sql):
            streamed = self._open.execution_options(no_parameters=True, stream_results=True, max_row_buffer=1000)
            result = streamed.exec_driver_sql(sql)
            try:
                columns = tuple(result.keys())
                rows = tuple(tuple(row) for row in result.fetchmany(most))
                more = 0
                while some := result.fetchmany(1000):
                    more += len(some)
            finally:
                result.close()
                self._open.execution_options(stream_results=False)
        return Did(len(rows), columns=columns, rows=rows, more=more)

    def rows(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        return self.run(sql).rows

    def undecoded(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        """A query's rows with their texts as bytes: where one isn't UTF-8, decoding would stop amid the answer, and
        leave the rest of it on the connection."""
        raw = self._raw
        if raw is None:
            raise errors.lost()
        raw.use_unicode = False
        try:
            return self.rows(sql)
        finally:
            raw.use_unicode = True

    def one(self, sql: str) -> tuple[Any, ...]:
        return self.run(sql).rows[0]

    def lines(self, sql: str) -> list[str]:
        """The rows of a query of one column of lines: quick for very many. Raises `bulk.TooLarge`."""
        with self._translating():
            result = self._open.exec_driver_sql(bulk.MARK + sql)
            cursor: Any = result.cursor
            try:
                found: list[str] = cursor.lines
            finally:
                result.close()
        return found

    @property
    def _open(self) -> Connection:
        if self._stopping:
            raise errors.stopped()
        if self._connection is None:
            raise errors.lost()
        if time.monotonic() > self._until:
            raise errors.translated(1969)
        return self._connection

    @contextlib.contextmanager
    def deadline(self) -> Iterator[None]:
        """What runs within it ends after `Limits.seconds`, however many statements it takes."""
        self._until = time.monotonic() + self.limits.seconds + self.limits.lock_seconds
        try:
            yield
        finally:
            self._until = math.inf

    @contextlib.contextmanager
    def _translating(self, sql: str = "", prepares: str = "") -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            self._raise(error.orig, sql, prepares)
        except (pymysql.err.Error, OSError) as error:
            self._raise(error, sql, prepares)
        except PoolTimeout:
            raise errors.lost() from None

    def _fires(self, sql: str) -> bool:
        """Whether a statement may fire a trigger: it may name a table that has one of its kind. Cascades fire none."""
        if not self.triggered or not sql or _QUIET.match(sql):
            return False
        # Other letters may be folded otherwise by the server, and some comments are read.
        if not sql.isascii() or "/*" in sql:
            return True
        first, *words = _WORDS.findall(sql.lower()) or [""]
        # An INSERT may update, a REPLACE deletes, and of a period that is cut the rest is inserted.
        plain = first in ("insert", "update", "delete") and not {"duplicate", "portion"} & set(words)
        return any(
            (first in event.lower() or not plain)
            and (name.lower() in words if _WORDS.fullmatch(name) else errors.quoted(name)[1:-1].lower() in sql.lower())
            for name, event in self.triggered
        )

    def _raise(self, error: BaseException | None, sql: str, prepares: str) -> NoReturn:
        if isinstance(error, ssl.SSLCertVerificationError):
            raise _untrusted()
        if isinstance(error, pymysql.err.MySQLError) and error.args and isinstance(error.args[0], int):
            number, text = error.args[0], str(error.args[1]) if len(error.args) > 1 else ""
        else:
            number, text = 2013, ""
        if not self._made:
            raise _not_there(number, text)
        if number in errors.LOST:
            self.drop()  # SQLAlchemy would connect anew, and go on outside of the transaction
        if self._stopping and number in errors.LOST | {1317}:
            raise ServerError(1317, errors.stopped())
        if self._fires(sql):
            raise ServerError(errors.TRIGGERED, errors.refused())
        raise ServerError(number, errors.translated(number, text, prepares or sql))

    def peer(self) -> Wire:
        """Another connection to the same place."""
        return Wire(self.place, self._password, self.limits)

    # ---- its end

    def interrupt(self) -> None:
        """From another thread: what runs is stopped, and nothing is run after it."""
        self._stopping = True
        if self.id:
            with contextlib.suppress(GoexError, pymysql.err.Error, OSError), self._lock:
                other = Wire(self.place, self._password, self.limits)
                try:
                    other.run(f"KILL QUERY {self.id:d}")
                finally:
                    other.close()

    def calm(self) -> None:
        """For the rollback after an interrupt: statements run again."""
        self._stopping = False
        self._until = math.inf

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, a transaction that is rolled back."""
        self.run("START TRANSACTION")  # READ ONLY would refuse EXPLAIN of a write
        try:
            yield
        finally:
            self.rollback()

    def rollback(self) -> None:
        """Also after an interrupt; what can't be rolled back is dropped, which does it too."""
        self.calm()
        with contextlib.suppress(GoexError):
            self.run("ROLLBACK")
            return
        self.drop()

    @property
    def interrupted(self) -> bool:
        return self._stopping

    @property
    def broken(self) -> bool:
        """Whether nothing can be said to the server any more."""
        return self._stopping or self._connection is None or self._raw is None or not self._raw.open

    def drop(self) -> None:
        """Let go of the connection without a word: the server then rolls back what isn't prepared."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be broken in any way, and is thrown away
                connection.invalidate()
            with contextlib.suppress(Exception):
                connection.close()
        raw, self._raw = self._raw, None
        if raw is not None:
            with contextlib.suppress(Exception):
                raw._force_close()

    def close(self) -> None:
        self.drop()
        with contextlib.suppress(Exception):
            self.engine.dispose()


class ServerError(GoexError):
    """What the server said, by its number (0: it may be a trigger's); `said` is what a person is told."""

    def __init__(self, number: int, said: GoexError) -> None:
        super().__init__(said.message, next_step=said.next_step)
        self.number, self.said = number, said
        self.code, self.exit_status = said.code, said.exit_status


def _did(raw: Any, affected: int, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> Did:
    result = getattr(raw, "_result", None)
    message = bytes(getattr(result, "message", None) or b"").decode(errors="replace")
    numbers = [int(word) for word in message.replace(":", " ").split() if word.isdigit()]
    if "Rows matched" in message and len(numbers) >= 2:
        return Did(affected, numbers[0], numbers[1], columns, rows)
    return Did(affected, columns=columns, rows=rows)


def _not_there(number: int, text: str) -> GoexError:
    if number in (1045, 1044, 1698, 1524, 1275, 2061, 1130, 4151, 1820, 1862):
        return Unavailable("The server doesn't let this user in.", next_step="Check the user, its password, its host.")
    if number == 1049:
        return Unavailable("The server has no database of that name.", next_step="Check the entry's URL.")
    if number == 1040:
        return Unavailable("The server has too many connections.", next_step="Try again later.")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return _untrusted()
    if number == 2026 or "SSL" in text:
        return Unavailable("No TLS connection can be made to the server.", next_step="Check its TLS settings.")
    return Unavailable("No MariaDB answers there.", next_step="Look whether it runs, and check the entry's URL.")


def _untrusted() -> Unavailable:
    return Unavailable(
        "The server's certificate isn't from an authority that is trusted, or is for another name.",
        next_step="Give the entry the authority's certificate, and the name that the certificate is for.",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
