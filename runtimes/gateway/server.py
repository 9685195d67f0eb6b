"""One action's socket: what arrives on it, and what becomes of it.

Whoever connects to this socket is this action; nothing else identifies it. Inside, the socket is an HTTP/1.1 proxy:
CONNECT, then TLS that ends here, for https origins of the plan; absolute-form requests for its http origins. Each
request runs the same gauntlet: head, overrides, credentials, origin, host, body, plan. What falls out of it is
refused to the container and reported to the daemon; what passes is delivered.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Coroutine, Mapping
from typing import Any

from policies.accounts import Origin
from policies.display_text import escape, shorten
from policies.errors import GoexError
from policies.jsonvalue import canonical
from runtimes.gateway.admission import AskedHead, refusal_body
from runtimes.gateway.background import Later
from runtimes.gateway.certificates import Authority
from runtimes.gateway.contract import Observer
from runtimes.gateway.delivery import Delivery, secrets_of
from runtimes.gateway.head import BadHead, Head, check_credentials, check_overrides, parse_head
from runtimes.gateway.http_client import Wires
from runtimes.gateway.listener import Doorway
from runtimes.gateway.passage import Way
from runtimes.gateway.plan import GatewayPlan, Refusal
from runtimes.gateway.plan_check import AccountKey
from runtimes.gateway.policy import Asked, No, Policy
from runtimes.gateway.redact import Redactor, forget_patterns
from runtimes.gateway.relay import Relay
from runtimes.gateway.rule_match import RulePolicy
from runtimes.gateway.socket_folder import Place
from runtimes.gateway.stream_redactor import Flowing
from runtimes.gateway.tls_streams import Messages, PlainStream, SocketStream, Stream, TlsStream
from runtimes.gateway.upstream import Upstream
from runtimes.gateway.urls import BadTarget, authority
from vault.lease import Lease

MAX_CONNECTIONS = 8
MAX_REFUSALS = 100
_IDLE_SECONDS = 120.0
_SLOW_SECONDS = 30.0
_PLAIN = "http://"


class Refused(GoexError):
    """A request that doesn't pass. `status` is what the container gets."""

    code = "refused"

    def __init__(self, message: str, *, status: int = 403, target: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.target = target


class ActionServer:
    """Serves one action from `start` until `close`."""

    def __init__(
        self,
        plan: GatewayPlan,
        leases: Mapping[AccountKey, Lease],
        place: Place,
        authority: Authority,
        observer: Observer,
    ) -> None:
        self._plan = plan
        self._place = place
        self._authority = authority
        self._observer = observer
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._doorway: Doorway | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._connections = 0
        self._refusals = 0
        self._upstream = self.make_upstream()
        self._names = tuple({request.credential_header for request in plan.requests})
        deadline = asyncio.get_running_loop().time() + plan.seconds
        secrets = secrets_of(plan, leases)
        self._delivery: Delivery | None = None
        self._relay: Relay | None = None
        self._policy: Policy | RulePolicy
        # Patterns take a while to build: in a thread, while the container starts; for a program, which may never ask
        # for anything, when it connects.
        if plan.by_rules:
            self._policy = rules = self.make_rules(plan)
            self._flowing = Later(self.make_flowing, secrets)
            self._relay = Relay(Way(
                leases=dict(leases), placeholders=plan.placeholders, policy=rules, wires=Wires(self._upstream),
                flowing=self._flowing, observer=observer, deadline=deadline, report=self._report,
            ))  # fmt: skip
        else:
            self._policy = policy = self.make_policy(plan)
            self._redactor = Later(self.make_redactor, secrets)
            self._redactor.begin()
            self._delivery = Delivery(plan, leases, policy, self._upstream, self._redactor, observer, deadline)

    def make_policy(self, plan: GatewayPlan) -> Policy:
        return Policy(plan)

    def make_rules(self, plan: GatewayPlan) -> RulePolicy:
        return RulePolicy(plan)

    def make_upstream(self) -> Upstream:
        return Upstream()

    def make_redactor(self, secrets: list[bytes]) -> Redactor:
        return Redactor(secrets)

    def make_flowing(self, secrets: list[bytes]) -> Flowing:
        return Flowing(secrets)

    async def start(self) -> None:
        listener = self._place.listen()
        loop = asyncio.get_running_loop()
        if self._relay is not None:
            self._doorway = Doorway(listener, self._enter)
        else:
            self._server = await asyncio.start_unix_server(self._connected, sock=listener)
        self._expiry = loop.call_later(self._plan.seconds + 2, lambda: self._start(self.close()))

    async def close(self) -> None:
        """End every connection, drop the leases, remove the socket. Idempotent."""
        self._delivery = None
        self._policy.stop("the action has ended")
        if self._server is not None:
            self._server.close()
        if self._doorway is not None:
            self._doorway.close()
        if self._expiry is not None:
            self._expiry.cancel()
        self._place.remove()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self._upstream.close()
        if self._relay is not None:
            self._relay.close()
            self._flowing.drop()
        else:
            self._redactor.drop()
        forget_patterns()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._start(self._serve(reader, writer))

    def _enter(self, accepted: socket.socket) -> None:
        self._flowing.begin()
        self._start(self._serve_code(accepted))

    async def _serve_code(self, accepted: socket.socket) -> None:
        stream = SocketStream(accepted)
        try:
            await self._proxy(stream)
        except (OSError, TimeoutError, ssl.SSLError, GoexError):
            pass  # as in `_serve`
        finally:
            stream.close()
            if self._doorway is not None:
                self._doorway.left()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= MAX_CONNECTIONS or self._delivery is None:
            writer.transport.abort()
            return
        self._connections += 1
        try:
            await self._proxy(PlainStream(reader, writer))
        except (OSError, TimeoutError, ssl.SSLError):
            pass  # the container broke off; it has nobody to tell but itself
        except GoexError:
            pass  # the daemon doesn't listen any more, so there is nothing that may be said
        finally:
            self._connections -= 1
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()

    async def _proxy(self, stream: Stream) -> None:
        messages = Messages(stream)
        while (raw := await self._next(messages)) is not None:
            try:
                head = self.parse(raw)
                if head.method == "CONNECT":
                    origin = self.connect_origin(head)
                    break
                origin, target = self.absolute(head)
            except GoexError as error:
                await self._refuse_raw(messages, raw, error)
                return
            if not await self._request(messages, raw, head, origin, target):
                return
        else:
            return
        await stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        mismatched: list[str] = []
        tls = TlsStream(stream, self.server_context(origin, mismatched), messages.rest())
        try:
            async with asyncio.timeout(_SLOW_SECONDS):
                await tls.handshake()
        except ssl.SSLError:
            if mismatched:
                named = mismatched[0] or "no name"
                no = No(f"the TLS handshake named {named}, not the host of CONNECT", kind="host")
                await self._report("CONNECT", str(origin), no)
            raise
        await self._tunnel(Messages(tls), origin)

    async def _tunnel(self, messages: Messages, origin: Origin) -> None:
        while (raw := await self._next(messages)) is not None:
            try:
                head = self.parse(raw)
                target = self.within(head, origin)
            except GoexError as error:
                await self._refuse_raw(messages, raw, error, origin)
                return
            if not await self._request(messages, raw, head, origin, target):
                return

    async def _next(self, messages: Messages) -> bytes | None:
        try:
            async with asyncio.timeout(_IDLE_SECONDS):
                return await messages.read_head()
        except BadHead as error:
            await self._refuse_raw(messages, b"", error)
            return None

    async def _request(self, messages: Messages, raw: bytes, head: Head, origin: Origin, target: str) -> bool:
        """One request from its head to its answer. Returns whether the connection goes on."""
        if self._relay is not None:
            return await self._relay.request(messages, head, AskedHead(origin=origin, head=head, target=target))
        where = f"{origin}{target.partition('?')[0]}"
        try:
            async with asyncio.timeout(_SLOW_SECONDS):
                body = await messages.read_body(raw, head, self._plan.max_request_bytes)
        except BadHead as error:
            await self._refuse_raw(messages, raw, error, origin)
            return False
        delivery = self._delivery
        if delivery is None or not isinstance(self._policy, Policy):
            return False
        decision = self._policy.admit(Asked(origin=origin, head=head, target=target, body=body))
        if not isinstance(decision, No):
            given = await delivery.deliver(decision)
            if not isinstance(given, No):
                return await messages.respond(given.status, list(given.headers), given.body)
            decision = given
        await self._report(head.method, where, decision)
        return await messages.respond(decision.status, _JSON, _refusal_body(decision.reason))

    def parse(self, raw: bytes) -> Head:
        """The head, checked. Raises BadHead."""
        if self._relay is not None:
            return parse_head(raw, upgrades=True)  # the rules look at the rest, and say more about it
        head = parse_head(raw)
        check_overrides(head)
        self.check_credentials(head)
        return head

    def check_credentials(self, head: Head) -> None:
        check_credentials(head, *self._names)

    def connect_origin(self, head: Head) -> Origin:
        """The origin that CONNECT names. Raises Refused, BadTarget, BadHead; nothing is looked up."""
        if head.length or head.chunked:
            raise BadHead("smuggling", "CONNECT with a body")
        host, port = authority(head.target)
        named = head.get("host")
        if named is not None and authority(named, port) != (host, port):
            raise Refused("the Host header isn't the host of CONNECT")
        return self.known(Origin("https", host, port))

    def known(self, origin: Origin) -> Origin:
        if not self._policy.knows(origin):
            held = "request" if self._relay is None else "rule that leads"
            raise Refused(f"the plan has no {held} to {origin.scheme}://{origin.host}:{origin.port}")
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
            raise Refused("the Host header isn't the host that the connection is for")

    def server_context(self, origin: Origin, mismatched: list[str]) -> ssl.SSLContext:
        return self._authority.context(origin.host, mismatched)

    async def _refuse_raw(self, messages: Messages, raw: bytes, error: GoexError, origin: Origin | None = None) -> None:
        """Refuse what may not even be a request, and end the connection."""
        first = raw.partition(b"\r\n")[0].decode("latin-1").split(" ")
        target = (first[1] if len(first) > 1 else "").partition("?")[0]
        status = error.status if isinstance(error, Refused) else 403
        kind = "host" if isinstance(error, Refused) else "head"
        no, where = No(error.message, status=status, kind=kind), f"{origin or ''}{target}"
        await self._report(first[0], where, no)
        body = _refusal_body(no.reason) if self._relay is None else refusal_body(no, escape(first[0]), where)
        await messages.respond(status, _JSON, body, close=True)

    async def _report(self, method: str, target: str, no: No) -> None:
        self._refusals += no.kind != "busy"
        if self._refusals > MAX_REFUSALS:
            return
        reason = no.reason
        if self._refusals == MAX_REFUSALS:
            reason = f"{reason}; that was the {MAX_REFUSALS}th refusal, and nothing more is taken"
            self._policy.stop("too much was refused")
        refusal = Refusal(
            reason=shorten(escape(reason), 300)[0],
            method=shorten(escape(method), 20)[0],
            target=shorten(escape(target), 200 if self._relay is None else 2000)[0],
            kind=no.kind if self._relay is not None else "",
            method_id=no.method_id,
        )
        await self._observer.refused(refusal)


_JSON = [("content-type", "application/json")]


def _refusal_body(reason: str) -> bytes:
    return canonical({"error": "goex-refused", "reason": escape(reason)})
