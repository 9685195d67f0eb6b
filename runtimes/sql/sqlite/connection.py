"""A connection to somebody's file, set up so that only what was checked can happen in it.

Beside the checked statement there is an authorizer as a second line: it lets a statement do what its `uses` say, and
what declared triggers and foreign keys then do, and nothing else (no ATTACH, no PRAGMA, no extension, no temporary
table). Functions of the schema run only when SQLite holds them for harmless (`trusted_schema` off).

Foreign keys are enforced, though SQLite's own default for a connection is not to: what the schema declares is what its
owner wants to hold, an action that broke it couldn't be told from one that was meant to, and cascades are caught row by
row like everything else.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

from policies.errors import Conflict, GoexError, InvalidInput
from runtimes.open_files import OPEN_FILES, above, beside
from runtimes.sql.checking.functions import FILE_NUMBERS, PRAGMAS, SETS
from runtimes.sql.checking.nodes import lower
from runtimes.sql.contract import Limits, Statement
from runtimes.sql.sqlite import location
from runtimes.sql.sqlite.errors import while_running
from runtimes.sql.sqlite.location import Pinned

_LENGTH = 64 * 2**20  # bytes of one value, or of one row
_PREPARED = 2**20  # the same, where nothing of the rows is read: before a statement is approved
_STEPS = 2000  # virtual machine instructions between two looks at the clock
_LIMITS = {
    apsw.SQLITE_LIMIT_SQL_LENGTH: 2_000_000,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 500,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 100,
}
_SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA cache_size = -16000",
    "PRAGMA temp_store = FILE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA foreign_keys = ON",
)
# What a statement may do beside reading and writing rows, by its verb.
_DEFINING = {
    "create": {
        apsw.SQLITE_CREATE_TABLE,
        apsw.SQLITE_CREATE_INDEX,
        apsw.SQLITE_CREATE_VIEW,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_REINDEX,
    },
    "alter": {apsw.SQLITE_ALTER_TABLE, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_REINDEX, apsw.SQLITE_DROP_INDEX},
    "drop": {
        apsw.SQLITE_DROP_TABLE,
        apsw.SQLITE_DROP_INDEX,
        apsw.SQLITE_DROP_VIEW,
        apsw.SQLITE_DROP_TRIGGER,
        apsw.SQLITE_DROP_VTABLE,
    },
}
_WRITING = {apsw.SQLITE_INSERT: "insert", apsw.SQLITE_UPDATE: "update", apsw.SQLITE_DELETE: "delete"}
_CATALOG = frozenset({"sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_temp_master", "sqlite_temp_schema"})
_NO_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "writefile", "readfile", "edit"})

Write = tuple[str, str, str]  # verb, table, the trigger that does it ("" for the statement itself and for cascades)


def limited(db: apsw.Connection, length: int = _PREPARED) -> None:
    """Hold a connection to what an agent's statement may take. `length`: bytes of one value, or of one row."""
    for limit, value in _LIMITS.items():
        db.limit(limit, value)
    db.limit(apsw.SQLITE_LIMIT_LENGTH, length)


