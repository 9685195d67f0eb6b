"""Where an echo of a secret may have begun that isn't at its end yet: for bytes that come in pieces.

An expression for the beginnings of a pattern is made of those for its parts: each part is there and the bytes end, or
what follows has begun; or the part itself has only begun. It finds at least every beginning; finding more costs
nothing but a wait. After `_DEPTH` parts an echo is taken to go on whatever comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from runtimes.gateway.redaction_prefilter import encodings_alphabet
from runtimes.gateway.redactor import (
    BASE64_CHARS,
    SHORT_RUN,
    SHORTEST_ENCODED,
    WRAP,
    base64_char,
    base64_core,
    escapes,
    hex_of,
    unit,
    units_of,
)

_DEPTH = 12

Part = tuple[bytes, bytes]  # how it is spelled, and how what has begun of it may look at the end

# An escape whose last character isn't there yet.
_NUMBERED = rb"%[0-9a-fA-F]*+|&(?:#[xX]?[0-9a-fA-F]*+|[a-z]{0,4})"
_ESCAPED = rb"(?:[ux][0-9a-fA-F]{0,4}(?:\\*+(?:u[0-9a-fA-F]{0,3})?)?)?"
_SEPARATED = rb"(?:[ :,\-]|\\x|%|0x)*"


class PartialEcho:
    """Finds the first place from which everything to the end may be the beginning of an echo.

    Its patterns take long to build, and most answers end with a byte that no echo can have in it: they are built for
    the first that doesn't.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = [secret for secret in secrets if secret]
        self._alphabet = encodings_alphabet(self._secrets)
        self._built: list[tuple[re.Pattern[bytes], bool]] | None = None

    def drop(self) -> None:
        """Let go of the secrets. What is found from now on means nothing."""
        self._secrets, self._built = [], []

    def find(self, data: bytes, start: int = 0) -> int:
        """Its index, not before `start`; the length of `data` where nothing has begun."""
        found = len(data)
        if found <= start or data[-1] not in self._alphabet:
            return found
        # The character before base64 holds some of the secret's bits.
        if data[-1] in BASE64_CHARS and any(grows for _, grows in self._patterns):
            found -= 1
        for pattern, grows in self._patterns:
            match = pattern.search(data, start)
            if match is not None and match.start() < len(data):
                begin = match.start()
                if grows and begin > start and data[begin - 1] in BASE64_CHARS:
                    begin -= 1
                found = min(found, begin)
        return found

    @property
    def _patterns(self) -> list[tuple[re.Pattern[bytes], bool]]:
        if self._built is None:
            patterns = [pattern for secret in self._secrets for pattern in _patterns(secret)]
            self._built = [(re.compile(_opened(parts)), grows) for parts, grows in patterns]
        return self._built


def _opened(parts: Sequence[Part]) -> bytes:
    ends = rb"\Z"
    then = b"" if len(parts) > _DEPTH else ends
    for full, opened in reversed(parts[:_DEPTH]):
        after = b"(?:" + ends + b"|" + then + b")" if then != ends else then
        then = b"(?:" + full + (after if then else b"")
        then += b"|(?:" + opened + b")" + ends if opened else b""
        then += b")"
    return then


def _patterns(secret: bytes) -> list[tuple[list[Part], bool]]:
    units = units_of(secret)
    text = "".join(chr(point) for _, point in units)
    spelled = [
        (unit(raw, point, escape), _opened_unit(raw, escape))
        for (raw, point), escape in zip(units, escapes(units), strict=True)
    ]
    found: list[tuple[list[Part], bool]] = [(spelled, False)]
    literals = {secret, json.dumps(text)[1:-1].encode("ascii")}
    literals |= {text.encode(encoding, "surrogatepass") for encoding in ("utf-16-le", "utf-16-be")}
    found += [([(re.escape(one[at : at + 1]), b"") for at in range(len(one))], False) for one in sorted(literals)]
    if len(secret) >= SHORTEST_ENCODED:
        found.append(([_hex_part(byte, first=not place) for place, byte in enumerate(secret)], False))
        for shift in range(3):
            core = base64_core(secret, shift)
            if core:
                # What follows the last character may still be taken in with it.
                parts = [_base64_part(char, first=not place) for place, char in enumerate(core)]
                found.append(([*parts, (b"=*+[A-Za-z0-9+/_-]?+=*+", b"")], True))
    return found


def _opened_unit(raw: bytes, escape: bytes) -> bytes:
    # As in `unit`; a backslash that is the character itself may be anywhere in its run.
    escape = b"(?:" + escape + b"|" + SHORT_RUN + b")" if raw == b"\\" else escape
    ways = [_NUMBERED, escape + _ESCAPED]
    spelled = [b"(?:%(?:25)*" + hex_of(byte) + b"|" + re.escape(bytes([byte])) + b")" for byte in raw]
    for count in range(1, len(raw)):
        ways.append(b"".join(spelled[:count]) + b"(?:%[0-9a-fA-F]*+)?")
    return b"|".join(ways)


def _hex_part(byte: int, *, first: bool) -> Part:
    before = b"" if first else _SEPARATED
    digits = hex_of(byte)
    high = digits[: digits.index(b"]") + 1] if digits[:1] == b"[" else digits[:1]
    return before + digits, before + b"(?:" + high + rb"|\\|0)?"


def _base64_part(char: int, *, first: bool) -> Part:
    before = b"" if first else WRAP
    opened = rb"\\?"
    if char in b"+/":
        opened = rb"(?:%(?:25)*2?|\\{0,33}(?:u0{0,2}2?)?)"
    return before + base64_char(char), before + opened
