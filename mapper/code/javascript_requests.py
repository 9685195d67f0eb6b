"""Requests that JavaScript programs send: fetch, got, ky, axios, node's https.

Rules: what a hook or an interceptor may change of a request makes it unknown; one that only sets headers changes none
that is known. A request that axios failed with and is given again is the one that was told before.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mapper.code import http, texts
from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Fields,
    Form,
    Function,
    Json,
    Listed,
    Lit,
    Method,
    Named,
    Thing,
    Value,
    choices,
    each,
    parts_of,
    plain,
    same,
    text,
)
from mapper.code.javascript_texts import all_written, query_of
from mapper.code.sent_requests import Kind

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_FETCH = frozenset({
    "builtins.fetch", "builtins.globalThis.fetch", "js:undici.fetch", "js:node-fetch.default", "js:node-fetch",
    "js:cross-fetch.default", "js:cross-fetch", "js:cross-fetch.fetch", "js:node-fetch-native.default",
})  # fmt: skip
_AXIOS = frozenset({"js:axios", "js:axios.default", "js:axios.axios", "js:axios.Axios"})
_AXIOS_ITSELF = Named("js:axios")
_GOT = frozenset({"js:got", "js:got.default", "js:got.got", "js:ky", "js:ky.default"})
_UNDICI = frozenset({"js:undici.request", "js:undici.default.request"})
_UNDICI_MADE = frozenset({"js:undici.Client", "js:undici.Pool"})
_HTTPS = frozenset({"js:https.request", "js:https.get", "js:https.default.request", "js:https.default.get"})
_BARE, _LOADED = frozenset({"get", "delete", "head", "options"}), frozenset({"post", "put", "patch"})
_FORMED = frozenset({"postForm", "putForm", "patchForm"})
# Options of a client of got's or ky's that leave the requests as they are.
_GOT_OPTIONS = frozenset({
    "agent", "cache", "decompress", "dnsCache", "followRedirect", "headers", "hooks", "http2", "https", "prefixUrl",
    "resolveBodyOnly", "responseType", "retry", "searchParams", "signal", "throwHttpErrors", "timeout", "username",
    "password", "maxRedirects", "credentials", "cookieJar",
})  # fmt: skip
# What of a request's options says what is asked for.
_ASKING = frozenset({
    "adapter", "allowAbsoluteUrls", "baseURL", "beforeRedirect", "body", "data", "form", "host", "hostname", "json",
    "merge", "method", "params", "paramsSerializer", "path", "port", "prefixUrl", "protocol", "request", "searchParams",
    "socketPath", "transformRequest", "transport", "url",
})  # fmt: skip
_WRITTEN_OUT = frozenset({"url", "method", "baseURL", "timeout"})  # of these, texts and numbers
_WRAPPED = ("js:loose", "js:asked", "js:else")  # the same, with less known of it
_FAILED, _AGAIN = "axios.answer", "axios.sent"  # what an interceptor of axios's gets, and the request within it


def called(reader: Following, function: Value, args: list[Value]) -> Value | None:
    """What a call that sends something gives; None for what is none of these."""
    match function:
        case Named(name=name):
            owner, _, leaf = name.rpartition(".")
            if name in _FETCH:
                return _fetch(reader, args)
            if name in _AXIOS or owner in _AXIOS:
                client = Thing("axios", (("base", reader.defaults.get("axios")),))
                return _axios(reader, client, "" if name in _AXIOS else leaf, args)
            if name in _GOT or owner in _GOT:
                return _got(reader, Thing("got", (("options", Fields()),)), "" if name in _GOT else leaf, args)
            if name in _UNDICI:
                return _undici(reader, args)
            if name in _UNDICI_MADE:
                plain_one = len(args) < 2 or isinstance(args[1], Fields)
                return Thing("undici", (("base", args[0] if args and plain_one else UNKNOWN),))
            if name in _HTTPS:
                return _https(reader, args, leaf == "get")
            used = name.rpartition(".interceptors.")
            if used[0] in _AXIOS:
                return _intercepted(reader, Thing("axios"), used[2], args)
        case Method(of=Thing(kind="undici") as client, name="request"):
            return _undici(reader, [client["base"], *args], below=True)
        case Thing(kind="axios"):
            return _axios(reader, function, "", args)
        case Thing(kind="got"):
            return _got(reader, function, "", args)
        case Method(of=Thing(kind="axios") as client, name=name):
            return _axios(reader, client, name, args)
        case Method(of=Thing(kind="got") as client, name=name):
            return _got(reader, client, name, args)
        case Method(of=Method(of=Method(of=Thing(kind="axios") as client, name="interceptors"), name=which), name=name):
            return _intercepted(reader, client, f"{which}.{name}", args)
    return None


def attribute(reader: Following, owner: Thing, name: str) -> Value | None:
    """An attribute of what an interceptor gets; None for anything else."""
    if owner.kind == _FAILED:
        return Thing(_AGAIN) if name == "config" else owner if name == "response" else ANSWER
    if owner.kind == _AGAIN:
        if name in _ASKING - _WRITTEN_OUT:
            _unread(reader, "a request of axios that may be sent again in another way")
        return ANSWER
    return None


def assigned(reader: Following, owner: Value, key: Value, value: Value) -> None:
    """A field of `owner` is given a value."""
    for one in choices(owner):
        known, name = plain(key)
        client, names = _within(one)
        names.append(str(name) if known else "")
        if client == _AXIOS_ITSELF and names == ["defaults", "baseURL"]:
            if not same(reader.defaults.setdefault("axios", value), value):
                reader.defaults["axios"] = UNKNOWN
                _unread(reader, "axios, which is told of more than one address")
        elif names[0] == "defaults" and (len(names) == 1 or names[1] in _ASKING or not names[1]):
            _unread(reader, "a client of axios whose defaults are changed")
        elif isinstance(one, Thing) and one.kind == _AGAIN and (not known or name in _ASKING):
            _unread(reader, "a request of axios that is sent again in another way")


def _within(value: Value) -> tuple[Value | None, list[str]]:
    """The client of axios that something is a field of, and the names of the fields that lead there."""
    names: list[str] = []
    while isinstance(value, Method):
        names.insert(0, value.name)
        value = value.of
    if isinstance(value, Named):
        below = tuple(f"{one}.{name}" for one in _AXIOS for name in ("defaults", "interceptors"))
        whole = next((one for one in _AXIOS if value.name == one or value.name.startswith(
            tuple(place for place in below if place.rpartition(".")[0] == one))), None)  # fmt: skip
        return (None, [""]) if whole is None else (_AXIOS_ITSELF, value.name.removeprefix(whole).split(".")[1:])
    return (value, names) if isinstance(value, Thing) and value.kind == "axios" else (None, [""])


def given(reader: Following, function: Value, args: Sequence[Value]) -> None:
    """Whoever is called gets these."""
    _, names = _within(function)
    within = len(names) > 2 and names[0] == "defaults" and names[1] in _ASKING
    passed = any(_within(one)[1][:1] == ["defaults"] for one in args if isinstance(one, Method | Named))
    shown = isinstance(function, Named) and function.name.startswith("builtins.console.")
    if within or "handlers" in names or (passed and not shown):
        _unread(reader, "a client of axios whose defaults are changed")
    again = any(isinstance(one, Thing) and one.kind == _AGAIN for one in args)
    if again and not _sends_again(function):
        _unread(reader, "a request of axios that may be sent again in another way")


def _sends_again(function: Value) -> bool:
    """Whether what is called leaves a request of axios as it was: axios itself, or a function that is followed."""
    match function:
        case Named(name=name):
            return name.removesuffix(".request") in _AXIOS or name.startswith("builtins.console.")
        case Thing(kind="axios") | Function():
            return True
        case Method(of=of, name=name):
            return isinstance(of, Thing) and of.kind == "axios" and name == "request"
    return False


def _unread(reader: Following, what: str) -> None:
    if (reader.line, what) not in reader.seen.unread:
        reader.seen.unread.append((reader.line, what))


def _intercepted(reader: Following, client: Thing, how: str, args: Sequence[Value]) -> Value:
    """`client.interceptors.request.use(f, g)`."""
    functions = [one for one in args if isinstance(one, Function)]
    if how == "request.use":
        if not all(isinstance(one, Function) and leaves_request(reader, one) for one in args[:1] if one != Lit(None)):
            _unread(reader, "an interceptor of axios, which may change what is asked for")
    elif how == "response.use":
        for one in functions:
            reader.call(one, [Thing(_FAILED)], Fields())
    return UNKNOWN


def leaves_request(reader: Following, function: Function) -> bool:
    """Whether a function changes nothing of the request whose options it is given, but for its headers."""
    node = function.node
    if not isinstance(node, ast.FunctionDef) or node.args.vararg is not None:
        return False
    above = {child: one for one in ast.walk(node) for child in ast.iter_child_nodes(one)}
    reader.seen.spend(1 + len(above) // 8)
    wanted = node.args.args[0].arg if node.args.args else ""
    if not all(_gives_back(one, wanted) for one in _returned(node)):
        return False
    named = [one for one in above if isinstance(one, ast.Name)]
    return all(one.id != "arguments" and (not wanted or one.id != wanted or _leaves(one, above)) for one in named)


def _returned(node: ast.FunctionDef) -> list[ast.expr | None]:
    """What a function gives, not what those within it give."""
    found: list[ast.expr | None] = []
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Return):
            found.append(one.value)
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(one)
    return found


def _gives_back(value: ast.expr | None, wanted: str) -> bool:
    """Whether that is what the function was given, or nothing."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _WRAPPED and value.args:
        value = value.args[0]
    nothing = value is None or (isinstance(value, ast.Constant) and value.value is None)
    return nothing or (isinstance(value, ast.Name) and bool(wanted) and value.id == wanted)


