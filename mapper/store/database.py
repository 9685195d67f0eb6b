"""The catalog's file: its tables, who may have written it, and how it is opened.

Rules: it is a regular file of the person's own that nobody else can open (0600), made by a GoEx that is no newer than
this one; anything else is refused with a next step, never mended. It holds tables and nothing that computes (a view
could be one that never ends). Reading connections can't write, and wait for nobody for long: whoever asks may be a
daemon that answers others meanwhile. SQLite's own errors don't leave this package.

The file is opened by SQLite alone, and else looked at by name: a process that closes any descriptor of it loses the
locks that SQLite holds there, and the next command would remove the log under a daemon that reads it.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from policies.errors import Unavailable
from policies.regular_file import unfit_beside

APPLICATION = 0x476F4578  # "GoEx", in the file's header
FORMAT = 1

_LONGEST_CELL = 32_000_000  # bytes; what one cell may hold, and what a statement may make
_READING_WAITS = 2.0  # seconds for a lock of another process
_WRITING_WAITS = 10.0

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE service (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    provider TEXT NOT NULL,
    provider_name TEXT NOT NULL,
    version TEXT NOT NULL,
    main INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    base_url TEXT NOT NULL,
    placement TEXT NOT NULL,
    methods INTEGER NOT NULL
);
CREATE UNIQUE INDEX service_name ON service (name COLLATE NOCASE);
CREATE INDEX service_provider ON service (provider, provider_name);
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    service_id INTEGER NOT NULL REFERENCES service,
    provider TEXT NOT NULL,
    provider_name TEXT NOT NULL,
    version TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    base_url TEXT NOT NULL,
    placement TEXT NOT NULL,
    file TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    imported TEXT NOT NULL,
    UNIQUE (provider, provider_name, version)
);
CREATE INDEX document_service ON document (service_id);
CREATE TABLE scope (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES document,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    risk INTEGER NOT NULL,
    virtual INTEGER NOT NULL,
    UNIQUE (document_id, name)
);
CREATE TABLE method (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES document,
    name TEXT NOT NULL,
    origin_id TEXT NOT NULL,
    description TEXT NOT NULL,
    http TEXT NOT NULL,
    path TEXT NOT NULL,
    risk INTEGER NOT NULL,
    body TEXT NOT NULL,
    unsupported TEXT NOT NULL,
    tool INTEGER NOT NULL,
    scopes TEXT NOT NULL,
    detail INTEGER NOT NULL REFERENCES blob,
    UNIQUE (document_id, name)
);
CREATE INDEX method_by_name ON method (name);
CREATE INDEX method_origin ON method (origin_id);
CREATE INDEX method_tool ON method (tool);
CREATE TABLE unlocks (
    scope_id INTEGER NOT NULL REFERENCES scope,
    method_id INTEGER NOT NULL REFERENCES method,
    PRIMARY KEY (scope_id, method_id)
) WITHOUT ROWID;
CREATE TABLE schema (
    document_id INTEGER NOT NULL REFERENCES document,
    name TEXT NOT NULL,
    blob_id INTEGER NOT NULL REFERENCES blob,
    PRIMARY KEY (document_id, name)
) WITHOUT ROWID;
CREATE TABLE blob (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
INSERT INTO meta VALUES ('generation', 1);
"""


class StoreUnreadable(Unavailable):
    """The catalog's file can't be used: damaged, another program's, a newer GoEx's, or open to others."""

    code = "catalog-unreadable"


class ServiceUnreadable(StoreUnreadable):
    """One imported service can't be read; the others can. `service` is its name."""

    code = "service-unreadable"

    def __init__(self, service: str, why: str) -> None:
        super().__init__(
            f"The imported service {service} can't be read: {why}.",
            next_step=f"Remove it, then import it anew: goex catalog remove {service}",
        )
        self.service = service


@contextmanager
def of_service(name: str) -> Iterator[None]:
    """What a service's rows hold that no import writes becomes ServiceUnreadable; SQLite's own errors pass."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) is not None:
            raise  # the file, or the machine
        raise ServiceUnreadable(name, str(error)[:200]) from error
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ServiceUnreadable(name, f"it holds something that no import writes ({error!r:.100})") from error


def open_reading(path: Path) -> sqlite3.Connection:
    """A connection that can't write. Raises FileNotFoundError where there is no file yet, else StoreUnreadable."""
    check_file(path)
    with translated(path):
        # Not mode=ro: that can't open a write-ahead log whose index is gone.
        connection = _connect(path, _READING_WAITS)
        try:
            if _is_new(connection):  # whoever makes it has only begun
                raise FileNotFoundError(path)
            check_header(connection, path)
            connection.execute("PRAGMA query_only=1")
        except BaseException:
            connection.close()
            raise
        return connection


