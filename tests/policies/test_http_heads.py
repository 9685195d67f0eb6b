"""Heads that take hours where a pattern can read a run of blanks in many ways. Bounded by CPU time, on no clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
H11 = """
import importlib, sys
importlib.import_module(sys.argv[1])
import h11

def read(text):
    reader = h11.Connection(h11.SERVER, 2**21)
    reader.receive_data(text)
    try:
        while reader.next_event() not in (h11.NEED_DATA, h11.PAUSED):
            pass
    except h11.RemoteProtocolError:
        return "refused"
    return "read"

BLANKS = b" " * 2**20
HEAD, CHUNKED = b"GET / HTTP/1.1\\r\\nHost:  a \\r\\n", b"Transfer-Encoding:chunked\\r\\n\\r\\n"
print(read(HEAD + b"a:" + BLANKS + b"\\x0b\\r\\n\\r\\n"))
print(read(HEAD + CHUNKED + b"1;" + BLANKS + b"\\n\\r\\n"))
print(read(HEAD + b"a:\\r\\n" * 256 + b"\\r\\n"))
print(read(HEAD + CHUNKED + b"0\\r\\n" + b"a:\\r\\n" * 257 + b"\\r\\n"))
print(read(HEAD + b"a:" + BLANKS + b"b\\r\\na: b" + BLANKS + b"\\r\\na:\\r\\n\\r\\n"))
print(read(HEAD + CHUNKED + b"1;a=b \\r\\nx\\r\\n1 \\r\\nx\\r\\n0\\r\\n" + b"a:\\r\\n" * 256 + b"\\r\\n"))
"""
PARSED = """
from runtimes.gateway.head import BadHead, parse_head
for last in (b"b", b"\\x01"):
    try:
        parse_head(b"GET / HTTP/1.1\\r\\nHost: a\\r\\na:" + b" " * 16_000 + last + b"\\r\\n\\r\\n")
        print("read")
    except BadHead as error:
        print(error.fault)
"""


def said(script: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", LIMITED + script, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


@pytest.mark.parametrize("module", ["goex.http_connections", "runtimes.gateway.http_client", "vault.oauth.loopback"])
def test_whoever_reads_heads_with_h11_reads_them_in_one_way(module: str) -> None:
    assert said(H11, module) == ["refused"] * 4 + ["read"] * 2


def test_the_gateway_reads_a_programs_head_in_one_way() -> None:
    assert said(PARSED) == ["read", "syntax"]
