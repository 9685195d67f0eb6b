"""The answers to a program's changes, which undo stands on: known whatever the program, and whatever time, takes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path

import pytest

from runtimes.gateway import proxy_response
from tests.runtimes.gateway.proxied import BEARER, Line, answering, proxied, read_body
from tests.runtimes.gateway.test_proxy import OK, ask, chunk, head, read
from tests.support.waiting import until_async


@pytest.mark.promise(57)
@pytest.mark.parametrize("come", [b"", OK[:-11], OK[:-3]], ids=["nothing", "head", "some of the body"])
async def test_the_answer_to_a_change_is_read_on_when_the_container_goes(tmp_path: Path, come: bytes) -> None:
    """Undo stands on it; a read is broken off."""
    gone = asyncio.Event()

    async def handler(asked: bytes, line: Line) -> bool:
        await read_body(asked, line.reader)
        await line.say(come)
        await gone.wait()
        with contextlib.suppress(TimeoutError):  # of a read the gateway closes the connection, however late
            async with asyncio.timeout(60 if asked.startswith(b"GET") else 0.3):
                assert await line.reader.read() == b""
        with contextlib.suppress(OSError):
            await line.say(OK[len(come) :])
        return False

    for method in ("POST", "GET"):
        gone.clear()
        async with proxied(handler, tmp_path, answered=method == "POST") as (box, watch, said):
            more = ("Content-Length: 2", "Content-Type: application/json") if method == "POST" else ()
            tls = await ask(box, said.origin, method, "/api/m", *more)
            tls.sendall(b"{}" if method == "POST" else b"")
            await until_async(lambda said=said: said.heads)  # type: ignore[misc]
            tls.close()
            gone.set()
            await until_async(lambda watch=watch: watch.exchanges)  # type: ignore[misc]
        found = watch.exchanges[0]
        assert (found.well, found.body) == ((True, {"ok": True}) if method == "POST" else (False, None)), found


async def test_an_answer_that_flows_is_not_read_on_where_nobody_is_there(tmp_path: Path) -> None:
    """A stream may have no end; the change was made, by its head."""
    gone = asyncio.Event()

    async def handler(asked: bytes, line: Line) -> bool:
        await read_body(asked, line.reader)
        await gone.wait()
        await line.say(head(content_type="text/event-stream", transfer_encoding="chunked"))
        with contextlib.suppress(OSError):
            while not line.reader.at_eof():
                await line.say(chunk(b"data: 1\n\n"))
                await asyncio.sleep(0.01)
        return False

    async with proxied(handler, tmp_path) as (box, watch, said):
        tls = await ask(box, said.origin, "POST", "/api/m", "Content-Length: 2", "Content-Type: application/json")
        tls.sendall(b"{}")
        await until_async(lambda: said.heads)
        tls.close()
        gone.set()
        await until_async(lambda: watch.exchanges)
        async with asyncio.timeout(60):
            await said.ended.wait()
    assert (watch.exchanges[0].status, watch.exchanges[0].well) == (200, True)


@pytest.mark.promise(57)
@pytest.mark.parametrize("size", [11, 1_500_000, 9_000_000])
async def test_the_json_that_undo_reads_is_known_however_slowly_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Up to a bound, beyond which it flows."""
    monkeypatch.setattr(proxy_response, "_SMALL_SECONDS", 0.05)
    body = b'{"ok":"%b"}' % (b"x" * size)

    async def handler(asked: bytes, line: Line) -> bool:
        await read_body(asked, line.reader)
        await line.say(head(content_type="application/json", transfer_encoding="chunked") + chunk(body[:5]))
        await asyncio.sleep(0.3)
        await line.say(chunk(body[5:]) + b"0\r\n\r\n")
        return True

    async with proxied(handler, tmp_path, answered=True) as (box, watch, said):
        got = await box.request("POST", f"{said.origin}/api/m", {}, BEARER)
    assert (got.status, got.body == body) == (200, True)
    (found,) = watch.exchanges
    assert found.well and found.body == (json.loads(body) if size < 8 * 2**20 else None)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_other_json_flows_when_it_comes_slowly(tmp_path: Path, method: str) -> None:
    begun = asyncio.Event()

    async def handler(asked: bytes, line: Line) -> bool:
        await line.say(head(content_type="application/json", transfer_encoding="chunked") + chunk(b'{"ok":'))
        await begun.wait()
        await line.say(chunk(b"true}") + b"0\r\n\r\n")
        return True

    async with proxied(handler, tmp_path) as (box, watch, said):
        tls = await ask(box, said.origin, method, "/api/x")
        response = HTTPResponse(tls)
        await asyncio.to_thread(response.begin)
        begun.set()
        assert await asyncio.to_thread(response.read) == b'{"ok":true}'
        await until_async(lambda: watch.exchanges)
    assert watch.exchanges[0].well


@pytest.mark.promise(16)
async def test_large_answers_that_the_program_does_not_read_are_known_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_response, "_UNREAD", 5 * 2**20)
    body = b'{"ok":"%b"}' % (b"x" * 3 * 2**20)
    answer = head(content_type="application/json", content_length=str(len(body))) + body
    async with proxied(answering(answer), tmp_path, answered=True) as (box, watch, said):
        kind = ("Content-Length: 2", "Content-Type: application/json")
        waiting = [await ask(box, said.origin, "POST", "/api/m", *kind) for _ in range(2)]
        for number, tls in enumerate(waiting):
            tls.sendall(b"{}")
            await until_async(lambda number=number: len(watch.exchanges) > number)  # type: ignore[misc]
        assert [one.size for one in watch.exchanges if one.body is not None] == [len(body)] * 2
        with pytest.raises((IncompleteRead, ConnectionError, ssl.SSLError)):
            await read(waiting[1])
        assert (await read(waiting[0]))[1] == body  # and the next one is given again
        got = await box.request("POST", f"{said.origin}/api/m", {}, BEARER)
        assert got.body == body


async def test_a_change_without_an_answer_ends_at_the_deadline(tmp_path: Path) -> None:
    async def handler(asked: bytes, line: Line) -> bool:
        await read_body(asked, line.reader)
        await line.reader.read()
        return False

    async with proxied(handler, tmp_path, seconds=2.0) as (box, watch, said):
        tls = await ask(box, said.origin, "POST", "/api/m", "Content-Length: 2", "Content-Type: application/json")
        tls.sendall(b"{}")
        await until_async(lambda: said.heads)
        tls.close()
        await until_async(lambda: watch.exchanges)
    assert (watch.exchanges[0].status, watch.exchanges[0].failed) == (
        0, "The action's time limit passed before the answer's end.",
    )  # fmt: skip
