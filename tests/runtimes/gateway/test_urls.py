"""Targets: what is read in one way only passes, and what is written reads back as the same."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes.gateway.urls import (
    BadTarget,
    authority,
    check_segment,
    decode_path,
    decode_query,
    encode_path,
    encode_query,
)

segments = st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=6)


@given(segments)
def test_a_written_path_reads_back(parts: list[str]) -> None:
    try:
        for part in parts:
            check_segment(part)
    except (BadTarget, UnicodeError):
        return
    try:
        path = encode_path(parts)
    except UnicodeError:  # lone surrogates can't be written at all
        return
    assert decode_path(path) == tuple(parts)
    assert path.count("/") == len(parts)
    assert path.isascii()
    assert not set("\r\n\0\\;?# ") & set(path)
    assert ".." not in path.split("/")
    assert ".." not in unquote(path).replace("\\", "/").split("/")


@given(st.lists(st.tuples(st.text(min_size=1, max_size=9), st.text(max_size=20)), max_size=6))
def test_a_written_query_reads_back(pairs: list[tuple[str, str]]) -> None:
    try:
        query = encode_query(pairs)
    except UnicodeError:
        return
    assert decode_query(query) == tuple(sorted(pairs))


@pytest.mark.parametrize(
    "path",
    ["", "a", "//a", "/a//b", "/./a", "/a/..", "/a/%2e%2E/b", "/%2e", "/a%2f..%2fb", "/a%5c..%5cb", "/a\\b", "/a;b",
     "/%", "/%4", "/%zz", "/%ff", "/%c0%ae", "/%00", "/%0d%0a", "/a b", "/é", "/a#b", "/a\tb", "/\x7f", "/%7f", "/a|b",
     "/..%20/b", "/a/%20..", "/.%20", "/.%E2%80%8B.", "/..%E3%80%80/b", "/a%2f..%20",
     "/..%C2%85", "/..%E2%80%A8", "/..%EF%B8%8F", "/%E2%A0%80..", "/..%E3%85%A4", "/%E2%80%A5", "/%EF%BC%8E%EF%BC%8E/b",
     "/..%EF%BC%8Fb", "/%252e%252e", "/a%252f%252E%252e", "/%25252e.", "/%EF%BC%852e.", "/..%3Bx", "/a%2f.%3b/b",
     "/..%253Bx"],
)  # fmt: skip
def test_paths_that_can_be_read_in_two_ways(path: str) -> None:
    with pytest.raises(BadTarget):
        decode_path(path)


def test_paths_that_pass() -> None:
    assert decode_path("/") == ()
    assert decode_path("/a/") == ("a", "")
    assert decode_path("/a%2Fb/%C3%A9/!room:h@x") == ("a/b", "é", "!room:h@x")
    assert decode_path("/...") == ("...",)
    assert decode_path("/v1..v2%3Bx/50%25/%252e.txt") == ("v1..v2;x", "50%", "%2e.txt")


@pytest.mark.parametrize(
    "query", ["=b", "a=%", "a=%zz", "a=%ff", "&a=b", "a=b&", "a=b&&c=d", "a=b;c", "a= b", "a=\x00", "é=1"]
)
def test_bad_queries(query: str) -> None:
    with pytest.raises(BadTarget):
        decode_query(query)


@pytest.mark.parametrize(
    "text",
    ["", "h", "h:", "h:0", "h:65536", "h:1:2", "u@h:443", "u:p@h:443", "[::1]", "::1:443", "h.:443", "h h:443",
     "h/:443", "2130706433:443", "0x7f.1:443", "127.1:443", "[::0001]:443", "[::ffff:127.0.0.1%25lo]:443",
     "h#:443", "h\\x:443",
     "é:443", "-:x", "h:４４３"],
)  # fmt: skip
def test_bad_authorities(text: str) -> None:
    with pytest.raises(BadTarget):
        authority(text)


def test_good_authorities() -> None:
    assert authority("API.Example:443") == ("api.example", 443)
    assert authority("[::1]:8443") == ("::1", 8443)
    assert authority("h", 80) == ("h", 80)
