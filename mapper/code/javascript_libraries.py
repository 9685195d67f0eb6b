"""What JavaScript programs use of node and of others' libraries: fetch, axios, node's https, and how values are made.

`Named` is something global (`builtins.fetch`) or imported (`js:axios.default`). Whatever isn't here gives nothing
known.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from mapper.code import http, texts
from mapper.code import javascript_services as services
from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Form,
    Json,
    Listed,
    Lit,
    Made,
    Method,
    Named,
    OneOf,
    Stream,
    Text,
    Thing,
    Value,
    choices,
    joined,
    of_json,
    parts_of,
    plain,
    text,
)
from mapper.code.javascript_nodes import exact
from mapper.code.libraries import environment
from mapper.code.sent_requests import Kind

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_FETCH = frozenset({
    "builtins.fetch", "builtins.globalThis.fetch", "js:undici.fetch", "js:node-fetch.default", "js:node-fetch",
    "js:cross-fetch.default", "js:cross-fetch", "js:cross-fetch.fetch", "js:node-fetch-native.default",
})  # fmt: skip
_AXIOS = frozenset({"js:axios", "js:axios.default", "js:axios.axios", "js:axios.Axios"})
_GOT = frozenset({"js:got", "js:got.default", "js:got.got"})
_BARE, _LOADED = frozenset({"get", "delete", "head", "options"}), frozenset({"post", "put", "patch"})
_FORMED = frozenset({"postForm", "putForm", "patchForm"})
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
_MOST = 24  # items of a list that a function is followed for
_SPACES = "".join(map(chr, (*range(9, 14), 32, 160, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F)))
_SPACES += "\u3000\ufeff"


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
        if function.name in _GOT or (owner in _GOT and leaf in _BARE | _LOADED):
            return _got(reader, "" if function.name in _GOT else leaf, args)
        if function.name in ("js:https.request", "js:https.get", "js:https.default.request", "js:https.default.get"):
            return _https(reader, args, leaf == "get")
        client = services.made(reader, function, args)
        return client if client is not None else _global(reader, function.name.removeprefix("builtins."), args)
    if isinstance(function, Thing) and function.kind == "axios":
        return _axios(reader, function, "", args)
    if isinstance(function, Thing):
        return services.called(reader, function, "", args)
    if isinstance(function, Method):
        if isinstance(function.of, Thing):
            ours = function.of.kind == "axios"
            return (_axios if ours else services.called)(reader, function.of, function.name, args)
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
            if name != "encodeURIComponent":
                return UNKNOWN
            parts = parts_of(written(first))
            return text(quote(one, safe="!'()*", errors="replace") if isinstance(one, str) else None for one in parts)
        case "URLSearchParams":
            return _query(first)
        case "URL":
            return _address(texts.under(args[1], first) if len(args) == 2 else first)
        case "String":
            return joined(text(parts_of(one)) for one in choices(written(first))) if args else Lit("")
        case "Promise.all" | "Promise.allSettled" | "Promise.resolve" | "Array.from" | "structuredClone":
            return first if len(args) == 1 else None
        case "Object.assign" if isinstance(first, Made):
            for other in args[1:]:
                known = dict(other.items) if isinstance(other, Fields) else {}
                if other != Lit(None) and (not isinstance(other, Fields) or other.more):
                    known = dict.fromkeys(first.attributes, UNKNOWN) | known  # any of them may be another
                first.attributes.update(known)
            return first
        case "Object.assign" if args:
            made = first if isinstance(first, Fields) else Fields(more=True)
            for other in args[1:]:
                if other != Lit(None):
                    made = made.merged(other if isinstance(other, Fields) else Fields(more=True))
            return made
        case "Object.keys" if isinstance(first, Fields):
            return Listed(tuple(Lit(key) for key, _ in first.items), first.more)
        case "Object.entries" if isinstance(first, Fields):
            return Listed(tuple(Listed((Lit(key), value)) for key, value in first.items), first.more)
        case "Object.values" if isinstance(first, Fields):
            return Listed(tuple(value for _, value in first.items), first.more)
        case "Request" | "globalThis.Request":
            return Thing("asked", (("url", first), ("options", args[1] if len(args) > 1 else Lit(None))))
        case "process.exit":
            reader.leave()
    return None


def _query(given: Value) -> Value:
    """A query as `URLSearchParams` writes it."""
    match given:
        case Lit(value=str() as known):
            try:
                pairs = parse_qsl(known.removeprefix("?"), keep_blank_values=True, max_num_fields=200)
            except ValueError:
                return UNKNOWN
            made: Value = Lit(urlencode(pairs))
        case Fields() | Listed():
            made = texts.encoded(_all_written(given))
        case Text():
            return Form(Fields(more=True))
        case _:
            return given
    # Python leaves `~` and writes `*` as a number.
    return Lit(made.value.replace("~", "%7E").replace("%2A", "*")) if isinstance(made, Lit) else made


def _address(given: Value) -> Value:
    """An address as `URL` writes it; unknown where it isn't sure how that is."""
    if isinstance(given, OneOf):
        return joined(_address(one) for one in given.values)
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


