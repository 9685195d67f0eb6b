"""`goex.v1.Accounts`, on user.sock alone: logins, keys, and taking them back.

Rules: nothing is stored before a login has ended well, and then in one write; what an earlier login was granted is
never lost to a later one; one login at a time for each account. Whatever connects, replaces or removes needs presence.
The journal gets what was asked for, granted and refused, and no token.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from goex.daemon.account_views import connected_account, offer_view
from goex.daemon.credential_broker import CredentialBroker
from goex.daemon.entries import (
    DEFAULT,
    Place,
    end_grants,
    end_moved,
    end_users,
    entry,
    known,
    record,
    records,
    to_remove,
)
from goex.daemon.login_options import (
    Found,
    Unconfirmed,
    client_of,
    find_server,
    http_for,
    lost,
    scopes_for,
)
from goex.daemon.logins_under_way import LoginsUnderWay, LoginUnderWay
from goex.daemon.person_context import PersonCalls, PersonContext, SecretDue
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import streaming, unary
from goex.daemon.server_tools import tools_of
from goex.engine.consent import login_facts
from goex.engine.peers import Peer
from goex.journal.chain import stamp
from goex.rpc import accounts_pb2 as ab
from goex.rpc import accounts_pb2_grpc as rpc
from policies.accounts import Account, Origin
from policies.errors import Conflict, GoexError, InvalidInput
from policies.jsonvalue import canonical
from policies.services import Service
from vault.basic import Basic
from vault.errors import AccountExists, pasteable
from vault.oauth.code import CodeLogin
from vault.oauth.device import DeviceLogin
from vault.oauth.errors import LoginCancelled
from vault.oauth.http import Http
from vault.oauth.provider import Client, Provider
from vault.oauth.token_requests import Revoked, client_credentials, give_back
from vault.oauth.token_set import PROTOCOL_SCOPES, TokenSet
from vault.record import check_account
from vault.secret import Secret, values_of

LONGEST_LOGIN = 600.0  # seconds, in which the person must be done
MOST_LOGINS = 8  # at once, of all accounts
_FLOWS = ("code", "device", "client_credentials")
_KINDS = ("api-key", "bearer", "basic")
_LONGEST_NAME = 300
_MOST_SCOPES = 500
_LONGEST_CA = 40_000  # bytes, of a login's account; see `vault.record.LONGEST_STRING`


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """Everything about one login, before it begins."""

    service: Service
    account: Account
    earlier: TokenSet | None
    http: Http
    provider: Provider
    client: Client | None  # None: GoEx registers itself
    flow: str
    scope_names: tuple[str, ...]
    scopes: frozenset[str]  # as the server spells them
    under_way: LoginUnderWay

    @property
    def key(self) -> tuple[str, str]:
        return self.account.service, self.account.name

    def alone(self) -> bool:
        """Whether nothing but this login ends when its tokens are given back."""
        return self.under_way.alone

    @property
    def subject(self) -> str:
        """Who must log in: the one whom the account belongs to; "" where that isn't known."""
        return self.earlier.subject if self.earlier is not None else ""


