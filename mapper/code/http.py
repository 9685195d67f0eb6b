"""Requests that programs send with requests, httpx, urllib, http.client, urllib3, aiohttp and pandas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mapper.code import texts
from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Form,
    Json,
    Listed,
    Lit,
    Method,
    Named,
    OneOf,
    Text,
    Thing,
    Value,
    choices,
    each,
    joined,
    of_json,
    parts_of,
    plain,
    text,
)
from mapper.code.sent_requests import Kind, Request

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_GAP = "\ue000"  # stands for a part that isn't known
_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
_BARE = frozenset({"requests", "httpx", "requests.api", "niquests"})
_CLIENTS = frozenset(
    {
        "requests.Session", "requests.session", "requests.sessions.Session", "httpx.Client", "httpx.AsyncClient",
        "aiohttp.ClientSession", "urllib3.PoolManager", "requests_toolbelt.sessions.BaseUrlSession", "niquests.Session",
        "requests_toolbelt.BaseUrlSession", "requests_oauthlib.OAuth2Session", "urllib3.HTTPSConnectionPool",
        "requests_futures.sessions.FuturesSession", "requests_cache.CachedSession", "cloudscraper.create_scraper",
        "google.auth.transport.requests.AuthorizedSession",
    }
)  # fmt: skip
_TABLES = frozenset({"pandas", "geopandas", "polars"})  # their `read_…` take an address as they take a file's name
_CONNECTIONS = {"http.client.HTTPSConnection": "https", "http.client.HTTPConnection": "http"}
_SIGNED = {
    "requests_oauthlib.OAuth1": "OAuth 1",
    "requests_oauthlib.OAuth1Session": "OAuth 1",
    "authlib.integrations.requests_client.OAuth1Session": "OAuth 1",
    "requests_aws4auth.AWS4Auth": "AWS Signature Version 4",
    "requests.auth.HTTPDigestAuth": "Digest",
    "httpx.DigestAuth": "Digest",
}


def called(reader: Following, function: Named | Method | Thing, args: list[Value], given: Fields) -> Value | None:
    """What a call of an HTTP library gives; None where it is none."""
    if isinstance(function, Named):
        return _named(reader, function.name, args, given)
    if isinstance(function, Method) and isinstance(function.of, Thing):
        return _method(reader, function.of, function.name, args, given)
    if isinstance(function, Thing) and function.kind in ("partial", "getter"):
        reader.seen.spend(len(function["args"]))
    if isinstance(function, Thing) and function.kind == "partial":
        return reader.call(function["of"], [*function["args"], *args], function["given"].merged(given))
    if isinstance(function, Thing) and function.kind == "getter" and args:
        found = reader.call(Named("builtins.getattr"), [args[0], function["name"]], Fields())
        return reader.call(found, [*function["args"]], function["given"]) if function["call"] else found
    return None


def assigned(owner: Thing, name: str, value: Value) -> Value:
    """The object after `owner.name = value`."""
    if owner.kind == "http":
        if name == "params":
            return owner.but(query=texts.fields_of(value) or Fields())
        if name == "base_url":
            return owner.but(base=value)
    if owner.kind == "request" and name in ("data", "method"):
        return owner.but(**{"data" if name == "data" else "verb": value})
    return owner


def changed(owner: Thing, name: str, args: list[Value], given: Fields) -> Value | None:
    """The object after a method that changes it; None for any other method."""
    return None


def _named(reader: Following, name: str, args: list[Value], given: Fields) -> Value | None:
    module, _, leaf = name.rpartition(".")
    if module in _BARE:
        if leaf in _VERBS:
            return _send(reader, Lit(leaf.upper()), _at(args, given, 0, "url"), args[1:], given, leaf)
        if leaf in ("request", "stream"):
            return _send(reader, _at(args, given, 0, "method"), _at(args, given, 1, "url"), args[2:], given, "request")
    if name in _SIGNED:
        return Thing("signed", (("how", _SIGNED[name]),))
    if name in _CLIENTS:
        base = given.get("base_url")
        if base is None and args and leaf in ("BaseUrlSession", "ClientSession"):
            base = args[0]
        if leaf == "HTTPSConnectionPool" and args:
            base = text(("https://", *parts_of(args[0])))
        found = given.get("params")
        query = texts.fields_of(found) or Fields() if found is not None else Fields()
        return Thing("http", (("base", base), ("query", query), ("lib", module.partition(".")[0])))
    if name in _CONNECTIONS and args:
        port = _at(args, given, 1, "port")
        where = [_CONNECTIONS[name], "://", *parts_of(args[0])]
        known, number = plain(port)
        if known and isinstance(number, int):
            where.append(f":{number}")
        return Thing("connection", (("base", text(where)),))
    if name in ("urllib.request.Request", "requests.Request", "httpx.Request", "requests.models.Request"):
        if name.startswith("urllib"):
            data = _at(args, given, 1, "data", Lit(None))
            return Thing(
                "request", (("url", _at(args, given, 0, "url")), ("data", data), ("verb", given.get("method")))
            )
        return Thing("prepared", (("verb", _at(args, given, 0, "method")), ("url", _at(args, given, 1, "url")),
                                  ("given", given)))  # fmt: skip
    if name in ("urllib.request.urlopen", "urllib.request.urlretrieve"):
        data = _at(args, given, 1, "data", Lit(None)) if name.endswith("urlopen") else Lit(None)
        for target in args[:1] or (given.get("url") or UNKNOWN,):
            _opened(reader, target, data)
        return UNKNOWN
    if module in _TABLES and leaf.startswith("read_"):
        for one in choices(args[0] if args else UNKNOWN):
            if str(parts_of(one)[0]).startswith(("http://", "https://")):  # else it is a file, or isn't known
                noted(reader, Lit("GET"), one, Fields(), Fields(), _none())
        return None
    if name == "urllib3.request":
        return _send(reader, _at(args, given, 0, "method"), _at(args, given, 1, "url"), [], given, "urllib3")
    return None


def _method(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value | None:
    if owner.kind == "http":
        if name in _VERBS:
            return _send(reader, Lit(name.upper()), _at(args, given, 0, "url"), args[1:], given, name, owner)
        if name in ("request", "stream", "request_encode_body", "request_encode_url", "urlopen"):
            lib = "urllib3" if owner["lib"] == "urllib3" else "request"
            return _send(reader, _at(args, given, 0, "method"), _at(args, given, 1, "url"), args[2:], given, lib, owner)
        if name == "send" and args and isinstance(args[0], Thing) and args[0].kind == "prepared":
            made = args[0]
            return _send(reader, made["verb"], made["url"], [], made["given"], "request", owner)
        if name == "build_request":
            return Thing("prepared", (("verb", _at(args, given, 0, "method")), ("url", _at(args, given, 1, "url")),
                                      ("given", given)))  # fmt: skip
        if name == "prepare_request" and args:
            return args[0]
        return UNKNOWN
    if owner.kind == "prepared":
        return owner if name == "prepare" else UNKNOWN
    if owner.kind == "connection":
        if name == "request":
            target = text((*parts_of(owner["base"]), *parts_of(_at(args, given, 1, "url"))))
            body = _at(args, given, 2, "body", Lit(None))
            fields, kind = body_of(body) if body != Lit(None) else (Fields(), _none())
            noted(reader, _at(args, given, 0, "method"), target, Fields(), fields, kind)
        return UNKNOWN
    if owner.kind == "request":
        return UNKNOWN
    return None


def _opened(reader: Following, target: Value, data: Value) -> None:
    """`urlopen(target, data)`."""
    for (one,) in each(target):
        verb: Value | None = None
        sent = data
        if isinstance(one, Thing) and one.kind == "request":
            verb = one["verb"]
            sent = one["data"] if sent == Lit(None) else sent
            one = one["url"]
        for (body,) in each(sent):
            fields, kind = body_of(body) if body != Lit(None) else (Fields(), _none())
            noted(reader, verb or Lit("GET" if kind == "none" else "POST"), one, Fields(), fields, kind)


def _none() -> Kind:
    return "none"


_POSITIONAL = {"get": ("params",), "post": ("data", "json"), "put": ("data",), "patch": ("data",)}


def _send(
    reader: Following, verb: Value, url: Value, rest: list[Value], given: Fields, how: str, session: Thing | None = None
) -> Value:
    named = dict(given.items)
    if how != "urllib3":
        for name, value in zip(_POSITIONAL.get(how, ()), rest, strict=False):
            named.setdefault(name, value)
    several = choices(named.get("params") or Lit(None))
    if len(several) > 1:
        rest_of_it = Fields(given.without("params").items, given.more)
        left = [value for name, value in zip(_POSITIONAL.get(how, ()), rest, strict=False) if name != "params"]
        for one in several:
            _send(reader, verb, url, left, rest_of_it.merged(Fields((("params", one),))), how, session)
        return UNKNOWN
    query = session["query"] if session is not None else Fields()
    query = query.merged(texts.fields_of(several[0]) or Fields())
    if session is not None and session["base"] is not None:
        url = based(session["base"], url)
    signed = ""
    auth = named.get("auth")
    if isinstance(auth, Thing) and auth.kind == "signed":
        signed = str(auth["how"])
    bodies = [(name, named[name]) for name in ("json", "data", "content", "body", "fields", "files") if name in named]
    bodies = [(name, value) for name, value in bodies if not (isinstance(value, Lit) and value.value is None)]
    if given.more and not bodies:
        bodies = [("data", UNKNOWN)]
    if any(name == "files" for name, _ in bodies):
        noted(reader, verb, url, query, Fields(more=True), "any", signed)
        return UNKNOWN
    if not bodies:
        noted(reader, verb, url, query, Fields(), "none", signed)
        return UNKNOWN
    name, value = bodies[0]
    for (one,) in each(value):
        if name == "fields" and isinstance(verb, Lit) and str(verb.value).upper() in ("GET", "HEAD", "DELETE"):
            noted(reader, verb, url, query.merged(texts.fields_of(one) or Fields()), Fields(), "none", signed)
            continue
        fields, kind = body_of(Json(one)) if name == "json" else body_of(one)
        noted(reader, verb, url, query, fields, kind if not isinstance(one, Listed) else "any", signed)
    return UNKNOWN


def based(base: Value, url: Value) -> Value:
    """A URL below a client's base; a whole URL stands for itself."""
    first = parts_of(url)[0]
    if isinstance(first, str) and "://" in first[:12]:
        return url
    if isinstance(url, OneOf) or isinstance(base, OneOf):
        return joined(based(one, other) for one, other in each(base, url))
    below = parts_of(url)
    head = [*parts_of(base)]
    if head and isinstance(head[-1], str):
        head[-1] = head[-1].rstrip("/")
    if isinstance(first, str):
        below = (first.lstrip("/"), *below[1:])
    return text((*head, "/", *below))


