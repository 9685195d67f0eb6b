"""Texts, addresses and queries as JavaScript writes them."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode

from mapper.code import texts
from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Form,
    Listed,
    Lit,
    OneOf,
    Text,
    Value,
    joined,
    parts_of,
    text,
)

QUERY_CHANGES = frozenset({"append", "set", "delete", "sort"})
# What `URL` reads in one way alone: no dot segments, backslashes, odd hosts, credentials.
_ADDRESS = re.compile(
    r"(?P<scheme>[hH][tT]{2}[pP][sS]?)://"
    r"(?P<host>(?:(?>(?:[A-Za-z0-9\-]+\.)*)[A-Za-z][A-Za-z0-9\-]*|(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})))"
    r"(?::(?P<port>\d{0,5}))?(?P<path>(?>(?:/(?!(?:\.|%2[eE]){1,2}(?:[/?#]|\Z))[^/?#^]*)*))"
    r"(?P<query>(?:\?[^#]*)?)(?P<fragment>(?:#.*)?)",
    re.ASCII | re.DOTALL,
)
_UNREAD = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
# What `URL` writes as it is in each part of an address, beside letters and digits.
_WRITTEN = {
    "path": "!$%&'()*+,-./:;=@[]_|~",
    "query": "!$%&()*+,-./:;=?@[]^_`{|}~",
    "fragment": "!#$%&'()*+,-./:;=?@[]^_{|}~",
}
_PORTS = {"http": "80", "https": "443"}


def query_of(given: Value) -> Value:
    """A query as `URLSearchParams` writes it."""
    match given:
        case Lit(value=str() as known):
            try:
                pairs = parse_qsl(known.removeprefix("?"), keep_blank_values=True, max_num_fields=200)
            except ValueError:
                return UNKNOWN
            made: Value = Lit(urlencode(pairs))
        case Fields() | Listed():
            made = texts.encoded(all_written(given))
        case Text():
            return Form(Fields(more=True))
        case _:
            return given
    # Python leaves `~` and writes `*` as a number.
    return Lit(made.value.replace("~", "%7E").replace("%2A", "*")) if isinstance(made, Lit) else made


def address_of(given: Value) -> Value:
    """An address as `URL` writes it; unknown where it isn't sure how that is."""
    if isinstance(given, OneOf):
        return joined(address_of(one) for one in given.values)
    if not isinstance(given, Lit) or str(given.value).startswith("goex-url://"):
        return given
    stripped = given.value.strip(" ") if isinstance(given.value, str) else ""
    found = _ADDRESS.fullmatch(stripped) if not _UNREAD.search(stripped) else None
    if found is None:
        return UNKNOWN
    scheme, port = found["scheme"].lower(), (found["port"] or "").lstrip("0")
    at = f":{port}" if port and port != _PORTS[scheme] else ""
    if found["port"] and not 0 < int(found["port"]) < 65536:
        return UNKNOWN
    path, query, fragment = (quote(found[part], safe=safe) for part, safe in _WRITTEN.items())
    return Lit(f"{scheme}://{found['host'].lower()}{at}{path or '/'}{query}{fragment}")


def may_be_address(value: Value) -> bool:
    """Whether a value may be a `URL` or a query, which the program changes in its place; no text of its own is."""
    if isinstance(value, OneOf):
        return all(map(may_be_address, value.values))
    return isinstance(value, Form) or (isinstance(value, Lit | Text) and texts.is_text(value))


def asked_anew(address: Value) -> Value:
    """An address whose query may be another."""
    if isinstance(address, OneOf):
        return joined(asked_anew(one) for one in address.values)
    parts: list[str | Form | None] = []
    for part in parts_of(address):
        parts.append(re.split(r"[?#]", part)[0] if isinstance(part, str) else part)
        if parts[-1] != part:
            break
    return text((*parts, "?", None))


def written(value: Value) -> Value:
    """A value as it is written within a text."""
    match value:
        case Lit(value=bool() as known):
            return Lit("true" if known else "false")
        case Lit(value=float() as known):
            return Lit(repr(known)) if "e" not in repr(known) else UNKNOWN  # large and tiny ones look otherwise there
        case Lit(value=None | bytes()):
            return UNKNOWN  # null or undefined
        case OneOf(values=values):
            return joined(written(one) for one in values)
    return value


def all_written(value: Value) -> Value:
    """A value all of whose parts are as they are written."""
    match value:
        case Fields(items=items, more=more):
            return Fields(tuple((name, all_written(one)) for name, one in items), more)
        case Listed(items=items, more=more):
            return Listed(tuple(all_written(one) for one in items), more)
    return written(value)
