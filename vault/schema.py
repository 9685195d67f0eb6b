"""The file: what vault.db looks like on disk, who may touch it, and how SQLite's errors are told.

Rules: one regular file, mode 0600, in a folder that is closed to others; anything else is refused, not mended. Every
write is one immediate transaction that is on disk when it returns (rollback journal, `synchronous=EXTRA`, which is
FULL and syncs the folder too), and `secure_delete` overwrites what was replaced. The schema must be exactly ours:
a trigger or a view that someone added is refused. Rows are read without conversion, so that a changed type shows.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    create_engine,
    event,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import UserDefinedType

from policies.errors import GoexError
from policies.regular_file import unfit_beside
from vault.errors import (
    VaultAbsent,
    VaultBroken,
    VaultChanged,
    VaultExposed,
    VaultTooNew,
    VaultUnwritable,
)

# 2: the record index may hold payload keys and the note of a restore; records may be of more formats. 3: it may hold
# how far the log had come. An older file opens as it is, and the first write makes it one of the newest, so that an
# older GoEx doesn't write away what it can't read.
SCHEMA_VERSION = 3
APPLICATION_ID = 0x476F4578

# Fixed text: SQLite keeps it as written, and it is compared on every opening.
_DDL = {
    "header": """CREATE TABLE header (
  id INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
  vault_id TEXT NOT NULL,
  generation INTEGER NOT NULL,
  keyed_by TEXT NOT NULL,
  parameters TEXT NOT NULL,
  wrapped_master BLOB NOT NULL,
  ledger BLOB NOT NULL,
  checksum BLOB NOT NULL
) STRICT""",
    "records": """CREATE TABLE records (
  id TEXT PRIMARY KEY NOT NULL,
  version INTEGER NOT NULL,
  service TEXT NOT NULL,
  name TEXT NOT NULL,
  format TEXT NOT NULL,
  base_url TEXT NOT NULL,
  origins TEXT NOT NULL,
  private INTEGER NOT NULL,
  ca_pem TEXT NOT NULL,
  created TEXT NOT NULL,
  updated TEXT NOT NULL,
  wrapped_key BLOB NOT NULL,
  sealed BLOB NOT NULL,
  UNIQUE (service, name)
) STRICT""",
}
_SCHEMA = {
    *(("table", name, text) for name, text in _DDL.items()),
    ("index", "sqlite_autoindex_records_1", None),
    ("index", "sqlite_autoindex_records_2", None),
}

_PRAGMAS = (
    "PRAGMA busy_timeout = 2000",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = EXTRA",
)


class _Raw(UserDefinedType[Any]):
    """A BLOB column read as it is, whatever is in it."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "BLOB"


wanted: BindParameter[str] = bindparam("wanted")
_metadata = MetaData()
header = Table(
    "header",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("vault_id", Text),
    Column("generation", Integer),
    Column("keyed_by", Text),
    Column("parameters", Text),
    Column("wrapped_master", _Raw),
    Column("ledger", _Raw),
    Column("checksum", _Raw),
)
records = Table(
    "records",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("version", Integer),
    Column("service", Text),
    Column("name", Text),
    Column("format", Text),
    Column("base_url", Text),
    Column("origins", Text),
    Column("private", Integer),
    Column("ca_pem", Text),
    Column("created", Text),
    Column("updated", Text),
    Column("wrapped_key", _Raw),
    Column("sealed", _Raw),
)


