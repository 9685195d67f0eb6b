"""How GoEx connects to PostgreSQL: settings that no database's or role's default can change, and who it may be.

Rules: every setting that changes what SQL means, how values are written, or how long anything waits is sent with the
connection's start, where it stands above what ALTER ROLE and ALTER DATABASE say; and is read back. No variable of the
environment, password file or service file is followed.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import version as libpq_version

from policies.errors import GoexError, Unavailable, Unsupported
from runtimes.sql.contract import Limits, Place
from vault.secret import Secret

OLDEST = 130000  # pg_current_xact_id, pg_xact_status(xid8)
_AGAIN = "Give the right one: goex db add NAME URL --replace"
_CONNECT_SECONDS = 10
PUBLIC = "public, pg_temp"  # search_path: triggers get the one of their role or database (`Catalog.path`)

_SETTINGS: Mapping[str, str] = {
    "role": "none",
    "search_path": PUBLIC,
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "check_function_bodies": "on",
    "xmloption": "content",
    "xmlbinary": "base64",
    "bytea_output": "hex",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "row_security": "on",
    "gin_fuzzy_search_limit": "0",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "synchronous_commit": "on",
    "default_tablespace": "",
    "temp_tablespaces": "",
    "default_table_access_method": "heap",
    "jit": "off",
}

# Memberships that reach past the database, or around what its tables say about who may do what.
_ROLES = (
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_read_all_data",
    "pg_write_all_data",
    "pg_signal_backend",
    "pg_create_subscription",
    "pg_maintain",
)

_WHO = """
SELECT pg_catalog.array_agg(DISTINCT found.what ORDER BY found.what) FROM (
  SELECT CASE WHEN r.rolsuper THEN 'superuser' WHEN r.rolcreaterole THEN 'CREATEROLE'
    WHEN r.rolreplication THEN 'REPLICATION' WHEN r.rolbypassrls THEN 'BYPASSRLS' ELSE r.rolname::pg_catalog.text END
  FROM pg_catalog.pg_roles r
  WHERE (r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR r.rolname = ANY (%s::pg_catalog.name[]))
    AND (pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER'))
) AS found(what)
"""


def connect(place: Place, password: Secret, limits: Limits) -> psycopg.Connection[Any]:
    """A connection on which each statement is committed by itself until BEGIN. Raises Unavailable and Unsupported."""
    try:
        with _authorities(place) as tls:
            connection: psycopg.Connection[Any] = psycopg.connect(
                host=place.socket or place.host,
                port=place.port or 5432,
                dbname=place.database,
                user=place.user,
                password=password.reveal().decode() or None,
                passfile="/dev/null",
                application_name="goex",
                connect_timeout=_CONNECT_SECONDS,
                keepalives_idle=30,
                keepalives_interval=10,
                keepalives_count=3,
                gssencmode="disable",
                options=_options(limits),
                autocommit=True,
                prepare_threshold=None,
                **tls,
            )
    except psycopg.Error as error:
        raise _unreachable(error) from None
    except UnicodeDecodeError:
        raise Unavailable("The password of this database isn't text.", next_step=_AGAIN) from None
    try:
        _check(connection, place)
    except GoexError:
        connection.close()
        raise
    except psycopg.Error as error:
        connection.close()
        raise _unreachable(error) from None
    return connection


def _options(limits: Limits) -> str:
    settings = {
        **_SETTINGS,
        "statement_timeout": str(int(limits.seconds * 1000)),
        "lock_timeout": str(int(limits.lock_seconds * 1000)),
        # A daemon that hangs must not hold anybody's rows for ever.
        "idle_in_transaction_session_timeout": str(int(limits.seconds * 1000) + 60_000),
        "idle_session_timeout": "0",
    }
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


@contextmanager
def _authorities(place: Place) -> Iterator[dict[str, Any]]:
    """TLS as the entry wants it: a certificate for this very host, by the entry's authorities or the system's."""
    certificates = {"sslcertmode": "disable"} if libpq_version() >= 160000 else {}  # none of ours is offered
    plain = {"require_auth": "!password"} if libpq_version() >= 160000 else {}  # never in the clear
    if place.tls == "none":
        yield {"sslmode": "disable", **({} if place.socket else plain)}
        return
    if not place.ca_pem:
        yield {"sslmode": "verify-full", "sslrootcert": _system_authorities(), **certificates}
        return
    with tempfile.NamedTemporaryFile("w", prefix="goex-ca-", suffix=".pem") as file:
        file.write(place.ca_pem)
        file.flush()
        yield {"sslmode": "verify-full", "sslrootcert": file.name, **certificates}


def _system_authorities() -> str:
    found = ssl.get_default_verify_paths().cafile
    for path in (found, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"):
        if path and Path(path).exists():
            return path
    return "system"


def _unreachable(error: psycopg.Error) -> GoexError:
    """Never quotes the library: its text may hold the address with everything in it."""
    text, code = str(error), error.sqlstate or ""
    if code in ("28P01", "28000") or "password authentication failed" in text or "no password supplied" in text:
        return Unavailable("The database doesn't know this user with this password.", next_step=_AGAIN)
    if code == "3D000" or ("does not exist" in text and "database" in text):
        return Unavailable("There is no database of that name on this server.", next_step="goex db list")
    if "no pg_hba.conf entry" in text:
        return Unavailable("The server lets nobody in from here as this user (its pg_hba.conf).")
    if "certificate" in text or "SSL" in text or "ssl" in text:
        return Unavailable(
            "The server's TLS certificate isn't one that can be trusted for this host, or it speaks no TLS.",
            next_step="Give the authority's certificate: goex db add --ca FILE.",
        )
    if "require_auth" in text or "authentication method requirement" in text:
        return Unavailable("The server asks for the password in the clear; GoEx doesn't send it so.")
    return Unavailable("The database can't be reached.", next_step="See whether its server runs.")


def _check(connection: psycopg.Connection[Any], place: Place) -> None:
    if connection.info.server_version < OLDEST:
        raise Unsupported("This PostgreSQL is too old; GoEx needs 13 or newer.")
    names = [name for name in _SETTINGS if name != "client_encoding"]
    wanted = [_SETTINGS[name] for name in names]
    got = connection.execute(
        "SELECT " + ", ".join("pg_catalog.current_setting(%s)" for _ in names),
        names,
    ).fetchone()
    for name, value, found in zip(names, wanted, got or (), strict=True):
        if found != value:
            raise Unsupported(
                f"The server doesn't keep to the setting {name} that GoEx asks for.",
                next_step="Connect to PostgreSQL itself, not through a pooler.",
            )
    row = connection.execute(_WHO, [list(_ROLES)]).fetchone()
    more = row[0] if row else None
    if more:
        raise Unsupported(
            f"The user {place.user} of this database may do more than GoEx can hold it to ({', '.join(more)}).",
            next_step=fitting_role(place),
        )


def fitting_role(place: Place) -> str:
    """The statements that make a user for GoEx."""
    return (
        "Make one for GoEx as the superuser, and give that to goex db add: CREATE ROLE goex LOGIN PASSWORD '…'; "
        f'GRANT CONNECT, TEMPORARY ON DATABASE "{place.database}" TO goex; GRANT USAGE ON SCHEMA public TO goex; '
        "GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON ALL TABLES IN SCHEMA public TO goex; "
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO goex;"
    )
