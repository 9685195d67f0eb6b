"""The head of a request from the container: parsed strictly, before anything else looks at it.

Whatever two parsers could read in two ways is refused, never repaired: folded lines, bare CR or LF, a space before
the colon, two lengths, a length beside chunks, a transfer coding other than chunked, bytes beyond ASCII. So is what
would leave the request's own meaning: upgrades, method overrides, rewritten targets, and credentials, since a token
that isn't the vault's would turn an allowed host into a way out. Pure: bytes in, a `Head` or a `BadHead` out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from policies.errors import GoexError

MAX_HEAD = 16 * 1024
MAX_HEADERS = 64

Fault = Literal["syntax", "smuggling", "limits", "upgrade", "override", "credential", "method", "expect"]

_LINE = re.compile(rb"([A-Za-z]{1,20}) ([\x21-\x7e]{1,8192}) HTTP/1\.([01])")
# Blanks in one place alone: in three, there are hours of ways to read a line of them.
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}):([\t\x20-\x7e]*)")
_LENGTH = re.compile(r"[0-9]{1,10}")
_BARE = re.compile(rb"\r(?!\n)|(?<!\r)\n")

_SINGLE = frozenset(
    {"host", "content-length", "transfer-encoding", "content-type", "content-encoding", "expect", "connection"}
)
OVERRIDES = frozenset(
    {
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "x-original-method",
        "x-original-url",
        "x-original-host",
        "x-original-uri",
        "x-rewrite-url",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-server",
        "x-forwarded-port",
        "x-host",
        "forwarded",
    }
)
# A header that carries a credential says so in its name; a few that don't are named.
_CREDENTIAL_WORDS = re.compile(
    r"auth|token|secret|api-?_?key|cookie|passw|credential|session|signature|bearer|access-?key|security|jwt"
)
CREDENTIALS = frozenset({"x-key", "x-sid", "x-amz-date", "dpop", "x-goog-iam-authority-selector", "x-csrf", "x-xsrf"})


class BadHead(GoexError):
    """The head isn't one that passes. `fault` is its class."""

    code = "head"

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request line and its headers (names in lower case). `length` None: no body, or a chunked one."""

    method: str
    target: str
    version: Literal["1.0", "1.1"]
    headers: tuple[tuple[str, str], ...]
    length: int | None
    chunked: bool
    continues: bool  # the client waits for 100 Continue
    upgrade: str = ""  # "websocket" where that is asked for, and may be

    def get(self, name: str) -> str | None:
        """The value of a header that stands once at most."""
        return next((value for found, value in self.headers if found == name), None)


def parse_head(raw: bytes, *, upgrades: bool = False) -> Head:
    """Parse a head that ends with its empty line. With `upgrades` it may ask for a WebSocket. Raises BadHead."""
    if len(raw) > MAX_HEAD:
        raise BadHead("limits", "the head is too long")
    if b"\0" in raw:
        raise BadHead("syntax", "a NUL byte in the head")
    if _BARE.search(raw) or not raw.endswith(b"\r\n\r\n"):
        raise BadHead("smuggling", "a line of the head doesn't end with CR LF")
    first, *lines = raw[:-4].split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise BadHead("syntax", "the request line isn't one of HTTP/1.1")
    if len(lines) > MAX_HEADERS:
        raise BadHead("limits", "too many headers")
    headers = tuple(_field(line) for line in lines)
    method, target = match[1].decode("ascii"), match[2].decode("ascii")
    version: Literal["1.0", "1.1"] = "1.1" if match[3] == b"1" else "1.0"
    if method != method.upper() or method in ("TRACE", "TRACK"):
        raise BadHead("method", f"the method {method} isn't taken")
    if version == "1.0" and method != "CONNECT":
        raise BadHead("syntax", "HTTP/1.0 isn't taken")
    return _check(Head(
        method=method, target=target, version=version, headers=headers, length=None, chunked=False, continues=False,
    ), upgrades)  # fmt: skip


def _field(line: bytes) -> tuple[str, str]:
    if line[:1] in (b" ", b"\t"):
        raise BadHead("smuggling", "a folded header line")
    match = _FIELD.fullmatch(line)
    if match is None:
        name, colon, _ = line.partition(b":")
        if colon and name != name.rstrip(b" \t"):
            raise BadHead("smuggling", "a space before a header's colon")
        raise BadHead("syntax", "a header line isn't one")
    return match[1].decode("ascii").lower(), match[2].strip(b" \t").decode("ascii")


def _check(head: Head, upgrades: bool) -> Head:
    names = [name for name, _ in head.headers]
    for name in _SINGLE:
        if names.count(name) > 1:
            fault: Fault = "smuggling" if name in ("host", "content-length", "transfer-encoding") else "syntax"
            raise BadHead(fault, f"two {name} headers")
    length, coding = head.get("content-length"), head.get("transfer-encoding")
    if length is not None and coding is not None:
        raise BadHead("smuggling", "both a content-length and a transfer-encoding")
    if length is not None and not _LENGTH.fullmatch(length):
        raise BadHead("smuggling", "the content-length isn't a number")
    if coding is not None and coding.lower() != "chunked":
        raise BadHead("smuggling", "a transfer-encoding other than chunked")
    upgrade = _upgrade(head, names)
    if upgrade and not (upgrades and upgrade == "websocket"):
        raise BadHead("upgrade", "upgrades and WebSockets aren't passed on")
    if upgrade and (length not in (None, "0") or coding is not None):
        raise BadHead("smuggling", "an upgrade with a body")
    if head.get("content-encoding") not in (None, "identity"):
        raise BadHead("syntax", "a compressed request body isn't taken")
    if head.get("expect") not in (None, "100-continue"):
        raise BadHead("expect", "an expectation other than 100-continue")
    return Head(
        method=head.method,
        target=head.target,
        version=head.version,
        headers=head.headers,
        length=None if length is None else int(length),
        chunked=coding is not None,
        continues=head.get("expect") is not None,
        upgrade=upgrade,
    )


def _upgrade(head: Head, names: list[str]) -> str:
    """The one protocol that the head asks to change to, "other" where that isn't clear; "" for none."""
    tokens = [token.strip() for token in (head.get("connection") or "").lower().split(",")]
    asked = "upgrade" in tokens or "upgrade" in (head.get("connection") or "").lower()
    if "http2-settings" in names or names.count("upgrade") > 1 or asked != ("upgrade" in names):
        return "other"
    if not asked:
        return ""
    clear = "upgrade" in tokens and set(tokens) <= {"upgrade", "keep-alive"} and head.method == "GET"
    return "websocket" if clear and (head.get("upgrade") or "").lower() == "websocket" else "other"


def check_overrides(head: Head) -> None:
    """Raise BadHead for a header that would give the request another method, host or path."""
    for name, _ in head.headers:
        if name in OVERRIDES:
            raise BadHead("override", f"the header {name} would change what the request means")


def check_credentials(head: Head, *names: str) -> None:
    """Raise BadHead for a header that carries a credential, or is one of `names`: only the vault's are sent."""
    forbidden = {name.lower() for name in names} | CREDENTIALS
    for name, _ in head.headers:
        if name in forbidden or _CREDENTIAL_WORDS.search(name):
            raise BadHead("credential", f"a credential that isn't the vault's, in the header {name}")
