"""What every call of the person has in common: what it works with, and presence.

Rules: whatever lets more happen (approving a write, a standing grant, an agent, an account) needs *presence*: the
approval passphrase, given with the call or a few minutes ago on the same terminal; or polkit's yes in its stead or
beside it, as config.toml says; or a passkey's assertion over exactly this call. Where passkeys are required only the
last counts, and any other call is confirmed by one before it is let through. At the public page only a passkey shows
presence, whatever config.toml says. What hands out the vault's keys needs presence of its own: what was shown for
something else would last for good with it. What lets less happen needs none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from goex.daemon import rollback
from goex.daemon.actions_service import ActionsService
from goex.daemon.page_sessions import PageSessions
from goex.daemon.passkey_statements import Statement
from goex.daemon.passkeys import PasskeyPresence, Shown
from goex.daemon.polkit import Polkit
from goex.daemon.rpc_context import Callers, current_call
from goex.daemon.vault_state import VaultState, WrongApproval
from goex.daemon.waiting_calls import PasskeyDue, WaitingCalls
from goex.engine.engine import Engine
from goex.engine.peers import Peer, Presence
from goex.journal.errors import JournalLocked
from goex.rpc import goex_pb2 as pb
from policies.accounts import Account
from policies.errors import Denied, InvalidInput
from vault.secret import Secret


class PresenceDue(Denied):
    """The approval passphrase is due, and wasn't given."""

    code = "presence"


class SecretDue(InvalidInput):
    """All of a request that can be checked was checked, and its secret isn't there yet: so nothing is typed in vain.
    `difference` names where the secret would go."""

    code = "secret"

    def __init__(self, account: Account) -> None:
        super().__init__(f"The credential for {account.id} is empty.", next_step="Type it, or pipe it to stdin.")
        self.difference = tuple(str(origin) for origin in account.origins)


class PolkitRefused(Denied):
    """config.toml wants polkit's yes beside the passphrase or the passkey, and polkit didn't say it."""

    code = "polkit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """What the person can do to the daemon as a whole."""

    status: Callable[[], Awaitable[pb.StatusReply]]
    seal: Callable[[str], Awaitable[None]]  # with who asked for it
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContext:
    """What the calls of the person work with."""

    engine: Engine
    callers: Callers
    vault_state: VaultState
    presence: Presence
    passkeys: PasskeyPresence
    page_sessions: PageSessions
    waiting: WaitingCalls
    polkit: Polkit
    actions: ActionsService
    daemon: Daemon
    acknowledge: Callable[[], Awaitable[None]]  # waits until what was changed can't be undone by an older file

    async def present(
        self,
        context: Any,
        passphrase: str,
        what: str,
        *,
        waits: bool = True,
        lately: bool = True,
        instead: Mapping[str, object] | None = None,
    ) -> Peer:
        """Raises PresenceDue, or PasskeyDue, unless the person showed themselves here, now or (where that suffices)
        `lately`; first of all what the vault is short of, which no passphrase helps. `waits`: a passkey can confirm
        this call by itself; then `instead` is as `WaitingCalls.require` takes it."""
        peer = self._here(context)
        if self.passkeys.required or peer.away:
            if lately and self.presence.holds(peer):
                return peer
            if not waits:
                raise PasskeyDue(what)
            self.waiting.require(peer, what, *current_call(), instead)
            await self.confirm(peer, what)
            return peer
        peer = await self.present_with_passphrase(context, passphrase, what, lately=lately)
        if self.passkeys.required:  # the first one was registered meanwhile
            raise PasskeyDue(what)
        return peer

    async def shown(
        self, context: Any, assertion: str, what: str, statement: Statement | None = None, *, kind: str = ""
    ) -> tuple[Peer, Shown]:
        """What a passkey's assertion proves, for this call alone. Raises PasskeyRefused, PolkitRefused."""
        peer = self._here(context)
        shown = await self.passkeys.shown(assertion, statement, kind=kind)
        await self.confirm(peer, what)
        return peer, shown

    async def present_with_passphrase(self, context: Any, passphrase: str, what: str, *, lately: bool = True) -> Peer:
        """As `present`, where the approval passphrase (or polkit) is what counts, whatever config.toml says. Where
        passkeys are required it counts for this call alone."""
        peer = self._here(context)
        if peer.away:
            raise PasskeyDue(what)
        if passphrase:
            await self.check_passphrase(passphrase)
            await self.confirm(peer, what)
        elif lately and self.presence.holds(peer):
            return peer
        elif self.polkit.mode != "instead" or not await self.polkit.allows(peer):
            raise PresenceDue(f"{what} needs your approval passphrase.", next_step="Type it when you are asked.")
        if not self.passkeys.required:
            self.presence.remember(peer)
        return peer

    async def require_passphrase(self, passphrase: str, what: str) -> None:
        """Raises PresenceDue without the approval passphrase, WrongApproval for another."""
        if not passphrase:
            raise PresenceDue(f"{what} needs your approval passphrase.", next_step="Type it when you are asked.")
        await self.check_passphrase(passphrase)

    async def check_passphrase(self, passphrase: str) -> None:
        """Raises WrongApproval unless this is the approval passphrase. A wrong one is journaled, so that an older vault
        file, which counts fewer of them, is refused."""
        try:
            await self.vault_state.prove(Secret(passphrase))
        except WrongApproval:
            if passphrase:
                with suppress(JournalLocked):  # a log that isn't accepted yet takes no row; the vault counts the guess
                    self.engine.core.journal.append("approval-wrong", facts=rollback.noted(self.vault_state.vault))
            raise

    def _here(self, context: Any) -> Peer:
        peer = self.callers.peer(context)
        self.vault_state.require_open()
        self.callers.sessions.of(peer, "person")
        return peer

    async def confirm(self, peer: Peer, what: str) -> None:
        """After a right passphrase or a passkey: raises PolkitRefused where polkit's yes is wanted beside it."""
        if self.polkit.mode == "also" and not await self.polkit.allows(peer):
            raise PolkitRefused(
                f"{what} needs polkit's yes too, and it wasn't given.",
                next_step="Answer its dialog; see whether it works with: goex doctor",
            )


class PersonCalls:
    """Calls that work at the person."""

    def __init__(self, person: PersonContext) -> None:
        self._person = person

    async def before_reply(self) -> None:
        """See `unary`."""
        await self._person.acknowledge()