def apart(value: Value, *, asked: bool) -> Value:
    """What is known of a value that is changed where it isn't followed; with `asked` also where it is an address."""
    match value:
        case OneOf(values=values):
            return joined(apart(one, asked=asked) for one in values)
        case Fields():
            return Fields(more=True)
        case Listed() | Stream():
            return Listed((), True)
        case Form():
            return Form(Fields(more=True))
        case Lit() | Text() if asked and texts.is_text(value):
            return asked_anew(value)
    return value


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


def _all_written(value: Value) -> Value:
    match value:
        case Fields(items=items, more=more):
            return Fields(tuple((name, _all_written(one)) for name, one in items), more)
        case Listed(items=items, more=more):
            return Listed(tuple(_all_written(one) for one in items), more)
    return written(value)


def computed(op: ast.operator, left: Value, right: Value) -> Value:
    """What an operator makes of two numbers; of anything else it isn't known."""
    match left, right:
        case Lit(value=int() | float() as one), Lit(value=int() | float() as other):
            if isinstance(one, bool) or isinstance(other, bool):
                return UNKNOWN
        case _:
            return UNKNOWN
    first, second = float(one), float(other)
    try:
        match op:
            case ast.Add():
                return Lit(exact(first + second))
            case ast.Sub():
                return Lit(exact(first - second))
            case ast.Mult():
                return Lit(exact(first * second))
    except (ValueError, OverflowError):
        return UNKNOWN
    return UNKNOWN


def _parsed(value: Value) -> Value:
    import json

    if isinstance(value, Json):
        return value.value
    if isinstance(value, Lit) and isinstance(value.value, str) and len(value.value) < 100_000:
        try:
            return of_json(json.loads(value.value, parse_int=_number, parse_float=_number))
        except (ValueError, OverflowError, RecursionError):
            return UNKNOWN
    return UNKNOWN


def _number(text: str) -> int | float:
    return exact(float(text))


def _of_value(reader: Following, owner: Value, name: str, args: list[Value]) -> Value | None:
    """A method of a list or a text."""
    if isinstance(owner, Lit | Text | Form | Json):
        return _of_text(owner, name, args)
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
                parts += [*([between] if place else []), *parts_of(written(item))]
            return text(parts) if parts else Lit("")
    return None


def _of_text(owner: Lit | Text | Form | Json, name: str, args: list[Value]) -> Value:
    if name in ("toString", "valueOf") and not args:
        return owner if name == "valueOf" or texts.is_text(owner) else text(parts_of(written(owner)))
    if name == "trim" and isinstance(owner, Lit | Text) and texts.is_text(owner):
        first, *rest = parts_of(owner)
        parts = [first.lstrip(_SPACES) if isinstance(first, str) else first, *rest]
        last = parts.pop()
        return text([*parts, last.rstrip(_SPACES) if isinstance(last, str) else last])
    given = [plain(one) for one in args]
    if not isinstance(owner, Lit) or not isinstance(owner.value, str):
        return UNKNOWN
    match name, given:
        case "split", [(True, str() as between)] if between:
            found = owner.value.split(between)
            return Listed(tuple(map(Lit, found))) if len(found) <= _MOST else UNKNOWN
        case (("replace" | "replaceAll"), [(True, str() as old), (True, str() as new)]) if "$" not in new:
            return texts.replaced(owner.value, old, new, 1 if name == "replace" else -1)
    return UNKNOWN


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
    if isinstance(url, Thing) and url.kind == "asked":
        url, options = url["url"], url["options"] if options == Lit(None) else UNKNOWN
    for one in choices(options):
        _send(reader, _field(one, "method", Lit("GET")), url, Fields(), _field(one, "body", Lit(None)))
    return UNKNOWN


def _got(reader: Following, name: str, args: list[Value]) -> Value:
    none, url = Lit(None), args[0] if args else UNKNOWN
    for one in choices(args[1] if len(args) > 1 else none):
        elsewhere = _field(one, "prefixUrl", none) != none
        verb = Lit(name) if name else _field(one, "method", Lit("GET"))
        params, form = _field(one, "searchParams", none), _field(one, "form", none)
        sent = _field(one, "json", none)
        body = Json(sent) if sent != none else _query(form) if form != none else _field(one, "body", none)
        query = texts.fields_of(_all_written(params)) or Fields()
        _send(reader, verb, UNKNOWN if elsewhere else url, query, body)
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
