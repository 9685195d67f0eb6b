"""The only way out of a server's container: the gateway, for the origins that its account names.

Rules: where the account names no origin there is no socket at all. The server has a placeholder, never the credential;
each request is noted before it leaves, and what is refused is noted too. It is closed whatever happens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from policies.accounts import Account, Origin
from policies.display_text import escape
from policies.services import Service
from runtimes.base import Context
from runtimes.code.run import placeholder
from runtimes.gateway.contract import Gateway, Observer
from runtimes.gateway.plan import Exchange, GatewayPlan, MethodRule, Refusal, SentRequest, Slot
from runtimes.rest.requests import credential_of, placement_for
from runtimes.rest.run import MAX_NOTES, closed
from runtimes.servers import session
from runtimes.servers.definition import HOST, Server

VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_REQUESTS = 200  # of one verb at one origin, in one container
_BODY = 16 * 2**20


def reach(account: Account) -> tuple[str, ...]:
    """The origins that a server of this account may send something to."""
    return tuple(str(origin) for origin in account.origins if not origin.host.endswith(HOST))


@dataclass(slots=True)
class WayOut:
    """The way out of one container. `account` is the service and the name of the account whose lease it has."""

    server: Server
    service: Service
    gateway: Gateway
    context: Context
    account: str
    refused: list[Refusal] = field(default_factory=list)
    _open: set[str] = field(init=False, default_factory=set)  # requests that may have changed something
    _account: Account | None = field(init=False, default=None)
    _placeholder: str = field(init=False, default="")

    def __post_init__(self) -> None:
        key = (self.server.name, self.account)
        lease = next((one for one in self.context.leases if (one.account.service, one.account.name) == key), None)
        if lease is not None and reach(lease.account):
            self._account = lease.account
            self._placeholder = placeholder(self.service, key)

    @property
    def env(self) -> dict[str, str]:
        """The variable in which the server finds its placeholder."""
        return {self.server.variable: self._placeholder} if self.server.variable and self._placeholder else {}

    @property
    def headers(self) -> dict[str, str]:
        """What a server at an address is sent: the placeholder, where its credential goes (one that is worth nothing,
        where it has none: the gateway lets no request pass without)."""
        if not self.server.url or self._account is None:
            return {}
        place = placement_for(self.service, self._account)
        return {place.header: place.format.replace("{secret}", self._placeholder)}

    @property
    def changed(self) -> bool:
        """Whether a request left that may have changed something, and wasn't refused. Of a server at an address that
        can't be told: all that is said to it is a POST."""
        return bool(self._open) and not self.server.url

    @property
    def ca_pem(self) -> str:
        return self.gateway.ca_pem if self._account is not None else ""

    def hidden(self, text: str) -> str:
        """A text without the placeholder, which is worth nothing any more."""
        return text.replace(self._placeholder, "‹placeholder›") if self._placeholder else text

    @asynccontextmanager
    async def opened(self, seconds: float) -> AsyncIterator[str | None]:
        """The folder of the socket while a container runs; None where nothing may leave it."""
        if self._account is None:
            yield None
            return
        key = (self.server.name, self.account)
        plan = GatewayPlan(
            action_id=self.context.action_id,
            rules=self._rules(self._account),
            placeholders={self._placeholder: key},
            seconds=seconds,
            code=True,
        )
        observer = Observer(sending=self._sending, answered=self._answered, refused=self._refused)
        folder = await self.gateway.open(plan, self.context.leases, observer)
        try:
            yield folder
        finally:
            await closed(self.gateway.close(self.context.action_id))

    def _rules(self, account: Account) -> tuple[MethodRule, ...]:
        if self.server.url:
            return self._own_address(account)
        origins = [origin for origin in account.origins if not origin.host.endswith(HOST)]
        return tuple(
            MethodRule(
                id=f"rule-{number}",
                method_id=f"{self.server.name} ({verb})",
                account=(account.service, account.name),
                origin=origin,
                base_path=(),
                method=verb,
                path=(Slot("path", many=True),),
                body_format="none" if verb in ("GET", "HEAD") else "any",
                calls=_REQUESTS,
                request_bytes=_BODY,
                any_query=True,
                **credential_of(placement_for(self.service, account)),
            )
            for number, (origin, verb) in enumerate((origin, verb) for origin in origins for verb in VERBS)
        )

    def _own_address(self, account: Account) -> tuple[MethodRule, ...]:
        """A server at an address is asked there and nowhere else: its own path, whatever the account's origin has."""
        parts = urlsplit(self.server.url)
        return tuple(
            MethodRule(
                id=f"rule-{number}",
                method_id=f"{self.server.name} ({verb})",
                account=(account.service, account.name),
                origin=Origin.parse(self.server.url),
                base_path=(),
                method=verb,
                path=tuple(unquote(segment) for segment in parts.path.split("/")[1:]),
                body_format="any" if verb == "POST" else "none",
                calls=_REQUESTS,
                request_bytes=_BODY,
                response_bytes=session.LONGEST * 4,
                headers=("mcp-session-id", "mcp-protocol-version"),
                **credential_of(placement_for(self.service, account)),
            )
            for number, verb in enumerate(("POST", "DELETE"))
        )

    async def _sending(self, request: str, target: str, sent: SentRequest | None) -> None:
        method, _, url = target.partition(" ")
        self.context.note("request", {"request": request, "call": self.server.name, "method": method, "url": url})
        self.context.progress(escape(f"{self.server.name} → {target}"))
        if method not in ("GET", "HEAD"):
            self._open.add(request)

    async def _answered(self, exchange: Exchange) -> None:
        if exchange.status == 0:
            self.context.note("unanswered", {"request": exchange.request, "why": exchange.failed})
            return
        if 400 <= exchange.status < 500 and exchange.status != 408:
            self._open.discard(exchange.request)
        facts: dict[str, Any] = {"request": exchange.request, "status": exchange.status, "well": exchange.well}
        self.context.note("answer", {**facts, "bytes": exchange.size})

    async def _refused(self, refusal: Refusal) -> None:
        self.refused.append(refusal)
        if len(self.refused) <= MAX_NOTES:
            facts = {"reason": refusal.reason, "method": refusal.method, "target": refusal.target}
            self.context.note("refused", facts)
