"""A secret where an answer has room beside its headers and its body: before it, behind it, and in its status line. The
control is what the server itself sends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.runtimes.gateway.proxied import answering, proxied
from tests.runtimes.gateway.support import CANARY
from tests.runtimes.gateway.test_proxy import OK, ask

SECRET = CANARY.encode()
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
ANSWERS = {
    "early_hints": b"HTTP/1.1 103 Early Hints\r\nlink: <https://e.example/" + SECRET + b">\r\n\r\n" + OK,
    "many_before_it": b"HTTP/1.1 102 Processing\r\nx-request-id: " + SECRET + b"\r\n\r\n" + OK,
    "status_line": OK.replace(b"200 OK", b"200 " + SECRET, 1),
    "chunk_extension": CHUNKED + b"2;token=" + SECRET + b"\r\nhi\r\n0\r\n\r\n",
    "trailer": CHUNKED + b"2\r\nhi\r\n0\r\nx-request-id: " + SECRET + b"\r\n\r\n",
    "behind_the_end": OK + b"\r\n" + SECRET,
}


async def got(answer: bytes, folder: Path) -> bytes:
    """All bytes that code gets before its next answer."""
    async with proxied(answering(answer), folder) as (box, _, said):
        tls = await ask(box, said.origin, "GET", "/api/x")
        found = b""
        while b'{"ok":true}' not in found and not found.endswith(b"0\r\n\r\n"):
            piece = await asyncio.to_thread(tls.recv, 65536)
            assert piece, found
            found += piece
        tls.sendall(b"GET /nowhere HTTP/1.1\r\nHost: nowhere\r\n\r\n")  # refused here: what follows is all that is left
        while b" 40" not in found.rpartition(b"HTTP/1.1")[2][:8]:
            piece = await asyncio.to_thread(tls.recv, 65536)
            if not piece:
                break
            found += piece
        return found


@pytest.mark.promise(54)
@pytest.mark.parametrize("name", ANSWERS)
async def test_no_echo_comes_beside_it(tmp_path: Path, name: str) -> None:
    found = await got(ANSWERS[name], tmp_path)
    assert found.startswith(b"HTTP/1.1 200") and SECRET not in found


@pytest.mark.parametrize("name", ANSWERS)
def test_control(name: str) -> None:
    assert SECRET in ANSWERS[name]
