"""A WebSocket that a rule allows: whole messages both ways, no echo, no placeholder; else refused."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtimes.gateway.websocket import (
    CLOSE,
    MAX_MESSAGE,
    BrokenSocket,
    Message,
    Messages,
    accepts,
    closing,
    written,
)
from tests.runtimes.gateway.proxied import MARK, Line, proxied
from tests.runtimes.gateway.support import CANARY, Box
from tests.runtimes.gateway.test_proxy import ask, read
from tests.support.waiting import until_async

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
OPENING = ("Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13")


def text(words: str | bytes) -> Message:
    return Message(1, words if isinstance(words, bytes) else words.encode())


@settings(max_examples=60)
@given(payloads=st.lists(st.binary(max_size=300), max_size=5), masked=st.booleans(), sizes=st.lists(st.integers(1, 90)))
def test_messages_wherever_they_are_cut(payloads: list[bytes], masked: bool, sizes: list[int]) -> None:
    data = b"".join(written(Message(2, payload), masked=masked) for payload in payloads)
    reading, got, at = Messages(masked=masked), [], 0
    for size in [*sizes, len(data)]:
        got += list(reading.feed(data[at : at + size]))
        at += size
    assert got == [Message(2, payload) for payload in payloads]


def test_an_accept_is_the_standard_s_own_example() -> None:
    assert accepts(KEY) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def test_fragments_are_put_together_and_controls_come_between() -> None:
    data = b"\x01\x02he" + b"\x89\x01!" + b"\x00\x01l" + b"\x80\x02lo"
    assert list(Messages(masked=False).feed(data)) == [Message(9, b"!"), text("hello")]
    many = b"\x01\x01a" + b"\x00\x01a" * 4094 + b"\x80\x01a"
    assert list(Messages(masked=False).feed(many * 2)) == [text("a" * 4096)] * 2


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1\x01a",  # a reserved bit
        b"\x83\x01a",  # an opcode that there isn't
        b"\x81\x81aaaaa",  # masked by a server
        b"\x80\x01a",  # goes on with nothing
        b"\x01\x01a\x81\x01b",  # begins within another
        b"\x09\x01a",  # a control in fragments
        b"\x89\x7e\x00\xff" + b"a" * 255,
        b"\x82\x7f" + (MAX_MESSAGE + 1).to_bytes(8, "big"),
        b"\x02\x7f" + MAX_MESSAGE.to_bytes(8, "big") + bytes(MAX_MESSAGE) + b"\x80\x01a",
        b"\x02\x00" + b"\x00\x00" * 4096,
    ],
    ids=[
        "reserved",
        "opcode",
        "masked",
        "nothing",
        "within",
        "fragments",
        "long control",
        "long",
        "long in parts",
        "many parts",
    ],
)
def test_frames_that_are_not_passed_on(data: bytes) -> None:
    with pytest.raises(BrokenSocket):
        list(Messages(masked=False).feed(data))


async def _agree(head: bytes, line: Line, *more: str) -> None:
    fields = dict(one.lower().split(b": ", 1) for one in head.split(b"\r\n")[1:-2])
    assert (fields[b"upgrade"], fields[b"connection"]) == (b"websocket", b"upgrade")
    key = next(one for one in head.split(b"\r\n") if one.lower().startswith(b"sec-websocket-key")).split(b": ")[1]
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Accept: {accepts(key.decode())}", "Set-Cookie: a=b", *more, "", ""]  # fmt: skip
    await line.say("\r\n".join(lines).encode())


async def _hear(line: Line, reading: Messages) -> list[Message]:
    while data := await line.reader.read(65536):
        if found := list(reading.feed(data)):
            return found
    return []


async def echoing(head: bytes, line: Line) -> bool:
    await _agree(head, line)
    reading = Messages(masked=True)
    await line.say(written(text(json.dumps({"hello": CANARY})), masked=False))
    while found := await _hear(line, reading):
        for message in found:
            await line.say(written(message, masked=False))
            if message.opcode == CLOSE:
                return False
    return False


class Socket:
    """The code's end."""

    def __init__(self, tls: ssl.SSLSocket) -> None:
        self.tls = tls
        self._reading = Messages(masked=False)
        self._got: list[Message] = []

    async def say(self, message: Message) -> None:
        await asyncio.to_thread(self.tls.sendall, written(message, masked=True))

    async def hear(self) -> Message | None:
        while not self._got:
            data = await asyncio.to_thread(self.tls.recv, 65536)
            if not data:
                return None
            self._got += self._reading.feed(data)
        return self._got.pop(0)