def _json(value: Value) -> Fields:
    return value if isinstance(value, Fields) else Fields(more=True)


def body_of(value: Value) -> tuple[Fields, Kind]:
    """A body that isn't given as JSON: a form, JSON as text, or anything."""
    match value:
        case Json(value=inner):
            return (_json(inner), "json") if not isinstance(inner, Listed) else (Fields(), "any")
        case Fields() | Form():
            return texts.fields_of(value) or Fields(), "form"
        case Lit(value=str() | bytes() as known):
            raw = known.decode("utf-8", "replace") if isinstance(known, bytes) else known
            return of_text(raw)
        case Text():
            return of_parts(value)
    return Fields(more=True), "any"


def of_text(raw: str) -> tuple[Fields, Kind]:
    """A body that is written out: JSON, or a form, or anything."""
    if raw.lstrip()[:1] in ("{", "["):
        try:
            made: Any = of_json(json.loads(raw)) if len(raw) < 100_000 else UNKNOWN
        except (ValueError, RecursionError):
            return Fields(more=True), "json"
        return (made, "json") if isinstance(made, Fields) else (Fields(), "any")
    if "=" in raw and "\n" not in raw.strip():
        return texts.fields_of(Lit(raw)) or Fields(), "form"
    return Fields(), "any"


def of_written(value: Value) -> tuple[Fields, Kind]:
    """A body that is written out, whole or in part."""
    match value:
        case Lit(value=known):
            return of_text(str(known))
        case Text():
            return of_parts(value)
        case Json():
            return body_of(value)
    return Fields(more=True), "any"


