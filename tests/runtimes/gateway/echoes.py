"""A secret in the spellings that services use when they give one back."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st


def _shifted(encode: Callable[[bytes], bytes], shift: int) -> Callable[[bytes], bytes]:
    def encoded(secret: bytes) -> bytes:
        return encode(b"abc"[:shift] + secret + b"xy")

    return encoded


def _text(secret: bytes) -> str:
    try:
        return secret.decode("utf-8")
    except UnicodeDecodeError:
        return secret.decode("latin-1")


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "raw": lambda secret: secret,
    **{f"base64 at {shift}": _shifted(base64.b64encode, shift) for shift in range(3)},
    **{f"url-safe base64 at {shift}": _shifted(base64.urlsafe_b64encode, shift) for shift in range(3)},
    "base64 without padding": lambda secret: base64.b64encode(secret).rstrip(b"="),
    "base64 in lines": lambda secret: base64.encodebytes(b"-" * 50 + secret + b"-" * 50),
    "base64, percent": lambda secret: quote(base64.b64encode(secret), safe="").encode(),
    "base64, slashes escaped": lambda secret: base64.b64encode(secret).replace(b"/", b"\\/"),
    "percent": lambda secret: quote(secret, safe="").encode(),
    "percent, plus": lambda secret: quote_plus(secret).encode(),
    "percent, lower": lambda secret: "".join(f"%{byte:02x}" for byte in secret).encode(),
    "percent, upper": lambda secret: "".join(f"%{byte:02X}" for byte in secret).encode(),
    "percent, twice": lambda secret: quote(quote(secret, safe=""), safe="").encode(),
    "percent, thrice": lambda secret: quote(quote(quote(secret, safe=""), safe=""), safe="").encode(),
    "json": lambda secret: json.dumps(_text(secret)).encode(),
    "json in json": lambda secret: json.dumps(json.dumps(_text(secret))).encode(),
    "json, every character": lambda secret: "".join(
        f"\\u{int.from_bytes(pair, 'big'):04x}" for pair in _pairs(_text(secret))
    ).encode(),
    "hex": lambda secret: secret.hex().encode(),
    "hex, upper": lambda secret: secret.hex().upper().encode(),
    "hex, colons": lambda secret: secret.hex(":").encode(),
    "hex, backslashes": lambda secret: "".join(f"\\x{byte:02x}" for byte in secret).encode(),
    "html": lambda secret: html.escape(_text(secret)).encode(),
    "html, decimal": lambda secret: "".join(f"&#{ord(char)};" for char in _text(secret)).encode(),
    "html, hex": lambda secret: "".join(f"&#x{ord(char):x};" for char in _text(secret)).encode(),
    "utf-16": lambda secret: _text(secret).encode("utf-16-le", "surrogatepass"),
}


def _pairs(text: str) -> list[bytes]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


tokens = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=.~:", min_size=8, max_size=60)
visible = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters="\\"), min_size=8, max_size=40
)
secrets = st.one_of(tokens, visible).map(str.encode)