def open_writing(path: Path) -> sqlite3.Connection:
    """A connection that writes; makes the file, private, where it isn't there. Raises StoreUnreadable."""
    try:
        if not os.path.lexists(path):
            _make(path)
        check_file(path)
    except OSError as error:
        raise StoreUnreadable(
            f"The catalog {path} can't be written: {error.strerror}.", next_step=f"Look at it with: ls -l {path}"
        ) from error
    with translated(path):
        connection = _connect(path, _WRITING_WAITS)
        try:
            if not _is_new(connection):
                check_header(connection, path)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            if _is_new(connection):
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={FORMAT}")
            connection.execute("COMMIT")
            check_header(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _make(path: Path) -> None:
    """Make an empty file that only its owner can open, unless there is one. Raises OSError."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        with suppress(FileExistsError):
            os.link(fresh, path)  # closed before it has its name
    finally:
        fresh.unlink()


def check_file(path: Path) -> None:
    """Raise StoreUnreadable unless it is a private, regular file of ours; FileNotFoundError where there is none."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreUnreadable(f"The catalog {path} can't be looked at: {error.strerror}.") from error
    unfit = unfit_beside(path) if stat.S_ISREG(found.st_mode) else (path, "isn't a regular file")
    if unfit is not None:
        file, why = unfit
        raise StoreUnreadable(f"The catalog {file} {why}.", next_step=f"Move it away: mv {file} {file}.old")
    if found.st_uid != os.geteuid():
        raise StoreUnreadable(
            f"The catalog {path} belongs to user {found.st_uid}, not to you.",
            next_step="Move it away, then import anew.",
        )
    if found.st_mode & 0o077:
        raise StoreUnreadable(
            f"The catalog {path} is open to others (mode {stat.S_IMODE(found.st_mode):04o}).",
            next_step=f"If you trust what it holds: chmod 600 {path}; else remove it and import anew.",
        )


def check_header(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreUnreadable unless this GoEx, or an older one, wrote the file."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise StoreUnreadable(f"{path} isn't a catalog of GoEx.", next_step=f"Move it away: mv {path} {path}.old")
    if version > FORMAT:
        raise StoreUnreadable(
            f"{path} was written by a newer GoEx (format {version}; this one reads {FORMAT}).",
            next_step=f"Use that GoEx, or remove {path} and import anew.",
        )
    strange = connection.execute(
        "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'create%virtual%table%'"
    ).fetchone()
    if strange is not None:
        raise sqlite3.DatabaseError(f"it holds {str(strange[0])[:60]!r}, which no import makes")


def _is_new(connection: sqlite3.Connection) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(application) == 0 and int(tables) == 0


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors become StoreUnreadable."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise StoreUnreadable(
                f"The catalog {path} is being written by another goex command.", next_step="Try again when it is done."
            ) from error
        raise _refused_by_disk(path, error) or _damaged(path, error) from error
    except (sqlite3.Error, OverflowError) as error:
        raise _damaged(path, error) from error


def _refused_by_disk(path: Path, error: sqlite3.OperationalError) -> StoreUnreadable | None:
    """The error of a disk that is full, fails or may not be written: what the file holds isn't damaged by that."""
    told = {
        sqlite3.SQLITE_FULL: ("The disk is full.", f"Free some space below {path.parent}, then try again."),
        sqlite3.SQLITE_IOERR: ("The disk failed to read or write.", "Check the disk and its free space."),
        sqlite3.SQLITE_READONLY: ("It can't be written to.", f"Look at it with: ls -l {path}"),
        sqlite3.SQLITE_CANTOPEN: ("It can't be opened.", "Check the folder and the disk."),
        sqlite3.SQLITE_PERM: ("It can't be opened.", f"Look at it with: ls -l {path}"),
    }.get(error.sqlite_errorcode & 0xFF)
    return told and StoreUnreadable(f"The catalog {path} can't be used. {told[0]}", next_step=told[1])


def _damaged(path: Path, error: Exception) -> StoreUnreadable:
    return StoreUnreadable(
        f"The catalog {path} can't be read: {error}.",
        next_step=f"Remove it (rm {path}*) and import anew; the services that come with GoEx still work.",
    )


def _connect(path: Path, waits: float) -> sqlite3.Connection:
    from urllib.parse import quote

    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None, timeout=waits, check_same_thread=False
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
    connection.execute("PRAGMA trusted_schema=0")
    connection.execute("PRAGMA cell_size_check=1")
    connection.execute("PRAGMA foreign_keys=0")
    connection.execute("PRAGMA cache_size=-4096")
    return connection
