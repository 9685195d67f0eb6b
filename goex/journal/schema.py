"""The tables of state.db, and how an older file becomes a newer one.

`schema_version` holds one number. `MIGRATIONS[n]` takes the schema from n to n + 1, in one transaction with the
number; a file from a newer GoEx is refused rather than guessed at.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    Boolean,
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
    insert,
    inspect,
    select,
    update,
)

from policies.errors import Unavailable

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

# The chain. A row is never changed or removed.
journal = Table(
    "journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False),
    Column("action_id", String(40), nullable=False, index=True),
    Column("agent", String(80), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("from_state", String(16), nullable=False),
    Column("to_state", String(16), nullable=False),
    Column("facts", Text, nullable=False),  # canonical JSON
    Column("hash", LargeBinary(32), nullable=False),
)

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

agents = Table(
    "agents",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("token_hash", LargeBinary(32), nullable=False, unique=True),
    Column("created", String(32), nullable=False),
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


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    connection.execute(insert(schema_version).values(version=0))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create,)


def migrate(engine: Engine, migrations: tuple[Callable[[Connection], None], ...] = MIGRATIONS) -> int:
    """Bring the file to the newest schema. Returns its version. Raises Unavailable for a newer file than this GoEx."""
    with engine.begin() as connection:
        version = 0
        if inspect(connection).has_table(schema_version.name):
            version = connection.execute(select(schema_version.c.version)).scalar_one()
        if version > len(migrations):
            raise Unavailable(
                f"The state database has schema {version}; this GoEx knows up to {len(migrations)}.",
                next_step="Use the GoEx that wrote it, or a newer one.",
            )
        for number in range(version, len(migrations)):
            migrations[number](connection)
            connection.execute(update(schema_version).values(version=number + 1))
    return len(migrations)
