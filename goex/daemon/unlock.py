"""What opening the vault sets in motion; and opening it at the daemon's start, where nobody types: by the desktop's
keyring, or a systemd credential.

Rules: files that were put back from a copy are refused before anything is done on their word. What was sealed (by the
person, by idleness, by a lock) is not opened by the keyring again until the person asks. A credential is different: the
service manager gave it to this start. What fails is said in the log, and the vault stays sealed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from goex import __version__
from goex.daemon import rollback
from goex.daemon.anchor import Anchor, reached
from goex.daemon.credential import vault_passphrase
from goex.daemon.passkeys import PasskeyPresence
from goex.daemon.steady_clock import MUCH
from goex.daemon.vault_state import VaultState
from goex.engine.engine import Engine
from goex.engine.grant_store import GrantsAltered
from goex.engine.recovery import recover
from goex.engine.reversions import Reversions
from goex.journal.chain import Journal, Row, moment
from goex.journal.errors import JournalBehind
from policies.errors import GoexError
from policies.grants import Width
from policies.tasks import FILES
from runtimes.code.scopes import SERVICE as CODE
from vault.secret import Secret

log = logging.getLogger("goex.daemon")


async def open_at_start(vault_state: VaultState, env: Mapping[str, str]) -> None:
    """Unseal the vault if that can be done. Never raises a GoexError."""
    if vault_state.trouble:
        log.error("the vault can't be used: %s", vault_state.trouble)
    if vault_state.state != "sealed":
        return
    try:
        if vault_state.keyed_by == "passphrase":
            passphrase = vault_passphrase(env)
            if passphrase is not None:
                await vault_state.unlock(passphrase)
                log.info("the vault was opened by the service's credential")
        elif vault_state.stays_sealed:
            log.info("the vault stays sealed until you run goex vault unlock: %s", vault_state.stays_sealed)
        else:
            await vault_state.unlock(Secret(b""))
    except GoexError as error:
        log.warning("the vault stays sealed: %s", error)


class Opening:
    """What is done each time that the vault was opened."""

    def __init__(
        self,
        journal: Journal,
        vault_state: VaultState,
        anchor: Anchor,
        reversions: Reversions,
        engine: Engine,
        passkeys: PasskeyPresence,
    ) -> None:
        self._passkeys = passkeys
        self._journal = journal
        self._vault_state = vault_state
        self._anchor = anchor
        self._reversions = reversions
        self._engine = engine

    async def opened(self, accepted_by: str) -> None:
        """The vault is open: now the journal can be written, grants believed, and the past settled. A journal that the
        vault knows otherwise is refused, or accepted by the person: then nothing holds that was allowed in it."""
        vault = self._vault_state.vault
        first = not self._journal.unlocked
        strange: JournalBehind | None = None
        try:
            if first:
                try:
                    self._journal.unlock(vault.derive("journal"), reached(self._vault_state))
                except JournalBehind as error:
                    if not accepted_by:
                        raise
                    strange = error
                    self._journal.unlock(vault.derive("journal"))
            last = self._journal.rows(limit=1)  # before this start writes any
            restored = False
            if strange is None:
                restored = rollback.check(self._journal, vault)
            else:
                log.warning("the person accepted the journal: %s", strange.message)
                facts = {**rollback.noted(vault), "by": accepted_by, "problem": strange.message}
                self._journal.append(rollback.ACCEPTED, facts=facts)
        except GoexError:
            if first:
                self._journal.lock()  # nothing is done on the word of files that were put back
            self._vault_state.seal()
            raise
        for damage in vault.damage():
            log.error("account %s/%s was altered: %s", damage.service, damage.name, damage.what)
            facts = {"account": f"{damage.service}/{damage.name}", "what": damage.what}
            self._journal.append("account-altered", facts=facts)
        if first:
            await self._begin(last, distrust=strange is not None, restored=restored)
        else:
            self._journal.append("vault-unlock", facts=rollback.noted(vault))
            if restored:
                self._end_missing()
        await self._passkeys.opened(restored=restored)
        try:
            await self._anchor.write()
        except GoexError as error:
            log.error("the vault couldn't be told how far the journal is: %s", error)

    def _end_missing(self) -> None:
        """Revoke what was granted on accounts that the restored vault doesn't have: one may be made by that name."""
        there = {(record.account.service, record.account.name) for record in self._vault_state.vault.records()}
        store = self._engine.core.grant_store
        of_accounts = (grant for grant in store.grants() if grant.service not in (FILES, CODE))
        gone = [grant.id for grant in of_accounts if (grant.service, grant.account) not in there]
        store.revoke(gone, by="goex", why="the restored backup doesn't have its account")

    async def _begin(self, last: tuple[Row, ...], *, distrust: bool, restored: bool) -> None:
        """Believe what the journal vouches for; with `distrust` nothing that was allowed in it. `last` is the newest
        row of the last daemon, where there was one."""
        vault, grant_store, rules = self._vault_state.vault, self._engine.core.grant_store, self._engine.core.rules
        started = {"pid": os.getpid(), "version": __version__, **rollback.noted(vault)}
        self._journal.append("daemon-start", facts=started)
        set_back = not distrust and any(moment(row.at) - self._engine.core.clock() > MUCH for row in last)
        try:
            if distrust:
                raise GrantsAltered("The log isn't the one that the vault knew.")
            grant_store.load(vault.derive("ledger"))
        except GrantsAltered as error:
            log.error("no grant is believed: %s", error)
            self._journal.append("ledger-altered", facts={"problem": error.message})
            grant_store.distrust(vault.derive("ledger"))
        if restored:
            self._end_missing()
        self._reversions.load(vault.derive("reversions"), distrust=distrust)
        if self._reversions.trouble:
            log.error("no added undo pair is believed: %s", self._reversions.trouble)
        rules.load(vault.derive("rules"), distrust=distrust)
        if rules.trouble:
            log.error("no rule permits anything: %s", rules.trouble)
        for session in grant_store.sessions():  # of the last daemon: its terminals have other ids with this one, too
            grant_store.end_session(session)
        if set_back:  # for how long they were used already can't be told, and a task's end is near
            tasks = [grant.id for grant in grant_store.grants() if grant.width is Width.TASK]
            grant_store.revoke(tasks, by="goex", why="the machine's clock was set back")
        grant_store.forget_unused()
        await recover(self._engine, distrust=distrust)
