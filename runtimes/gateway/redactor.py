"""Echoes of a secret, taken out of what a service answers.

Found are: the secret itself, with any of its characters percent-encoded (also several times over), JSON-, hex- or
HTML-escaped; base64 in all three alignments, both alphabets, wrapped or not; hex in either case; UTF-16. What is
found goes whole: partial base64 characters at the borders too. A service that wants to pass the secret on in a
cipher of its own can't be stopped here; it was given the secret, after all.

The answer is an attacker's, so every pattern takes time in proportion to its length: what may repeat is bounded, or
begins nowhere but at the head of its run, and never gives back.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Generator, Iterable
from typing import Any

from policies.jsonvalue import JsonValue
from vault.secret import Secret

_MASKS = (b"[redacted]", b"******", b"~~", b"")
_ROUNDS = 8
SHORTEST_ENCODED = 3  # bytes; of less than that, base64 and hex say nothing

JSON_SHORT = {0x08: b"b", 0x0C: b"f", 0x0A: b"n", 0x0D: b"r", 0x09: b"t", 0x22: b'"', 0x2F: b"/"}
HTML_NAMES = {0x26: b"amp", 0x3C: b"lt", 0x3E: b"gt", 0x22: b"quot", 0x27: b"apos"}
WRAP = rb"(?:[\r\n\t ]|\\[rnt]){0,24}+"  # a line's end and its indentation
HEAD = rb"(?<!\\)"  # of a run of backslashes
RUN = rb"\\++"
SHORT_RUN = rb"\\{1,64}+"  # after a backslash of the secret, which any place in a run may be
BASE64_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="


class Redactor:
    """Takes every encoding of some secrets out of bytes. Holds the secrets: drop it with the lease.

    `may_hold` is a quick look that says no only where there is no echo; with it, the patterns, which take long to
    build, are built when it first says yes.
    """

    def __init__(self, secrets: Iterable[Secret | bytes], may_hold: Callable[[bytes], bool] | None = None) -> None:
        values = {one.reveal() if isinstance(one, Secret) else bytes(one) for one in secrets}
        self._values = sorted(values - {b""}, key=len, reverse=True)
        self._patterns: list[tuple[re.Pattern[bytes], bool]] | None = None
        self._may_hold = may_hold
        self.dropped = False
        if may_hold is None:
            self._built()
        self._masks = [mask for mask in _MASKS if not self.spans(mask)]

    def clean(self, data: bytes) -> bytes:
        """`data` without any echo. What is returned holds none, whatever the masks and the rest make together."""
        for mask in self._masks:
            found = data
            for _ in range(_ROUNDS):
                spans = self.spans(found)
                if not spans:
                    return b"" if self.dropped else found
                found = _splice(found, spans, mask)
        return b""

    def drop(self) -> None:
        """Let go of the secrets, also where a thread is at work with them: what it makes from now on is empty."""
        self.dropped = True
        self._values, self._patterns = [], []

    def finds(self, data: bytes) -> bool:
        """Whether `data` holds an echo."""
        return self._may(data) and any(pattern.search(data) for pattern, _ in self._built())

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        redacted = self.clean(data)
        return text if redacted == data else redacted.decode("utf-8", "replace")

    def value(self, value: JsonValue) -> JsonValue:
        """A parsed JSON value without any echo in its strings and keys, however they were written before."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(child) for child in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(child) for key, child in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = json.dumps(value)
            return value if self.text(written) == written else "[redacted]"
        return value

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for pattern, grows in self._built() if self._may(data) else ():
            for match in pattern.finditer(data):
                start, end = match.span()
                if grows:
                    start, end = _grow(data, start, end)
                spans.append((start, end))
        return spans

    def _may(self, data: bytes) -> bool:
        return self._may_hold is None or self._may_hold(data)

    def _built(self) -> list[tuple[re.Pattern[bytes], bool]]:
        if self._patterns is None:
            made = [pattern for value in self._values for pattern in _patterns(value)]
            self._patterns = [] if self.dropped else made
        return self._patterns


class PendingRedactor:
    """A redactor whose patterns take a while to build: in a thread, once, from when it is foreseen or first needed.

    To be awaited, by as many as like; one of them that is cancelled takes nothing from the others.
    """

    def __init__(self, make: Callable[[list[bytes]], Redactor], secrets: list[bytes]) -> None:
        self._make: Callable[[list[bytes]], Redactor] | None = make
        self._secrets = secrets
        self._future: asyncio.Future[Redactor] | None = None

    def begin(self) -> None:
        """Start making it. Idempotent."""
        if self._future is None and self._make is not None:
            secrets, self._secrets = self._secrets, []
            self._future = asyncio.ensure_future(asyncio.to_thread(self._make, secrets))
            self._future.add_done_callback(lambda future: future.cancelled() or future.exception())

    def __await__(self) -> Generator[Any, None, Redactor]:
        self.begin()
        if self._future is None:
            raise asyncio.CancelledError("the action has ended")
        return asyncio.shield(self._future).__await__()

    def drop(self) -> None:
        """Make it no more, and have it forget what it holds, as soon as it is made."""
        self._make, self._secrets = None, []
        if self._future is not None:
            self._future.add_done_callback(_drop)


