"""Transactions that are held (PREPARE TRANSACTION), by the name that says whose they are; and who is in the way."""

from __future__ import annotations

import hashlib
import re

from policies.errors import GoexError
from runtimes.sql.postgres.errors import Locked
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.relations import Catalog

_PREFIX = "goex-"
_PLAIN = re.compile(r"[A-Za-z0-9._:-]{1,120}")


def gid_of(action: str) -> str:
    """What the held transaction of an action is called; at most 200 bytes."""
    if _PLAIN.fullmatch(action):
        return _PREFIX + action
    return _PREFIX + hashlib.sha256(action.encode()).hexdigest()


def held(link: Link, gid: str) -> int | None:
    """The number of the transaction that is held under that name here; None: none is."""
    sql = (
        "SELECT transaction::pg_catalog.text::pg_catalog.int8 FROM pg_catalog.pg_prepared_xacts "
        "WHERE gid = %s::pg_catalog.text AND database = pg_catalog.current_database()"
    )
    found = link.ask(sql, gid)
    return int(found[0][0]) if found else None


def blamed(
    link: Link, catalog: Catalog | None, written: set[str], read: set[str], altered: set[str], error: Locked
) -> Locked:
    """The same error with the name of whoever holds those tables' rows, as far as that can be seen. Who reads waits for
    the lock of a change to the table itself alone, and such a change for everybody's. Without a catalog, which that
    lock keeps from being read, it is whoever holds one, where no session does."""
    try:
        link.rollback()
        oids = [
            [each.oid for name, each in catalog.relations.items() if name in tables] if catalog else []
            for tables in (written, read, altered)
        ]
        sql = (
            "SELECT DISTINCT p.gid FROM pg_catalog.pg_prepared_xacts p "
            "JOIN pg_catalog.pg_locks x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction "
            "AND x.mode = 'ExclusiveLock' AND x.granted AND x.pid IS NULL "
            "JOIN pg_catalog.pg_locks l ON l.virtualtransaction = x.virtualtransaction AND l.pid IS NULL "
            "AND l.locktype = 'relation' "
            "WHERE p.database = pg_catalog.current_database() AND (l.relation = ANY (%s::pg_catalog.oid[]) "
            "AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') OR l.mode = 'AccessExclusiveLock' "
            "AND (l.relation = ANY (%s::pg_catalog.oid[]) OR %s::pg_catalog.bool AND NOT EXISTS ("
            "SELECT FROM pg_catalog.pg_locks o WHERE o.locktype = 'relation' AND o.granted AND o.pid IS NOT NULL "
            "AND o.pid <> pg_catalog.pg_backend_pid() AND o.mode = 'AccessExclusiveLock' "
            "AND o.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))) "
            "OR l.relation = ANY (%s::pg_catalog.oid[])) ORDER BY p.gid"
        )
        gids = [str(row[0]) for row in link.ask(sql, oids[0], oids[1], catalog is None, oids[2])]
    except GoexError:
        return error
    actions = [gid.removeprefix(_PREFIX) for gid in gids if gid.startswith(_PREFIX)]
    if actions:
        named = ", ".join(actions[:3])
        many = len(actions) > 1
        return Locked(
            f"The action{'s' if many else ''} {named} hold{'' if many else 's'} what this needs, until "
            f"{'they are' if many else 'it is'} committed or undone. Nothing was touched.",
            next_step=f"goex commit {actions[0]}, or goex undo {actions[0]}; then ask again.",
        )
    if gids:
        return Locked(
            "A transaction that another program holds (PREPARE TRANSACTION) is in the way. Nothing was touched.",
            next_step="See pg_prepared_xacts, and have it ended by whoever made it.",
        )
    return Locked(
        "Another session of the database holds what this needs. Nothing was touched.",
        next_step="Try again when it is done.",
    )