class AccountsService(PersonCalls, rpc.AccountsServicer):
    """Everything about connecting accounts."""

    def __init__(self, person: PersonContext, broker: CredentialBroker) -> None:
        super().__init__(person)
        self._broker = broker
        self._waiting: dict[str, CodeLogin] = {}
        # Logins wait for minutes: in threads of their own, so that they take none from the vault and the rest.
        self._threads = ThreadPoolExecutor(MOST_LOGINS, thread_name_prefix="goex-login")
        self._under_way: dict[tuple[str, str], CodeLogin | DeviceLogin] = {}
        self._logins = LoginsUnderWay()
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    # ---- logging in

    @unary
    async def Offer(self, request: ab.OfferRequest, context: Any) -> ab.OfferReply:
        self._person.callers.peer(context)
        service, name = self._named(request.service, request.account)
        earlier = self._broker.tokens(service.name, name)
        where = request.place.base_url or service.base_url
        if earlier is None and where and not request.place.private and Origin.parse(where).scheme == "http":
            return ab.OfferReply(service=service.name, account=name, local=True, base_urls=[str(Origin.parse(where))])
        account = self._entry(service, name, request.place, earlier)
        found = await find_server(service, earlier, request.server, request.confirmed, http_for(account))
        return offer_view(self._person.engine.core, service, account, earlier, found)

    @streaming
    async def Login(self, request: ab.LoginRequest, context: Any) -> AsyncIterator[ab.LoginEvent]:
        self._person.callers.peer(context)
        service, name = self._named(request.service, request.account)
        if request.flow not in ("", *_FLOWS) or len(request.scopes) > _MOST_SCOPES:
            raise InvalidInput("That isn't a way to log in.", next_step="It is code, device or client_credentials.")
        lock = self._locks[service.name, name]
        if lock.locked():
            raise Conflict(
                f"Another login to {service.name}/{name} is under way.", next_step="Finish it, or end it with Ctrl-C."
            )
        async with lock:
            if len(self._under_way) >= MOST_LOGINS:
                raise Conflict(f"{MOST_LOGINS} logins are under way already.", next_step="Finish one, or end it.")
            terms = await self._terms(request, service, name)
            try:
                peer = await self._person.present(context, request.passphrase, "Connecting an account")
                self._note("login-begin", terms, peer)
                where = terms.provider.issuer or terms.provider.token_endpoint
                if terms.client is None:
                    yield ab.LoginEvent(progress=f"Registering GoEx at {where}, for this login alone.")
                else:
                    yield ab.LoginEvent(progress=f"Logging in at {where} as the client {terms.client.client_id}.")
                seconds = min(float(request.seconds or LONGEST_LOGIN), LONGEST_LOGIN)
                try:
                    async for event in self._run(terms, seconds, peer):
                        yield event
                except GoexError as error:
                    self._note("login-failed", terms, peer, why=error.code)
                    raise
            finally:
                self._logins.end(terms.under_way)

    @unary
    async def FinishLogin(self, request: ab.FinishLoginRequest, context: Any) -> ab.FinishLoginReply:
        self._person.callers.peer(context)
        waiting = self._waiting.get(request.login_id)
        if waiting is None:
            raise InvalidInput("No login waits for that.", next_step="Begin one: goex auth login SERVICE")
        waiting.paste(request.redirect_url)
        return ab.FinishLoginReply()

    @unary
    async def Consents(self, request: ab.ConsentsRequest, context: Any) -> ab.ConsentsReply:
        self._person.callers.peer(context)
        core = self._person.engine.core
        row = core.actions.get(request.action_id[:_LONGEST_NAME])
        lacking = core.lacking(row.the_plan()) if row.plan else ()
        return ab.ConsentsReply(
            consents=[ab.Consent(service=one.service, account=one.account, scopes=one.scopes) for one in lacking]
        )

    # ---- keys

    @unary
    async def PutCredential(self, request: ab.PutCredentialRequest, context: Any) -> ab.ConnectedAccount:
        self._person.vault_state.require_open()
        service, name = self._named(request.service, request.account)
        if request.kind not in _KINDS:
            raise InvalidInput("That isn't a kind of credential.", next_step="It is api-key, bearer or basic.")
        if service.placement.more and request.kind != "api-key":
            raise InvalidInput(
                f"{service.name} takes {len(service.placement.places)} values at once.", next_step="Use --api-key."
            )
        if request.kind == "bearer" and service.placement.header.lower() != "authorization":
            raise InvalidInput(
                f"{service.name} takes its credential as {service.placement.header}, not as a bearer token.",
                next_step="Use --api-key.",
            )
        if self._broker.tokens(service.name, name) is not None:
            raise AccountExists(
                f"{service.name}/{name} is a login.", next_step=f"Take it back first: {_logout(service.name, name)}"
            )
        format: Literal["basic", "string"] = "basic" if request.kind == "basic" else "string"
        place = _place(request.place)
        account = entry(self._person, service.name, name, place, format, replace=request.replace)
        check_account(account)
        if request.kind == "basic":
            Basic(user=request.user, password=Secret(request.secret or b"-")).to_secret()
        if not request.secret:
            raise SecretDue(account)
        secret = Secret(request.secret)
        if service.placement.more:
            values_of(secret, [one.header for one in service.placement.places])
        if request.kind == "basic":
            secret = Basic(user=request.user, password=secret).to_secret()
        peer = await self._person.present(context, request.passphrase, "Adding an account")
        vault = self._person.vault_state.vault
        end_moved(self._person, account, peer.describe())
        await in_thread(vault.put, account, secret, replace=request.replace)
        await end_users(self._person, service.name, name, "its credential was replaced")
        facts = {
            **self._person.vault_state.noted(),
            "account": account.id,
            "kind": request.kind,
            "origins": [str(origin) for origin in account.origins],
            "private": account.private,
            "by": peer.describe(),
        }
        self._person.engine.core.journal.append("account-put", facts=facts)
        return self._view(service.name, name)

    # ---- taking back, and looking

    @unary
    async def Logout(self, request: ab.LogoutRequest, context: Any) -> ab.LogoutReply:
        vault_state = self._person.vault_state
        vault_state.require_open()
        account = to_remove(self._person, request.service, request.account)
        peer = await self._person.present(context, request.passphrase, "Disconnecting an account")
        if (login := self._under_way.get((account.service, account.name))) is not None:
            login.cancel()  # taking back doesn't wait for whoever is still at the provider's page
        async with self._locks[account.service, account.name]:
            tokens = self._broker.tokens(account.service, account.name)
            revoked = Revoked(
                done=False,
                why="A key isn't taken back by forgetting it: whoever else has it can still use it.",
                next_step="Delete it at the provider.",
            )
            if tokens is not None:
                revoked = await self._broker.take_back(account.service, account.name)
            else:
                await in_thread(vault_state.vault.remove, account.service, account.name)
            end_grants(self._person, account.service, account.name, peer.describe())
            await end_users(self._person, account.service, account.name, "its account was disconnected")
            facts = {
                "account": account.id,
                "revoked": revoked.done,
                "why": revoked.why,
                "by": peer.describe(),
                **vault_state.noted(),
            }
            self._person.engine.core.journal.append("account-logout", facts=facts)
        why = revoked.why
        if why and tokens is not None:
            why = f"The login wasn't taken back at the provider: {why.rstrip('.')}."
        return ab.LogoutReply(
            service=account.service,
            account=account.name,
            revoked=revoked.done,
            why=why,
            next_step=revoked.next_step,
        )

    @unary
    async def ListAccounts(self, request: ab.ListAccountsRequest, context: Any) -> ab.ListAccountsReply:
        self._person.callers.peer(context)
        found = [
            one.account
            for one in records(self._person)
            if request.service in ("", one.account.service) and one.account.format != "database"
        ]
        return ab.ListAccountsReply(accounts=[self._view(account.service, account.name) for account in found])

    @unary
    async def ListTools(self, request: ab.ListToolsRequest, context: Any) -> ab.ListToolsReply:
        peer = self._person.callers.peer(context)
        service, _ = self._named(request.service, "")
        return ab.ListToolsReply(tools_json=canonical(list(await tools_of(self._person, self._broker, service, peer))))

    # ---- inside

    async def _terms(self, request: ab.LoginRequest, service: Service, name: str) -> _Terms:
        """What a login would be. Raises before anybody is asked for anything."""
        earlier = self._broker.tokens(service.name, name)
        account = self._entry(service, name, request.place, earlier)
        http = http_for(account)
        found: Found = await find_server(service, earlier, request.server, request.confirmed, http)
        if not found.said_by:
            raise InvalidInput(
                f"It isn't known where logins to {service.name} happen.", next_step="Say it: --issuer https://…"
            )
        if found.confirm:
            raise Unconfirmed(
                f"Only what was imported says that {service.name}'s tokens come from "
                f"{found.provider.issuer or found.provider.token_endpoint}.",
                next_step="Confirm it in a terminal, or give the provider's own with --issuer.",
            )
        client = client_of(service, earlier, found, request.client_id, request.client_secret)
        flow = request.flow or "code"
        if client is None and not (flow == "code" and found.provider.registers):
            client = Client(client_id="")
        if client is not None:
            client.check()
        if flow == "code" and not found.provider.authorization_endpoint:
            raise InvalidInput(
                f"Nothing is known of a page where one logs in to {service.name} with a browser.",
                next_step="Use --device, or --client-credentials for a login of the client itself; or say where it is.",
            )
        offline = found.provider.offline and flow != "client_credentials"
        core = self._person.engine.core
        names, scopes = scopes_for(core, service, name, request.scopes, earlier, offline=offline)
        return _Terms(
            service=service,
            account=account,
            earlier=earlier,
            http=http,
            provider=found.provider,
            client=client,
            flow=flow,
            scope_names=names,
            scopes=scopes,
            under_way=self._logins.begin(found.provider, client, self._kept()),
        )

    def _kept(self) -> Iterator[TokenSet | None]:
        """The logins in the vault. Raises GoexError where one can't be read."""
        for one in records(self._person):
            if one.account.format == "oauth":
                yield self._broker.tokens(one.account.service, one.account.name)

    async def _run(self, terms: _Terms, seconds: float, peer: Peer) -> AsyncIterator[ab.LoginEvent]:
        """One login to its end. Leaving it ends it, and nothing is stored then."""
        asked = sorted(terms.scopes)
        if terms.flow == "client_credentials":
            assert terms.client is not None  # GoEx registers itself for logins in a browser alone (`_terms`)
            tokens = await in_thread(client_credentials, terms.provider, terms.client, terms.scopes, terms.http)
            yield await self._stored(terms, tokens, peer)
            return
        login: CodeLogin | DeviceLogin
        login_id = secrets.token_hex(16)
        if terms.flow == "device":
            assert terms.client is not None
            login = await in_thread(
                DeviceLogin.begin,
                terms.provider,
                terms.client,
                terms.scopes,
                terms.http,
                subject=terms.subject,
                alone=terms.alone,
            )
        else:
            login = await in_thread(self._begin_code, terms)
            self._waiting[login_id] = login
        self._under_way[terms.key] = login
        left = threading.Event()
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, _wait, login, seconds, left, terms)
            terms.under_way.ends = waiting
            if isinstance(login, DeviceLogin):
                yield ab.LoginEvent(
                    code=ab.EnterCode(
                        user_code=login.user_code,
                        verification_url=login.verification_url,
                        verification_url_complete=login.verification_url_complete,
                        deadline=stamp(login.deadline),
                        scopes=asked,
                    )
                )
            else:
                yield ab.LoginEvent(open=ab.OpenBrowser(login_id=login_id, url=login.url, scopes=asked))
            tokens = await asyncio.shield(waiting)
            # Whoever leaves now leaves a login that has ended: it is stored and journaled, or neither.
            terms.under_way.ends = stored = asyncio.ensure_future(self._stored(terms, tokens, peer))
            yield await asyncio.shield(stored)
        finally:
            left.set()
            login.cancel()
            self._waiting.pop(login_id, None)
            self._under_way.pop(terms.key, None)

    def _begin_code(self, terms: _Terms) -> CodeLogin:
        extra = dict(login_facts(terms.service).parameters)
        if PROTOCOL_SCOPES & terms.scopes:  # given only after the person was asked (OpenID Connect Core, section 11)
            extra.setdefault("prompt", "consent")
        return CodeLogin.begin(
            terms.provider,
            terms.client,
            terms.scopes,
            terms.http,
            extra=extra,
            subject=terms.subject,
            alone=terms.alone,
        )

    async def _stored(self, terms: _Terms, tokens: TokenSet, peer: Peer) -> ab.LoginEvent:
        """Seal what a login brought, unless it would take something away. Raises Conflict, VaultError."""
        account = terms.account
        try:
            earlier = self._broker.tokens(account.service, account.name)
            less = lost(earlier, tokens)
            if less:
                raise Conflict(
                    f"This login was granted less than the one that is there, and lacks {', '.join(sorted(less))}. "
                    "The one that is there stays.",
                    next_step=f"To begin anew: {_logout(account.service, account.name)}; then log in again.",
                )
            vault = self._person.vault_state.vault
            end_moved(self._person, account, peer.describe())
            await in_thread(vault.put, account, tokens.to_secret(), replace=earlier is not None)
        except GoexError:
            if terms.earlier is None:  # what can't be kept isn't left behind at the provider
                await in_thread(give_back, tokens, terms.http, alone=terms.alone())
            raise
        self._broker.drop_orphans()
        facts = {
            "account": account.id,
            "flow": tokens.flow,
            "issuer": tokens.provider.issuer or tokens.provider.token_endpoint,
            "client": tokens.client.client_id,
            "scopes": sorted(tokens.granted),
            "refused": sorted(tokens.dropped),
            "origins": [str(origin) for origin in account.origins],
            "private": account.private,
            "by": peer.describe(),
            **self._person.vault_state.noted(),
        }
        self._person.engine.core.journal.append("account-login", facts=facts)
        dropped = login_facts(terms.service)
        missing = [scope for scope in terms.scope_names if not tokens.granted.issuperset(dropped.spell(scope))]
        return ab.LoginEvent(done=ab.LoginDone(account=self._view(account.service, account.name), dropped=missing))

    def _note(self, kind: str, terms: _Terms, peer: Peer, **more: Any) -> None:
        facts = {
            "account": terms.account.id,
            "flow": terms.flow,
            "issuer": terms.provider.issuer or terms.provider.token_endpoint,
            "scopes": sorted(terms.scopes),
            "by": peer.describe(),
            **more,
        }
        self._person.engine.core.journal.append(kind, facts=facts)

    def _named(self, service: str, account: str) -> tuple[Service, str]:
        if len(service) > _LONGEST_NAME or len(account) > _LONGEST_NAME:
            raise InvalidInput("That name is too long.", next_step="See what there is: goex catalog list")
        self._person.vault_state.require_open()
        return self._person.engine.core.catalog.service(service), account or DEFAULT

    def _entry(self, service: Service, name: str, place: ab.AccountPlace, earlier: TokenSet | None) -> Account:
        if earlier is None and known(self._person, service.name, name) is not None:
            raise AccountExists(
                f"There is a key under {service.name}/{name} already.",
                next_step=f"Use another name with --account, or forget the key: {_logout(service.name, name)}",
            )
        account = entry(self._person, service.name, name, _place(place), "oauth", replace=earlier is not None)
        check_account(account)
        if len(account.ca_pem) > _LONGEST_CA:
            raise InvalidInput(
                f"The CA file is longer than {_LONGEST_CA} bytes: it is sealed with the tokens, which need room, too.",
                next_step="Give the authority's certificate alone.",
            )
        return account

    def _view(self, service: str, name: str) -> ab.ConnectedAccount:
        found = record(self._person, service, name)
        catalog = self._person.engine.core.catalog
        return connected_account(found, catalog.services.get(service), self._broker)


def _wait(login: CodeLogin | DeviceLogin, seconds: float, left: threading.Event, terms: _Terms) -> TokenSet:
    """In a thread: the tokens. When the person left while they were fetched, they are given back: nobody keeps them."""
    tokens = login.wait(seconds)
    if left.is_set():
        if terms.earlier is None:
            give_back(tokens, terms.http, alone=terms.alone())
        raise LoginCancelled("The login was called off.", next_step="Start it again.")
    return tokens


def _place(place: ab.AccountPlace) -> Place:
    return Place(base_url=place.base_url, origins=tuple(place.origins), private=place.private, ca_pem=place.ca_pem)


def _logout(service: str, name: str) -> str:
    return f"goex auth logout {pasteable(service)} --account {pasteable(name)}"
