"""What of an answer code gets: which headers, where it may be led, and a small JSON body looked at as a whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import urljoin

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical
from policies.text import shorten
from runtimes.gateway.flowing import Flowing
from runtimes.gateway.policy import readable
from runtimes.gateway.values import Kind

# Not among them: cookies, anything that carries a credential or leads to one, what is about the connection.
_PASSED = frozenset(
    {
        "accept-ranges", "age", "allow", "cache-control", "content-disposition", "content-language", "content-range",
        "content-type", "date", "deprecation", "etag", "expires", "last-modified", "link", "pragma",
        "preference-applied", "range", "request-id", "retry-after",
        "sunset", "total-count", "vary", "warning", "x-accepted-oauth-scopes",
        "x-amzn-requestid", "x-correlation-id", "x-next-page", "x-oauth-scopes", "x-page", "x-per-page",
        "x-poll-interval", "x-prev-page", "x-request-id", "x-should-retry", "x-total", "x-total-count", "x-total-pages",
    }
)  # fmt: skip
_FAMILIES = re.compile(
    r"(x-)?rate-?limit(-[a-z-]{1,40})?|x-(github|slack|guploader|goog|gitlab|shopify|notion|discord)-[a-z-]{1,60}"
    r"|openai-[a-z-]{1,40}|anthropic-[a-z-]{1,40}"
)
_NEVER = re.compile(r"auth|token|secret|key|cookie|passw|credential|session|signature|encryption")
_VISIBLE = re.compile(r"[\x20-\x7e]{0,8192}")
_JSON = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json")
_LINES = ("application/x-ndjson", "application/jsonl", "application/json-seq", "application/stream+json")

Headers = Sequence[tuple[str, str]]


def passed_headers(
    headers: Headers, base: str, knows: Callable[[Origin], bool], text: Callable[[str], str]
) -> tuple[list[tuple[str, str]], str]:
    """The headers that code gets, and the place that the answer leads to where no rule has that ("" otherwise).
    `base`: the URL that was asked; `text` takes echoes out."""
    # A name can be an echo, too. (Its letters have lost their case, so no digits are in one that passes.)
    found = [(name, text(value)) for name, value in headers if _passes(name, value) and text(name) == name]
    location = next((value for name, value in headers if name == "location"), None)
    if location is None:
        return found, ""
    there = _origin(urljoin(base, location)) if _VISIBLE.fullmatch(location) else None
    if there is not None and knows(there):
        return [*found, ("location", text(location))], ""
    where = "a place that can't be read" if there is None else text(f"{there.scheme}://{there.host}:{there.port}")
    return [*found, ("x-goex-location", f"the answer leads to {where}, which no rule of this action has")], where


def _passes(name: str, value: str) -> bool:
    if name in ("location", "content-length") or not _VISIBLE.fullmatch(value):
        return False
    return name in _PASSED or (_FAMILIES.fullmatch(name) is not None and not _NEVER.search(name))


def _origin(url: str) -> Origin | None:
    try:
        return Origin.parse(url)
    except (InvalidInput, ValueError):
        return None


def content_type(headers: Headers) -> str:
    return next((value.partition(";")[0].strip().lower() for name, value in headers if name == "content-type"), "")


def is_json(kind: str) -> bool:
    """Whether a body of this type is one JSON value, rather than several in a row."""
    return _JSON.fullmatch(kind) is not None and kind not in _LINES


def looked_at(flowing: Flowing, body: bytes, limit: int) -> tuple[bytes, JsonValue, Kind]:
    """A whole body without echoes, and what it reads as. Also echoes that only a JSON parser sees are taken out."""
    if flowing.sieve.may_hold(body):
        body = flowing.redactor.clean(body)
    value, kind = readable(body, limit)
    if kind == "json":
        written = canonical(value)
        if flowing.sieve.may_hold(written) and flowing.redactor.finds(written):
            value = flowing.redactor.value(value)
            body = canonical(value)
    return body, value, kind


def beginning(body: bytes, kind: str) -> str:
    """The first words of a text, for whoever looks at what was answered."""
    if not (kind.startswith("text/") or "json" in kind or "xml" in kind):
        return ""
    return shorten(body[:8000].decode("utf-8", "replace"), 2000)[0]
