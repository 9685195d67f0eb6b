"""Leases of every kind of account; logins are renewed and narrowed on the way, by one request at a time each.

Rules:
* One account, one request: whoever wants the same waits for it, and its failure is everybody's who waited.
* A renewal is announced in the vault before it is asked for, and its answer is in the vault before it is used; the old
  refresh token is forgotten in that same write. Killed in between, the announcement says so: the old token is tried
  once more at once, since servers take it for a while after, and when it is refused the person is told why.
* A vault that is sealed while the answer is on its way, or can't be written to, gets it later: it is put beside the
  vault, under a key that the announcement holds, and opens with the vault alone.
* A narrowed token is judged by the scopes that its answer *states*. It never touches the login's own token, and the
  first one is followed by a full renewal: a server that would shrink the login is found out once, never asked again.
* Nothing is widened: scopes that the login doesn't have are the person's to add.
* What is remembered here (narrowed tokens) is remembered while the vault is unsealed, in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import hashlib
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from policies.accounts import Account
from policies.errors import GoexError, InvalidInput, Unavailable
from vault.basic import Basic
from vault.credential_file import CredentialFile
from vault.errors import RecordReplaced, VaultSealed
from vault.lease import Lease
from vault.oauth import deposits, file_tokens
from vault.oauth.errors import ConsentNeeded, LoginExpired, Unreachable, login_expired
from vault.oauth.http import Http
from vault.oauth.renewals import Connect, Key, Memory, Renewals, State, digest, fits, may_narrow
from vault.oauth.token_requests import Clock, Revoked, revoke, utc_now
from vault.oauth.token_set import Access, TokenSet
from vault.record_update import Opened
from vault.secret import Secret
from vault.store import Vault

Holder = Literal["token", "gateway"]


def connect(tokens: TokenSet) -> Http:
    """The way to a login's server, as it was when the person logged in."""
    return Http(private=tokens.private, ca_pem=tokens.ca_pem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A token that will do, and the login or the file that it is of."""

    family: str
    access: Access


@dataclass(slots=True)
class _AccountState:
    """What is going on about one account: its requests take the lock, one after the other."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    flights: dict[frozenset[str], asyncio.Task[_Given]] = field(default_factory=dict)
    failures: int = 0
    failure: GoexError | None = None


_Work = Callable[[_AccountState], Coroutine[Any, Any, _Given]]


class LoginBroker:
    """Hands out leases. One for a vault, used from one event loop."""

    def __init__(self, vault: Vault, *, clock: Clock = utc_now, connect: Connect = connect) -> None:
        self._vault = vault
        self._clock = clock
        self._connect = connect
        self._renewals = Renewals(vault, clock, connect)
        self._account_states: dict[Key, _AccountState] = {}
        self._stand = file_tokens.Stand()

    # ---- what is known, without a request ----

    def login(self, service: str, name: str) -> TokenSet | None:
        """A login as it is in the vault; None for an account that isn't one. Raises VaultSealed, NoAccount."""
        opened = self._vault.open_record(service, name)
        return TokenSet.from_secret(opened.secret) if opened.account.format == "oauth" else None

    def granted(self, service: str, name: str) -> frozenset[str] | None:
        """The scopes of a login, spelled as at the server; None for an account that isn't one."""
        tokens = self.login(service, name)
        return None if tokens is None else tokens.granted

    def narrows(self, service: str, name: str, scopes: Iterable[str]) -> Holder | None:
        """Who would hold a lease to `scopes`, by what was seen of the server; None where that wasn't seen yet."""
        tokens = self.login(service, name)
        if tokens is None:
            return "gateway"
        wanted = frozenset(scopes)
        if fits(tokens.access, wanted):
            return "token"
        if not wanted or not may_narrow(tokens):
            return "gateway"
        return None if tokens.narrows == "unknown" else "token"

    # ---- leases ----

    async def lease(
        self, service: str, name: str, *, action_id: str, expires: datetime, scopes: Iterable[str] = ()
    ) -> Lease:
        """The account's credential for one action, until `expires`, or as long as it is good.

        Of a login it is an access token that is good, for `scopes` (spelled as at the server) alone where the server
        narrows; none named: the whole. Raises ConsentNeeded, LoginExpired, Unreachable, AuthorizationServerBroken,
        Refused, VaultSealed, NoAccount, RecordAltered, RecordReplaced, InvalidInput.
        """
        try:
            return await self._lease(service, name, action_id, expires, frozenset(scopes))
        except GoexError as error:
            failure = error
        raise failure.with_traceback(None)  # whoever keeps the error would keep its frames, and they hold tokens

    async def _lease(self, service: str, name: str, action_id: str, expires: datetime, scopes: frozenset[str]) -> Lease:
        opened = self._vault.open_record(service, name)
        if opened.account.format == "oauth":
            return await self._login_lease(opened, action_id, expires, scopes)
        if opened.account.format == "file":
            return await self._file_lease(opened, action_id, expires, scopes)
        if opened.account.format == "basic":
            basic = Basic.from_secret(opened.secret)
            self._vault.note_lease(opened, action_id=action_id, expires=expires)
            return Lease(
                action_id=action_id,
                account=opened.account,
                secret=basic.credential(),
                expires=expires,
                redact=basic.echoes(),
            )
        return self._vault.lease(service, name, action_id=action_id, expires=expires)

    async def _file_lease(self, opened: Opened, action_id: str, expires: datetime, scopes: frozenset[str]) -> Lease:
        file = CredentialFile.from_secret(opened.secret)
        shown = await asyncio.to_thread(file_tokens.template, file, self._stand)
        if file.kind == "text":
            self._vault.note_lease(opened, action_id=action_id, expires=expires)
            return Lease(action_id=action_id, account=opened.account, secret=file.secret(), expires=expires, file=shown)
        account = opened.account
        work = functools.partial(self._file_access, account, scopes, expires - self._clock())
        given = await self._flight((account.service, account.name), scopes, work)
        opened = self._vault.open_record(account.service, account.name)
        if given.family != _file_family(opened.secret):
            raise RecordReplaced(f"{account.id} was changed meanwhile.", next_step="Try again.")
        lent = self._token_lease(opened, action_id, expires, given.access, scopes)
        return replace(lent, scopes=lent.scopes if given.access.stated else (), file=shown)

    def _token_lease(
        self, opened: Opened, action_id: str, expires: datetime, access: Access, wanted: frozenset[str]
    ) -> Lease:
        """The lease of a token, until it or the action ends, which the vault takes note of."""
        until = min(expires, access.expires) if access.expires is not None else expires
        self._vault.note_lease(opened, action_id=action_id, expires=until)
        return Lease(
            action_id=action_id,
            account=opened.account,
            secret=access.token,
            expires=until,
            narrowed="token" if fits(access, wanted) else "gateway",
            scopes=tuple(sorted(access.scopes)),
        )

    async def _file_access(
        self, account: Account, scopes: frozenset[str], life: timedelta, account_state: _AccountState
    ) -> _Given:
        """A file's token: one that is known, or by a request. What that rotates is sealed when this returns."""
        async with account_state.lock:
            opened = self._vault.open_record(account.service, account.name)  # it may have been renewed meanwhile
            if opened.account != account:
                raise RecordReplaced(f"{account.id} was changed meanwhile.", next_step="Try again.")
            tokens = self._file_tokens(opened)
            access = tokens.known.get(scopes)
            if access is None or not access.fresh(self._clock(), life):
                file = CredentialFile.from_secret(opened.secret)
                http = Http(private=account.private, ca_pem=account.ca_pem)
                asked = await asyncio.to_thread(file_tokens.ask, file, scopes, http, clock=self._clock)
                if asked.file is not None:  # the old refresh token may be good no longer: the new one is durable first
                    opened = await self._file_sealed(opened, asked.file)
                    tokens.stamp = opened.stamp
                access = tokens.known[scopes] = asked.access
        return _Given(family=_file_family(opened.secret), access=access)

    async def _file_sealed(self, opened: Opened, file: CredentialFile) -> Opened:
        """The file in the place of the one that was opened, also where the account's terms are others by now."""
        try:
            return await asyncio.to_thread(self._vault.renew, opened, file.to_secret())
        except RecordReplaced:
            now = self._vault.open_record(opened.account.service, opened.account.name)
            if now.secret != opened.secret:
                raise
            return await asyncio.to_thread(self._vault.renew, now, file.to_secret())

    def _file_tokens(self, opened: Opened) -> file_tokens.Tokens:
        """What is remembered of a file, as long as it is the same."""
        place = f"file/{opened.account.id}"
        memory = self._vault.while_unsealed()
        known = memory.get(place)
        if not isinstance(known, file_tokens.Tokens) or known.stamp != opened.stamp:
            known = memory[place] = file_tokens.Tokens(opened.stamp)
        return known

    def asks(self, service: str, name: str) -> bool:
        """Whether a token is asked for with the scopes of each action: so it is with credential files that lead to
        tokens. Raises VaultSealed, NoAccount, InvalidInput."""
        opened = self._vault.open_record(service, name)
        return opened.account.format == "file" and CredentialFile.from_secret(opened.secret).kind != "text"

    def distrust(self, service: str, name: str) -> None:
        """The service doesn't take a token that was thought good: the next lease gets a new one. Idempotent."""
        with contextlib.suppress(VaultSealed):
            self._vault.while_unsealed().pop(f"file/{service}/{name}", None)
            tokens = self.login(service, name)
            if tokens is not None and tokens.renews:
                self._renewals.forget_narrowed(tokens.family)
                self._renewals.memory(tokens.family).distrusted.add(digest(tokens.access))

    async def take_back(self, service: str, name: str) -> Revoked:
        """Revoke a login at its server, and forget it: the account is gone when this returns, whatever the server says.

        It takes its turn after a renewal that is on its way, so that what that brings is taken back too; and so are an
        answer that came too late, and the narrowed tokens that were given since the vault was unsealed. An answer that
        can't be looked for holds nothing up, and is said. Raises NoAccount, InvalidInput for an account that isn't a
        login, VaultSealed, RecordAltered, VaultUnwritable.
        """
        async with self._account_states.setdefault((service, name), _AccountState()).lock:
            tokens = self.login(service, name)
            if tokens is None:
                raise InvalidInput(f"{service}/{name} isn't a login.", next_step="See what it is: goex auth list")
            unread = ""
            try:
                tokens = await self._renewals.newest(tokens)
            except Unavailable as error:
                unread = error.message
            narrowed = self._renewals.to_revoke(tokens.family)
            said = await asyncio.to_thread(revoke, tokens, self._connect(tokens), narrowed)
            await asyncio.to_thread(self._vault.remove, service, name)
            await asyncio.to_thread(deposits.drop, self._vault.path, tokens.family)
            self._renewals.memory(tokens.family).unsaved = None  # else it would be put beside the vault yet
            self._vault.while_unsealed().pop(tokens.family, None)
            return _without(unread, said) if unread else said

    def drop_orphans(self) -> None:
        """Forget the late answers of logins that are in the vault no more, replaced or removed: nobody would look for
        them. Where a login can't be read, all stay, until the next time."""
        with contextlib.suppress(GoexError):
            self._drop_orphans()

    def _drop_orphans(self) -> None:
        remembered = self._vault.while_unsealed()
        # Looked for before the vault is: a renewal is announced there before anything can lie beside it.
        found = deposits.families(self._vault.path)
        found |= {family for family, one in remembered.items() if isinstance(one, Memory) and one.unsaved is not None}
        if not found or self._vault.damage():
            return
        logins = [one.account for one in self._vault.records() if one.account.format == "oauth"]
        kept = [self.login(account.service, account.name) for account in logins]
        for family in found - {tokens.family for tokens in kept if tokens is not None}:
            if isinstance(memory := remembered.pop(family, None), Memory):
                memory.unsaved = None  # else it would be put beside the vault yet
            deposits.drop(self._vault.path, family)

    async def settled(self, seconds: float) -> bool:
        """Wait, at most `seconds`, for requests that are on their way: for whoever is about to seal the vault.
        Returns whether none is left."""
        flights = [task for account_state in self._account_states.values() for task in account_state.flights.values()]
        if flights:
            await asyncio.wait(flights, timeout=seconds)
        return all(task.done() for task in flights)

    async def _login_lease(self, opened: Opened, action_id: str, expires: datetime, wanted: frozenset[str]) -> Lease:
        self.drop_orphans()
        state = self._read(opened, wanted)
        life = expires - self._clock()
        if life <= timedelta(0):
            raise InvalidInput("A lease must end in the future, at a time with a zone.")
        access = self._at_hand(state, wanted, life)
        if access is None:
            work = functools.partial(self._queue, (state.service, state.name), wanted, life)
            given = await self._flight((state.service, state.name), wanted, work)
            opened = self._vault.open_record(state.service, state.name)
            if self._read(opened, wanted).tokens.family != given.family:
                raise RecordReplaced(f"{opened.account.id} was logged in to anew meanwhile.", next_step="Try again.")
            access = given.access
        return self._token_lease(opened, action_id, expires, access, wanted)

    def _read(self, opened: Opened, wanted: frozenset[str]) -> State:
        """The login, when it lives and covers what is wanted. Raises LoginExpired, ConsentNeeded."""
        tokens = TokenSet.from_secret(opened.secret)
        account = opened.account
        if tokens.ended:
            raise login_expired(account.service, account.name, tokens.ended)
        if missing := wanted - tokens.granted:
            raise ConsentNeeded(account.service, account.name, tuple(sorted(missing)))
        return State(opened=opened, tokens=tokens)

    def _at_hand(self, state: State, wanted: frozenset[str], life: timedelta) -> Access | None:
        """A token that will do, without a request."""
        tokens, now = state.tokens, self._clock()
        if tokens.pending is not None and not self._renewals.resting((state.service, state.name)):
            return None
        if not wanted or fits(tokens.access, wanted) or not may_narrow(tokens):
            usable = self._renewals.good(tokens, life) or (
                self._renewals.resting((state.service, state.name)) and self._renewals.alive(tokens)
            )
            return tokens.access if usable else None
        narrowed = self._renewals.memory(tokens.family).narrowed.get(wanted)
        return narrowed if narrowed is not None and narrowed.fresh(now, life) else None

    # ---- one request at a time ----

    async def _flight(self, key: Key, wanted: frozenset[str], work: _Work) -> _Given:
        """The token, by requests that are shared with everybody who wants the same."""
        account_state = self._account_states.setdefault(key, _AccountState())
        task = account_state.flights.get(wanted)
        if task is None:
            task = asyncio.create_task(work(account_state))
            account_state.flights[wanted] = task

            def landed(done: asyncio.Task[_Given]) -> None:
                account_state.flights.pop(wanted, None)
                if not done.cancelled():
                    done.exception()  # looked at here, in case that everybody who waited has gone

            task.add_done_callback(landed)
        # Shielded: whoever gives up waiting takes the answer neither from the others nor from the vault.
        return await asyncio.shield(task)

    async def _queue(self, key: Key, wanted: frozenset[str], life: timedelta, account_state: _AccountState) -> _Given:
        before = account_state.failures
        async with account_state.lock:
            if account_state.failures != before and account_state.failure is not None:
                raise copy.copy(account_state.failure)  # what was waited for has failed: no second try for it
            try:
                return await self._fetch(key, wanted, life)
            except (LoginExpired, Unreachable) as error:
                account_state.failures += 1
                account_state.failure = copy.copy(error)  # the error itself holds its frames, and they hold tokens
                self._renewals.failed(key)
                raise

    async def _fetch(self, key: Key, wanted: frozenset[str], life: timedelta) -> _Given:
        state = self._read(self._vault.open_record(*key), wanted)
        access = self._at_hand(state, wanted, life)  # the one that was waited for may have brought it
        if access is None:
            if state.tokens.pending is not None:
                try:
                    state = await self._renewals.recovered(state)
                except Unreachable:
                    if not self._renewals.alive(state.tokens):
                        raise
                    self._renewals.failed(key)
                    return _Given(family=state.tokens.family, access=state.tokens.access)
                self._read(state.opened, wanted)
            if not wanted or fits(state.tokens.access, wanted) or not may_narrow(state.tokens):
                state = await self._renewals.whole(state, life)
                access = state.tokens.access
            else:
                access = await self._renewals.narrowed(state, wanted, life)
        return _Given(family=state.tokens.family, access=access)


def _file_family(secret: Secret) -> str:
    """What tells a file, as it is sealed, from any other, and from logins."""
    return f"file-{hashlib.sha256(secret.reveal()).hexdigest()}"


def _without(unread: str, said: Revoked) -> Revoked:
    """What came of taking back a login whose late answer couldn't be read: that may be good still."""
    why = "; ".join(filter(None, (said.why, unread.rstrip("."))))
    return Revoked(done=False, why=why, next_step=said.next_step or "Remove GoEx's access on the provider's own page.")
