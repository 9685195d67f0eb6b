"""Requests about one login: its renewal, and tokens that open less. The broker sees that there is one at a time.

Rules: a renewal is announced in the vault before it is asked for, and its answer is in the vault before it is used.
Where an answer was lost, the same is asked for once more, at once. A token is narrower when its answer *states* it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from policies.errors import GoexError, InvalidInput
from vault.aead import new_key
from vault.errors import NoAccount, RecordReplaced, VaultSealed, VaultUnwritable
from vault.oauth import deposits, token_requests
from vault.oauth.errors import AuthorizationServerBroken, Refused, Unreachable, login_expired
from vault.oauth.http import Http
from vault.oauth.provider import EXCHANGE_GRANT
from vault.oauth.token_requests import Clock, Refreshed, opens
from vault.oauth.token_set import Access, Narrows, Pending, TokenSet
from vault.record_update import Opened
from vault.secret import Secret
from vault.store import Vault

_log = logging.getLogger("goex.vault")

Connect = Callable[[TokenSet], Http]
Key = tuple[str, str]  # service, account name
_MOST_NARROWED = 64  # a login; the oldest go first
_MOST_LET_GO = 64
_MOST_TRIES = 5
_MOST_AT_ONCE = 8  # requests, of all logins
_STALE = frozenset({"invalid_grant", "invalid_request", "invalid_token"})
_OVER = frozenset({"invalid_grant", "bad_refresh_token"})  # the second is GitHub's word for the first
_LEAST = timedelta(seconds=5)
_REST = timedelta(seconds=30)
_REFUSED = "the provider takes it no longer: it ran out, was taken back, or its old token was used by somebody else"
_LOST = (
    "the answer to a renewal was lost (GoEx was stopped, or the connection broke), "
    "and the provider doesn't take the old token twice"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A login as it is in the vault."""

    opened: Opened
    tokens: TokenSet

    @property
    def service(self) -> str:
        return self.opened.account.service

    @property
    def name(self) -> str:
        return self.opened.account.name


@dataclass(slots=True)
class Memory:
    """What is remembered of one login while the vault is unsealed."""

    narrowed: dict[frozenset[str], Access] = field(default_factory=dict)
    let_go: list[Access] = field(default_factory=list)  # narrowed too, used no more, and good until they run out
    distrusted: set[bytes] = field(default_factory=set)  # digests of tokens
    unsaved: tuple[TokenSet, Secret] | None = None  # with its key: neither the vault nor the folder beside it took it
    parts: bool = False  # whether that is tried once more before sealing


