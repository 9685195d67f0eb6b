"""What of an answer code gets: which headers, where it may be led, and a small JSON body looked at as a whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from functools import partial
from urllib.parse import urljoin, urlsplit, urlunsplit

from policies.accounts import Origin
from policies.display_text import escape, shorten
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.response_values import Kind, readable

# Not among them: cookies, anything that carries a credential or leads to one, what is about the connection.
_PASSED = frozenset(
    {
        "accept-ranges", "age", "allow", "cache-control", "content-disposition", "content-language", "content-location",
        "content-range",
        "content-type", "date", "deprecation", "etag", "expires", "last-modified", "link", "pragma",
        "preference-applied", "range", "request-id", "retry-after",
        "sunset", "total-count", "vary", "warning", "x-accepted-oauth-scopes",
        "x-amzn-requestid", "x-correlation-id", "x-next-page", "x-oauth-scopes", "x-page", "x-per-page",
        "x-poll-interval", "x-prev-page", "x-request-id", "x-should-retry", "x-total", "x-total-count", "x-total-pages",
    }
)  # fmt: skip
_PLANNED = frozenset({"content-type", "date", "etag", "last-modified", "retry-after"})
_RATE = re.compile(r"(x-)?ratelimit(-[a-z0-9-]{1,40})?")
_FAMILIES = re.compile(
    r"(x-)?rate-?limit(-[a-z-]{1,40})?|x-(github|slack|guploader|goog|gitlab|shopify|notion|discord)-[a-z-]{1,60}"
    r"|openai-[a-z-]{1,40}|anthropic-[a-z-]{1,40}"
)
_ADDRESSES = re.compile(r"link|refresh|(?:.*-)?(?:url|uri|href|location|link)")
_LINK = re.compile(r"<(?P<address>[^<>]{0,8192})>(?P<more>[^<>]*)")
# GitHub's links to other pages have numbers where the request had names: of a repository, an organization, an account.
_NUMBERED = re.compile(r"(?P<before>.*)/(?P<what>repositories|organizations|user)/[0-9]{1,20}(?P<after>(?:/.*)?)")
_NAMES = {"repositories": r"/repos/[^/]+/[^/]+", "organizations": r"/orgs/[^/]+", "user": r"/users/[^/]+"}
_ANCHOR = re.compile(r'anchor\*?\s*=\s*("[^"]*"|[^;,\s]*)', re.IGNORECASE)
_NEVER = re.compile(r"auth|token|secret|key|cookie|passw|credential|session|signature|encryption|upload-?id")
# What a service hands out by a header that it also takes: not where a list goes on, nor a session of MCP.
_MINTED = re.compile(
    r"(?<!next)(?<!next[-_])(?<!page)(?<!page[-_])(?<!continuation)(?<!continuation[-_])token|(?<!mcp-)session|jwt|bearer"
    r"|cookie|secret|passw|credential|authentication|authorization|api[-_]?key"
)
_VISIBLE = re.compile(r"[\x20-\x7e]{0,8192}")
_JSON = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json")
_LINES = ("application/x-ndjson", "application/jsonl", "application/json-seq", "application/stream+json")

Headers = Sequence[tuple[str, str]]


def verdict(failed: str) -> list[tuple[str, str]]:
    """The headers that say whether an answer was as a plan expects it."""
    if not failed:
        return [("x-goex-well", "1")]
    said = shorten(escape(failed), 300)[0].encode("ascii", "backslashreplace").decode("ascii").strip()
    return [("x-goex-well", "0"), ("x-goex-failed", said or "it didn't go well")]


def planned_headers(headers: Headers, text: Callable[[str], str]) -> list[tuple[str, str]]:
    """The headers of the answer to a planned request that the container gets; `text` takes echoes out."""
    return [
        (name, text(value))
        for name, value in headers
        if (name in _PLANNED or _RATE.fullmatch(name)) and _VISIBLE.fullmatch(value) and text(name) == name
    ]


def passed_headers(
    headers: Headers, base: str, covers: Callable[[str], bool], text: Callable[[str], str], more: Container[str] = ()
) -> tuple[list[tuple[str, str]], str]:
    """The headers that code gets, and the place that the answer leads to where no rule has that ("" otherwise).
    `base`: the URL that was asked; `covers` says whether a rule has an address; `text` takes echoes out; `more`: names
    that the rule passes on beside the usual ones.

    An address may be a credential by itself (a signed one, an upload's session): one that stands in a header is passed
    on where a rule of this action has its origin, its path and each name of its query, and is withheld otherwise."""
    found: list[tuple[str, str]] = []
    withheld: list[str] = []
    for name, value in headers:
        # A name can be an echo, too. (Its letters have lost their case, so no digits are in one that passes.)
        if not _passes(name, value, more) or text(name) != name:
            continue
        if _is_address(name, value):
            value = _LINK.sub(partial(_named, base), value) if name == "link" else value
            kept = _covered(name, value, base, covers)
            if kept != value:
                withheld.append(name)
            if not kept:
                continue
            value = kept
        found.append((name, text(value)))
    if withheld:
        found.append(("x-goex-withheld", ", ".join(dict.fromkeys(withheld))))
    location = next((value for name, value in headers if name == "location"), None)
    if location is None:
        return found, ""
    if _VISIBLE.fullmatch(location) and covers(_joined(base, location)):
        return [*found, ("location", text(location))], ""
    # An echo in a host's name is looked for before its letters lose their case.
    whole = text(_joined(base, location)) if _VISIBLE.fullmatch(location) else ""
    there = _origin(whole)
    where = "a place that can't be read" if there is None else text(f"{there.scheme}://{there.host}:{there.port}")
    if there is not None and there == _origin(base):
        # Where something lies that was made, as a rule: no more than withheld.
        return [*found, ("x-goex-location", f"an address of {where} that no rule of this action has")], ""
    return [*found, ("x-goex-location", f"the answer leads to {where}, which no rule of this action has")], where


def _is_address(name: str, value: str) -> bool:
    return _ADDRESSES.fullmatch(name) is not None or "//" in value


def _covered(name: str, value: str, base: str, covers: Callable[[str], bool]) -> str:
    """What of an address's header may be passed on."""
    if name == "link":
        parts = [match for match in _LINK.finditer(value) if _is_covered(match["address"], match["more"], base, covers)]
        return ", ".join(match[0].rstrip(", ") for match in parts)
    return value if covers(_joined(base, value)) else ""


def _named(base: str, link: re.Match[str]) -> str:
    """A link, with the path that was asked where it leads to another page of that by its number."""
    whole = _joined(base, link["address"])
    origin = _origin(whole)
    if origin is None or origin != _origin(base):
        return link[0]
    asked, there = urlsplit(base), urlsplit(whole)
    found = _NUMBERED.fullmatch(there.path)
    if found is None:
        return link[0]
    asked_for = re.escape(found["before"]) + _NAMES[found["what"]] + re.escape(found["after"])
    if not re.fullmatch(asked_for, asked.path) or there.query == asked.query or "rel=" not in link["more"]:
        return link[0]
    return f"<{urlunsplit(there._replace(path=asked.path))}>{link['more']}"


def _is_covered(address: str, more: str, base: str, covers: Callable[[str], bool]) -> bool:
    """Whether a link may be passed on with what is said about it: `anchor` is an address, too; a `rel` is a name."""
    addresses = (address, *(one.strip('"') for one in _ANCHOR.findall(more)))
    odd = "\\" in more or "?" in _ANCHOR.sub("", more)
    return not odd and all(covers(_joined(base, one)) for one in addresses)


def _passes(name: str, value: str, more: Container[str]) -> bool:
    if name in ("location", "content-length") or not _VISIBLE.fullmatch(value):
        return False
    if name in more and not _MINTED.search(name):
        return True
    return name in _PASSED or (_FAMILIES.fullmatch(name) is not None and not _NEVER.search(name))


def _joined(base: str, address: str) -> str:
    """The whole of an address; "" where it can't be read (`//[`)."""
    try:
        return urljoin(base, address)
    except ValueError:
        return ""


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


def redacted(redactor: Redactor, body: bytes, limit: int) -> tuple[bytes, JsonValue, Kind]:
    """A whole body without echoes, and what it reads as. Also echoes that only a JSON parser sees are taken out."""
    body = redactor.clean(body)
    value, kind = readable(body, limit)
    if kind == "json" and redactor.finds(canonical(value)):
        # Spelled so that only a JSON parser sees it: escapes within escapes, an encoding of an encoding.
        value = redactor.value(value)
        body = canonical(value)
    return body, value, kind


def beginning(body: bytes, kind: str) -> str:
    """The first words of a text, for whoever looks at what was answered."""
    if kind and not (kind.startswith("text/") or "json" in kind or "xml" in kind):
        return ""
    return shorten(body[:8000].decode("utf-8", "replace"), 2000)[0]
