"""The gateway with exactly one defence taken away: the controls of the attacks.

Each class is the shipped one but for that defence. They live with the tests, and nothing that is shipped can be told
to be one of them.
"""

from __future__ import annotations

import dataclasses
import ssl
from urllib.parse import urlsplit

import h11

from policies.accounts import Account, Origin
from runtimes.gateway.admission import Admission, No, Policy, Ready
from runtimes.gateway.head import Head, check_overrides, parse_head
from runtimes.gateway.http_client import Headers, UpstreamRequest
from runtimes.gateway.plan import GatewayPlan, PlannedRequest
from runtimes.gateway.plan_match import Asked, PlanPolicy
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.response_values import scalar
from runtimes.gateway.server import ActionServer
from runtimes.gateway.streams import Stream
from runtimes.gateway.upstream import Connection, Upstream
from runtimes.gateway.urls import authority

# What the network of these tests delivers to loopback: addresses that must not be reached, and a public one.
NETWORK = {"169.254.169.254": "127.0.0.1", "93.184.216.34": "127.0.0.2", "10.0.0.7": "127.0.0.1"}


class NetworkUpstream(Upstream):
    """The shipped one on a network where other addresses lead to servers under test."""

    async def _open(self, address: str, origin: Origin, account: Account) -> Connection:
        return await super()._open(NETWORK.get(address, address), origin, account)


def server(policy: type[PlanPolicy] = PlanPolicy, upstream: Upstream | None = None) -> type[ActionServer]:
    """A server class with parts of it replaced."""

    class Replaced(ActionServer):
        def make_policy(self, plan: GatewayPlan) -> Policy:
            return policy(plan)

        def make_upstream(self) -> Upstream:
            return upstream or Upstream()

    return Replaced


class UnsafeWithoutHosts(PlanPolicy):
    """Any origin passes, and it is the container's that is connected to."""

    def knows(self, origin: Origin) -> bool:
        return True

    def origin_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose(self, planned: PlannedRequest, admission: Admission, asked: Asked) -> Ready:
        return super().compose(dataclasses.replace(planned, origin=asked.origin), admission, asked)


class UnsafeWithoutPaths(PlanPolicy):
    """Any path passes, as it came."""

    def path_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose_path(self, planned: PlannedRequest, asked: Asked) -> str:
        return asked.target.partition("?")[0]


class UnsafeWithoutMethods(PlanPolicy):
    """Any method passes."""

    def method_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose(self, planned: PlannedRequest, admission: Admission, asked: Asked) -> Ready:
        return super().compose(dataclasses.replace(planned, method=asked.head.method), admission, asked)


class UnsafeWithoutQueries(PlanPolicy):
    """Any query passes, as it came."""

    def query_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose(self, planned: PlannedRequest, admission: Admission, asked: Asked) -> Ready:
        made = super().compose(planned, admission, asked)
        return dataclasses.replace(made, admission=dataclasses.replace(made.admission, target=asked.target))


class UnsafeWithoutBodies(PlanPolicy):
    """Any body passes, as it came."""

    def body_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose_body(self, planned: PlannedRequest, asked: Asked) -> tuple[bytes, str]:
        return asked.body, "application/json"


class UnsafeWithoutOnce(PlanPolicy):
    """A request stays allowed after it was sent."""

    def settle(self, admission: Admission, failed: str) -> None:
        super().settle(admission, failed)
        self._next = 0


class UnsafeWithoutConditions(PlanPolicy):
    """An answer that isn't well stops nothing."""

    def settle(self, admission: Admission, failed: str) -> None:
        super().settle(admission, "")


class UnsafeWithoutEncoding(PlanPolicy):
    """Values of answers stand in the path as they are."""

    def path_differs(self, planned: PlannedRequest, asked: Asked) -> str:
        return ""

    def compose_path(self, planned: PlannedRequest, asked: Asked) -> str:
        parts = [part if isinstance(part, str) else scalar(self._answers.resolve(part)) for part in planned.path]
        return "/" + "/".join([*planned.base_path, *parts])


class _RawRequest(UpstreamRequest):
    async def begin(self, method: str, target: str, headers: Headers, length: int | None) -> None:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._origin.host}:{self._origin.port}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [] if length is None else [f"Content-Length: {length}"]
        self._method, self._sent = method, not length
        self._http.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        await self.stream.write("\r\n".join([*lines, "", ""]).encode())


class UnsafeRawUpstream(Upstream):
    """Requests are pasted together from text."""

    def request(self, connection: Connection, origin: Origin) -> UpstreamRequest:
        return _RawRequest(connection.stream, origin)


class _PassingHeaders(PlanPolicy):
    """Sends on what the container wrote, so that a header which isn't refused arrives."""

    def compose(self, planned: PlannedRequest, admission: Admission, asked: Asked) -> Ready:
        made = super().compose(planned, admission, asked)
        ours = {name.lower() for name, _ in made.admission.headers} | {"host", "content-length", "connection"}
        extra = tuple((name, value) for name, value in asked.head.headers if name not in ours)
        headers = (*made.admission.headers, *extra)
        return dataclasses.replace(made, admission=dataclasses.replace(made.admission, headers=headers))


class UnsafeWithoutCredentialCheck(_PassingHeaders):
    def check_credentials(self, head: Head) -> None:
        return


class UnsafeWithoutOverrideCheck(_PassingHeaders):
    def parse(self, raw: bytes) -> Head:
        head = parse_head(raw)
        self.check_credentials(head)
        return head


class UnsafeWithoutStrictHead(PlanPolicy):
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


class _FollowingRequest(UpstreamRequest):
    """Asks where a redirect leads, with the credential."""

    def __init__(self, upstream: UnsafeFollowingRedirects, stream: Stream, origin: Origin) -> None:
        super().__init__(stream, origin)
        self._upstream = upstream
        self._said: tuple[str, Headers, int | None] = ("", [], None)
        self._content = b""

    async def begin(self, method: str, target: str, headers: Headers, length: int | None) -> None:
        self._said = (method, headers, length)
        await super().begin(method, target, headers, length)

    async def send(self, data: bytes) -> None:
        self._content += data
        await super().send(data)

    async def head(self, *, upgrade: bool = False) -> tuple[int, list[tuple[str, str]]]:
        status, headers = await super().head(upgrade=upgrade)
        where = dict(headers).get("location")
        if where is None:
            return status, headers
        elsewhere = Origin.parse(where)
        account = dataclasses.replace(self._upstream.account, origins=(elsewhere,), base_url=str(elsewhere))
        method, sent, length = self._said
        there = UpstreamRequest((await self._upstream.connect(elsewhere, account)).stream, elsewhere)
        await there.begin(method, urlsplit(where).path, sent, length)
        await there.send(self._content)
        await there.finish()
        return await there.head()


class UnsafeFollowingRedirects(Upstream):
    def __init__(self, account: Account) -> None:
        super().__init__()
        self.account = account

    def request(self, connection: Connection, origin: Origin) -> UpstreamRequest:
        return _FollowingRequest(self, connection.stream, origin)


class UnsafeWithoutBombCheck(PlanPolicy):
    """An answer may be of any length."""

    def read(self, admission: Admission, body: bytes) -> Ready | No:
        return super().read(dataclasses.replace(admission, answer_limit=2**40), body)
