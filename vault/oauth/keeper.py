"""Leases of every kind of account; logins are renewed and narrowed on the way, by one request at a time each.

Rules:
* One account, one request: whoever wants the same waits for it, and its failure is everybody's who waited.
* A renewal is announced in the vault before it is asked for, and its answer is in the vault before it is used; the old
  refresh token is forgotten in that same write. Killed in between, the announcement says so: the old token is tried
  once more at once, since servers take it for a while after, and when it is refused the person is told why.
* A vault that is sealed while the answer is on its way gets it later: it is put beside the vault, under a key that the
  announcement holds, and opens with the vault alone.
* A narrowed token is judged by the scopes that its answer *states*. It never touches the login's own token, and the
  first one is followed by a full renewal: a server that would shrink the login is found out once, never asked again.
* Nothing is widened: scopes that the login doesn't have are the person's to add.
* What is remembered here (narrowed tokens) is remembered while the vault is unsealed, in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from policies.errors import GoexError, InvalidInput
from vault.basic import Basic
from vault.errors import RecordReplaced, VaultSealed, VaultUnwritable
from vault.lease import Lease
from vault.oauth import deposits, grants
from vault.oauth.errors import (
    AuthorizationServerBroken,
    ConsentNeeded,
    LoginExpired,
    Refused,
    Unreachable,
    login_expired,
)
from vault.oauth.grants import Clock, Refreshed, opens, utc_now
from vault.oauth.http import Http
from vault.oauth.provider import EXCHANGE_GRANT
from vault.oauth.tokens import Access, Narrows, Pending, TokenSet
from vault.renewing import Opened
from vault.sealing import new_key
from vault.secret import Secret
from vault.store import Vault

_log = logging.getLogger("goex.vault")

Holder = Literal["token", "gateway"]
Connect = Callable[[TokenSet], Http]
_Key = tuple[str, str]
_MOST_NARROWED = 64  # a login; the oldest go first
_MOST_TRIES = 5
_STALE = frozenset({"invalid_grant", "invalid_request", "invalid_token"})
_LEAST = timedelta(seconds=5)
_REST = timedelta(seconds=30)
_REFUSED = "the provider takes it no longer: it ran out, was taken back, or its old token was used by somebody else"
_LOST = (
    "the answer to a renewal was lost (GoEx was stopped, or the connection broke), "
    "and the provider doesn't take the old token twice"
)


def connect(tokens: TokenSet) -> Http:
    """The way to a login's server, as it was when the person logged in."""
    return Http(private=tokens.private, ca_pem=tokens.ca_pem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """A login as it is in the vault."""

    opened: Opened
    tokens: TokenSet

    @property
    def service(self) -> str:
        return self.opened.account.service

    @property
    def name(self) -> str:
        return self.opened.account.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A token that will do, and the login that it is of."""

    family: str
    access: Access


@dataclass(slots=True)
class _Desk:
    """What is going on about one account: its requests take the lock, one after the other."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    flights: dict[frozenset[str], asyncio.Task[_Given]] = field(default_factory=dict)
    failures: int = 0
    failure: GoexError | None = None
    failed: datetime | None = None


@dataclass(slots=True)
class _Memory:
    """What is remembered of one login while the vault is unsealed."""

    narrowed: dict[frozenset[str], Access] = field(default_factory=dict)
    distrusted: set[bytes] = field(default_factory=set)  # digests of tokens
    unsaved: TokenSet | None = None  # the disk was full when it came


class Keeper:
    """Hands out leases. One for a vault, used from one event loop."""

    def __init__(self, vault: Vault, *, clock: Clock = utc_now, connect: Connect = connect) -> None:
        self._vault = vault
        self._clock = clock
        self._connect = connect
        self._desks: dict[_Key, _Desk] = {}

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
        if _fits(tokens.access, wanted):
            return "token"
        if not wanted or not _may_narrow(tokens):
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
        opened = self._vault.open_record(service, name)
        if opened.account.format == "oauth":
            return await self._login_lease(opened, action_id, expires, frozenset(scopes))
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

    def distrust(self, service: str, name: str) -> None:
        """The service doesn't take a token that was thought good: the next lease gets a new one. Idempotent."""
        with contextlib.suppress(VaultSealed):
            tokens = self.login(service, name)
            if tokens is not None and tokens.renews:
                memory = self._memory(tokens.family)
                memory.narrowed.clear()
                memory.distrusted.add(_digest(tokens.access))

    async def settled(self, seconds: float) -> bool:
        """Wait, at most `seconds`, for requests that are on their way: for whoever is about to seal the vault.
        Returns whether none is left."""
        flights = [task for desk in self._desks.values() for task in desk.flights.values()]
        if flights:
            await asyncio.wait(flights, timeout=seconds)
        return all(task.done() for task in flights)

    async def _login_lease(self, opened: Opened, action_id: str, expires: datetime, wanted: frozenset[str]) -> Lease:
        state = self._read(opened, wanted)
        life = expires - self._clock()
        if life <= timedelta(0):
            raise InvalidInput("A lease must end in the future, at a time with a zone.")
        access = self._at_hand(state, wanted, life)
        if access is None:
            given = await self._flight((state.service, state.name), wanted, life)
            opened = self._vault.open_record(state.service, state.name)
            if self._read(opened, wanted).tokens.family != given.family:
                raise RecordReplaced(f"{opened.account.id} was logged in to anew meanwhile.", next_step="Try again.")
            access = given.access
        until = min(expires, access.expires) if access.expires is not None else expires
        self._vault.note_lease(opened, action_id=action_id, expires=until)
        return Lease(
            action_id=action_id,
            account=opened.account,
            secret=access.token,
            expires=until,
            narrowed="token" if _fits(access, wanted) else "gateway",
            scopes=tuple(sorted(access.scopes)),
        )

    def _read(self, opened: Opened, wanted: frozenset[str]) -> _State:
        """The login, when it lives and covers what is wanted. Raises LoginExpired, ConsentNeeded."""
        tokens = TokenSet.from_secret(opened.secret)
        account = opened.account
        if tokens.ended:
            raise login_expired(account.service, account.name, tokens.ended)
        if missing := wanted - tokens.granted:
            raise ConsentNeeded(account.service, account.name, tuple(sorted(missing)))
        return _State(opened=opened, tokens=tokens)

    def _at_hand(self, state: _State, wanted: frozenset[str], life: timedelta) -> Access | None:
        """A token that will do, without a request."""
        tokens, now = state.tokens, self._clock()
        if tokens.pending is not None and not self._just_failed(state, now):
            return None
        if not wanted or _fits(tokens.access, wanted) or not _may_narrow(tokens):
            usable = self._good(tokens, life) or (self._just_failed(state, now) and self._alive(tokens))
            return tokens.access if usable else None
        narrowed = self._memory(tokens.family).narrowed.get(wanted)
        return narrowed if narrowed is not None and narrowed.fresh(now, life) else None

    def _good(self, tokens: TokenSet, life: timedelta) -> bool:
        """Whether the login's own token will do for `life`; one that can't be renewed serves to its end."""
        now = self._clock()
        if not tokens.renews:
            return tokens.fresh(now, _LEAST)
        return tokens.fresh(now, life) and _digest(tokens.access) not in self._memory(tokens.family).distrusted

    def _alive(self, tokens: TokenSet) -> bool:
        """Whether the login's own token still has some life in it."""
        known = tokens.access.expires is not None and tokens.fresh(self._clock(), _LEAST)
        return known and _digest(tokens.access) not in self._memory(tokens.family).distrusted

    # ---- one request at a time ----

    async def _flight(self, key: _Key, wanted: frozenset[str], life: timedelta) -> _Given:
        """The token, by requests that are shared with everybody who wants the same."""
        desk = self._desks.setdefault(key, _Desk())
        task = desk.flights.get(wanted)
        if task is None:
            task = asyncio.create_task(self._queue(key, desk, wanted, life))
            desk.flights[wanted] = task

            def landed(done: asyncio.Task[_Given]) -> None:
                desk.flights.pop(wanted, None)
                if not done.cancelled():
                    done.exception()  # looked at here, in case that everybody who waited has gone

            task.add_done_callback(landed)
        # Shielded: whoever gives up waiting takes the answer neither from the others nor from the vault.
        return await asyncio.shield(task)

    async def _queue(self, key: _Key, desk: _Desk, wanted: frozenset[str], life: timedelta) -> _Given:
        before = desk.failures
        async with desk.lock:
            if desk.failures != before and desk.failure is not None:
                raise desk.failure.with_traceback(None)  # what was waited for has failed: no second try for it
            try:
                return await self._fetch(key, wanted, life)
            except (LoginExpired, Unreachable) as error:
                desk.failures += 1
                desk.failure, desk.failed = error, self._clock()
                raise

    async def _fetch(self, key: _Key, wanted: frozenset[str], life: timedelta) -> _Given:
        state = self._read(self._vault.open_record(*key), wanted)
        access = self._at_hand(state, wanted, life)  # the one that was waited for may have brought it
        if access is None:
            if state.tokens.pending is not None:
                try:
                    state = await self._recovered(state)
                except Unreachable:
                    if not self._alive(state.tokens):
                        raise
                    self._desks[key].failed = self._clock()
                    return _Given(family=state.tokens.family, access=state.tokens.access)
                self._read(state.opened, wanted)
            if not wanted or _fits(state.tokens.access, wanted) or not _may_narrow(state.tokens):
                state = await self._whole(state, life)
                access = state.tokens.access
            else:
                access = await self._narrowed(state, wanted, life)
        return _Given(family=state.tokens.family, access=access)

    def _just_failed(self, state: _State, now: datetime) -> bool:
        desk = self._desks.get((state.service, state.name))
        return desk is not None and desk.failed is not None and abs(now - desk.failed) < _REST

    # ---- the login's own token ----

    async def _whole(self, state: _State, life: timedelta) -> _State:
        """The login with a token of its own that is good."""
        tokens = state.tokens
        if self._good(tokens, life):
            return state
        if not tokens.renews:
            raise login_expired(
                state.service, state.name, "its token has expired, and the provider gave none to renew it with"
            )
        try:
            return (await self._renewed(state, None))[0]
        except Unreachable:
            if not self._alive(tokens):
                raise
            # The server may be back before it ends; until then it isn't asked each time.
            self._desks[state.service, state.name].failed = self._clock()
            return state

    async def _recovered(self, state: _State) -> _State:
        """A renewal was announced, and nothing says how it ended: its late answer, or the same question again."""
        tokens = state.tokens
        assert tokens.pending is not None
        late = self._memory(tokens.family).unsaved
        if late is None:
            late = await asyncio.to_thread(deposits.take, self._vault.path, tokens.family, tokens.pending.deposit)
        if late is None:
            return (await self._renewed(state, None))[0]
        found = await self._save(state, late)
        self._memory(tokens.family).unsaved = None
        await asyncio.to_thread(deposits.drop, self._vault.path, tokens.family)
        return found

    async def _renewed(self, state: _State, scopes: frozenset[str] | None) -> tuple[_State, Refreshed]:
        """One renewal: announced, asked for, durable. Raises LoginExpired when the server won't have it."""
        tokens = state.tokens
        key = new_key()
        if tokens.flow != "client_credentials":  # nothing rotates there, so nothing can be lost
            state = await self._save(state, replace(tokens, pending=Pending(at=self._clock(), deposit=key)))
        got, failure, lost = await self._asked(tokens, scopes)
        if got is not None:
            return await self._received(state, got, key), got
        assert failure is not None
        lost = lost or tokens.pending is not None
        if isinstance(failure, Refused) and failure.error == "invalid_grant":
            why = _LOST if lost else _REFUSED
            await self._save(state, replace(state.tokens, pending=None, ended=why, refresh=Secret(b"")).stale())
            raise login_expired(state.service, state.name, why)
        if not lost and tokens.flow != "client_credentials":
            await self._save(state, tokens)  # the announcement is void: the server did nothing
        raise failure

    async def _asked(
        self, tokens: TokenSet, scopes: frozenset[str] | None
    ) -> tuple[Refreshed | None, GoexError | None, bool]:
        """The request, once more at once where its answer was lost: what came, what failed, and whether the server may
        have done something that nobody here knows of."""
        http = self._connect(tokens)
        lost = False
        for last in (False, True):
            try:
                return await asyncio.to_thread(grants.refresh, tokens, http, scopes, clock=self._clock), None, lost
            except Refused as error:
                return None, error.with_traceback(None), lost
            except Unreachable as error:
                lost = lost or error.sent
                if last or not error.sent or error.answered:
                    return None, error.with_traceback(None), lost
            except GoexError as error:  # an answer that can't be used: who knows what it says
                return None, error.with_traceback(None), True
        raise AssertionError

    async def _received(self, state: _State, got: Refreshed, key: Secret) -> _State:
        """What came is durable when this returns; or it is kept for later, and this raises why."""
        try:
            return await self._save(state, got.tokens)
        except VaultSealed:
            await asyncio.to_thread(deposits.put, self._vault.path, got.tokens, key)
            raise
        except VaultUnwritable:
            self._memory(got.tokens.family).unsaved = got.tokens
            raise

    async def _save(self, state: _State, tokens: TokenSet) -> _State:
        """Raises RecordReplaced when the record is another login's by now; sealed anew under other keys it is the same."""
        if tokens == state.tokens:
            return state
        opened = state.opened
        for _ in range(_MOST_TRIES):
            try:
                return _State(
                    opened=await asyncio.to_thread(self._vault.renew, opened, tokens.to_secret()), tokens=tokens
                )
            except RecordReplaced:
                opened = self._vault.open_record(state.service, state.name)
                if opened.account != state.opened.account or opened.secret != state.opened.secret:
                    raise
        raise RecordReplaced(f"{opened.account.id} is being changed all the time.", next_step="Try again later.")

    # ---- narrowed tokens ----

    async def _narrowed(self, state: _State, wanted: frozenset[str], life: timedelta) -> Access:
        """A token for `wanted` alone, or the login's own where the server doesn't narrow."""
        if state.tokens.narrows != "refresh" and EXCHANGE_GRANT in state.tokens.provider.grant_types:
            state, got = await self._exchanged(state, wanted, life)
            if got is not None and _narrower(got, wanted):
                await self._learn(state, "exchange")
                return self._remember(state.tokens.family, wanted, got.access)
            if state.tokens.narrows == "exchange":
                return state.tokens.access
        if not state.tokens.renews:
            await self._learn(state, "no")
            return (await self._whole(state, life)).tokens.access
        return await self._renewed_narrower(state, wanted, life)

    async def _exchanged(
        self, state: _State, wanted: frozenset[str], life: timedelta
    ) -> tuple[_State, Refreshed | None]:
        """RFC 8693. None: the server doesn't."""
        for again in (False, True):
            state = await self._whole(state, life)
            tokens = state.tokens
            try:
                return state, await asyncio.to_thread(
                    grants.exchange, tokens, self._connect(tokens), wanted, clock=self._clock
                )
            except Refused as error:
                # A token that was revoked before its time isn't exchanged, and says nothing about the server's ways.
                if (
                    again
                    or error.error not in ("invalid_grant", "invalid_request", "invalid_token")
                    or not tokens.renews
                ):
                    break
                self._memory(tokens.family).distrusted.add(_digest(tokens.access))
            except AuthorizationServerBroken:
                break
        return state, None

    async def _renewed_narrower(self, state: _State, wanted: frozenset[str], life: timedelta) -> Access:
        """A renewal for `wanted` alone (RFC 6749 section 6)."""
        first = state.tokens.narrows == "unknown"
        before = state.tokens
        key = (state.service, state.name)
        try:
            state, got = await self._renewed(state, wanted)
        except Refused as error:
            if error.error != "invalid_scope":
                raise
            state = await self._learn(self._read(self._vault.open_record(*key), wanted), "no")
            return (await self._whole(state, life)).tokens.access
        narrower = _narrower(got, wanted)
        harmed = False
        if first and state.tokens.flow != "client_credentials":
            # Does the login keep its scopes, as it must, or has this shrunk it? Found out once, at once.
            state, _ = await self._renewed(state, None)
            harmed = not before.granted <= state.tokens.granted
            if harmed:
                _log.warning("%s takes a narrowed renewal for the whole login's", before.provider.issuer)
        if first or not narrower:
            state = await self._learn(state, "refresh" if narrower and not harmed else "no")
        if narrower:
            return self._remember(state.tokens.family, wanted, got.access)
        return (await self._whole(state, life)).tokens.access

    async def _learn(self, state: _State, narrows: Narrows) -> _State:
        """Note the server's way, with the login."""
        if state.tokens.narrows == narrows:
            return state
        return await self._save(state, replace(state.tokens, narrows=narrows))

    def _remember(self, family: str, wanted: frozenset[str], access: Access) -> Access:
        narrowed = self._memory(family).narrowed
        narrowed[wanted] = access
        while len(narrowed) > _MOST_NARROWED:
            del narrowed[next(iter(narrowed))]
        return access

    def _memory(self, family: str) -> _Memory:
        """Raises VaultSealed."""
        found: _Memory = self._vault.while_unsealed().setdefault(family, _Memory())
        return found


def _fits(access: Access, wanted: frozenset[str]) -> bool:
    """Whether the token opens what is wanted and nothing else."""
    return bool(wanted) and opens(wanted) <= access.scopes and opens(access.scopes) <= wanted


def _narrower(got: Refreshed, wanted: frozenset[str]) -> bool:
    """Whether the server *said* that it gave a token for just that."""
    return got.stated and _fits(got.access, wanted)


def _may_narrow(tokens: TokenSet) -> bool:
    return tokens.narrows != "no" and (tokens.renews or EXCHANGE_GRANT in tokens.provider.grant_types)


def _digest(access: Access) -> bytes:
    return hashlib.sha256(access.token.reveal()).digest()
