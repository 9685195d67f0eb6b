"""What an engine of databases (PostgreSQL, MariaDB, SQLite) has to do so that one runtime can drive them all.

All calls block, and are made from one thread at a time, except `interrupt`. Rules for every engine:

* Only `Statement.sql` ever runs: text that was made anew from the checked tree.
* What is needed later is in `Job.records` before the effect that makes it needed: an image before the commit.
* Exact, or refused beforehand with the reason (`survey` raises Unsupported, and names another policy where one would
  do); what shows only while it runs rolls the transaction back and raises Conflict or Unsupported: nothing was touched.
* Nothing hangs: waiting for somebody's lock ends after `Limits.lock_seconds` with a Conflict that says who holds it,
  where that can be known (another GoEx action: its id).
* Undo and redo restore rows that were recorded; they never run the statement again, and they compare before they set:
  a row, a key or a definition that isn't as recorded is a Conflict that lists what differs, and nothing is touched.
* Errors carry no secret, and no address with a password in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from policies.errors import ExitStatus, GoexError
from policies.jsonvalue import JsonObject, JsonValue
from policies.typed_json import NEWER, SPARSE
from runtimes.base import Records
from runtimes.sql.limits import Limits as Limits
from vault.secret import Secret


class Dialect(StrEnum):
    """How its SQL is read. MySQL is read and driven as MariaDB is."""

    POSTGRESQL = "postgresql"
    MARIADB = "mariadb"
    SQLITE = "sqlite"


Policy = Literal["versioning", "reversal", "pairs"]
Verb = Literal["select", "insert", "update", "delete", "truncate", "create", "alter", "drop"]
WRITES: frozenset[Verb] = frozenset({"insert", "update", "delete", "truncate", "create", "alter", "drop"})


# ---- what the database holds: names and types, never rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`type` as the engine spells it. `generated`: its value is computed and can't be written."""

    name: str
    type: str
    nullable: bool = True
    generated: bool = False
    default: str = ""
    counter: bool = False  # identity, serial, AUTO_INCREMENT, rowid


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """`columns` of the table that holds it point to `parent_columns` of `parent`."""

    name: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`name` is how it is called everywhere here: `schema.table` in PostgreSQL outside `public`, else `table`.

    `facts` are the engine's own about it (storage engine, partitioning, row security, …), for its `survey`.
    """

    name: str
    kind: Literal["table", "view", "other"] = "table"
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()  # the primary key; (): none
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    triggers: tuple[str, ...] = ()  # their names
    # What reading it reads besides, all the way down: what a view stands on, children, the parents of a child.
    stands_on: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()  # of these, the ones that its own permission covers: partitions and other children
    facts: Mapping[str, JsonValue] = field(default_factory=dict)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Everything that GoEx's user can see. `hash` changes whenever a definition does; a plan is bound to it."""

    dialect: Dialect
    version: str
    tables: Mapping[str, Table]
    hash: str
    notes: tuple[str, ...] = ()  # what can be done there and what can't, for the person who adds it; not hashed
    shadows: frozenset[str] = frozenset()  # PostgreSQL: the server's functions that somebody's may stand in for
    extended: Mapping[str, str] = field(default_factory=dict)  # listed functions of extensions, each with its schema


# ---- what was checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a statement does to one table as far as its text says. `columns` () is all of them."""

    table: str  # as in Schema.tables; for "create": the name it will have
    verb: Verb
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement, made anew from its checked tree."""

    sql: str
    verb: Verb
    table: str  # what is written; of a select: ""
    uses: tuple[Use, ...]
    # Tables that MariaDB's UPDATE or DELETE of several writes besides.
    others: tuple[str, ...] = field(default=(), metadata=SPARSE)
    everywhere: bool = False  # a write without a WHERE
    # Rows of `table` that it writes at most, by its text and the table's key alone.
    most: int | None = field(default=None, metadata=NEWER)
    # Of INSERT … SELECT: tables whose sizes, multiplied, bound it.
    sources: tuple[str, ...] = field(default=(), metadata=NEWER)
    count_sql: str = ""  # a SELECT of that number, whose work doesn't depend on what it finds; "": nothing may be asked
    returns_rows: bool = False  # a SELECT, or RETURNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Statements that run in order, in one transaction."""

    dialect: Dialect
    statements: tuple[Statement, ...]

    @property
    def reads_only(self) -> bool:
        return all(use.verb == "select" for statement in self.statements for use in statement.uses)


# ---- where


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a database is, as the person's entry says. Never holds a secret.

    `path` is SQLite's file; `socket` a folder (PostgreSQL) or file (MariaDB) of a Unix socket. `tls` "verify" checks
    the server's certificate against `ca_pem`, or the system's authorities; "none" is for this machine, and for private
    addresses where the person said so.
    """

    dialect: Dialect
    host: str = ""
    port: int = 0
    socket: str = ""
    database: str = ""
    user: str = ""
    path: str = ""
    tls: Literal["verify", "none"] = "verify"
    ca_pem: str = ""


# ---- what was found, and what happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Rows of one table that a program would write, or wrote: by itself, through cascades, or through triggers."""

    table: str
    verb: Verb
    rows: int
    why: Literal["statement", "cascade", "trigger"] = "statement"
    columns: tuple[str, ...] = ()


OPPOSITE: Mapping[str, Verb] = {
    "insert": "delete",
    "delete": "insert",
    "truncate": "insert",
    "update": "update",
    "create": "drop",
    "drop": "create",
    "alter": "alter",
}