def _drop(made: asyncio.Future[Redactor]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().drop()


def _splice(data: bytes, spans: list[tuple[int, int]], mask: bytes) -> bytes:
    out, position = [], 0
    for start, end in sorted(spans):
        if start >= position:
            out += [data[position:start], mask]
        position = max(position, end)
    out.append(data[position:])
    return b"".join(out)


def _grow(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Take in the base64 characters at the borders that hold a part of the secret's bits."""
    if start and data[start - 1] in BASE64_CHARS:
        start -= 1
    while end < len(data) and data[end : end + 1] == b"=":
        end += 1
    if end < len(data) and data[end] in BASE64_CHARS:
        end += 1
    while end < len(data) and data[end : end + 1] == b"=":
        end += 1
    return start, end


def _patterns(secret: bytes) -> list[tuple[re.Pattern[bytes], bool]]:
    """Patterns for one secret, and whether a match takes in its neighbours."""
    found = [(re.compile(re.escape(secret)), False), (re.compile(_escaped(secret)), False)]
    try:
        text = secret.decode("utf-8")
    except UnicodeDecodeError:
        text = secret.decode("latin-1")
    for encoding in ("utf-16-le", "utf-16-be"):
        found.append((re.compile(re.escape(text.encode(encoding))), False))
    whole = json.dumps(text)[1:-1].encode("ascii")
    found.append((re.compile(re.escape(whole)), False))
    if len(secret) >= SHORTEST_ENCODED:
        found.append((re.compile(rb"(?:[ :,\-]|\\x|%|0x)*".join(hex_of(byte) for byte in secret)), False))
        found += [(re.compile(core), True) for core in _base64_cores(secret)]
    return found


def _base64_cores(secret: bytes) -> list[bytes]:
    """The characters that the secret alone decides, for each place at which it can begin within three bytes."""
    cores = (base64_core(secret, shift) for shift in range(3))
    return [WRAP.join(base64_char(byte) for byte in core) for core in cores if core]


def base64_core(secret: bytes, shift: int) -> bytes:
    """The characters of its base64 that `secret` alone decides, where `shift` bytes stand before it; b"" for so few
    that they say nothing."""
    written = base64.b64encode(b"\0" * shift + secret)
    core = written[(shift * 8 + 5) // 6 : (shift + len(secret)) * 8 // 6]
    return core if len(core) >= 3 else b""


def base64_char(byte: int) -> bytes:
    if byte == 0x2B:
        return rb"(?:[+\-]|%(?:25)*2[bB]|\\{1,32}+u002[bB])"
    if byte == 0x2F:
        return rb"(?:\\{0,32}+/|_|%(?:25)*2[fF]|\\{1,32}+u002[fF])"
    return bytes([byte])


def _escaped(secret: bytes) -> bytes:
    """The secret with each character plain or escaped, independently of the others."""
    units = units_of(secret)
    return b"".join(unit(raw, point, escape) for (raw, point), escape in zip(units, escapes(units), strict=True))


def escapes(units: list[tuple[bytes, int]]) -> list[bytes]:
    """What finds the backslashes before each character's number or letter, in time in proportion to a text's length."""
    leading = next((place for place, (_, point) in enumerate(units) if point != 0x5C), len(units))
    return [RUN if place > leading else SHORT_RUN if place else HEAD + RUN for place in range(len(units))]


def units_of(secret: bytes) -> list[tuple[bytes, int]]:
    """Its characters, as bytes and code point; of what isn't UTF-8, its bytes."""
    try:
        return [(char.encode("utf-8"), ord(char)) for char in secret.decode("utf-8")]
    except UnicodeDecodeError:
        return [(bytes([byte]), byte) for byte in secret]


def unit(raw: bytes, point: int, escape: bytes) -> bytes:
    """One character in each of its spellings. `escape` finds the backslashes that one begins with."""
    ways = [b"".join(rb"(?:%(?:25)*" + hex_of(byte) + b"|" + re.escape(bytes([byte])) + b")" for byte in raw)]
    halves = [b"u" + b"".join(hex_of(byte) for byte in half) for half in _utf16(point)]
    ways.append(escape + RUN.join(halves))
    if point < 0x100:
        ways.append(escape + b"x" + hex_of(point))
    if point in JSON_SHORT:
        ways.append(escape + re.escape(JSON_SHORT[point]))
    if point == 0x5C:
        return rb"(?>" + escape + rb"u005[cC]|\\\\|\\|%(?:25)*5[cC]|&#0*92;?|&#[xX]0*5[cC];?)"
    if point == 0x20:
        ways.append(rb"\+")
    ways.append(rb"&#(?:0*%d|[xX]0*%s);?" % (point, b"".join(_any_case(char) for char in b"%x" % point)))
    if point in HTML_NAMES:
        ways.append(b"&" + HTML_NAMES[point] + b";")
    return b"(?:" + b"|".join(ways) + b")"


def _utf16(point: int) -> list[bytes]:
    data = chr(point).encode("utf-16-be", "surrogatepass")
    return [data[index : index + 2] for index in range(0, len(data), 2)]


def hex_of(byte: int) -> bytes:
    return b"".join(_any_case(char) for char in b"%02x" % byte)


def _any_case(char: int) -> bytes:
    one = bytes([char])
    return b"[" + one + one.upper() + b"]" if one.isalpha() else one


def forget_patterns() -> None:
    """Empty the pattern cache of `re`, whose keys spell out secrets. For when a lease ends."""
    re.purge()
