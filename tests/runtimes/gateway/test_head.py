"""Raw heads: a table of bytes, each with the class in which it must fail ("" for those that pass)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes.gateway.head import BadHead, check_credentials, check_overrides, parse_head

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "vectors" / "gateway_heads.json").read_text())


def judge(raw: bytes) -> str:
    try:
        head = parse_head(raw)
        check_overrides(head)
        check_credentials(head, "X-Planned")
    except BadHead as error:
        return error.fault
    return ""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, Any]) -> None:
    assert judge(vector["raw"].encode("latin-1")) == vector["fault"]


def test_what_a_head_says() -> None:
    head = parse_head(
        b"POST /a?b HTTP/1.1\r\nHost:  h \r\nX-A: 1\r\nContent-Length: 07\r\nExpect: 100-continue\r\n\r\n"
    )
    assert (head.method, head.target, head.length, head.chunked, head.continues) == ("POST", "/a?b", 7, False, True)
    assert head.headers[:2] == (("host", "h"), ("x-a", "1"))
    assert head.get("missing") is None


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_a_refusal(junk: bytes) -> None:
    judge(junk)
    judge(junk + b"\r\n\r\n")
    judge(b"GET / HTTP/1.1\r\n" + junk + b"\r\n\r\n")


@given(st.text("abc:;,= \t\r\n\0", max_size=30))
def test_what_passes_is_on_one_line(value: str) -> None:
    raw = f"GET / HTTP/1.1\r\nX-A: {value}\r\n\r\n".encode()
    if judge(raw) == "":
        for name, found in parse_head(raw).headers:
            assert not set("\r\n\0") & set(name + found)
