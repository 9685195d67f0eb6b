"""How far the journal has come, noted in what only the vault's key opens.

Rules: whoever can write the state folder can put back an older `state.db` with its `journal.head`: each fits the other.
So the vault is told of the journal's newest row that is on disk, and a journal without that row is refused when the
vault is unlocked. It is told before a change of what is allowed (a standing grant, a revocation, an agent, rules, undo
pairs) is acknowledged; of everything else within `SECONDS`, and when the vault is sealed and the daemon ends. The
journal is written first: a crash between the two leaves it ahead of what the vault knows, never behind.

A sealed vault can't be told. What is journaled meanwhile is known to it from the next unlocking on.
"""

from __future__ import annotations

import asyncio
import logging

from goex.daemon.person_threads import in_thread
from goex.daemon.vault_state import VaultState
from goex.journal.chain import Journal
from goex.journal.head import Mark
from policies.errors import GoexError
from vault.errors import VaultSealed
from vault.header import Reached

log = logging.getLogger("goex.daemon")

SECONDS = 10.0


def reached(vault_state: VaultState) -> Mark | None:
    """How far the vault knows the journal to have come; None when it was never told. Raises VaultSealed."""
    found = vault_state.vault.reached
    return Mark(found.rows, found.hash) if found else None


class Anchor:
    """Tells the vault."""

    def __init__(self, journal: Journal, vault_state: VaultState) -> None:
        self._journal = journal
        self._vault_state = vault_state
        self._writing = asyncio.Lock()
        self._told: tuple[str, int] = ("", 0)  # which vault, and how many rows
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Tell it now and then."""
        self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()

    async def acknowledge(self) -> None:
        """Return once the vault knows of every change that it has to know of before it is acknowledged, where it isn't
        sealed. Raises VaultUnwritable."""
        if self._told[1] < self._journal.owed:
            await self.write()

    async def write(self) -> None:
        """Tell it how far the journal is on disk. Does nothing while it is sealed. Raises VaultUnwritable."""
        async with self._writing:
            if self._vault_state.state != "unsealed" or not self._journal.unlocked:
                return
            mark, vault = self._journal.synced, self._vault_state.vault
            if not mark.count or self._told == (vault.id, mark.count):
                return
            try:
                await in_thread(vault.note_reached, Reached(mark.count, mark.hash))
            except VaultSealed:
                return
            self._told = (vault.id, mark.count)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(SECONDS)
            try:
                await self.write()
            except GoexError as error:
                log.error("the vault couldn't be told how far the journal is: %s", error)
