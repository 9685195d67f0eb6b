"""Whether the vault still opens what is sealed: it may have lost a key, and the log is whole all the same.

Rules: the look is bounded. Of the records that were sealed between two changes of the vault's keys, which the chain
tells, the newest is opened; each of the others is tried only where that fails, and so many of them at most.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from goex.journal.schema import driver as driver_of
from vault.errors import PayloadAltered, VaultSealed

# Opens what was sealed under a name. Raises PayloadAltered for what it has no key for, and VaultSealed.
Opener = Callable[[str, bytes], bytes]
KEY_CHANGES = ("vault-rotate", "vault-restore", "journal-accept")  # kinds of rows
MOST_TRIED = 1000
_SEALED = "SELECT sealed FROM records WHERE action_id = ? AND name = ?"


@dataclass(frozen=True, slots=True, order=True)
class Sealed:
    """A record by the row that speaks of its present version."""

    number: int
    action_id: str
    name: str


def unopened(
    connection: Connection, records: Callable[[], Iterator[Sealed]], changes: Sequence[int], opener: Opener
) -> str:
    """What can't be opened, in words; "" for nothing, and where the vault is sealed. `records` are those that are there
    in the connection's snapshot, `changes` the numbers of the rows at which the vault's keys changed, in order."""
    newest: dict[int, Sealed] = {}
    for each in records():
        since = bisect_right(changes, each.number)
        newest[since] = max(each, newest.get(since, each))
    total = tried = count = 0
    try:
        lost = {since: each for since, each in newest.items() if not _opens(connection, each, opener)}
        if not lost:
            return ""
        for each in records():
            if bisect_right(changes, each.number) in lost:
                total += 1
                if tried < MOST_TRIED:
                    tried += 1
                    count += not _opens(connection, each, opener)
    except VaultSealed:
        return ""
    many = f"{count} sealed record{'s' * (count != 1)}"
    last = max(lost.values())
    return (
        f"{many if tried == total else f'At least {many} of {total}'} can't be opened, since the vault has no key for "
        f"them: what stands on them can't be undone. The newest is {last.name} of {last.action_id}."
    )


def _opens(connection: Connection, each: Sealed, opener: Opener) -> bool:
    found = driver_of(connection).execute(_SEALED, (each.action_id, each.name)).fetchone()
    try:
        opener(f"{each.action_id}/{each.name}", found[0])
    except PayloadAltered:
        return False
    return True
