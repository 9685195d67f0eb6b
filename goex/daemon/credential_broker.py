"""What the engine and the person's calls see of the credentials in the vault: what a login holds, and leases.

Rules: nothing here shows a credential but inside a lease, which ends with its action. What is said of a login is read
from what was sealed with its tokens, never from a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from goex.daemon.vault_state import VaultState
from goex.engine.consent import Holder
from policies.accounts import Account
from vault.errors import NoAccount
from vault.lease import Lease
from vault.oauth.token_set import TokenSet

if TYPE_CHECKING:
    from vault.oauth.broker import LoginBroker
    from vault.oauth.token_requests import Revoked
    from vault.store import Vault


class CredentialBroker:
    """Leases, and what is known of logins."""

    def __init__(self, vault_state: VaultState) -> None:
        self._vault_state = vault_state
        self._made: tuple[Vault, LoginBroker] | None = None

    def tokens(self, service: str, name: str) -> TokenSet | None:
        """A login; None for an account that isn't one, or isn't there. Raises VaultSealed, RecordAltered."""
        try:
            return self._broker.login(service, name)
        except NoAccount:
            return None

    def granted(self, service: str, name: str) -> frozenset[str] | None:
        """The scopes that a login has; none of an account that isn't there, None for what isn't a login."""
        try:
            return self._broker.granted(service, name)
        except NoAccount:
            return frozenset()

    def asks(self, service: str, name: str) -> bool:
        """Whether a token is asked for with the scopes of each action; not of an account that isn't there."""
        try:
            return self._broker.asks(service, name)
        except NoAccount:
            return False

    def narrows(self, account: Account, scopes: Iterable[str]) -> Holder | None:
        """Who would hold a lease of the account to these scopes; None where that wasn't seen yet."""
        return self._broker.narrows(account.service, account.name, scopes)

    async def lease(
        self, service: str, name: str, *, action_id: str, expires: datetime, scopes: tuple[str, ...]
    ) -> Lease:
        """The account's credential for one action. Raises VaultError, Unavailable."""
        self._vault_state.used()
        return await self._broker.lease(service, name, action_id=action_id, expires=expires, scopes=scopes)

    def distrust(self, service: str, name: str) -> None:
        """The service refused the credential: the next lease of a login gets a new token. Idempotent."""
        self._broker.distrust(service, name)

    async def take_back(self, service: str, name: str) -> Revoked:
        """Revoke a login at its server, and forget it (see `vault.oauth.broker`). Raises VaultError, InvalidInput."""
        return await self._broker.take_back(service, name)

    def drop_orphans(self) -> None:
        """Forget what lies beside the vault for logins that are in it no more."""
        self._broker.drop_orphans()

    async def settled(self, seconds: float) -> None:
        """Wait for renewals that are on their way, before the vault is sealed."""
        if self._made is not None:
            await self._made[1].settled(seconds)

    @property
    def _broker(self) -> LoginBroker:
        vault = self._vault_state.vault
        if self._made is None or self._made[0] is not vault:
            from vault.oauth.broker import LoginBroker  # with the first lease, not with the daemon's start

            self._made = vault, LoginBroker(vault)
        return self._made[1]
