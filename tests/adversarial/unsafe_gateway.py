"""The gateway with exactly one defence taken away: the controls of the attacks.

Each class is the shipped one but for that defence. They live with the tests, and nothing that is shipped can be told
to be one of them.
"""

from __future__ import annotations

import dataclasses
import ssl
import zlib
from typing import Any
from urllib.parse import urlsplit

import h11

from policies.accounts import Account, Origin
from runtimes.gateway.head import Head, check_credentials, check_overrides, parse_head
from runtimes.gateway.plan import GatewayPlan, PlannedRequest
from runtimes.gateway.policy import Asked, Composed, Policy
from runtimes.gateway.redact import Redactor
from runtimes.gateway.response_values import scalar
from runtimes.gateway.server import ActionServer
from runtimes.gateway.upstream import Answer, Link, Upstream
from runtimes.gateway.urls import authority

# What the network of these tests delivers to loopback: addresses that must not be reached, and a public one.
NETWORK = {"169.254.169.254": "127.0.0.1", "93.184.216.34": "127.0.0.2", "10.0.0.7": "127.0.0.1"}


class NetworkUpstream(Upstream):
    """The shipped one on a network where other addresses lead to servers under test."""

    async def _open(self, address: str, origin: Origin, account: Account) -> Link:
        return await super()._open(NETWORK.get(address, address), origin, account)


def server(policy: type[Policy] = Policy, upstream: Upstream | None = None) -> type[ActionServer]:
    """A server class with parts of it replaced."""

    class Replaced(ActionServer):
        def make_policy(self, plan: GatewayPlan) -> Policy:
            return policy(plan)

        def make_upstream(self) -> Upstream:
            return upstream or Upstream()

    return Replaced


class UnsafeWithoutHosts(Policy):
    """Any origin passes, and it is the container's that is connected to."""

    def knows(self, origin: Origin) -> bool:
        return True

    def origin_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose(self, planned: PlannedRequest, asked: Asked) -> Composed:
        return super().compose(dataclasses.replace(planned, origin=asked.origin), asked)


class UnsafeWithoutPaths(Policy):
    """Any path passes, as it came."""

    def path_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose_path(self, planned: PlannedRequest, asked: Asked) -> str:
        return asked.target.partition("?")[0]


class UnsafeWithoutMethods(Policy):
    """Any method passes."""

    def method_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose(self, planned: PlannedRequest, asked: Asked) -> Composed:
        return super().compose(dataclasses.replace(planned, method=asked.head.method), asked)


class UnsafeWithoutQueries(Policy):
    """Any query passes, as it came."""

    def query_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose(self, planned: PlannedRequest, asked: Asked) -> Composed:
        made = super().compose(planned, asked)
        return dataclasses.replace(made, target=asked.target)


class UnsafeWithoutBodies(Policy):
    """Any body passes, as it came."""

    def body_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose_body(self, planned: PlannedRequest, asked: Asked) -> bytes:
        return asked.body


class UnsafeWithoutOnce(Policy):
    """A request stays allowed after it was sent."""

    def settle(self, composed: Composed, failed: str) -> None:
        super().settle(composed, failed)
        self._next = 0


class UnsafeWithoutConditions(Policy):
    """An answer that isn't well stops nothing."""

    def settle(self, composed: Composed, failed: str) -> None:
        super().settle(composed, "")


class UnsafeWithoutEncoding(Policy):
    """Values of answers stand in the path as they are."""

    def path_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose_path(self, planned: PlannedRequest, asked: Asked) -> str:
        parts = [part if isinstance(part, str) else scalar(self._answers.resolve(part)) for part in planned.path]
        return "/" + "/".join([*planned.base_path, *parts])


class UnsafeRawUpstream(Upstream):
    """Requests are pasted together from text."""

    def message(self, http: h11.Connection, origin: Origin, composed: Composed, secret: tuple[str, str]) -> bytes:
        super().message(http, origin, dataclasses.replace(composed, target="/"), secret)
        lines = [f"{composed.planned.method} {composed.target} HTTP/1.1", f"Host: {origin.host}:{origin.port}"]
        lines += [f"{name}: {value}" for name, value in (*composed.headers, secret)]
        return "\r\n".join([*lines, "", ""]).encode() + composed.body


