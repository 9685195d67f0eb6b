"""Bodies are cut where their framing says, wherever their bytes are; what two parsers could read in two ways isn't."""

from __future__ import annotations

import gzip
import zlib
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtimes.gateway.http_framing import Body, BrokenBody, Chunked, Unpacking

cuts = st.lists(st.integers(1, 40), max_size=60)


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    found, at = [], 0
    for size in sizes:
        found.append(data[at : at + size])
        at += size
    return [*found, data[at:]]


def taken(body: Body, data: bytes, sizes: list[int]) -> tuple[bytes, bytes]:
    out, rest = b"", b""
    for piece in pieces(data, sizes):
        if body.done:
            rest += piece
        elif piece:
            out += body.take(piece)
            rest += body.rest if body.done else b""
    return out, rest


@settings(max_examples=100)
@given(chunks=st.lists(st.binary(min_size=1, max_size=50), max_size=6), sizes=cuts, after=st.binary(max_size=10))
def test_chunks_wherever_they_are_cut(chunks: list[bytes], sizes: list[int], after: bytes) -> None:
    written = b"".join(b"%X\r\n%b\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"
    body = Chunked(strict=True)
    assert taken(body, written + after, sizes) == (b"".join(chunks), after)
    assert body.done


@settings(max_examples=50)
@given(content=st.binary(min_size=1, max_size=100), sizes=cuts, after=st.binary(max_size=10))
def test_a_length_wherever_it_is_cut(content: bytes, sizes: list[int], after: bytes) -> None:
    body = Body(len(content))
    assert taken(body, content + after, sizes) == (content, after)


def test_a_server_s_extensions_and_trailers_are_dropped() -> None:
    body = Chunked(strict=False)
    assert body.take(b'5 ;a="b"\r\nhello\r\n0\r\nX-Check: 1\r\nY: 2\r\n\r\nrest') == b"hello"
    assert (body.done, body.rest) == (True, b"rest")


@pytest.mark.parametrize(
    "written",
    [
        b"5;a\r\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhelloo\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"-1\r\nhello\r\n0\r\n\r\n",
        b"\r\nhello",
        b"5_0\r\nhello",
        b"ffffffffffffffffffff\r\n",
        b"5" * 5000,
    ],
)
def test_chunks_that_could_be_read_in_two_ways(written: bytes) -> None:
    with pytest.raises(BrokenBody):
        Chunked(strict=True).take(written)


@pytest.mark.parametrize("written", [b"5\nhello\r\n0\r\n\r\n", b"5\r\nhelloo\r\n", b"zz\r\n", b"0\r\nno colon\r\n\r\n"])
def test_a_server_s_broken_chunks(written: bytes) -> None:
    with pytest.raises(BrokenBody):
        Chunked(strict=False).take(written)


@pytest.mark.parametrize(("line", "ends"), [(b"1", False), (b"1;" + b"a" * 10, False), (b"1;" + b"a" * 100, True)])
def test_far_more_between_the_chunks_than_in_them(line: bytes, ends: bool) -> None:
    body = Chunked(strict=False)
    with pytest.raises(BrokenBody, match="between") if ends else nullcontext():
        for _ in range(20_000):
            body.take((line + b"\r\nx\r\n") * 10)


def test_small_chunks_are_taken_in_several_turns() -> None:
    body, data = Chunked(strict=False), b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\nrest"
    content, turns = b"", 0
    while not body.done:
        content, data, turns = content + body.take(data), body.rest, turns + 1
    assert (content, data) == (b"x" * 10_000, b"rest")
    assert turns > 10
    whole = Chunked(strict=False)  # the control
    assert whole.take(b"2710\r\n" + b"x" * 10_000 + b"\r\n0\r\n\r\nrest") == content
    assert whole.rest == b"rest"


def test_an_end_within_a_body() -> None:
    for body in (Body(5), Chunked(strict=False)):
        body.take(b"1\r\n")
        with pytest.raises(BrokenBody):
            body.end()
    body = Body(None)
    assert body.take(b"abc") == b"abc"
    body.end()


def unpacked(codings: list[str], data: bytes, sizes: list[int]) -> bytes:
    one = Unpacking(codings)
    out = b"".join(part for piece in pieces(data, sizes) for part in one.pieces(piece))
    one.end()
    return out


@settings(max_examples=50)
@given(content=st.binary(max_size=2000), sizes=cuts)
def test_compressed_bodies_wherever_they_are_cut(content: bytes, sizes: list[int]) -> None:
    raw = zlib.compressobj(wbits=-15)
    assert unpacked(["gzip"], gzip.compress(content), sizes) == content
    assert unpacked(["gzip"], gzip.compress(content[:9]) + gzip.compress(content[9:]), sizes) == content
    assert unpacked(["deflate"], zlib.compress(content), sizes) == content
    assert unpacked(["deflate"], raw.compress(content) + raw.flush(), sizes) == content
    assert unpacked(["identity"], content, sizes) == content
    assert unpacked([], content, sizes) == content


def test_a_bomb_is_not_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([packer.compress(bytes(2**20)) for _ in range(100)]) + packer.flush()
    one = Unpacking(["gzip"])
    size = 0
    with pytest.raises(BrokenBody, match="250 times"):
        for piece in one.pieces(bomb):
            size += len(piece)
            assert len(piece) <= 2**18
    assert size < 34 * 2**20


@pytest.mark.parametrize("codings", [["br"], ["zstd"], ["gzip", "gzip"], ["compress"]])
def test_codings_that_were_not_asked_for(codings: list[str]) -> None:
    with pytest.raises(BrokenBody):
        Unpacking(codings)


PACKED = gzip.compress(b"abc", mtime=0)  # a test's name may not hang on the time


@pytest.mark.parametrize("data", [b"no gzip at all", PACKED[:-3], PACKED + b"junk"])
def test_broken_compression(data: bytes) -> None:
    with pytest.raises(BrokenBody):
        unpacked(["gzip"], data, [])
