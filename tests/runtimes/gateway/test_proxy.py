"""Requests of code by rules: sent and answered while they come, over TLS on both sides."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import os
import ssl
import zlib
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path

import pytest

from policies.accounts import Account, Origin
from runtimes.gateway.server import ActionServer
from runtimes.gateway.upstream import Upstream
from tests.runtimes.gateway.proxied import BEARER, MARK, Line, answering, proxied, read_body
from tests.runtimes.gateway.support import CANARY, Box
from tests.support.waiting import until_async

OK = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}'
BLOB = os.urandom(3_000_000)
AUTH = f"Authorization: Bearer {MARK}\r\n"


def head(status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def ask(box: Box, origin: Origin, method: str, path: str, *lines: str) -> ssl.SSLSocket:
    """Send a request's head; what follows it is the test's."""
    tls = await box.tunnel(origin.host, origin.port)
    said = "".join(f"{line}\r\n" for line in lines)
    tls.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost:{origin.port}\r\n{AUTH}{said}\r\n".encode())
    return tls


async def read(tls: ssl.SSLSocket, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    def once() -> tuple[HTTPResponse, bytes]:
        response = HTTPResponse(tls, method=method)
        response.begin()
        return response, response.read()

    return await asyncio.to_thread(once)


async def test_a_body_with_a_length_keeps_it_and_connections_are_kept(tmp_path: Path) -> None:
    said_so = head(content_type="application/octet-stream", content_length=str(len(BLOB)), etag='"e"') + BLOB
    async with proxied(answering(said_so), tmp_path) as (box, watch, said):
        for _ in range(3):
            got = await box.request("GET", f"{said.origin}/api/blob", headers=BEARER, keep=True)
            assert (got.status, got.body == BLOB, got.headers["etag"]) == (200, True, '"e"')
            assert got.headers["content-length"] == str(len(BLOB))
    assert said.connections == 1
    assert b"authorization: bearer " + CANARY.encode() in said.heads[0].lower().replace(
        CANARY.lower().encode(), CANARY.encode()
    )
    assert MARK.encode() not in b"".join(said.heads)
    assert [one.size for one in watch.exchanges] == [len(BLOB)] * 3
    assert [one.request for one in watch.exchanges] == ["rule-0#1", "rule-0#2", "rule-0#3"]
    assert [kind for kind, _ in watch.events] == ["sending", "answered"] * 3


async def test_chunks_come_through_and_trailers_do_not(tmp_path: Path) -> None:
    parts = b"".join(chunk(BLOB[at : at + 7000]) for at in range(0, len(BLOB), 7000))
    answer = head(content_type="text/plain", transfer_encoding="chunked") + parts + b"0\r\nX-Secret: a\r\n\r\n"
    async with proxied(answering(answer), tmp_path) as (box, _, said):
        for _ in range(2):
            got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER, keep=True)
            assert (got.status, got.body == BLOB) == (200, True)
            assert "x-secret" not in got.headers
    assert said.connections == 1


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_a_body_is_sent_while_it_comes(tmp_path: Path, framing: str) -> None:
    got: list[bytes] = []

    async def handler(asked: bytes, line: Line) -> bool:
        got.append(await read_body(asked, line.reader))
        await line.say(OK)
        return True

    async with proxied(handler, tmp_path) as (box, watch, said):
        by_length = framing == "length"
        line = f"Content-Length: {len(BLOB)}" if by_length else "Transfer-Encoding: chunked"
        tls = await ask(box, said.origin, "PUT", "/api/up", line, "Content-Type: application/octet-stream")
        body = BLOB if by_length else b"".join(chunk(BLOB[at : at + 9999]) for at in range(0, len(BLOB), 9999))
        await asyncio.to_thread(tls.sendall, body if by_length else body + b"0\r\n\r\n")
        response, answer = await read(tls)
        assert (response.status, json.loads(answer)) == (200, {"ok": True})
    assert got == [BLOB]
    assert watch.passed[0][1].size == (len(BLOB) if by_length else -1)


@pytest.mark.parametrize(("said_so", "replayed"), [("true", True), ("false", False)])
async def test_that_an_answer_was_given_before_is_told(tmp_path: Path, said_so: str, replayed: bool) -> None:
    again = head(Content_Length="2", Content_Type="application/json", Idempotent_Replayed=said_so) + b"{}"
    async with proxied(answering(again), tmp_path) as (box, watch, said):
        await box.request("POST", f"{said.origin}/api/m", {"text": "hi"}, BEARER)
    assert watch.exchanges[0].replayed is replayed


async def test_the_answer_to_a_small_json_is_seen_and_told_before_it_is_given(tmp_path: Path) -> None:
    async with proxied(answering(OK), tmp_path) as (box, watch, said):
        got = await box.request("POST", f"{said.origin}/api/m", {"text": "hi"}, BEARER)
        assert got.json == {"ok": True}
    assert watch.exchanges[0].body == {"ok": True}
    assert watch.passed[0][1].body == {"text": "hi"}


async def test_who_waits_for_100_is_told_to_continue(tmp_path: Path) -> None:
    async with proxied(answering(OK), tmp_path) as (box, _, said):
        kind = "Content-Type: application/octet-stream"
        tls = await ask(box, said.origin, "PUT", "/api/up", "Content-Length: 5", kind, "Expect: 100-continue")
        assert await asyncio.to_thread(tls.recv, 25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        tls.sendall(b"hello")
        assert (await read(tls))[0].status == 200
    assert b"xpect" not in said.heads[0]


async def test_answers_without_a_body(tmp_path: Path) -> None:
    answers = [head(content_length="123456"), head("204 No Content"), head("304 Not Modified", etag='"e"'), OK]

    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(answers[len(said.heads) - 1])
        return True

    async with proxied(handler, tmp_path) as (box, watch, said):
        url = f"{said.origin}/api/x"
        first = await box.request("HEAD", url, headers=BEARER, keep=True)
        assert (first.status, first.headers["content-length"]) == (200, "123456")
        assert (await box.request("GET", url, headers=BEARER, keep=True)).status == 204
        assert (await box.request("GET", url, headers=BEARER, keep=True)).status == 304
        assert (await box.request("GET", url, headers=BEARER, keep=True)).json == {"ok": True}
    assert said.connections == 1
    assert [one.status for one in watch.exchanges] == [200, 204, 304, 200]


def _echoes() -> dict[str, bytes]:
    secret = CANARY.encode()
    return {
        "as it is": secret,
        "base64": base64.b64encode(b"user:" + secret),
        "base64 in lines": base64.encodebytes(b"-" * 40 + secret + b"-" * 40),
        "percent": b"".join(b"%%%02X" % byte for byte in secret),
        "hex": secret.hex().encode(),
        "escapes": b"".join(b"\\u%04x" % byte for byte in secret),
    }


@pytest.mark.promise(54)
@pytest.mark.parametrize("how", ["whole", "byte chunks", "gzip", "gzip members", "deflate", "until the end"])
async def test_no_echo_comes_through(tmp_path: Path, how: str) -> None:
    echoes = list(_echoes().values())
    body = b"<" + b"x " * 3000 + (b"> " + b"y " * 300).join(echoes)
    at = 6001 + len(echoes[0]) // 2
    named = {"content_type": "text/plain", "transfer_encoding": "chunked"}
    written = {
        "whole": head(content_type="text/plain", content_length=str(len(body))) + body,
        "byte chunks": head(**named) + b"".join(chunk(body[i : i + 1]) for i in range(len(body))) + b"0\r\n\r\n",
        "gzip": head(**named, content_encoding="gzip") + chunk(gzip.compress(body)) + b"0\r\n\r\n",
        "gzip members": head(**named, content_encoding="gzip")
        + chunk(gzip.compress(body[:at])) + chunk(gzip.compress(body[at:])) + b"0\r\n\r\n",
        "deflate": head(**named, content_encoding="deflate") + chunk(zlib.compress(body)) + b"0\r\n\r\n",
        "until the end": head(content_type="text/plain") + body,
    }[how]  # fmt: skip
    goes_on = how != "until the end"
    async with proxied(answering(written, goes_on=goes_on), tmp_path) as (box, watch, said):
        got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER)
    assert got.status == 200
    assert len(got.body) == len(body)
    assert got.body.count(b"[redacted]") == len(echoes)
    for data in (got.body, repr(watch.events).encode(), repr(got.headers).encode()):
        assert not [echo for echo in echoes if echo in data]


async def test_echoes_in_headers_and_in_json_that_only_a_parser_sees(tmp_path: Path) -> None:
    written = base64.b64encode(CANARY.encode()).decode()
    hidden = "".join(f"\\u{ord(char):04x}" for char in written)
    body = b'{"hidden": "%b", "plain": "%b", "n": 1}' % (hidden.encode(), CANARY.encode())
    answer = head(
        content_type="application/json", content_length=str(len(body)), etag=f'"{CANARY}"', set_cookie="a=b",
        x_request_id="r-1", x_internal_token="t", www_authenticate="Bearer x", x_ratelimit_remaining="9",
    )  # fmt: skip
    async with proxied(answering(answer + body), tmp_path) as (box, watch, said):
        got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER)
    assert json.loads(body)["hidden"] == written
    assert CANARY not in json.dumps(got.json) + repr(got.headers)
    assert (got.json["hidden"], got.json["plain"], got.headers["etag"]) == (
        "[redacted]", "[redacted]", '"[redacted]"',
    )  # fmt: skip
    assert (got.headers["x-request-id"], got.headers["x-ratelimit-remaining"]) == ("r-1", "9")
    assert not {"set-cookie", "x-internal-token", "www-authenticate"} & set(got.headers)
    assert CANARY not in repr(watch.events)
    assert written not in repr(watch.events)


async def test_events_come_at_once(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(head(content_type="text/event-stream; charset=utf-8", transfer_encoding="chunked"))
        for number in range(4):
            await line.say(chunk(b"data: %d\n\n" % number))
            await heard.wait()
            heard.clear()
        await line.say(b"0\r\n\r\n")
        return True

    async with proxied(handler, tmp_path) as (box, watch, said):
        tls = await ask(box, said.origin, "GET", "/api/events")

        def begin() -> HTTPResponse:
            response = HTTPResponse(tls)
            response.begin()
            return response

        response = await asyncio.to_thread(begin)
        for number in range(4):
            assert await asyncio.to_thread(response.read1) == b"data: %d\n\n" % number
            heard.set()
        assert await asyncio.to_thread(response.read) == b""
        await until_async(lambda: watch.exchanges)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (head(content_encoding="br", content_length="3") + b"abc", "compressed in a way"),
        (head(content_encoding="gzip", content_length="3") + b"abc", "compression is broken"),
        (head(transfer_encoding="chunked") + b"zz\r\n", "chunk's size"),
        (head(content_length="10") + b"abc", "ended within a body"),
        (head(content_length="60000000") + b"abc", "longer than"),
        (b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "no answer"),
        (b"", "no answer"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "no answer"),
    ],
)
async def test_answers_that_cannot_be_passed_on(tmp_path: Path, answer: bytes, words: str) -> None:
    async with proxied(answering(answer, goes_on=False), tmp_path, response_bytes=50_000_000) as (box, watch, said):
        with contextlib.suppress(IncompleteRead, ConnectionError, ssl.SSLError):
            got = await box.request("POST", f"{said.origin}/api/x", {"a": 1}, BEARER)
            assert got.status == 502
        await until_async(lambda: watch.exchanges)
    assert not watch.exchanges[0].well
    assert words in watch.exchanges[0].failed
    assert len(said.heads) == 1


async def test_an_answer_beyond_the_rule_s_bytes_is_cut(tmp_path: Path) -> None:
    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(head(content_type="text/plain", transfer_encoding="chunked"))
        for _ in range(100):
            await line.say(chunk(bytes(100_000)))
        return False

    async with proxied(handler, tmp_path, response_bytes=1_000_000) as (box, watch, said):
        tls = await ask(box, said.origin, "GET", "/api/x")
        with pytest.raises((IncompleteRead, ConnectionError, ssl.SSLError)):
            await read(tls)
        await until_async(lambda: watch.exchanges)
    assert (watch.exchanges[0].well, watch.exchanges[0].status) == (False, 200)
    assert "longer than 1000000 bytes" in watch.exchanges[0].failed


@pytest.mark.promise(54)
async def test_a_bomb_is_cut_and_takes_no_memory(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([packer.compress(bytes(2**20)) for _ in range(200)]) + packer.flush()
    answer = head(content_type="text/plain", content_encoding="gzip", content_length=str(len(bomb))) + bomb
    async with proxied(answering(answer), tmp_path) as (box, watch, said):
        tls = await ask(box, said.origin, "GET", "/api/x")
        with pytest.raises((IncompleteRead, ConnectionError, ssl.SSLError)):
            await read(tls)
        await until_async(lambda: watch.exchanges)
    assert "unpacks to more" in watch.exchanges[0].failed
    assert watch.exchanges[0].size < 60 * 2**20


async def test_where_an_answer_leads(tmp_path: Path) -> None:
    places = ["/api/next?page=2", "https://evil.example/x", "//evil.example/x", "http://localhost/x", "javascript:x",
              f"https://evil.example/{CANARY}"]  # fmt: skip

    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(head("302 Found", location=places[len(said.heads) - 1], content_length="0"))
        return True

    async with proxied(handler, tmp_path, query={"page": ()}) as (box, watch, said):
        got = [await box.request("GET", f"{said.origin}/api/x", headers=BEARER, keep=True) for _ in places]
    assert got[0].headers["location"] == places[0]
    assert all("location" not in one.headers and "leads to" in one.headers["x-goex-location"] for one in got[1:])
    assert [one.kind for one in watch.refusals] == ["redirect"] * 5
    assert "https://evil.example" in watch.refusals[0].reason
    assert len(said.heads) == len(places)
    assert CANARY not in repr(watch.events) + repr(got)


@pytest.mark.parametrize(("method", "well"), [("GET", False), ("POST", True)])
async def test_when_the_container_goes_the_server_is_left(tmp_path: Path, method: str, well: bool) -> None:
    """A change that flows was made all the same, by its head."""

    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(head(content_type="text/event-stream", transfer_encoding="chunked") + chunk(b"data: 1\n\n"))
        assert await line.reader.read() == b""
        return False

    async with proxied(handler, tmp_path) as (box, watch, said):
        tls = await ask(box, said.origin, method, "/api/events")
        assert b"200" in await asyncio.to_thread(tls.recv, 1000)
        tls.close()
        async with asyncio.timeout(60):
            await said.ended.wait()
        await until_async(lambda: watch.exchanges)
    assert (watch.exchanges[0].well, watch.exchanges[0].failed) == (
        well,
        "" if well else "The code ended the connection.",
    )


async def test_a_slow_reader_slows_the_server(tmp_path: Path) -> None:
    block, written = os.urandom(2**20), 0

    async def handler(asked: bytes, line: Line) -> bool:
        nonlocal written
        await line.say(head(content_type="text/plain", content_length=str(200 * len(block))))
        for _ in range(200):
            await line.say(block)
            written += len(block)
        return True

    async with proxied(handler, tmp_path) as (box, _, said):
        tls = await ask(box, said.origin, "GET", "/api/x")
        still = -1
        while not still == written > 0:  # until nothing more is taken
            still = written
            await asyncio.sleep(1)
        assert still < 40 * 2**20
        tls.close()


@pytest.mark.promise(57)
async def test_the_daemon_has_to_take_note(tmp_path: Path) -> None:
    async with proxied(answering(OK), tmp_path) as (box, watch, said):
        watch.refuse_sending = True
        got = await box.request("POST", f"{said.origin}/api/x", {"a": 1}, BEARER)
        assert (got.status, said.heads) == (403, [])
        assert "didn't take note" in watch.refusals[0].reason


async def test_an_answer_before_the_body_s_end(tmp_path: Path) -> None:
    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(
            head("413 Too Large", content_type="text/plain", content_length="3", connection="close") + b"no!"
        )
        return False

    async with proxied(handler, tmp_path) as (box, watch, said):
        kind = "Content-Type: application/octet-stream"
        tls = await ask(box, said.origin, "PUT", "/api/up", "Content-Length: 50000000", kind)
        await asyncio.to_thread(tls.sendall, bytes(100_000))
        response, body = await read(tls)
        assert (response.status, body, response.headers["connection"]) == (413, b"no!", "close")
    assert watch.exchanges[0].status == 413


@pytest.mark.parametrize(("method", "status", "tries"), [("GET", 200, 3), ("POST", 502, 2)])
async def test_only_a_read_is_sent_again_on_another_connection(
    tmp_path: Path, method: str, status: int, tries: int
) -> None:
    """The server closes the kept connection when the second request is on its way."""

    async def handler(asked: bytes, line: Line) -> bool:
        if len(said.heads) == 2:
            return False
        await read_body(asked, line.reader)
        await line.say(OK)
        return True

    async with proxied(handler, tmp_path) as (box, _, said):
        body = {"a": 1} if method == "POST" else None
        assert (await box.request(method, f"{said.origin}/api/x", body, BEARER)).status == 200
        assert (await box.request(method, f"{said.origin}/api/x", body, BEARER)).status == status
    assert len(said.heads) == tries


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "body", [b"5;x=y\r\nhello\r\n0\r\n\r\n", b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\nX: y\r\n\r\n", b"zz\r\n"]
)
async def test_a_body_that_is_not_framed_is_never_finished(tmp_path: Path, body: bytes) -> None:
    bodies: list[bytes] = []

    async def handler(asked: bytes, line: Line) -> bool:
        with contextlib.suppress(ValueError):
            bodies.append(await read_body(asked, line.reader))
        return False

    async with proxied(handler, tmp_path) as (box, watch, said):
        kind = "Content-Type: application/octet-stream"
        tls = await ask(box, said.origin, "PUT", "/api/up", "Transfer-Encoding: chunked", kind)
        tls.sendall(body + b"GET /api/second HTTP/1.1\r\n\r\n")
        response, answer = await read(tls)
        assert (response.status, json.loads(answer)["error"]["kind"]) == (400, "framing")
        assert response.headers["connection"] == "close"
        await until_async(lambda: watch.exchanges)
    assert bodies == []
    assert len(said.heads) <= 1
    assert watch.refusals[0].kind == "framing"


async def test_a_placeholder_in_a_streamed_body_never_leaves(tmp_path: Path) -> None:
    seen = bytearray()

    async def handler(asked: bytes, line: Line) -> bool:
        while data := await line.reader.read(65536):
            seen.extend(data)
        return False

    async with proxied(handler, tmp_path) as (box, watch, said):
        kind = "Content-Type: application/octet-stream"
        tls = await ask(box, said.origin, "PUT", "/api/up", "Content-Length: 500000", kind)
        await asyncio.to_thread(tls.sendall, bytes(300_000) + MARK[:20].encode())
        await asyncio.sleep(0.1)
        await asyncio.to_thread(tls.sendall, MARK[20:].encode() + bytes(1000))
        response, _ = await read(tls)
        assert response.status in (400, 401, 403)
        await until_async(lambda: watch.exchanges and watch.refusals)
    assert MARK.encode() not in seen
    assert len(seen) < 500_000


async def test_a_request_that_no_rule_has_costs_no_connection(tmp_path: Path) -> None:
    async with proxied(answering(OK), tmp_path) as (box, watch, said):
        for _ in range(2):
            got = await box.request("POST", f"{said.origin}/other", {"a": 1}, BEARER, keep=True)
            assert (got.status, got.json["ok"]) == (403, False)
        got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER, keep=True)
        assert got.status == 200
    assert len(said.heads) == 1
    assert [one.target for one in watch.refusals] == [f"{said.origin}/other"] * 2


async def test_thirty_at_once(tmp_path: Path) -> None:
    together = asyncio.Barrier(30)

    async def handler(asked: bytes, line: Line) -> bool:
        await together.wait()
        await line.say(OK)
        return True

    async with proxied(handler, tmp_path) as (box, watch, said):
        urls = [f"{said.origin}/api/{number}" for number in range(30)]
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(30) as threads:
            asking = [
                loop.run_in_executor(threads, lambda url=url: box.container.request("GET", url, headers=BEARER))  # type: ignore[misc]
                for url in urls
            ]
            got = await asyncio.gather(*asking)
    assert [one.status for one in got] == [200] * 30
    assert len({one.request for one in watch.exchanges}) == 30


async def test_plain_http(tmp_path: Path) -> None:
    async with proxied(answering(OK), tmp_path, plain=True) as (box, _, said):
        got = await box.request("POST", f"{said.origin}/api/m", {"text": "hi"}, BEARER)
        assert (got.status, got.json) == (200, {"ok": True})


async def test_a_server_that_another_authority_vouches_for_gets_nothing(tmp_path: Path) -> None:
    class Elsewhere(ActionServer):
        def make_upstream(self) -> Upstream:
            return Refusing()

    class Refusing(Upstream):
        def refusal(self, address: str, origin: Origin, account: Account) -> str:
            return "it is private"

    async with proxied(answering(OK), tmp_path, server_type=Elsewhere) as (box, watch, said):
        got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER)
        assert (got.status, watch.refusals[0].kind, said.connections) == (403, "address", 0)
    async with proxied(answering(OK), tmp_path) as (box, watch, said), proxied(answering(OK), tmp_path) as other:
        # The account trusts the first server's authority; the name leads to the second.
        assert watch.server is not None
        watch.server._upstream._pinned[said.origin] = ["127.0.0.1"]
        port = other[2].origin.port
        object.__setattr__(said.origin, "port", port)
        got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER)
        assert got.status == 502
        assert other[2].heads == []


@pytest.mark.promise(53)
async def test_an_address_in_a_header_is_passed_where_a_rule_has_it(tmp_path: Path) -> None:
    """One may be a credential by itself: an upload's session, a signed address."""
    cases: list[tuple[str, str, str]] = [
        ("link", '</api/x?page=2>; rel="next", </api/x?page=9>; rel="last"', "whole"),
        ("link", '</api/x?page=2>; rel="next", </api/x?sig=S>; rel="last"', '</api/x?page=2>; rel="next"'),
        ("link", '<https://evil.example/api/x>; rel="next"', ""),
        ("link", "https://evil.example/api/x", ""),
        ("content-location", "/api/x", "whole"),
        ("content-location", "/api/x?upload_id=S", ""),
        ("content-location", "https://localhost/api/x", ""),
        ("x-goog-upload-url", "https://evil.example/upload", ""),
        ("x-goog-upload-control-url", "/api/x?key=S", ""),
        ("x-github-media", "//evil.example/x", ""),
        ("x-github-media-type", "github.v3", "whole"),
        ("location", "/api/x?page=2", "whole"),
        ("location", "/api/x?page=2#S", ""),
        ("location", "/admin", ""),
        ("location", "/api/x?access_token=S", ""),
        ("location", "/api/../api/x", "whole"),  # as whoever follows it reads it
        ("location", "//user:pass@localhost/api/x", ""),
        ("refresh", "0; url=/api/x", ""),
    ]

    async def handler(asked: bytes, line: Line) -> bool:
        name, value, _ = cases[len(said.heads) - 1]
        await line.say(head(content_length="0", **{name.replace("-", "_"): value}))
        return True

    async with proxied(handler, tmp_path, query={"page": ()}, path=("x",)) as (box, _, said):
        for name, value, kept in cases:
            got = await box.request("GET", f"{said.origin}/api/x", headers=BEARER, keep=True)
            assert got.headers.get(name, "") == (value if kept == "whole" else kept), (name, value)
            assert kept or name == "refresh" or {"x-goex-withheld", "x-goex-location"} & got.headers.keys(), value
            assert "sig=S" not in repr(got)
