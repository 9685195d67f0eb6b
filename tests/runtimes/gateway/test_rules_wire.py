"""Rules over real sockets: code in the container's place, properly and in raw bytes, against a server that must see
nothing but what was allowed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPException, HTTPResponse
from pathlib import Path

import pytest

from policies.accounts import Account, Origin
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.contract import GatewayFailed
from runtimes.gateway.plan import GatewayPlan, MethodRule, Slot, TokenEndpoint
from tests.runtimes.gateway.support import Box, Container, Got, Server, TestCA, Watch, lease, opened, serving
from vault.lease import Lease

WORK, HOME = ("chat", "work"), ("chat", "home")
MARKS = {account: f"xoxb-goex-{'-'.join(account)}-abcdefghijklmnopqrstuv" for account in (WORK, HOME)}
SECRETS = {account: f"goexcanary-{account[1]}-7Qf3+Zr/9xW" for account in (WORK, HOME)}
FORM = "application/x-www-form-urlencoded"
TOKENS = Origin("https", "auth.example", 443)


def planned(origin: Origin) -> GatewayPlan:
    def rule(number: int, method: str, *path: str | Slot, **more: object) -> MethodRule:
        made = MethodRule(
            id=f"rule-{number}", method_id=f"chat.method{number}", account=WORK, origin=origin, base_path=("api",),
            method=method, path=path,
        )  # fmt: skip
        return replace(made, **more)  # type: ignore[arg-type]

    post = rule(0, "POST", "messages", fields={"channel": ("C1",)}, must=("channel",), body_format="json")
    return GatewayPlan(
        action_id="a1",
        rules=(
            post,
            replace(post, id="rule-1", account=HOME, fields={"channel": ("H1",)}),
            rule(2, "GET", "users", Slot("id"), query={"limit": ()}),
            rule(3, "PUT", "files", Slot("path", many=True), request_bytes=100_000),
        ),
        placeholders={placeholder: account for account, placeholder in MARKS.items()},
        tokens=(TokenEndpoint(account=WORK, origin=TOKENS, path=("token",)),),
        seconds=60.0,
    )


def held(origin: Origin, ca_pem: str) -> list[Lease]:
    accounts = [
        Account(service=service, name=name, origins=(origin,), base_url=str(origin), private=True, ca_pem=ca_pem)
        for service, name in (WORK, HOME)
    ]
    return [lease(account, secret=SECRETS[(account.service, account.name)]) for account in accounts]


@pytest.fixture(name="ca", scope="module")
def ca_fixture() -> TestCA:
    return TestCA()


@contextlib.asynccontextmanager
async def ruled(ca: TestCA, folder: Path) -> AsyncIterator[tuple[Box, Watch, Server, Origin]]:
    async with serving(ca.context("localhost")) as server:
        origin = Origin("https", "localhost", server.port)
        async with opened(planned(origin), held(origin, ca.pem), folder) as (box, watch):
            yield box, watch, server, origin


def bearer(account: tuple[str, str] = WORK) -> dict[str, str]:
    return {"Authorization": f"Bearer {MARKS[account]}"}


def secrets_in(server: Server) -> list[str]:
    """The credentials that the server saw, in order; and nothing else of them anywhere."""
    found = []
    for seen in server.seen:
        rest = repr((seen.target, {k: v for k, v in seen.headers.items() if k != "authorization"}, seen.body))
        assert not any(secret in rest for secret in SECRETS.values())
        found.append(seen.headers.get("authorization", ""))
    assert not any(mark in repr(server.seen) for mark in MARKS.values())
    return found


@pytest.mark.promise(53)
async def test_two_accounts_on_one_host_by_their_placeholders(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        url = f"{origin}/api/messages"
        assert (await box.request("POST", url, {"channel": "C1", "text": "a"}, bearer())).status == 200
        assert (await box.request("POST", url, {"channel": "H1"}, bearer(HOME))).status == 200
        assert (await box.request("POST", url, {"channel": "H1"}, bearer())).status == 403
        assert (await box.request("POST", url, {"channel": "C1"}, bearer(HOME))).status == 403
        assert secrets_in(seen) == [f"Bearer {SECRETS[WORK]}", f"Bearer {SECRETS[HOME]}"]
        assert [one.rule for _, one in watch.passed] == ["rule-0", "rule-1"]
        assert watch.passed[0][1].body == {"channel": "C1", "text": "a"}
        assert [one.method_id for one in watch.refusals] == ["chat.method0", "chat.method0"]
        assert [one.kind for one in watch.refusals] == ["field", "field"]


async def test_a_refusal_names_itself_to_the_code_and_to_the_person(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        got: Got = await box.request("DELETE", f"{origin}/api/users/u1?limit=1", None, bearer())
        assert (got.status, got.json["error"]["kind"]) == (403, "method")
        assert got.json["error"]["refused"] == f"DELETE {origin}/api/users/u1"
        assert "only GET" in got.json["message"]
        (refusal,) = watch.refusals
        assert (refusal.method, refusal.target) == ("DELETE", f"{origin}/api/users/u1")
        assert (refusal.kind, seen.seen) == ("method", [])


# Raw requests within the tunnel to the right host: what the server must never see, not even in part.
RAW = [
    b"GET /api/users/u1 HTTP/1.1\r\nHost: evil.example\r\nAUTH\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\nAUTH\r\n\r\n",
    b"GET https://evil.example/api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\n\r\n",
    b"GET //evil.example/api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\n\r\n",
    b"GET /api/users/../admin HTTP/1.1\r\nHost: HOST\r\nAUTH\r\n\r\n",
    b"GET /api/users/%2e%2e%2fadmin HTTP/1.1\r\nHost: HOST\r\nAUTH\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nCookie: a=b\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer sk-stolen-from-somebody\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nAUTH\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nX-A: b\r\n\tfolded\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\nHost: HOST\nAUTH\n\n",
    b"POST /api/messages HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: application/json\r\n"
    b"Content-Length: 16\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + b'{"channel":"C1"}',
    b"POST /api/messages HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: application/json\r\n"
    b"Content-Length: 16\r\nContent-Length: 17\r\n\r\n" + b'{"channel":"C1"}',
    b"POST /api/messages HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + b'ffffffffffffffffff10\r\n{"channel":"C1"}\r\n0\r\n\r\n',
    b"POST /api/messages HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + b'10\r\n{"channel":"C2"}\r\n0\r\n\r\n',
    b"POST /api/messages HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 29\r\n\r\n" + b"channel=C1&_method=DELETE&a=b",
    b"POST /api/batch HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: multipart/mixed; boundary=x\r\n"
    b"Content-Length: 3\r\n\r\n--x",
    b"PUT /api/files/a HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Type: application/http\r\nContent-Length: 1\r\n\r\nx",
    b"PUT /api/files/a HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Length: 100001\r\n\r\nx",
    b"PUT /api/files/a HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Length: 47\r\n\r\n"
    + MARKS[WORK].encode()
    + b"-more---",
    b"POST /graphql HTTP/1.1\r\nHost: HOST\r\nAUTH\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /api/users/" + MARKS[WORK].encode() + b" HTTP/1.1\r\nHost: HOST\r\nAUTH\r\n\r\n",
    b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a, Signature=b\r\n\r\n",
]


def said(container: Container, raw: bytes, origin: Origin) -> int:
    """The status of the answer to raw bytes within a tunnel; 0 where the connection just ended."""
    with container.tunnel(origin.host, origin.port) as sock:
        sock.sendall(raw)
        response = HTTPResponse(sock)
        try:
            response.begin()
        except (HTTPException, OSError):
            return 0
        response.read()
        return response.status


@pytest.mark.promise(51)
async def test_raw_requests_that_a_rule_does_not_have_never_arrive(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        auth = f"Authorization: Bearer {MARKS[WORK]}".encode()
        host = f"{origin.host}:{origin.port}".encode()
        for number, raw in enumerate(RAW):
            made = raw.replace(b"HOST", host).replace(b"AUTH", auth)
            status = await asyncio.to_thread(said, box.container, made, origin)
            assert status in (0, *range(400, 500)), (number, raw, status)
            assert len(watch.refusals) >= number + 1, (number, raw, status)
        assert [one.method for one in seen.seen] == []
        # Nothing else was wrong: the same connection's well-formed request arrives.
        good = b"GET /api/users/u1 HTTP/1.1\r\nHost: HOST\r\nAUTH\r\n\r\n".replace(b"HOST", host)
        assert await asyncio.to_thread(said, box.container, good.replace(b"AUTH", auth), origin) == 200
        assert secrets_in(seen) == [f"Bearer {SECRETS[WORK]}"]


async def test_the_code_never_gets_the_secret_from_a_refusal(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        for secret in SECRETS.values():
            got = await box.request("GET", f"{origin}/api/users/u1", None, {"Authorization": f"Bearer {secret}"})
            assert got.status == 403
            assert secret.encode() not in got.body
        assert not any(secret in repr(watch.refusals) for secret in SECRETS.values())
        assert seen.seen == []


async def test_other_hosts_are_refused_before_a_handshake(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        for host, port in [("evil.example", 443), (origin.host, origin.port + 1), ("127.0.0.1", origin.port)]:
            with pytest.raises(ConnectionRefusedError, match="goex-refused"):
                await box.tunnel(host, port)
        assert {one.kind for one in watch.refusals} == {"host"}
        assert seen.connections == 0


async def test_the_token_endpoint_is_answered_here(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        body = b"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c"
        got = await box.request("POST", f"{TOKENS}/token", body, {"Content-Type": FORM})
        assert (got.status, got.json["access_token"]) == (200, MARKS[WORK])
        used = await box.request(
            "GET", f"{origin}/api/users/u1", None, {"Authorization": f"Bearer {got.json['access_token']}"}
        )
        assert used.status == 200
        assert secrets_in(seen) == [f"Bearer {SECRETS[WORK]}"]
        assert (await box.request("POST", f"{TOKENS}/other", body, {"Content-Type": FORM})).status == 403
        assert len(watch.passed) == 1


async def test_the_process_tells_the_daemon_before_it_sends(ca: TestCA, tmp_path: Path) -> None:
    """Through the real process: what passes is told with what it says, and isn't sent where nobody takes note."""
    client = GatewayClient(tmp_path / "run")
    await client.start()
    try:
        async with serving(ca.context("localhost")) as seen:
            origin = Origin("https", "localhost", seen.port)
            watch = Watch()
            folder = await client.open(planned(origin), held(origin, ca.pem), watch.observer())
            box = Box(Container(folder, client.ca_pem))
            got = await box.request("POST", f"{origin}/api/messages", {"channel": "C1"}, bearer())
            assert got.status == 200
            assert [kind for kind, _ in watch.events] == ["sending", "answered"]
            assert watch.events[0][1] == ("rule-0#1", f"POST {origin}/api/messages")
            assert watch.passed[0][1].body == {"channel": "C1"}
            refused = await box.request("PATCH", f"{origin}/api/messages", {"channel": "C1"}, bearer())
            assert refused.json["error"]["kind"] == watch.refusals[0].kind == "method"
            watch.refuse_sending = True
            assert (await box.request("POST", f"{origin}/api/messages", {"channel": "C1"}, bearer())).status == 403
            await client.close("a1")

            async def never(*_: object) -> None:
                raise RuntimeError("nobody takes note")

            deaf = replace(watch.observer(), sending=never)
            folder = await client.open(planned(origin), held(origin, ca.pem), deaf)
            box = Box(Container(folder, client.ca_pem))
            assert (await box.request("GET", f"{origin}/api/users/u1", None, bearer())).status == 403
            assert len(seen.seen) == 1
    finally:
        await client.stop()