class _PassingHeaders(Policy):
    """Sends on what the container wrote, so that a header which isn't refused arrives."""

    def compose(self, planned: PlannedRequest, asked: Asked) -> Composed:
        made = super().compose(planned, asked)
        ours = {name.lower() for name, _ in made.headers} | {"host", "content-length", "connection"}
        extra = tuple((name, value) for name, value in asked.head.headers if name not in ours)
        return dataclasses.replace(made, headers=(*made.headers, *extra))


class UnsafeWithoutCredentialCheck(ActionServer):
    def make_policy(self, plan: GatewayPlan) -> Policy:
        return _PassingHeaders(plan)

    def check_credentials(self, head: Head) -> None:
        return


class UnsafeWithoutOverrideCheck(ActionServer):
    def make_policy(self, plan: GatewayPlan) -> Policy:
        return _PassingHeaders(plan)

    def parse(self, raw: bytes) -> Head:
        head = parse_head(raw)
        check_credentials(head, *self._names)
        return head


class UnsafeWithoutStrictHead(ActionServer):
    """The HTTP library's own leniency decides what a head is."""

    def parse(self, raw: bytes) -> Head:
        http = h11.Connection(h11.SERVER)
        http.receive_data(raw)
        event = http.next_event()
        if not isinstance(event, h11.Request):
            return parse_head(raw)
        headers = tuple((name.decode(), value.decode()) for name, value in event.headers)
        named = dict(headers)
        head = Head(
            method=event.method.decode(),
            target=event.target.decode(),
            version="1.1",
            headers=headers,
            length=int(named["content-length"]) if "content-length" in named else None,
            chunked="transfer-encoding" in named,
            continues=False,
        )
        check_overrides(head)
        self.check_credentials(head)
        return head


class UnsafeWithoutSni(ActionServer):
    def server_context(self, origin: Origin, mismatched: list[str]) -> ssl.SSLContext:
        context = super().server_context(origin, mismatched)
        context.sni_callback = None
        return context


class UnsafeWithoutHostHeader(ActionServer):
    def check_host(self, head: Head, origin: Origin, default_port: int) -> None:
        return


class UnsafeWithoutTargetForm(ActionServer):
    """A target that names another host is cut down to its path."""

    def within(self, head: Head, origin: Origin) -> str:
        target = urlsplit(head.target)
        return target.path + (f"?{target.query}" if target.query else "")


class UnsafeWithoutSchemes(ActionServer):
    """A plain request stands for a TLS one."""

    def absolute(self, head: Head) -> tuple[Origin, str]:
        site, _, tail = head.target.removeprefix("http://").partition("/")
        host, port = authority(site, 80)
        return self.known(Origin("https", host, port)), f"/{tail}"


class UnsafeWithoutRedaction(ActionServer):
    def make_redactor(self, secrets: list[bytes]) -> Redactor:
        return Redactor([])


class UnsafeWithoutAddressCheck(NetworkUpstream):
    def refusal(self, address: str, origin: Origin, account: Account) -> str:
        return ""


class UnsafeWithoutPinning(NetworkUpstream):
    """Checks what one look-up found, and connects to what another finds."""

    async def addresses(self, origin: Origin, account: Account) -> list[str]:
        await super().addresses(origin, account)
        self._pinned.clear()
        return await self._look_up(origin)


class UnsafeFollowingRedirects(Upstream):
    async def exchange(
        self, link: Link, origin: Origin, composed: Composed, secret: tuple[str, str], limit: int
    ) -> Answer:
        answer = await super().exchange(link, origin, composed, secret, limit)
        where = dict(answer.headers).get("location")
        if where is None:
            return answer
        elsewhere = Origin.parse(where)
        there = dataclasses.replace(composed, target=urlsplit(where).path)
        account: Any = dataclasses.replace(self.account, origins=(elsewhere,), base_url=str(elsewhere))
        return await super().exchange(await self.connect(elsewhere, account), elsewhere, there, secret, limit)

    def __init__(self, account: Account) -> None:
        super().__init__()
        self.account = account


class UnsafeWithoutBombCheck(Upstream):
    def decoded(self, body: bytes, codings: list[str], limit: int) -> bytes:
        return zlib.decompress(body, zlib.MAX_WBITS | 32) if codings else body
