"""A quick look at bytes: can there be an echo of a secret in them at all?

Every echo that `redactor` finds spells each character of the secret, one after the other, so it spells the few in the
middle of it. Those are looked for, in all spellings at once and with anything between them that a spelling may put
there, by a matcher that takes some gigabytes a second. What it finds may be no echo; what it doesn't find is none.

Where the matcher can't be loaded (there are packages of it for x86-64 and ARM), everything may hold an echo: slower,
and as safe.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from runtimes.gateway.redactor import HTML_NAMES, JSON_SHORT, SHORTEST_ENCODED, base64_core, units_of

_SPELLED = 5  # characters
_BASE64 = 6
LOOKED_FOR = 24  # at most so many bytes of a secret, or characters of its base64, are looked for

# Whatever may stand between two characters: the beginnings of escapes, the separators of hex, zeros of UTF-16.
_BETWEEN = rb"[%\\&#uUxX0;25 :,\-\x00]*"
Bytes = bytes | bytearray | memoryview

_WRAP = rb"(?:[\r\n\t ]|\\[rnt])*"


class Matcher:
    """Whether any of some expressions is found in bytes. `secret`: they spell one; else what they compile to is kept,
    since compiling takes longer than most actions."""

    def __init__(self, expressions: Iterable[bytes], *, secret: bool = True) -> None:
        wanted = tuple(sorted(set(expressions)))
        self._database = _made(wanted, _compile if secret else _compile_once) if wanted else None
        self.works = not wanted or self._database is not None
        self._found = False
        self._lock = threading.Lock()  # what the matcher works in is one search's at a time

    def finds(self, data: Bytes) -> bool:
        """Where the matcher isn't there (not `works`), always."""
        if self._database is None:
            return not self.works
        database, scratch = self._database
        with self._lock:
            self._found = False
            database.scan(data, match_event_handler=self._on_match, scratch=scratch)
            return self._found

    def _on_match(self, *_: object) -> None:
        self._found = True


class Prefilter:
    """The quick look, for some secrets."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        # A matcher for each expression: one for several takes longer to build, for every action, than all of these.
        self._matchers = [Matcher([each]) for secret in secrets if secret for each in _expressions(secret)]

    @property
    def works(self) -> bool:
        """Whether it ever says no."""
        return all(matcher.works for matcher in self._matchers)

    def may_hold(self, data: Bytes) -> bool:
        """False only where `data` holds no echo. One that began before `data` isn't looked for."""
        return any(matcher.finds(data) for matcher in self._matchers)


def _made(expressions: tuple[bytes, ...], compile: Callable[[tuple[bytes, ...]], Any]) -> tuple[Any, Any] | None:
    try:
        import hyperscan  # a native library: loaded only where bodies are streamed
    except ImportError:
        return None
    try:
        database = compile(expressions)
        return database, hyperscan.Scratch(database)
    except hyperscan.HyperscanError:  # a processor that it doesn't know, or a pattern: look at everything then
        return None


def _compile(expressions: tuple[bytes, ...]) -> Any:
    import hyperscan

    # Blocks alone: with the package's streams, 0.9.1 frees what is still in use.
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_DOTALL
    database.compile(
        expressions=list(expressions), ids=list(range(len(expressions))), elements=len(expressions),
        flags=[flags] * len(expressions),
    )  # fmt: skip
    return database


_compile_once = lru_cache(maxsize=16)(_compile)


def _expressions(secret: bytes) -> list[bytes]:
    units = units_of(secret)
    begin = max(0, (len(units) - _SPELLED) // 2)
    found = [_BETWEEN.join(_spelled(raw, point) for raw, point in units[begin : begin + _SPELLED])]
    if len(secret) >= SHORTEST_ENCODED:
        for shift in range(3):
            core = base64_core(secret, shift)
            begin = max(0, (len(core) - _BASE64) // 2)
            if core:
                found.append(_WRAP.join(_base64(char) for char in core[begin : begin + _BASE64]))
    return found


def _spelled(raw: bytes, point: int) -> bytes:
    """One character: as it is, or its number; what an escape puts before its number is `_BETWEEN`."""
    ways = {_BETWEEN.join(_byte(byte) for byte in raw)}
    wide = chr(point).encode("utf-16-be", "surrogatepass")
    ways.add(_BETWEEN.join(_number(byte) for byte in wide if byte) or b"00")
    ways |= {_literal(wide), _literal(chr(point).encode("utf-16-le", "surrogatepass"))}
    ways |= {b"%d" % point, b"".join(_any_case(char) for char in b"%x" % point)}
    if point in JSON_SHORT:
        ways.add(_literal(JSON_SHORT[point]))
    if point in HTML_NAMES:
        ways.add(HTML_NAMES[point])
    if point == 0x20:
        ways.add(rb"\+")
    return b"(?:" + b"|".join(sorted(ways)) + b")"


def _byte(byte: int) -> bytes:
    return b"(?:" + _literal(bytes([byte])) + b"|" + _number(byte) + b")"


def _number(byte: int) -> bytes:
    return b"".join(_any_case(char) for char in b"%02x" % byte)


def _any_case(char: int) -> bytes:
    one = bytes([char])
    return b"[" + one + one.upper() + b"]" if one.isalpha() else one


def _base64(char: int) -> bytes:
    if char in b"+/":
        return rb"(?:[+/_\-]|%(?:25)*2[bBfF]|\\+u002[bBfF]|\\+/)"
    return bytes([char])


def _literal(data: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in data)


def encodings_alphabet(secrets: Iterable[bytes]) -> frozenset[int]:
    """Every byte that an echo of these can have in it, or take in beside it."""
    found = set(b"%\\&#;uUxX+/=-_ :,\r\n\t") | set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    for secret in secrets:
        found |= set(secret) | set(base64.b64encode(secret))
        for raw, point in units_of(secret):
            found |= set(raw) | set(chr(point).encode("utf-16-le", "surrogatepass"))
            found |= set(JSON_SHORT.get(point, b""))
    return frozenset(found)