async def test_what_was_under_way_when_the_process_died_is_not_known(ca: TestCA, tmp_path: Path) -> None:
    client = GatewayClient(tmp_path / "run")
    await client.start()
    try:
        async with serving(ca.context("localhost")) as seen:
            origin = Origin("https", "localhost", seen.port)
            watch = Watch()
            folder = await client.open(planned(origin), held(origin, ca.pem), watch.observer())
            box = Box(Container(folder, client.ca_pem))
            running = client._running
            assert running is not None

            def dying(request: object) -> None:
                running.process.kill()

            seen.answer = dying
            with contextlib.suppress(Exception):
                await box.request("POST", f"{origin}/api/messages", {"channel": "C1"}, bearer())
            for _ in range(30_000):
                if watch.exchanges:
                    break
                await asyncio.sleep(0.01)
            (exchange,) = watch.exchanges
            assert (exchange.request, exchange.status, exchange.well) == ("rule-0#1", 0, False)
            with pytest.raises(GatewayFailed):
                client.check("a1")
    finally:
        await client.stop()


async def test_many_requests_of_one_action_at_once(ca: TestCA, tmp_path: Path) -> None:
    async with ruled(ca, tmp_path) as (box, watch, seen, origin):
        urls = [f"{origin}/api/users/u{number}" for number in range(20)]
        # Threads of their own: the gateway and the server, in this process too, need the loop's.
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(len(urls)) as threads:
            got = await asyncio.gather(
                *(loop.run_in_executor(threads, box.container.request, "GET", url, None, bearer()) for url in urls)
            )
        assert [one.status for one in got] == [200] * 20
        assert sorted(what[0] for kind, what in watch.events if kind == "sending") == sorted(
            f"rule-2#{number}" for number in range(1, 21)
        )
        assert json.dumps(sorted(one.target for one in seen.seen)) == json.dumps(
            sorted(f"/api/users/u{number}" for number in range(20))
        )
