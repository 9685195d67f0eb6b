"""What JavaScript programs use of node and of others' libraries: fetch, axios, node's https, and how values are made.

`Named` is something global (`builtins.fetch`) or imported (`js:axios.default`). Whatever isn't here gives nothing
known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mapper.code import http, texts
from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Json,
    Listed,
    Lit,
    Method,
    Named,
    Stream,
    Thing,
    Value,
    choices,
    joined,
    of_json,
    parts_of,
    plain,
    text,
)
from mapper.code.libraries import environment
from mapper.code.sent_requests import Kind

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_FETCH = frozenset({
    "builtins.fetch", "builtins.globalThis.fetch", "js:undici.fetch", "js:node-fetch.default", "js:node-fetch",
    "js:cross-fetch.default", "js:cross-fetch", "js:cross-fetch.fetch", "js:node-fetch-native.default",
})  # fmt: skip
_AXIOS = frozenset({"js:axios", "js:axios.default", "js:axios.axios", "js:axios.Axios"})
_BARE, _LOADED = frozenset({"get", "delete", "head", "options"}), frozenset({"post", "put", "patch"})
_FORMED = frozenset({"postForm", "putForm", "patchForm"})
_MOST = 24  # items of a list that a function is followed for


def attribute(owner: Named, name: str) -> Value:
    """`owner.name` of something global or imported."""
    if owner.name == "builtins.process.env":
        return environment(name)
    if owner.name == "builtins.globalThis":
        return Named(f"builtins.{name}")
    return Named(f"{owner.name}.{name}")


def called(reader: Following, function: Value, args: list[Value]) -> Value | None:
    """What a call gives, and what it sends is noted; None where it isn't known here."""
    if isinstance(function, Named):
        if function.name in _FETCH:
            return _fetch(reader, args)
        owner, _, leaf = function.name.rpartition(".")
        if function.name in _AXIOS:
            return _axios(reader, Thing("axios"), "", args)
        if owner in _AXIOS:
            return _axios(reader, Thing("axios"), leaf, args)
        if function.name in ("js:https.request", "js:https.get", "js:https.default.request", "js:https.default.get"):
            return _https(reader, args, leaf == "get")
        return _global(reader, function.name.removeprefix("builtins."), args)
    if isinstance(function, Thing) and function.kind == "axios":
        return _axios(reader, function, "", args)
    if isinstance(function, Method):
        if isinstance(function.of, Thing):
            return _axios(reader, function.of, function.name, args) if function.of.kind == "axios" else None
        return _of_value(reader, function.of, function.name, args)
    return None


def _global(reader: Following, name: str, args: list[Value]) -> Value | None:
    first = args[0] if args else UNKNOWN
    match name:
        case "JSON.stringify":
            return Json(first)
        case "JSON.parse":
            return _parsed(first)
        case "encodeURIComponent" | "encodeURI" | "escape":
            return texts.quoted(first, plus=False) if name == "encodeURIComponent" else UNKNOWN
        case "URLSearchParams":
            return texts.encoded(first) if isinstance(first, Fields | Listed) else first if args else UNKNOWN
        case "URL":
            return first if len(args) == 1 else texts.under(args[1], first) if len(args) == 2 else UNKNOWN
        case "String":
            return joined(text(parts_of(one)) for one in choices(first)) if args else Lit("")
        case "Promise.all" | "Promise.allSettled" | "Promise.resolve" | "Array.from" | "structuredClone":
            return first if len(args) == 1 else None
        case "Object.assign" if args:
            made = first if isinstance(first, Fields) else Fields(more=True)
            for other in args[1:]:
                made = made.merged(other if isinstance(other, Fields) else Fields(more=True))
            return made
        case "Object.keys":
            items, more = reader.items(first)
            return Listed(items, more)
        case "Object.entries" if isinstance(first, Fields):
            return Listed(tuple(Listed((Lit(key), value)) for key, value in first.items), first.more)
        case "Object.values" if isinstance(first, Fields):
            return Listed(tuple(value for _, value in first.items), first.more)
        case "process.exit":
            reader.leave()
    return None


def _parsed(value: Value) -> Value:
    import json

    if isinstance(value, Json):
        return value.value
    if isinstance(value, Lit) and isinstance(value.value, str) and len(value.value) < 100_000:
        try:
            return of_json(json.loads(value.value))
        except (ValueError, RecursionError):
            return UNKNOWN
    return UNKNOWN