def of_parts(value: Text) -> tuple[Fields, Kind]:
    """A body that is written out in part: the names in it, and the values that are known."""
    first = value.parts[0]
    if isinstance(first, str) and first.lstrip().startswith("{"):
        for gap in (_GAP, f'"{_GAP}"'):
            raw = "".join(part if isinstance(part, str) else gap for part in value.parts)
            fields, kind = of_text(raw)
            if kind == "json" and not fields.more:
                return Fields(tuple((name, _gapped(one)) for name, one in fields.items if _GAP not in name),
                              any(_GAP in name for name, _ in fields.items)), "json"  # fmt: skip
        return Fields(more=True), "json"
    if isinstance(first, str) and "=" in first and "\n" not in first:
        fields, _ = of_text("".join(part if isinstance(part, str) else _GAP for part in value.parts))
        return Fields(tuple((name, _gapped(one)) for name, one in fields.items)), "form"
    return Fields(more=True), "any"


def _gapped(value: Value) -> Value:
    """A value, unknown where a part of it wasn't known."""
    return UNKNOWN if _GAP in json.dumps(plain(value)[1], ensure_ascii=False, default=str) else value


def _at(args: list[Value], given: Fields, place: int, name: str, absent: Value = UNKNOWN) -> Value:
    found = given.get(name)
    return found if found is not None else args[place] if place < len(args) else absent


def noted(
    reader: Following, verb: Value, url: Value, query: Fields, body: Fields, kind: Kind, signed: str = ""
) -> None:
    """Note a request, once for each method and address that it may have."""
    reader.seen.spend((query.weight + body.weight) // 8)
    for one_verb, one_url in each(verb, url):
        reader.seen.requests.append(
            Request(line=reader.line, verb=one_verb, url=one_url, query=query, body=body, kind=kind, signed=signed)
        )