class VaultFile:
    """An open vault.db: one connection, used under its owner's lock."""

    def __init__(self, path: Path) -> None:
        """Raises VaultAbsent, VaultExposed, VaultBroken, VaultTooNew, VaultUnwritable."""
        self.path = path
        self._identity = _check_place(path)
        self._engine = _engine(path)
        try:
            with self.reading() as connection:
                self._format = _check_schema(connection)
                self._driver = connection.connection.driver_connection
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """For one statement, which sees one state of the file."""
        self._check_identity()
        with translated(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: on disk when the block ends, not there at all when it raises."""
        self._check_identity()
        with translated(), self._engine.connect().execution_options(immediate=True) as connection, connection.begin():
            yield connection

    def version(self) -> int:
        """Another number after each write of somebody else's, as far as reading the file would show it."""
        self._check_identity()
        assert isinstance(self._driver, sqlite3.Connection)
        with translated():
            return int(self._driver.execute("PRAGMA data_version").fetchone()[0])

    def mark_format(self, connection: Connection) -> None:
        """Within a write: what is written from now on is of this GoEx's format."""
        if self._format != SCHEMA_VERSION:
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        self._engine.dispose()

    def _check_identity(self) -> None:
        try:
            now = self.path.stat()
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._identity:
            raise VaultChanged(
                f"{self.path} was replaced or removed while the vault was in use.",
                next_step="Find out by whom; then seal and unlock it.",
            )
        if (unfit := unfit_beside(self.path)) is not None:  # SQLite would wait for a pipe's other end
            file, why = unfit
            raise VaultUnwritable(f"{file} {why}.", next_step="Move it away, or put the file back itself.")


def create_file(path: Path) -> VaultFile:
    """A new, empty vault.db, mode 0600, whose header is still to be written. The caller moves it into place."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    os.close(descriptor)
    engine = _engine(path)
    try:
        with translated(), engine.connect().execution_options(immediate=True) as connection:
            for text in _DDL.values():
                connection.exec_driver_sql(text)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.commit()
    finally:
        engine.dispose()
    return VaultFile(path)


@contextmanager
def translated() -> Iterator[None]:
    """Turn SQLite's errors into the vault's."""
    try:
        yield
    except DBAPIError as error:
        raise _translate(error.orig) from None
    except (sqlite3.Error, UnicodeDecodeError) as error:  # while connecting; a message that quotes damaged bytes
        raise _translate(error) from None


def _translate(error: BaseException | None) -> GoexError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    told = {
        sqlite3.SQLITE_FULL: ("The disk is full.", "Free some space, then retry."),
        sqlite3.SQLITE_READONLY: ("The vault's file can't be written to.", "Make it and its folder writable."),
        sqlite3.SQLITE_PERM: ("The vault's file can't be written to.", "Make it and its folder writable."),
        sqlite3.SQLITE_CANTOPEN: ("The vault's file, or one beside it, can't be opened.", "Check the folder and disk."),
        sqlite3.SQLITE_BUSY: ("Another process is writing to the vault.", "Retry when it has ended."),
        sqlite3.SQLITE_LOCKED: ("Another process is writing to the vault.", "Retry when it has ended."),
        sqlite3.SQLITE_IOERR: ("The disk failed to read or write.", "Check the disk and its free space."),
    }.get(code)
    if told is not None:
        return VaultUnwritable(f"{told[0]} What the vault held is intact.", next_step=told[1])
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return broken(f"SQLite can't read the vault's file ({name}).")


def broken(message: str) -> VaultBroken:
    """The error for a file that isn't, or is no longer, a vault."""
    return VaultBroken(message, next_step="Restore vault.db from a backup, or move it away and run: goex vault init.")


def _engine(path: Path) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(f"file:{_quoted(path)}?mode=rw", uri=True, check_same_thread=False),
        poolclass=StaticPool,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver's guess
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for pragma in _PRAGMAS:
            connection.execute(pragma).fetchall()

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get("immediate", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _check_place(path: Path) -> tuple[int, int]:
    """Refuse what others can touch. Returns the file's identity."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        raise VaultAbsent(f"There is no vault at {path}.", next_step="Make one: goex vault init.") from None
    except OSError as error:
        raise VaultUnwritable(f"{path} can't be reached: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise broken(f"{path} isn't a regular file.")
    folder = path.parent.stat()
    for place, status, mode in ((path, found, "600"), (path.parent, folder, "700")):
        if status.st_uid not in (os.geteuid(), 0):
            raise VaultExposed(f"{place} belongs to another user.", next_step="Take ownership of it, if it is yours.")
        if status.st_mode & 0o077:
            raise VaultExposed(f"Other users can reach {place}.", next_step=f"Run: chmod {mode} '{place}'.")
    if not os.access(path, os.R_OK | os.W_OK):
        raise VaultUnwritable(f"{path} can't be read and written to.", next_step=f"Run: chmod 600 '{path}'.")
    return found.st_dev, found.st_ino


def _check_schema(connection: Connection) -> int:
    """The file's format."""
    application = connection.exec_driver_sql("PRAGMA application_id").scalar()
    version = connection.exec_driver_sql("PRAGMA user_version").scalar()
    if application != APPLICATION_ID or not isinstance(version, int) or version < 1:
        raise broken("The file isn't a vault.")
    if version > SCHEMA_VERSION:
        raise VaultTooNew(
            f"This vault has format {version}; this GoEx reads up to {SCHEMA_VERSION}.", next_step="Update GoEx."
        )
    if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() != "ok":
        raise broken("The vault's file is damaged.")
    found = {tuple(row) for row in connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master")}
    if found != _SCHEMA:
        raise broken("The vault's tables aren't those that GoEx made.")
    return version