class Connection:
    """One connection, its clock, and what its next statement may do."""

    def __init__(self, pinned: Pinned, limits: Limits) -> None:
        self.pinned = pinned
        self._until: float | None = None
        self._lock_seconds, self._waiting_since = limits.lock_seconds, 0.0
        self._stop = False
        self._allowed: Callable[[int, str | None, str | None, str | None, str | None], bool] | None = None
        self.trouble: GoexError | None = None  # what a callback found, which ends the statement
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        files = [(pinned.device, pinned.inode), *beside(pinned.path), *above(pinned.path)]
        self._hold = OPEN_FILES.hold("database", files, seconds=limits.lock_seconds)
        try:
            # A program may have worked there since the file was looked at; from here on none does.
            location.check_beside(pinned.path, location.check_same(pinned))
            self.db = apsw.Connection(pinned.path, flags=flags)
        except GoexError:
            self._hold.release()
            raise
        except apsw.Error as error:
            self._hold.release()
            location.check_same(pinned)
            raise while_running(error) from error
        try:
            self.db.set_busy_handler(self._wait)
            self.check_same()
            self._secure()
            self.db.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # plays back a journal that was left
            self._hold.add(beside(pinned.path), seconds=0)  # what SQLite has made
            self.check_same()
        except apsw.Error as error:
            self.close()
            raise while_running(error) from error
        except BaseException:
            self.close()
            raise

    def check_same(self) -> None:
        """Raise Conflict unless SQLite holds the file that was looked at, and it still has its name."""
        location.check_same(self.pinned)
        moved = ctypes.c_int(1)
        self.db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        if moved.value:
            raise location.swapped(self.pinned.path)

    def _secure(self) -> None:
        db = self.db
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
        db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        limited(db, _LENGTH)
        for setting in _SETTINGS:
            db.execute(setting).fetchall()
        self.limit_time(db)

    # ---- the clock

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Everything inside ends after that many seconds, or when somebody stops it."""
        self._until = time.monotonic() + seconds
        try:
            yield
        except apsw.InterruptError as error:
            raise self.trouble or self._ended() from error
        finally:
            self._until, self._stop, self.trouble = None, False, None

    @contextmanager
    def briefly(self, seconds: float) -> Iterator[None]:
        """What is inside ends after that many seconds with an InterruptError, and what comes after it goes on."""
        until = self._until
        self._until = min(time.monotonic() + seconds, until if until is not None else math.inf)
        try:
            yield
        finally:
            self._until = until

    def interrupt(self) -> None:
        """From another thread."""
        self._stop = True
        with suppress(apsw.Error):
            self.db.interrupt()

    def check_time(self) -> None:
        """Raise Conflict when it is over."""
        if self._due():
            raise self.trouble or self._ended()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Inside, also a statement that is only prepared ends when it is over."""
        with self._authorized(lambda *_: True):
            yield

    def limit_time(self, db: apsw.Connection) -> None:
        """Have what runs on a connection, this or one in memory, end when it is over."""
        db.set_progress_handler(self._due, _STEPS)

    def in_time(self, *_: object) -> int:
        """An authorizer that raises InterruptError when it is over: SQLite looks at no clock while it prepares a
        statement, and one that reads views which read others several times takes long to prepare."""
        if self._due():
            raise apsw.InterruptError("It is over.")
        return apsw.SQLITE_OK

    def _wait(self, tries: int) -> bool:
        """Whether to try again: somebody else has the lock."""
        if tries == 0:
            self._waiting_since = time.monotonic()
        if self._due() or time.monotonic() - self._waiting_since > self._lock_seconds:
            return False
        time.sleep(min(0.001 * 2 ** min(tries, 5), 0.025))
        return True

    def _due(self) -> bool:
        late = self._until is not None and time.monotonic() > self._until
        return self._stop or late or self.trouble is not None

    def _ended(self) -> Conflict:
        if self._stop:
            return Conflict("It was stopped. Nothing was changed.", next_step="Ask for it again.")
        return Conflict("It took too long. Nothing was changed.", next_step="Change fewer rows at a time.")

    # ---- what may happen

    @contextmanager
    def only(self, statement: Statement, cascades: frozenset[tuple[str, str]]) -> Iterator[None]:
        """Inside, only what `statement` says and what follows from it by declaration. `cascades`: (verb, table)."""
        own = {(use.verb, lower(use.table)) for use in statement.uses}
        follow = {(verb, lower(table)) for verb, table in cascades}
        defines: set[int] = _DEFINING.get(statement.verb, set())
        explained = statement.sql.startswith("EXPLAIN ")  # prepared, and never run
        analyzes = statement.verb == "alter" and statement.sql.partition(" ")[0] == "ANALYZE"

        def allowed(code: int, first: str | None, second: str | None, base: str | None, inside: str | None) -> bool:
            if code == apsw.SQLITE_ALTER_TABLE:  # told as: database, table, column
                return code in defines and first == "main"
            if base not in (None, "main") and not (defines and base == "temp" and first in _CATALOG):
                return False
            if code in (apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE):
                return True
            if code == apsw.SQLITE_FUNCTION:
                return lower(second or "") not in _NO_FUNCTIONS
            if code in _WRITING and explained:
                return True
            if (first or "").startswith("sqlite_stat"):  # statistics, of what is analyzed or goes away
                if code in _WRITING and statement.verb in ("alter", "drop"):
                    return True
                if code == apsw.SQLITE_CREATE_TABLE and analyzes:
                    return True
            if code == apsw.SQLITE_ANALYZE:
                return analyzes
            if code == apsw.SQLITE_PRAGMA and first in FILE_NUMBERS and second is not None:
                return statement.verb == "alter" and statement.sql == f"PRAGMA {first} = {second}"
            if code in _WRITING:
                if inside is not None or first in _CATALOG:
                    return first not in _CATALOG or bool(defines)
                wanted = (_WRITING[code], lower(first or ""))
                # DROP takes away its table's rows; ALTER writes them anew, and CREATE … AS fills its table.
                own_table = defines and (statement.verb, wanted[1]) in own
                return wanted in own or wanted in follow or bool(own_table)
            if code == apsw.SQLITE_PRAGMA:  # full-text indexes look at the first one
                return first in ({*PRAGMAS, "data_version"} if second is None else PRAGMAS.keys() - SETS)
            return code in defines

        with self._authorized(allowed):
            yield

    @contextmanager
    def noting(self, into: set[Write], reads: set[str]) -> Iterator[None]:
        """Inside, everything is allowed and every write that a statement holds is noted, and what triggers and views
        read; nothing may run in it."""

        def allowed(code: int, first: str | None, second: str | None, base: str | None, inside: str | None) -> bool:
            if code in _WRITING and first is not None and first not in _CATALOG:
                into.add((_WRITING[code], first, inside or ""))
            elif code == apsw.SQLITE_READ and first and inside:
                reads.add(first)
            return True

        before = self.db.limit(apsw.SQLITE_LIMIT_LENGTH, _PREPARED)
        try:
            with self._authorized(allowed):
                yield
        finally:
            self.db.limit(apsw.SQLITE_LIMIT_LENGTH, before)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, only reading."""

        def allowed(code: int, first: str | None, second: str | None, base: str | None, inside: str | None) -> bool:
            if code == apsw.SQLITE_FUNCTION:
                return lower(second or "") not in _NO_FUNCTIONS
            if code == apsw.SQLITE_PRAGMA:
                return first in PRAGMAS.keys() - SETS
            return code in (apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE)

        with self._authorized(allowed):
            yield

    @contextmanager
    def _authorized(
        self, allowed: Callable[[int, str | None, str | None, str | None, str | None], bool]
    ) -> Iterator[None]:
        def decide(code: int, *facts: str | None) -> int:
            self.in_time()
            return apsw.SQLITE_OK if allowed(code, *facts) else apsw.SQLITE_DENY

        self.db.authorizer = decide
        try:
            yield
        finally:
            self.db.authorizer = None

    # ---- transactions

    @contextmanager
    def transaction(self, kind: str) -> Iterator[None]:
        """BEGIN; what is inside commits it, or it is rolled back."""
        try:
            self.db.execute(f"BEGIN {kind}")
        except apsw.Error as error:
            raise while_running(error) from error
        try:
            yield
        finally:
            if self.db.in_transaction:
                with suppress(apsw.Error):
                    self.db.execute("ROLLBACK")

    def writable(self) -> None:
        """Raise InvalidInput when the file can only be read."""
        if self.db.readonly("main"):
            raise InvalidInput("The database's file can only be read.", next_step="Check its mode and its disk.")

    def close(self) -> None:
        with suppress(apsw.Error):
            self.db.close()
            self._hold.release()  # what couldn't be closed stays kept from folder actions
