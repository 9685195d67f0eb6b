"""The socket of one action over real connections: framing, limits, upstream's failures, what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import ssl
import threading
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Origin
from policies.services import Expect
from runtimes.gateway.http_framing import BrokenBody, Unpacking
from runtimes.gateway.listener import MAX_CONNECTIONS
from runtimes.gateway.plan import Ref
from runtimes.gateway.report import MAX_REFUSALS
from tests.runtimes.gateway.support import (
    CANARY,
    Box,
    Reply,
    Seen,
    Server,
    TestCA,
    Watch,
    account,
    json_reply,
    lease,
    opened,
    plan,
    planned,
    serving,
)

HI = {"text": "hi"}
_CA = TestCA()


@pytest.fixture
async def up() -> AsyncIterator[tuple[Server, Origin]]:
    async with serving(_CA.context("localhost")) as server:
        yield server, Origin("https", "localhost", server.port)


Up = tuple[Server, Origin]


@contextlib.asynccontextmanager
async def action(up: Up, run_dir: Path, *requests: Any, **changes: Any) -> AsyncIterator[tuple[Box, Watch]]:
    seconds = changes.pop("lease_seconds", 600)
    what = plan(*(requests or (planned(up[1]),)), **changes)
    leases = [lease(account(up[1], ca_pem=_CA.pem), seconds=seconds)]
    async with opened(what, leases, run_dir) as made:
        yield made


def url(up: Up, path: str = "/api/messages") -> str:
    return f"{up[1]}{path}"


async def test_several_requests_share_connections(up: Up, tmp_path: Path) -> None:
    up[0].answer = lambda seen: json_reply({"id": "7"})
    second = planned(up[1], id="call-1", method="GET", path=("messages", Ref("call-0", "$.id")))
    async with action(up, tmp_path, planned(up[1]), second) as (box, watch):
        assert (await box.request("POST", url(up), HI, keep=True)).status == 200
        got = await box.request("GET", url(up, "/api/messages/7"), keep=True)
    assert (got.status, up[0].connections) == (200, 1)
    assert [exchange.body for exchange in watch.exchanges] == [{"id": "7"}, {"id": "7"}]
    assert [seen.target for seen in up[0].seen] == ["/api/messages", "/api/messages/7"]


async def test_a_closed_kept_connection_is_no_harm_to_a_read(up: Up, tmp_path: Path) -> None:
    """The server says keep-alive and closes when the next request comes."""
    count = 0

    def answer(seen: Seen) -> Reply:
        nonlocal count
        count += 1
        return None if count == 2 else json_reply({})

    up[0].answer = answer
    reads = [planned(up[1], id=f"r{n}", method="GET", path=(f"r{n}",)) for n in range(2)]
    async with action(up, tmp_path, *reads) as (box, _):
        # On one connection of the container's: the second begins when the server's connection has been kept.
        assert (await box.request("GET", url(up, "/api/r0"), keep=True)).status == 200
        assert (await box.request("GET", url(up, "/api/r1"), keep=True)).status == 200
    assert len(up[0].seen) == 3


async def test_a_write_is_never_sent_twice(up: Up, tmp_path: Path) -> None:
    count = 0

    def answer(seen: Seen) -> Reply:
        nonlocal count
        count += 1
        return None if count == 2 else json_reply({})

    up[0].answer = answer
    async with action(up, tmp_path, planned(up[1]), planned(up[1], id="call-1", path=("b",))) as (box, watch):
        await box.request("POST", url(up), HI, keep=True)
        got = await box.request("POST", url(up, "/api/b"), HI, keep=True)
    assert (got.status, got.json["error"]["kind"]) == (502, "no-answer")
    assert up[0].connections == 1  # the kept one: where a read would have been sent again
    assert (watch.exchanges[1].status, "no answer" in watch.exchanges[1].failed) == (0, True)
    assert len(up[0].seen) == 2


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("Transfer-Encoding: chunked\r\n", '6\r\n{"text\r\n7\r\n":"hi"}\r\n0\r\n\r\n'),
        ("Content-Length: 13\r\nExpect: 100-continue\r\n", '{"text":"hi"}'),
    ],
)
async def test_ways_to_send_a_body(up: Up, tmp_path: Path, framing: str, body: str) -> None:
    raw = f"POST /api/messages HTTP/1.1\r\nHost: localhost:{up[1].port}\r\nConnection: close\r\n{framing}\r\n{body}"
    async with action(up, tmp_path) as (box, _):
        said = await box.raw(raw.encode(), "localhost", up[1].port)
    assert b"HTTP/1.1 200" in said
    assert said.startswith(b"HTTP/1.1 100") is ("100-continue" in framing)
    assert up[0].seen[0].body == b'{"text":"hi"}'


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n", 400),
        ('Transfer-Encoding: chunked\r\n\r\nd\r\n{"text":"hi"}\r\n0\r\nX-Trailer: 1\r\n\r\n', 400),
        ('Transfer-Encoding: chunked\r\n\r\nd;ext=1\r\n{"text":"hi"}\r\n0\r\n\r\n', 400),
        ("Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        ("Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" + "x" * 5000, 413),
        ("Content-Length: 5000\r\n\r\n" + "x" * 5000, 413),
    ],
)
async def test_bodies_that_are_refused(up: Up, tmp_path: Path, rest: str, status: int) -> None:
    raw = f"POST /api/messages HTTP/1.1\r\nHost: localhost:{up[1].port}\r\n{rest}"
    async with action(up, tmp_path, max_request_bytes=2000) as (box, watch):
        said = await box.raw(raw.encode(), "localhost", up[1].port)
    assert said.startswith(f"HTTP/1.1 {status}".encode())
    assert len(watch.refusals) == 1
    assert not up[0].seen


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "raw",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"junk\r\n\r\n", b"\x16\x03\x01" + b"\0" * 30 + b"\r\n\r\n", b"x" * 20_000,
     b"GET http://localhost/ HTTP/1.1\r\n\r\n", b"CONNECT localhost HTTP/1.1\r\n\r\n", b"GET ftp://h/ HTTP/1.1\r\n\r\n",
     b"CONNECT u:p@localhost:443 HTTP/1.1\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n\r\n", b"GET /\n\n",
     b"GET http://u:p@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
     b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\nProxy-Authorization: Basic eA==\r\n\r\n"],
)  # fmt: skip
async def test_what_is_no_request_to_a_proxy(up: Up, tmp_path: Path, raw: bytes) -> None:
    async with action(up, tmp_path) as (box, watch):
        said = await box.raw(raw)
    assert said.startswith(b"HTTP/1.1 403")
    assert b"goex-refused" in said
    assert len(watch.refusals) == 1
    assert "\x16" not in watch.refusals[0].method + watch.refusals[0].target


async def test_an_http_origin_of_a_private_account(tmp_path: Path) -> None:
    async with serving(None) as server:
        origin = Origin("http", "localhost", server.port)
        async with opened(plan(planned(origin)), [lease(account(origin))], tmp_path) as (box, _):
            got = await box.request("POST", f"{origin}/api/messages", HI)
        assert (got.status, server.seen[0].headers["authorization"]) == (200, f"Bearer {CANARY}")


async def test_what_is_told_when_nothing_answers(up: Up, tmp_path: Path) -> None:
    gone = Origin("https", "localhost", 1)
    leases = [lease(account(gone, ca_pem=_CA.pem))]
    async with opened(plan(planned(gone)), leases, tmp_path) as (box, watch):
        got = await box.request("POST", f"{gone}/api/messages", HI)
    assert got.status == 502
    assert not watch.sent  # so it is known that nothing was
    assert (watch.exchanges[0].status, watch.exchanges[0].well) == (0, False)


@pytest.mark.parametrize("trust", ["another CA", "another name", "the system's"])
async def test_certificates_are_verified(tmp_path: Path, trust: str) -> None:
    name = "other.example" if trust == "another name" else "localhost"
    async with serving(_CA.context(name)) as server:
        origin = Origin("https", "localhost", server.port)
        ca_pem = {"another CA": TestCA().pem, "another name": _CA.pem, "the system's": ""}[trust]
        async with opened(plan(planned(origin)), [lease(account(origin, ca_pem=ca_pem))], tmp_path) as (box, watch):
            got = await box.request("POST", f"{origin}/api/messages", HI)
        assert got.status == 502
        assert "certificate" in watch.exchanges[0].failed
        assert not server.seen
        assert not watch.sent


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "raw",
    [b"", b"junk\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
     b"HTTP/1.1 200 OK\r\nContent-Length: 1", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
     b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n"],
)  # fmt: skip
async def test_servers_that_do_not_speak_http(up: Up, tmp_path: Path, raw: bytes) -> None:
    up[0].answer = lambda seen: raw
    async with action(up, tmp_path) as (box, watch):
        got = await box.request("POST", url(up), HI)
    assert (got.status, got.headers["x-goex-well"]) == (502, "0")
    assert len(watch.sent) == len(watch.exchanges) == 1
    assert not watch.exchanges[0].well


async def test_an_answer_has_a_bound(up: Up, tmp_path: Path) -> None:
    up[0].answer = lambda seen: json_reply({"x": "y" * 5000})
    async with action(up, tmp_path, max_response_bytes=4000) as (box, watch):
        assert (await box.request("POST", url(up), HI)).status == 502
    assert (watch.exchanges[0].status, watch.exchanges[0].body) == (200, None)


async def test_only_some_headers_come_back(up: Up, tmp_path: Path) -> None:
    up[0].answer = lambda seen: json_reply(
        {},
        set_cookie="a=b",
        x_ratelimit_remaining="5",
        retry_after="1",
        etag='"x"',
        x_internal="no",
        link="<u>",
        server="s",
    )
    async with action(up, tmp_path) as (box, _):
        got = await box.request("POST", url(up), HI)
    assert set(got.headers) == {
        "content-type", "content-length", "x-ratelimit-remaining", "retry-after", "etag", "x-goex-well",
    }  # fmt: skip


async def test_a_condition_that_fails_is_said(up: Up, tmp_path: Path) -> None:
    wanted = (Expect(op="equals", path="$.ok", value=True, says="the service said no:\r\nX-Evil: é"),)
    up[0].answer = lambda seen: json_reply({"ok": False})
    async with action(up, tmp_path, planned(up[1], expect=wanted)) as (box, watch):
        got = await box.request("POST", url(up), HI)
    assert (got.status, got.json) == (200, {"ok": False})
    assert got.headers["x-goex-well"] == "0"
    assert got.headers["x-goex-failed"].startswith("the service said no:\\u{d}\\u{a}X-Evil")
    assert "x-evil" not in got.headers
    assert watch.exchanges[0].failed.startswith("the service said no")


async def test_answers_without_a_body(up: Up, tmp_path: Path) -> None:
    up[0].answer = lambda seen: (204, {}, b"") if seen.method == "DELETE" else json_reply({"a": 1})
    requests = [
        planned(up[1], id="a", method="DELETE", path=("a",)),
        planned(up[1], id="b", method="HEAD", path=("b",)),
    ]
    async with action(up, tmp_path, *requests) as (box, watch):
        got = await box.request("DELETE", url(up, "/api/a"), keep=True)
        assert (got.status, got.body, got.headers["x-goex-well"]) == (204, b"", "1")
        assert (await box.request("HEAD", url(up, "/api/b"), keep=True)).status == 200
    assert all(exchange.well for exchange in watch.exchanges)


async def test_text_is_handed_on_with_its_beginning_reported(up: Up, tmp_path: Path) -> None:
    up[0].answer = lambda seen: (200, {"content-type": "text/plain"}, b"x" * 5000)
    async with action(up, tmp_path) as (box, watch):
        assert len((await box.request("POST", url(up), HI)).body) == 5000
    assert (watch.exchanges[0].body, watch.exchanges[0].text) == (None, "x" * 2000)


async def test_the_time_limit(up: Up, tmp_path: Path) -> None:
    until = threading.Event()
    up[0].answer = lambda seen: (until.wait(30), json_reply({}))[1]
    async with action(up, tmp_path, seconds=3.0) as (box, watch):
        assert (await box.request("POST", url(up), HI)).status == 502
        until.set()
        assert (watch.exchanges[0].status, len(watch.sent)) == (0, 1)
        await asyncio.sleep(3)
        with pytest.raises(OSError):
            await box.request("POST", url(up), HI)


async def test_a_lease_that_ends(up: Up, tmp_path: Path) -> None:
    async with action(up, tmp_path, lease_seconds=0.3) as (box, watch):
        await asyncio.sleep(0.4)
        assert (await box.request("POST", url(up), HI)).status == 403
    assert "lease" in watch.refusals[0].reason
    assert not up[0].seen


async def test_few_connections_at_once(up: Up, tmp_path: Path) -> None:
    async with action(up, tmp_path) as (box, _):
        held = [box.container.connect() for _ in range(MAX_CONNECTIONS)]
        await asyncio.sleep(0.2)
        next_one = asyncio.create_task(box.request("POST", url(up), HI))
        await asyncio.sleep(0.5)
        assert not next_one.done() and not up[0].seen
        for sock in held:
            sock.close()
        assert (await next_one).status == 200


async def test_a_flood_of_refusals_ends(up: Up, tmp_path: Path) -> None:
    async with action(up, tmp_path) as (box, watch):
        for _ in range(MAX_REFUSALS + 5):
            await box.raw(b"junk\r\n\r\n")
        assert (await box.request("POST", url(up), HI)).status == 409
    assert len(watch.refusals) == MAX_REFUSALS
    assert not up[0].seen


async def test_after_close_nothing_is_served(up: Up, tmp_path: Path) -> None:
    async with action(up, tmp_path) as (box, _):
        tunnel = await box.tunnel("localhost", up[1].port)
    with contextlib.suppress(OSError):
        tunnel.sendall(b"POST /api/messages HTTP/1.1\r\n\r\n")
    with contextlib.suppress(OSError):
        assert tunnel.recv(100) == b""
    assert not up[0].seen
    with pytest.raises(OSError):
        box.container.connect()


async def test_the_answer_is_kept_before_it_is_given(up: Up, tmp_path: Path) -> None:
    async with action(up, tmp_path, planned(up[1]), planned(up[1], id="call-1", path=("b",))) as (box, watch):

        async def failing(exchange: Any) -> None:
            raise RuntimeError("disk full")

        reporter = watch.server._reporter  # type: ignore[attr-defined]
        reporter.observer = dataclasses.replace(reporter.observer, answered=failing)
        with pytest.raises((OSError, ssl.SSLError)):
            await box.request("POST", url(up), HI)
        assert (await box.request("POST", url(up, "/api/b"), HI)).status == 409
    assert len(up[0].seen) == 1


@pytest.mark.parametrize(
    ("codings", "body"),
    [
        (["br"], b"x"),
        (["gzip", "gzip"], gzip.compress(gzip.compress(b"x", mtime=0), mtime=0)),
        (["gzip, gzip"], gzip.compress(b"x", mtime=0)),
        (["gzip"], b"not gzip"),
        (["gzip"], gzip.compress(b"x" * 100, mtime=0)[:-9]),
        (["gzip"], gzip.compress(b"x", mtime=0) + b"more"),
        (["deflate"], b"\xff\xff"),
        (["zstd"], b"x"),
    ],
)
def test_compression_that_is_refused(codings: list[str], body: bytes) -> None:
    with pytest.raises(BrokenBody):
        _unpacked(codings, body)


def test_compression_that_is_read() -> None:
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    for codings, body in (
        (["gzip"], gzip.compress(b"x" * 900, mtime=0)),
        (["deflate"], zlib.compress(b"x" * 900)),
        (["deflate"], raw.compress(b"x" * 900) + raw.flush()),
        (["identity"], b"x" * 900),
        ([], b"x" * 900),
    ):
        assert _unpacked(codings, body) == b"x" * 900


def _unpacked(codings: list[str], body: bytes) -> bytes:
    unpacking = Unpacking(codings)
    found = b"".join(unpacking.pieces(body))
    unpacking.end()
    return found