def turned(reached: Iterable[Reached]) -> tuple[Reached, ...]:
    """What takes these back: rows that were deleted are inserted, by the revert itself and no cascade or trigger."""
    counts: dict[tuple[str, Verb], int] = {}
    for one in reached:
        key = one.table, OPPOSITE[one.verb]
        counts[key] = counts.get(key, 0) + one.rows
    return tuple(Reached(table=table, verb=verb, rows=rows) for (table, verb), rows in counts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a program would do, found without any effect. `reached` names every table that it would write; where rows
    can't be counted beforehand `rows` is an upper bound. `bound` is how many rows it may write in all, as far as is
    known without a look at what a condition finds: rules and limits, whose answers an agent sees, go by it; None is the
    sum of `reached`. `counters` are sequences and AUTO_INCREMENT values that move
    and that undo doesn't set back; `strategy` is the engine's own, digested with the plan. `reads` are tables that what
    runs with it (triggers, rules, defaults, CHECKs, row security) may read: what forbids one forbids it."""

    reached: tuple[Reached, ...]
    bound: int | None = None
    counters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # for the person, in plain words
    reads: tuple[str, ...] = ()
    strategy: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row, for a person to look at: values as text, None for NULL, long ones cut. A side that is None: no row."""

    table: str
    before: Mapping[str, str | None] | None
    after: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The rows that one statement gave back, as JSON values; `cut`: how many were left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program, its trial or a revert did: an undo of a DELETE inserts rows. `sample` holds some of
    the changed rows (at most 50)."""

    reached: tuple[Reached, ...]
    results: tuple[Result, ...] = ()
    sample: tuple[RowChange, ...] = ()
    counters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


State = Literal["nothing", "held", "done", "undone", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a probe found. "nothing": rolled back, never touched; "held": its transaction waits for commit or undo;
    "done": the after-state is committed; "undone": the before-state is. "unknown": `evidence` says what was seen."""

    state: State
    evidence: tuple[str, ...] = ()
    ran: Ran | None = None  # what is recorded of it, for "held" and "done"
    again: bool = True  # of "held": redo can bring it back once it was rolled back


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One action on one database. `records` keeps what undo needs; names that an engine uses begin with "db."."""

    id: str  # the action's
    program: Program
    policy: Policy
    rows: int  # at most; beyond it everything is rolled back and Conflict raised
    limits: Limits
    records: Records
    schema_hash: str  # that was planned with; another one is a Conflict
    strategy: JsonObject = field(default_factory=dict)
    progress: Callable[[str], None] = lambda text: None


FOREIGN_KEY = (  # the next step where one is broken
    "In one action: delete the rows that point to a row before that row, add a row before those that point to it."
)


class Doubtful(GoexError):
    """The connection was lost while it was being committed or held: `settle` has to look."""

    code = "unknown"
    exit_status = ExitStatus.UNKNOWN


class Session(Protocol):
    """One connection, for one action at a time."""

    def schema(self) -> Schema:
        """Names, types, keys, triggers; no rows."""
        ...

    def survey(self, program: Program, policy: Policy, limits: Limits) -> Survey:
        """What it would do. Nobody has allowed it yet, so nothing of it is run over data, nor planned, since a planner
        tries conditions on samples of them; only sizes are asked for, and `Statement.count_sql`. Refuses what couldn't
        be taken back as promised: raises Unsupported with the reason, and with the policy that would do as its next
        step; InvalidInput for a statement that the server can't run. It goes by what `schema` read last in this
        session, so that an assessment reads the definitions once; `run` compares them again."""
        ...

    def trial(self, job: Job) -> Ran:
        """Run it in a transaction that is rolled back, whatever happens. Nothing is recorded. `notes` say what a
        rolled back transaction leaves all the same (counters that moved)."""
        ...

    def run(self, job: Job) -> Ran:
        """Run it. "reversal", "pairs": the images are in the records, then it is committed. "versioning": it is held,
        durably, when this returns (one that changed nothing isn't). Raises only when nothing was touched; a doubtful
        commit raises `Doubtful`."""
        ...

    def settle(self, job: Job) -> Settled:
        """After a crash, or a doubtful end: what became of it. May end a transaction that no record knows of (it
        can't be taken back); else only reads. Idempotent."""
        ...

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """What a revert would do now. Only reads. Raises Conflict (`difference` lists what isn't as recorded)."""
        ...

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """Bring the before-state (undo) or the after-state (redo) back, in one transaction; that of a redo under
        "versioning" is held, as `run` does it. Raises Conflict, having touched nothing. Idempotent: where it is so
        already, that is said in `notes`."""
        ...

    def commit(self, job: Job) -> None:
        """Make a held transaction permanent; nothing to do for others, nor where somebody ended it and it can't be
        known how. Idempotent. Raises Conflict when it was rolled back."""
        ...

    def roll_back(self, job: Job) -> Settled:
        """Roll back a held transaction, if it still is held when that is done, and touch nothing else. Returns what
        became of the action: "undone" where it was rolled back, "done" where somebody had committed it."""
        ...

    def interrupt(self) -> None:
        """From another thread: stop what runs. It then rolls back."""
        ...

    def close(self) -> None:
        """Idempotent; never raises."""
        ...


class Driver(Protocol):
    """One kind of database."""

    def open(self, place: Place, password: Secret, limits: Limits) -> Session:
        """Connect. Raises Unavailable (nobody there, wrong password: said without quoting either), and Unsupported
        for a user that may do more than GoEx can hold it to (superuser, FILE, pg_execute_server_program, …), with the
        statement that makes a fitting one as the next step."""
        ...
