"""The tables of state.db, how it is opened, and how an older file becomes a newer one.

`schema_version` holds one number. A new file gets the tables as they are below at once (`MIGRATIONS[0]`);
`MIGRATIONS[n]` takes an older file from n to n + 1. Either is one transaction with the number; a file from a newer GoEx
is refused rather than guessed at.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    ClauseElement,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from policies.errors import Unavailable
from policies.regular_file import unfit_beside
from policies.services import Risk

metadata = MetaData()

UNBOUND = '{"entries":{},"methods":[],"only":false}'  # of a grant: bound to nothing but its arguments

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

# The chain. A row is never changed or removed.
journal = Table(
    "journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False),
    Column("action_id", String(40), nullable=False),
    Column("agent", String(80), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("from_state", String(16), nullable=False),
    Column("to_state", String(16), nullable=False),
    Column("facts", Text, nullable=False),  # canonical JSON
    Column("hash", LargeBinary(32), nullable=False),
    Column("mac", LargeBinary(32)),  # of number and hash; none in rows of a GoEx that made none
    # With the kind: else the rows of one action would be looked for among all rows of a kind.
    Index("journal_action", "action_id", "kind", "number"),
    Index("journal_at", "at"),
    Index("journal_agent", "agent", "number"),
    Index("journal_kind", "kind", "number"),
)
# What a row says, and its hash.
ROW = tuple(column for column in journal.c if column.name != "mac")

# The present state of each action: derivable from the chain, whose rows hold the hashes of these texts.
actions = Table(
    "actions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("number", Integer, nullable=False, index=True),  # order of arrival
    Column("agent", String(80), nullable=False),
    Column("session", String(80), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("created", String(32), nullable=False),
    Column("updated", String(32), nullable=False),
    Column("intent", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("outcome", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("target", String(40), nullable=False, index=True),
    Column("source", Text, nullable=False),
    Column("detached", Boolean, nullable=False),
    Column("risk", Integer, nullable=False, server_default="0"),  # a policies.services.Risk; 0: not assessed
    Index("actions_created", "created"),
    Index("actions_agent", "agent", "number"),
    Index("actions_session", "session", "number"),
    Index("actions_risk", "risk", "number"),
)

# Which services an assessed action touches: what the list of actions is narrowed by.
touched = Table(
    "touched",
    metadata,
    Column("service", String(80), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action_id", String(40), nullable=False),
    sqlite_with_rowid=False,
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("action_id", String(40), nullable=False, index=True),
    Column("digest", String(64), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("created", String(32), nullable=False),
    Column("deadline", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("widths", Text, nullable=False),
    Column("presence", Boolean, nullable=False),
    Column("settled", String(32), nullable=False),
    Column("settled_by", Text, nullable=False),
)

# Rows carry a MAC under a key of the vault: whoever can write the file still can't write a grant.
grants = Table(
    "grants",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("agent", String(80), nullable=False),
    Column("service", String(80), nullable=False),
    Column("account", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("width", String(16), nullable=False),
    Column("constraints", Text, nullable=False),
    Column("bounds", Text, nullable=False, server_default=UNBOUND),  # canonical JSON: methods, entries, ...
    Column("digest", String(64), nullable=False),
    Column("session", String(80), nullable=False),
    Column("created", String(32), nullable=False),
    Column("expires", String(32), nullable=False),
    Column("by", Text, nullable=False),
    Column("why", String(40), nullable=False),
    Column("revoked", String(32), nullable=False),
    Column("used", String(32), nullable=False),
    Column("mac", LargeBinary(32), nullable=False),
    Index("grants_lookup", "agent", "service", "account", "scope"),
    Index("grants_digest", "digest"),
)

# How often a grant was used, and when last: of what changes with each use nothing else depends.
grant_uses = Table(
    "grant_uses",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("uses", Integer, nullable=False),
    Column("last_used", String(32), nullable=False),
    Column("mac", LargeBinary(32), nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("token_hash", LargeBinary(32), nullable=False, unique=True),
    Column("created", String(32), nullable=False),
    Column("mac", LargeBinary(32), nullable=False),
)

# The rules in force, as they were applied: one row. The person's files are drafts.
rulebook = Table(
    "rulebook",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("files", Text, nullable=False),  # canonical JSON: file name -> text
    Column("applied", String(32), nullable=False),
    Column("by", Text, nullable=False),
    Column("mac", LargeBinary(32), nullable=False),
    Column("entries", Text, nullable=False, server_default="{}"),  # canonical JSON: imported method -> entry's hash
)

# The reversion set beyond the catalog: undo pairs of the developer and of models, and what became of each use of any
# pair. Like grants: whoever can write the file still can't add a way back, or call one proven, or a failed one new.
pairs = Table(
    "pairs",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("method", Text, nullable=False),
    Column("source", String(16), nullable=False),
    Column("body", Text, nullable=False),  # canonical JSON
    Column("added", String(32), nullable=False),
    Column("by", Text, nullable=False),
    Column("mac", LargeBinary(32), nullable=False),
)
pair_uses = Table(
    "pair_uses",
    metadata,
    Column("pair", String(64), primary_key=True),
    Column("action", String(40), primary_key=True),
    Column("call", Integer, primary_key=True, autoincrement=False),
    Column("result", String(16), nullable=False),
    Column("why", Text, nullable=False),
    Column("at", String(32), nullable=False),
    Column("mac", LargeBinary(32), nullable=False),
)

# Sealed payloads (what undo needs), apart from the chain, whose rows hold their hashes.
records = Table(
    "records",
    metadata,
    Column("action_id", String(40), primary_key=True),
    Column("name", String(80), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)


def open_engine(path: Path) -> Engine:
    """The file at `path`, made where there is none; nothing is begun or committed but by whoever uses it."""
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 5.0})

    # The driver would commit behind our back before DDL and begin only before DML; so it is told to do neither.
    @event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _: object) -> None:
        if (unfit := unfit_beside(path)) is not None:  # SQLite would wait for a pipe's other end
            file, why = unfit
            raise Unavailable(f"{file} {why}.", next_step="Move it away, or put the file back itself.")
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if not driver(connection).in_transaction:
            connection.exec_driver_sql("BEGIN")

    return engine


@cache
def _tables() -> tuple[str, ...]:
    """The statements that make the tables and their indexes."""
    made: list[ClauseElement] = []
    for table in metadata.sorted_tables:
        made += [CreateTable(table), *map(CreateIndex, table.indexes)]
    return tuple(str(each.compile(dialect=_SQLITE)) for each in made)


def _create(connection: Connection) -> None:
    for statement in _tables():
        driver(connection).execute(statement)  # SQLAlchemy's own way takes longer than SQLite does
    driver(connection).execute("INSERT INTO schema_version VALUES (0)")


def _find_by_what_was_done(connection: Connection) -> None:
    """Actions are found by risk, service, agent, session and time; rows by agent, kind and time."""
    connection.exec_driver_sql("ALTER TABLE actions ADD COLUMN risk INTEGER NOT NULL DEFAULT 0")
    touched.create(connection)
    connection.exec_driver_sql("DROP INDEX IF EXISTS ix_journal_action_id")
    for table in (journal, actions):
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    for id, number, plan in connection.execute(select(actions.c.id, actions.c.number, actions.c.plan)):
        risk, services = facets(plan)
        connection.execute(update(actions).where(actions.c.id == id).values(risk=risk))
        for service in services:
            connection.execute(insert(touched).values(service=service, number=number, action_id=id))


def _bind_and_count_grants(connection: Connection) -> None:
    """Grants are bound to methods and catalog entries, and their uses are counted."""
    connection.exec_driver_sql(f"ALTER TABLE grants ADD COLUMN bounds TEXT NOT NULL DEFAULT '{UNBOUND}'")
    grant_uses.create(connection)


def _keep_rules(connection: Connection) -> None:
    """Rules are in force as they were applied."""
    rulebook.create(connection)


def _keep_pairs(connection: Connection) -> None:
    """Undo pairs are added, and what became of their uses is kept."""
    pairs.create(connection)
    pair_uses.create(connection)


def _authenticate_rows(connection: Connection) -> None:
    """Each row is authenticated by itself."""
    connection.exec_driver_sql("ALTER TABLE journal ADD COLUMN mac BLOB")


def _bind_rules(connection: Connection) -> None:
    """Rules are bound to the imported catalog; those that were applied before are bound to nothing of it. A file that
    is older than rules has the column by now."""
    if "entries" not in {column["name"] for column in inspect(connection).get_columns(rulebook.name)}:
        connection.exec_driver_sql("ALTER TABLE rulebook ADD COLUMN entries TEXT NOT NULL DEFAULT '{}'")


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _create,
    _find_by_what_was_done,
    _bind_and_count_grants,
    _keep_rules,
    _keep_pairs,
    _authenticate_rows,
    _bind_rules,
)
_NEWEST = len(MIGRATIONS)  # what `_create` makes


def migrate(engine: Engine, migrations: tuple[Callable[[Connection], None], ...] = MIGRATIONS) -> int:
    """Bring the file to the newest schema. Returns its version. Raises Unavailable for a newer file than this GoEx."""
    with engine.begin() as connection:
        check_kinds(connection)
        if inspect(connection).has_table(schema_version.name):
            version = connection.execute(select(schema_version.c.version)).scalar_one()
        else:
            migrations[0](connection)
            version = _NEWEST
            driver(connection).execute("UPDATE schema_version SET version = ?", (version,))
        if version > len(migrations):
            raise Unavailable(
                f"The state database has schema {version}; this GoEx knows up to {len(migrations)}.",
                next_step="Use the GoEx that wrote it, or a newer one.",
            )
        for number in range(version, len(migrations)):
            migrations[number](connection)
            connection.execute(update(schema_version).values(version=number + 1))
    return len(migrations)


def check_kinds(connection: Connection) -> None:
    """Raise Unavailable for a file with a trigger or a view: it could give each new action to another agent."""
    strange = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
    if (name := connection.exec_driver_sql(strange).scalar()) is not None:
        raise Unavailable(
            f"The state database holds {str(name)[:60]!r}, which GoEx never made.",
            next_step="Put back the newest copy of the whole state folder.",
        )


_SQLITE = dialect(paramstyle="named")


class Prepared:
    """One statement that runs for each step of each action: compiled once and handed to the driver, since SQLAlchemy's
    own way of running it takes longer than SQLite does.

    Its columns and parameters must be of types that the driver takes as they are: text, bytes, numbers.
    """

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


def facets(plan: str) -> tuple[int, tuple[str, ...]]:
    """Return the risk of a stored plan and the services that it touches, sorted, by which an action is found; (0, ())
    for none, or one that can't be read.

    As `Plan.risk` has it: what undoing would need doesn't count, except for a revert.
    """
    try:
        value = json.loads(plan) if plan else None
        if value is None:
            return 0, ()
        undoing = value["action"]["kind"] == "revert"
        needs = [need for need in value["needs"] if undoing or need["why"] not in ("undo", "read-back")]
        services = tuple(sorted({str(need["service"]) for need in needs}))
        return max((int(need["risk"]) for need in needs), default=int(Risk.DELETE)), services
    except (ValueError, TypeError, KeyError):
        return 0, ()