class Renewals:
    """What is asked of a login's server, and what is kept of the answers."""

    def __init__(self, vault: Vault, clock: Clock, connect: Connect) -> None:
        self._vault = vault
        self._clock = clock
        self._connect = connect
        self._failed: dict[Key, datetime] = {}
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="goex-oauth")

    def failed(self, key: Key) -> None:
        """The server couldn't be reached: for a while it isn't asked each time."""
        self._failed[key] = self._clock()

    def resting(self, key: Key) -> bool:
        """Whether that was a moment ago."""
        failed = self._failed.get(key)
        return failed is not None and abs(self._clock() - failed) < _REST

    def good(self, tokens: TokenSet, life: timedelta) -> bool:
        """Whether the login's own token will do for `life`; one that can't be renewed serves to its end."""
        now = self._clock()
        if not tokens.renews:
            return tokens.fresh(now, _LEAST)
        return tokens.fresh(now, life) and digest(tokens.access) not in self.memory(tokens.family).distrusted

    def alive(self, tokens: TokenSet) -> bool:
        """Whether the login's own token still has some life in it."""
        known = tokens.access.expires is not None and tokens.fresh(self._clock(), _LEAST)
        return known and digest(tokens.access) not in self.memory(tokens.family).distrusted

    # ---- the login's own token ----

    async def whole(self, state: State, life: timedelta) -> State:
        """The login with a token of its own that is good."""
        tokens = state.tokens
        if self.good(tokens, life):
            return state
        if not tokens.renews:
            raise login_expired(
                state.service, state.name, "its token has expired, and the provider gave none to renew it with"
            )
        try:
            return (await self._renewed(state, None))[0]
        except Unreachable:
            if not self.alive(tokens):
                raise
            # The server may be back before it ends; until then it isn't asked each time.
            self.failed((state.service, state.name))
            return state

    async def recovered(self, state: State) -> State:
        """A renewal was announced, and nothing says how it ended: its late answer, or the same question again."""
        tokens = state.tokens
        late = await self.newest(tokens)
        if late is tokens:
            return (await self._renewed(state, None))[0]
        found = await self._save(state, late)
        self.memory(tokens.family).unsaved = None
        await asyncio.to_thread(deposits.drop, self._vault.path, tokens.family)
        return found

    async def newest(self, tokens: TokenSet) -> TokenSet:
        """The login with the answer of an announced renewal, where that came and couldn't be kept in the vault."""
        if tokens.pending is None:
            return tokens
        unsaved = self.memory(tokens.family).unsaved
        if unsaved is not None:
            return unsaved[0]
        late = await asyncio.to_thread(deposits.take, self._vault.path, tokens.family, tokens.pending.deposit)
        return late or tokens

    async def _renewed(self, state: State, scopes: frozenset[str] | None) -> tuple[State, Refreshed]:
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
        if _ends(failure) and scopes is not None:
            # Is it the login, or only the narrowing, that the server won't have? Not every server tells them apart.
            got, other, again = await self._asked(tokens, None)
            if got is not None:
                await self._received(state, got, key)
                raise Refused(failure.message, error="invalid_scope")
            assert other is not None
            failure, lost = other, lost or again
        if _ends(failure):
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
                return await self._request(token_requests.refresh, tokens, http, scopes), None, lost
            except Refused as error:
                return None, error.with_traceback(None), lost
            except Unreachable as error:
                lost = lost or error.sent
                if last or not error.sent or error.answered:
                    return None, error.with_traceback(None), lost
            except GoexError as error:  # an answer that can't be used: who knows what it says
                return None, error.with_traceback(None), True
        raise AssertionError

    async def _request(self, work: Callable[..., Refreshed], *given: object) -> Refreshed:
        """`work` in a thread of our own: servers that hang must not take those that the daemon lives on."""
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, functools.partial(work, *given, clock=self._clock)
        )

    async def _received(self, state: State, got: Refreshed, key: Secret) -> State:
        """What came is durable when this returns; or it is kept for later, and this raises why."""
        try:
            return await self._kept(state, got.tokens, key)
        except InvalidInput:  # larger than a record can be: what the login is renewed with is kept alone
            without = replace(state.tokens.access, token=Secret(b""))
            await self._kept(state, replace(got.tokens, access=without).stale(), key)
            raise

    async def _kept(self, state: State, tokens: TokenSet, key: Secret) -> State:
        """Into the vault; where it takes nothing now, beside it; else in memory until it is sealed."""
        try:
            return await self._save(state, tokens)
        except (RecordReplaced, NoAccount, InvalidInput):
            raise  # it is nobody's any more, or would be of no use later either
        except GoexError:
            if tokens.flow != "client_credentials":  # that wasn't announced, so nobody would look for it
                await self._put_aside(tokens, key)
            raise

    async def _put_aside(self, tokens: TokenSet, key: Secret) -> None:
        try:
            await asyncio.to_thread(deposits.put, self._vault.path, tokens, key)
        except VaultUnwritable as error:
            _log.warning("a renewed login could be written nowhere: %s", error.message)
            with contextlib.suppress(VaultSealed):  # then there is no place left
                memory = self.memory(tokens.family)
                memory.unsaved = (tokens, key)
                if not memory.parts:
                    self._vault.before_sealing(functools.partial(self._once_more, memory))
                    memory.parts = True

    def _once_more(self, memory: Memory) -> None:
        """Put aside what still waits for it. Raises VaultUnwritable."""
        if memory.unsaved is not None:
            deposits.put(self._vault.path, *memory.unsaved)

    async def _save(self, state: State, tokens: TokenSet) -> State:
        """Raises RecordReplaced when the record is another login's by now; under other keys, and where the account's
        terms were changed, it is the same one, and is renewed as it is now."""
        if tokens == state.tokens:
            return state
        opened = state.opened
        for _ in range(_MOST_TRIES):
            try:
                return State(
                    opened=await asyncio.to_thread(self._vault.renew, opened, tokens.to_secret()), tokens=tokens
                )
            except RecordReplaced:
                opened = self._vault.open_record(state.service, state.name)
                if opened.secret != state.opened.secret:  # the same login may be under other terms by now
                    raise
        raise RecordReplaced(f"{opened.account.id} is being changed all the time.", next_step="Try again later.")

    # ---- narrowed tokens ----

    async def narrowed(self, state: State, wanted: frozenset[str], life: timedelta) -> Access:
        """A token for `wanted` alone, or the login's own where the server doesn't narrow."""
        if state.tokens.narrows != "refresh" and EXCHANGE_GRANT in state.tokens.provider.grant_types:
            state, got = await self._exchanged(state, wanted, life)
            if got is not None and _narrower(got, wanted):
                await self._learn(state, "exchange")
                return self._remember(state.tokens.family, wanted, got.access)
            if state.tokens.narrows == "exchange":  # it did until now: the next prompt doesn't promise it
                return (await self._learn(state, "unknown")).tokens.access
        if not state.tokens.renews:
            await self._learn(state, "no")
            return (await self.whole(state, life)).tokens.access
        return await self._renewed_narrower(state, wanted, life)

    async def _exchanged(self, state: State, wanted: frozenset[str], life: timedelta) -> tuple[State, Refreshed | None]:
        """RFC 8693. None: the server doesn't."""
        for again in (False, True):
            state = await self.whole(state, life)
            tokens = state.tokens
            try:
                return state, await self._request(token_requests.exchange, tokens, self._connect(tokens), wanted)
            except Refused as error:
                # A token that was revoked before its time isn't exchanged, and says nothing about the server's ways.
                if again or error.error not in _STALE or not tokens.renews:
                    break
                self.memory(tokens.family).distrusted.add(digest(tokens.access))
            except AuthorizationServerBroken:
                break
        return state, None

    async def _renewed_narrower(self, state: State, wanted: frozenset[str], life: timedelta) -> Access:
        """A renewal for `wanted` alone (RFC 6749 section 6)."""
        first = state.tokens.narrows == "unknown"
        before = state.tokens
        key = (state.service, state.name)
        try:
            state, got = await self._renewed(state, wanted)
        except Refused as error:
            if error.error != "invalid_scope":
                raise
            state = await self._learn(self._reread(*key), "no")
            return (await self.whole(state, life)).tokens.access
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
        return (await self.whole(state, life)).tokens.access

    async def _learn(self, state: State, narrows: Narrows) -> State:
        """Note the server's way, with the login."""
        if state.tokens.narrows == narrows:
            return state
        return await self._save(state, replace(state.tokens, narrows=narrows))

    def _reread(self, service: str, name: str) -> State:
        opened = self._vault.open_record(service, name)
        return State(opened=opened, tokens=TokenSet.from_secret(opened.secret))

    def _remember(self, family: str, wanted: frozenset[str], access: Access) -> Access:
        memory = self.memory(family)
        gone = [memory.narrowed.pop(wanted)] if wanted in memory.narrowed else []
        memory.narrowed[wanted] = access
        while len(memory.narrowed) > _MOST_NARROWED:
            gone.append(memory.narrowed.pop(next(iter(memory.narrowed))))
        self._let_go(memory, gone)
        return access

    def forget_narrowed(self, family: str) -> None:
        """The service took one of the login's tokens no longer: none of them is used again. Raises VaultSealed."""
        memory = self.memory(family)
        self._let_go(memory, memory.narrowed.values())
        memory.narrowed.clear()

    def to_revoke(self, family: str) -> list[Secret]:
        """The login's narrowed tokens that haven't run out, used or not. Raises VaultSealed."""
        memory = self.memory(family)
        self._let_go(memory, ())
        return [access.token for access in (*memory.narrowed.values(), *memory.let_go)]

    def _let_go(self, memory: Memory, gone: Iterable[Access]) -> None:
        """These are used no more, but are to be revoked with their login as long as they are good."""
        live = [each for each in (*memory.let_go, *gone) if each.expires is None or each.expires > self._clock()]
        memory.let_go = live[-_MOST_LET_GO:]

    def memory(self, family: str) -> Memory:
        """Raises VaultSealed."""
        found: Memory = self._vault.while_unsealed().setdefault(family, Memory())
        return found


def _ends(failure: GoexError) -> bool:
    """Whether the server says that the login is over."""
    return isinstance(failure, Refused) and failure.error in _OVER


def fits(access: Access, wanted: frozenset[str]) -> bool:
    """Whether the server *said* that the token opens what is wanted and nothing else."""
    return access.stated and bool(wanted) and opens(wanted) <= access.scopes and opens(access.scopes) <= wanted


def _narrower(got: Refreshed, wanted: frozenset[str]) -> bool:
    """Whether that is a token for just that."""
    return fits(got.access, wanted)


def may_narrow(tokens: TokenSet) -> bool:
    return tokens.narrows != "no" and (tokens.renews or EXCHANGE_GRANT in tokens.provider.grant_types)


def digest(access: Access) -> bytes:
    return hashlib.sha256(access.token.reveal()).digest()
