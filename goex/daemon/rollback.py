"""Whether the vault's file is the one that the journal knows, or was put back from a copy. `goex.daemon.anchor` is the
other direction.

Rules: the journal notes the vault's id and generation whenever it is opened, sealed or changed by the person, and with
each attempt to show presence that the vault counts. A file whose generation is smaller was put back. So was one with
another id: a vault gets a new id only when it is restored from a backup, and says so itself, in what only its key
opens. A restored vault is taken once; then it is noted, with who did it, and any file of before is refused.
"""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from goex.journal.chain import Journal, Row
from goex.journal.schema import ROW, Prepared
from goex.journal.schema import journal as rows
from policies.errors import Conflict
from policies.jsonvalue import JsonObject, parse
from vault.store import Vault

RESTORED = "vault-restore"
ACCEPTED = "journal-accept"
_KINDS = (
    "daemon-start",
    "daemon-stop",
    "account-put",
    "account-remove",
    "account-login",
    "account-logout",
    "approval-change",
    "approval-wrong",
    "database-add",
    "database-policy",
    "database-remove",
    "passkey-add",
    "passkey-remove",
    "passkey-use",
    "passkeys-required",
    "passkeys-reset",
    "passkeys-reset-ask",
    "passkeys-reset-cancel",
    "vault-backup",
    "vault-payloads-anew",
    "vault-rotate",
    "vault-unlock",
    "vault-seal",
    RESTORED,
    ACCEPTED,
)
_NEWEST = Prepared(
    select(*ROW).where(
        rows.c.number == select(func.max(rows.c.number)).where(rows.c.kind == bindparam("wanted")).scalar_subquery()
    )
)


def noted(vault: Vault) -> dict[str, object]:
    """What a row says of the vault."""
    return {"generation": vault.generation, "vault": vault.id}


def floor(journal: Journal) -> int:
    """The highest generation that was noted."""
    return max((_facts(row).get("generation", 0) for row in _rows(journal)), default=0)


def check(journal: Journal, vault: Vault) -> bool:
    """Whether the vault was just restored, which is noted here. Raises Conflict for a vault that was put back,
    JournalBroken for rows that say otherwise by hand. The vault is unsealed, and the journal has its key."""
    rows = _rows(journal)
    naming = [row for row in rows if _facts(row).get("vault")]
    newest = max(naming or rows, key=lambda row: row.number, default=None)
    journal.authentic(newest.number if newest else 1)  # an edited row says nothing
    if any(_facts(row).get("generation", 0) > vault.generation for row in rows):
        raise _put_back()
    known = _facts(newest).get("vault", "") if newest else ""
    restored = vault.restored
    fresh = restored is not None and not _taken(journal, vault.id)
    if known and known != vault.id and not fresh:
        raise _put_back()
    if restored is not None and fresh and known != vault.id:
        facts = {
            **noted(vault),
            "by": restored.by,
            "at": restored.at.isoformat(),
            "backup_generation": restored.generation,
            "before": known,
        }
        journal.append(RESTORED, facts=facts)
        return True
    return False


def _rows(journal: Journal) -> list[Row]:
    """The newest of each kind."""
    with journal.read() as connection:
        return [Row(*row) for kind in _KINDS for row in _NEWEST.run(connection, {"wanted": kind})]


def _taken(journal: Journal, vault_id: str) -> bool:
    return any(_facts(row).get("vault") == vault_id for row in journal.rows(kind=RESTORED, limit=10_000))


def _facts(row: Row) -> JsonObject:
    read = parse(row.facts)
    return read if isinstance(read, dict) else {}


def _put_back() -> Conflict:
    return Conflict(
        "The vault's file is older than the journal knows it: it was put back from a copy.",
        next_step="Put back the whole state folder from one backup, or come back from a vault backup with: "
        "goex vault restore FILE --replace",
    )
