"""One action's socket: what arrives on it, and what becomes of it.

Whoever connects to this socket is this action; nothing else identifies it. Inside, the socket is an HTTP/1.1 proxy:
CONNECT, then TLS that ends here, for https origins of the plan; absolute-form requests for its http origins. What isn't
a request to an origin of the plan is refused to the container and reported to the daemon; the rest is `Proxy`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Coroutine, Mapping
from typing import Any

from policies.accounts import Origin
from policies.display_text import escape
from policies.errors import GoexError
from runtimes.gateway.admission import AskedHead, No, Policy, Refused, refusal_body
from runtimes.gateway.certificates import Authority
from runtimes.gateway.contract import Observer
from runtimes.gateway.credential import AccountKey, secrets_of
from runtimes.gateway.head import BadHead, Head
from runtimes.gateway.http_server import ClientConnection, ClientResponse
from runtimes.gateway.listener import Listener, SocketFolder
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.plan_match import PlanPolicy
from runtimes.gateway.proxy import JSON, Proxy, ProxyContext
from runtimes.gateway.redactor import PendingRedactor, Redactor, forget_patterns
from runtimes.gateway.report import Reporter
from runtimes.gateway.rule_match import RulePolicy
from runtimes.gateway.stream_redactor import StreamRedactor
from runtimes.gateway.streams import SocketStream, TlsStream
from runtimes.gateway.upstream import Upstream
from runtimes.gateway.urls import BadTarget, authority
from vault.lease import Lease

_IDLE_SECONDS = 120.0
_HANDSHAKE_SECONDS = 30.0
_PLAIN = "http://"


class ActionServer:
    """Serves one action from `start` until `close`."""

    def __init__(
        self,
        plan: GatewayPlan,
        leases: Mapping[AccountKey, Lease],
        folder: SocketFolder,
        authority: Authority,
        observer: Observer,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._authority = authority
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._policy = self.make_policy(plan)
        self._reporter = Reporter(observer, self._policy)
        # Patterns take a while to build: in a thread, while the container starts; for a program, which may never ask
        # for anything, when it connects.
        self._redactor = PendingRedactor(self.make_redactor, secrets_of(plan, leases))
        if not plan.by_rules:
            self._redactor.begin()
        self._upstream = self.make_upstream()
        self._proxy = Proxy(ProxyContext(
            leases=dict(leases), placeholders=plan.placeholders, upstream=self._upstream,
            redactor=self._redactor, reporter=self._reporter,
            deadline=asyncio.get_running_loop().time() + plan.seconds,
        ))  # fmt: skip

    def make_policy(self, plan: GatewayPlan) -> Policy:
        return RulePolicy(plan) if plan.by_rules else PlanPolicy(plan)

    def make_upstream(self) -> Upstream:
        return Upstream()

    def make_redactor(self, secrets: list[bytes]) -> Redactor:
        return StreamRedactor(secrets) if self._plan.by_rules else Redactor(secrets)

    async def start(self) -> None:
        self._listener = Listener(self._folder.listen(), self._enter)
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(self._plan.seconds + 2, lambda: self._start(self.close()))

    async def close(self) -> None:
        """End every connection, drop the leases, remove the socket. Idempotent."""
        self._policy.stop("the action has ended")
        if self._listener is not None:
            self._listener.close()
        if self._expiry is not None:
            self._expiry.cancel()
        self._folder.remove()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self._proxy.close()
        self._redactor.drop()
        forget_patterns()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _enter(self, accepted: socket.socket) -> None:
        self._redactor.begin()
        self._start(self._serve(accepted))

    async def _serve(self, accepted: socket.socket) -> None:
        stream = SocketStream(accepted)
        # Where it breaks off, the container has nobody to tell but itself; where the daemon doesn't listen any more,
        # there is nothing that may be said.
        try:
            with contextlib.suppress(OSError, TimeoutError, ssl.SSLError, GoexError):
                await self._speak(stream)
        finally:
            stream.close()
            if self._listener is not None:
                self._listener.left()

    async def _speak(self, stream: SocketStream) -> None:
        client = ClientConnection(stream)
        while (raw := await self._next(client)) is not None:
            try:
                head = self._policy.parse(raw)
                if head.method == "CONNECT":
                    origin = self.connect_origin(head)
                    break
                origin, target = self.absolute(head)
            except GoexError as error:
                await self._refuse_raw(client, raw, error)
                return
            if not await self._proxy.request(client, AskedHead(origin=origin, head=head, target=target)):
                return
        else:
            return
        await stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        mismatched: list[str] = []
        tls = TlsStream(stream, self.server_context(origin, mismatched), client.rest())
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                await tls.handshake()
        except ssl.SSLError:
            if mismatched:
                named = mismatched[0] or "no name"
                no = No(f"the TLS handshake named {named}, not the host of CONNECT", kind="host")
                await self._reporter.refused("CONNECT", str(origin), no)
            raise
        await self._tunnel(ClientConnection(tls), origin)

    async def _tunnel(self, client: ClientConnection, origin: Origin) -> None:
        while (raw := await self._next(client)) is not None:
            try:
                head = self._policy.parse(raw)
                target = self.within(head, origin)
            except GoexError as error:
                await self._refuse_raw(client, raw, error, origin)
                return
            if not await self._proxy.request(client, AskedHead(origin=origin, head=head, target=target)):
                return

    async def _next(self, client: ClientConnection) -> bytes | None:
        try:
            async with asyncio.timeout(_IDLE_SECONDS):
                return await client.read_head()
        except BadHead as error:
            await self._refuse_raw(client, b"", error)
            return None

    def connect_origin(self, head: Head) -> Origin:
        """The origin that CONNECT names. Raises Refused, BadTarget, BadHead; nothing is looked up."""
        if head.length or head.chunked:
            raise BadHead("smuggling", "CONNECT with a body")
        host, port = authority(head.target)
        named = head.get("host")
        if named is not None and authority(named, port) != (host, port):
            raise _refused("the Host header isn't the host of CONNECT")
        return self.known(Origin("https", host, port))

    def known(self, origin: Origin) -> Origin:
        if not self._policy.knows(origin):
            raise _refused(f"the plan has no {self._policy.rules} to {origin.scheme}://{origin.host}:{origin.port}")
        return origin

    def absolute(self, head: Head) -> tuple[Origin, str]:
        """Origin and target of a plain proxy request. Raises Refused, BadTarget."""
        if head.target[: len(_PLAIN)].lower() != _PLAIN:
            raise BadTarget("a proxy takes CONNECT for https, and http:// requests")
        rest = head.target[len(_PLAIN) :]
        site, slash, tail = rest.partition("/")
        if not slash:
            raise BadTarget("the target has no path")
        host, port = authority(site, 80)
        origin = self.known(Origin("http", host, port))
        self.check_host(head, origin, 80)
        return origin, slash + tail

    def within(self, head: Head, origin: Origin) -> str:
        """The target of a request within a tunnel to `origin`. Raises Refused, BadTarget."""
        if not head.target.startswith("/") or head.target.startswith("//"):
            raise BadTarget("within a tunnel, a request's target is a path")
        self.check_host(head, origin, 443)
        return head.target

    def check_host(self, head: Head, origin: Origin, default_port: int) -> None:
        named = head.get("host")
        if named is None or authority(named, default_port) != (origin.host, origin.port):
            raise _refused("the Host header isn't the host that the connection is for")

    def server_context(self, origin: Origin, mismatched: list[str]) -> ssl.SSLContext:
        return self._authority.context(origin.host, mismatched)

    async def _refuse_raw(
        self, client: ClientConnection, raw: bytes, error: GoexError, origin: Origin | None = None
    ) -> None:
        """Refuse what may not even be a request, and end the connection."""
        first = raw.partition(b"\r\n")[0].decode("latin-1").split(" ")
        target = (first[1] if len(first) > 1 else "").partition("?")[0]
        no = error.no if isinstance(error, Refused) else No(error.message, kind="head")
        # What isn't a path must not read on as a part of the host.
        where = f"{origin or ''}{target}" if target.startswith("/") else f"{origin or ''} {target}".strip()
        await self._reporter.refused(first[0], where, no)
        body = refusal_body(no, escape(first[0]), where)
        await ClientResponse(client).whole(no.status, JSON, body, last=True)


def _refused(reason: str) -> Refused:
    return Refused(No(reason, kind="host"))