def _of_value(reader: Following, owner: Value, name: str, args: list[Value]) -> Value | None:
    """A method of a list or a text."""
    if texts.is_text(owner):
        return owner if name in ("toString", "trim", "valueOf") else UNKNOWN
    if not isinstance(owner, Listed | Stream) or name == "append":
        return None
    items, more = reader.items(owner)
    followed: tuple[Value, ...] = (*items[:_MOST], *([reader.element(owner)] if more or len(items) > _MOST else []))
    if name in ("map", "forEach", "flatMap") and args:
        made = tuple(reader.call(args[0], [item], Fields()) for item in followed)
        return Lit(None) if name == "forEach" else Listed(made, name == "flatMap") if not more else Stream(joined(made))
    if name in ("filter", "find", "findLast", "some", "every") and args:
        for item in followed:
            reader.call(args[0], [item], Fields())
        one = joined(followed) if followed else UNKNOWN
        return Stream(one) if name == "filter" else one if name.startswith("find") else UNKNOWN
    if name == "join" and isinstance(owner, Listed) and not more and args:
        known, between = plain(args[0])
        if known and isinstance(between, str):
            parts: list[Any] = []
            for place, item in enumerate(items):
                parts += [*([between] if place else []), *parts_of(item)]
            return text(parts) if parts else Lit("")
    return None


# ---- requests


def _field(given: Value, name: str, absent: Value) -> Value:
    """A field of an object that is given; what isn't known may be in one that isn't known."""
    if isinstance(given, Fields):
        found = given.get(name)
        return found if found is not None else UNKNOWN if given.more else absent
    return absent if given == Lit(None) else UNKNOWN


def _body(value: Value) -> tuple[Fields, Kind]:
    if value == Lit(None):
        return Fields(), "none"
    if isinstance(value, Fields):
        return Fields(more=True), "any"  # an object as it is isn't a body
    return http.body_of(value)


def _send(reader: Following, verb: Value, url: Value, query: Fields, body: Value) -> Value:
    for one in choices(body):
        fields, kind = _body(one)
        http.noted(reader, _upper(verb), url, query, fields, kind)
    return UNKNOWN


def _upper(verb: Value) -> Value:
    known, name = plain(verb)
    return Lit(name.upper()) if known and isinstance(name, str) else verb


def _fetch(reader: Following, args: list[Value]) -> Value:
    options = args[1] if len(args) > 1 else Lit(None)
    url = args[0] if args else UNKNOWN
    for one in choices(options):
        _send(reader, _field(one, "method", Lit("GET")), url, Fields(), _field(one, "body", Lit(None)))
    return UNKNOWN


def _axios(reader: Following, owner: Thing, name: str, args: list[Value]) -> Value:
    first, none = args[0] if args else UNKNOWN, Lit(None)
    if name == "create":
        base = _field(first, "baseURL", none) if args else none
        return owner.but(base=base, params=_field(first, "params", none) if args else none)
    if name in _BARE:
        return _asked(reader, owner, Lit(name), first, none, args[1] if len(args) > 1 else none)
    if name in _LOADED:
        data = args[1] if len(args) > 1 else none
        return _asked(reader, owner, Lit(name), first, data, args[2] if len(args) > 2 else none)
    if name in _FORMED:
        return _asked(reader, owner, Lit(name.removesuffix("Form")), first, UNKNOWN, none)
    if name in ("", "request"):
        config = first
        url: Value = _field(first, "url", Lit(""))
        if texts.is_text(first):
            url, config = first, args[1] if len(args) > 1 else none
        return _asked(reader, owner, _field(config, "method", Lit("GET")), url, none, config)
    return UNKNOWN


def _asked(reader: Following, owner: Thing, verb: Value, url: Value, data: Value, config: Value) -> Value:
    base = _field(config, "baseURL", owner["base"] if owner["base"] is not None else Lit(None))
    if base != Lit(None):
        url = http.based(base, url)
    query = Fields()
    for params in (owner["params"], _field(config, "params", Lit(None))):
        if params is not None and params != Lit(None):
            query = query.merged(texts.fields_of(params) or Fields(more=True))
    sent = data if data != Lit(None) else _field(config, "data", Lit(None))
    for one in choices(sent):
        _send(reader, verb, url, query, Json(one) if isinstance(one, Fields | Listed) else one)
    return UNKNOWN


def _https(reader: Following, args: list[Value], asks: bool) -> Value:
    """`https.request(url?, options?, callback)`: what is written to it afterwards isn't known."""
    given = [one for one in args if isinstance(one, Fields)]
    options: Value = given[0] if given else Lit(None)
    if args and (texts.is_text(args[0]) or not given):
        url = args[0]
    else:
        host = _field(options, "hostname", _field(options, "host", UNKNOWN))
        url = text(("https://", *parts_of(host), *parts_of(_field(options, "path", Lit("/")))))
    verb = Lit("GET") if asks else _field(options, "method", Lit("GET"))
    known, name = plain(verb)
    bare = known and str(name).upper() in ("GET", "HEAD")
    fields, kind = (Fields(), _none()) if bare else (Fields(more=True), _json())
    http.noted(reader, _upper(verb), url, Fields(), fields, kind)
    return UNKNOWN


def _none() -> Kind:
    return "none"


def _json() -> Kind:
    return "json"