async def begun(box: Box, origin: object) -> Socket:
    tls = await ask(box, origin, "GET", "/api/live", *OPENING)  # type: ignore[arg-type]
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await asyncio.to_thread(tls.recv, 1)
    assert head.startswith(b"HTTP/1.1 101")
    assert accepts(KEY).encode() in head
    assert b"ookie" not in head
    return Socket(tls)


async def test_messages_both_ways_and_no_echo_of_the_secret(tmp_path: Path) -> None:
    async with proxied(echoing, tmp_path, websocket=True) as (box, watch, said):
        socket = await begun(box, said.origin)
        first = await socket.hear()
        assert first is not None
        assert json.loads(first.payload) == {"hello": "[redacted]"}
        large = os.urandom(200_000)
        for message in (text("hi"), Message(2, large), Message(9, b"ping")):
            await socket.say(message)
            assert await socket.hear() == message
        await socket.say(closing(1000))
        assert await socket.hear() == closing(1000)
        assert await socket.hear() is None
        await until_async(lambda: watch.exchanges)
    assert f"Bearer {CANARY}".encode() in said.heads[0]
    assert (watch.exchanges[0].status, watch.exchanges[0].well, watch.refusals) == (101, True, [])


async def test_a_placeholder_in_a_message_never_leaves(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def handler(head: bytes, line: Line) -> bool:
        await _agree(head, line)
        while data := await line.reader.read(65536):
            heard.append(data)
        return False

    async with proxied(handler, tmp_path, websocket=True) as (box, watch, said):
        socket = await begun(box, said.origin)
        mark = MARK.encode()
        await asyncio.to_thread(
            socket.tls.sendall,
            b"\x01\x8a" + bytes(4) + mark[:10] + b"\x80" + bytes([0x80 | len(mark) - 10]) + bytes(4) + mark[10:],
        )
        assert await socket.hear() is None
        await until_async(lambda: watch.exchanges and watch.refusals)
    assert (watch.refusals[0].kind, heard) == ("placeholder", [])


@pytest.mark.parametrize("data", [b"\x81\x02hi", b"\xc1\x80aaaa"], ids=["unmasked", "reserved"])
async def test_code_that_breaks_the_protocol(tmp_path: Path, data: bytes) -> None:
    async with proxied(echoing, tmp_path, websocket=True) as (box, watch, said):
        socket = await begun(box, said.origin)
        await socket.hear()
        await asyncio.to_thread(socket.tls.sendall, data)
        assert await socket.hear() == closing(1002)
        await until_async(lambda: watch.refusals)
        async with asyncio.timeout(60):
            await said.ended.wait()


@pytest.mark.parametrize(
    "more", ["Sec-WebSocket-Extensions: permessage-deflate", "Sec-WebSocket-Protocol: other", "Sec-WebSocket-Accept: x"]
)
async def test_a_server_that_agrees_to_something_else(tmp_path: Path, more: str) -> None:
    async def handler(head: bytes, line: Line) -> bool:
        if "Accept" in more:
            await line.say(f"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{more}\r\n\r\n".encode())
        else:
            await _agree(head, line, more)
        return False

    async with proxied(handler, tmp_path, websocket=True) as (box, watch, said):
        response, _ = await read(await ask(box, said.origin, "GET", "/api/live", *OPENING))
        assert response.status == 502
        await until_async(lambda: watch.exchanges)
    assert not watch.exchanges[0].well


async def test_a_server_that_does_not_agree_answers_as_ever(tmp_path: Path) -> None:
    async def handler(head: bytes, line: Line) -> bool:
        await line.say(b"HTTP/1.1 401 No\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nno")
        return False

    async with proxied(handler, tmp_path, websocket=True) as (box, _, said):
        response, body = await read(await ask(box, said.origin, "GET", "/api/live", *OPENING))
        assert (response.status, body) == (401, b"no")


async def test_without_a_rule_for_it_a_websocket_is_refused_with_its_reason(tmp_path: Path) -> None:
    async with proxied(echoing, tmp_path) as (box, watch, said):
        response, body = await read(await ask(box, said.origin, "GET", "/api/live", *OPENING))
        assert response.status == 403
        assert "WebSocket" in json.loads(body)["message"]
        assert (watch.refusals[0].kind, said.heads) == ("upgrade", [])