def _leaves(place: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether what is done with a function's parameter there leaves it as it is."""
    parent = above[place]
    while isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id.startswith("js:"):
        if parent.func.id not in _WRAPPED:
            return False
        place, parent = parent, above[parent]  # the same, with less known of it
    if isinstance(parent, ast.Return | ast.Expr):
        return True
    first: object = None
    match parent:
        case ast.Attribute(attr=first):
            pass
        case ast.Subscript(slice=ast.Constant(value=first)) if parent.value is place:
            pass
    if not isinstance(first, str):
        return False
    if first not in _ASKING:
        return True
    place, parent = parent, above[parent]
    read = isinstance(getattr(place, "ctx", None), ast.Load)
    return read and isinstance(parent, ast.FormattedValue | ast.Compare | ast.If | ast.UnaryOp | ast.Expr)


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
    return ANSWER


def _upper(verb: Value) -> Value:
    known, name = plain(verb)
    return Lit(name.upper()) if known and isinstance(name, str) else verb


def _fetch(reader: Following, args: list[Value]) -> Value:
    options = args[1] if len(args) > 1 else Lit(None)
    url = args[0] if args else UNKNOWN
    if isinstance(url, Thing) and url.kind == "asked":
        url, options = url["url"], _overridden(url["options"], options)
    for one in choices(options):
        _send(reader, _field(one, "method", Lit("GET")), url, Fields(), _field(one, "body", Lit(None)))
    return ANSWER


def _overridden(options: Value, others: Value) -> Value:
    """The options of a `Request` that is sent with others."""
    if others == Lit(None):
        return options
    made = Fields() if options == Lit(None) else options
    return made.merged(others) if isinstance(made, Fields) and isinstance(others, Fields) else UNKNOWN


def _undici(reader: Following, args: Sequence[Value], *, below: bool = False) -> Value:
    """undici's `request(url, {method, query, body})`; `below`: its `path` is below the address."""
    none = Lit(None)
    for url, options in each(*args[:2], *[none] * (2 - len(args))):
        if below:
            url = _under(url, _field(options, "path", UNKNOWN), slashed=True)
        asked = _field(options, "query", none)
        query = Fields() if asked == none else texts.fields_of(all_written(asked)) or Fields(more=True)
        if any(_field(options, name, none) != none for name in ("origin", "opaque", *(() if below else ("path",)))):
            url = UNKNOWN
        _send(reader, _field(options, "method", Lit("GET")), url, query, _field(options, "body", none))
    return ANSWER


def _got(reader: Following, client: Thing, name: str, args: list[Value]) -> Value:
    """`got(url, options)`, `got.post(url, options)`, `got.extend(options)`; ky's are the same."""
    if name in ("extend", "create"):
        return _got_made(reader, client, args)
    if name not in _BARE | _LOADED | {""}:
        _unread(reader, f"{name} of got, which isn't followed")
        return UNKNOWN
    none = Lit(None)
    for ways in each(*(args[:2] or [UNKNOWN])):
        first, given = ways[0], ways[1] if len(ways) > 1 else none
        if isinstance(first, Fields):
            first, given = _field(first, "url", none), first
        options = client["options"]
        if isinstance(given, Fields):
            options = options.merged(given)
            params = [_field(one, "searchParams", none) for one in (client["options"], given)]
            if none not in params:
                both = [texts.fields_of(all_written(one)) or Fields(more=True) for one in params]
                options = options.merged(Fields((("searchParams", both[0].merged(both[1])),)))
        elif given != none:
            options = Fields(options.items, True)
        url = _under(_field(options, "prefixUrl", none), first) if _hooked(reader, options) else UNKNOWN
        verb = Lit(name) if name else _field(options, "method", Lit("GET"))
        form, sent = _field(options, "form", none), _field(options, "json", none)
        body = Json(sent) if sent != none else query_of(form) if form != none else _field(options, "body", none)
        asked = _field(options, "searchParams", none)
        if asked != none:  # it replaces what the address asks for
            url = _without_query(url)
        query = Fields() if asked == none else texts.fields_of(all_written(asked)) or Fields(more=True)
        _send(reader, verb, url, query, body)
    return ANSWER


def _got_made(reader: Following, client: Thing, args: Sequence[Value]) -> Value:
    options: Fields = client["options"]
    for one in args:
        if isinstance(one, Thing) and one.kind == "got":
            one = one["options"]
        if not isinstance(one, Fields) or one.more or not {key for key, _ in one.items} <= _GOT_OPTIONS:
            one = Fields((("prefixUrl", UNKNOWN),), True)
        options = options.merged(one)
    if not _hooked(reader, options):
        options = options.merged(Fields((("prefixUrl", UNKNOWN),))).without("hooks")
    return Thing("got", (("options", options),))


def _hooked(reader: Following, options: Fields) -> bool:
    """Whether the hooks in these options leave requests as they are."""
    hooks = _field(options, "hooks", Lit(None))
    if hooks == Lit(None):
        return True
    if not isinstance(hooks, Fields) or hooks.more:
        return False
    for name, some in hooks.items:
        if name in ("beforeError", "afterResponse"):
            continue
        items, more = reader.items(some)
        if more or not all(isinstance(one, Function) and leaves_request(reader, one) for one in items):
            return False
    return True


def _without_query(url: Value) -> Value:
    kept: list[Any] = []
    for part in parts_of(url):
        if isinstance(part, Form):
            break
        kept.append(part.partition("?")[0] if part is not None else None)
        if part is not None and "?" in part:
            break
    return text(kept)


def _under(prefix: Value, url: Value, *, slashed: bool = False) -> Value:
    """An address below a client's, which is put before it as it is. `slashed`: it begins with a slash."""
    if prefix == Lit(None):
        return url
    first = parts_of(url)[0]
    if not isinstance(first, str) or first.startswith("/") != slashed or "://" in first:
        return UNKNOWN
    return http.based(prefix, url)


def _axios(reader: Following, owner: Thing, name: str, args: list[Value]) -> Value:
    first, none = args[0] if args else UNKNOWN, Lit(None)
    if name == "create":
        above = owner["base"] if owner["base"] is not None else none
        base = _field(first, "baseURL", above) if args else above
        method = _field(first, "method", none) if args else none
        params = _field(first, "params", none) if args else none
        return owner.but(base=base, params=params, method=method, rewrites=bool(args) and _rewrites(first))
    if name in _BARE:
        return _asked(reader, owner, Lit(name), first, none, args[1] if len(args) > 1 else none)
    if name in _LOADED:
        data = args[1] if len(args) > 1 else none
        return _asked(reader, owner, Lit(name), first, data, args[2] if len(args) > 2 else none)
    if name in _FORMED:
        return _asked(reader, owner, Lit(name.removesuffix("Form")), first, UNKNOWN, none)
    if name in ("", "request"):
        if isinstance(first, Thing) and first.kind == _AGAIN:
            return ANSWER
        config = first
        url: Value = _field(first, "url", Lit(""))
        if texts.is_text(first):
            url, config = first, args[1] if len(args) > 1 else none
        usual = owner["method"] if owner["method"] not in (None, none) else Lit("GET")
        return _asked(reader, owner, _field(config, "method", usual), url, none, config)
    return UNKNOWN


def _rewrites(config: Value) -> bool:
    """Whether options of axios's may change a request's body or query."""
    return any(
        _field(one, name, Lit(None)) != Lit(None)
        for one in choices(config)
        for name in ("transformRequest", "paramsSerializer", "adapter")
    )


def _asked(reader: Following, owner: Thing, verb: Value, url: Value, data: Value, config: Value) -> Value:
    base = _field(config, "baseURL", owner["base"] if owner["base"] is not None else Lit(None))
    if base != Lit(None):
        url = http.based(base, url)
    query = Fields()
    for params in (owner["params"], _field(config, "params", Lit(None))):
        if params is not None and params != Lit(None):
            query = query.merged(texts.fields_of(params) or Fields(more=True))
    sent = data if data != Lit(None) else _field(config, "data", Lit(None))
    if owner["rewrites"] or _rewrites(config):
        query, sent = Fields(more=True), UNKNOWN
    for one in choices(sent):
        _send(reader, verb, url, query, Json(one) if isinstance(one, Fields | Listed) else one)
    return ANSWER


def _https(reader: Following, args: list[Value], asks: bool) -> Value:
    """`https.request(url?, options?, callback)`: what is written to it afterwards isn't known."""
    for ways in each(*args):
        _https_asked(reader, ways, asks)
    return UNKNOWN


def _https_asked(reader: Following, args: Sequence[Value], asks: bool) -> None:
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


def _none() -> Kind:
    return "none"


def _json() -> Kind:
    return "json"
