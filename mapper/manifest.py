"""Service manifests: TOML files, parsed once and strictly into the catalog's nouns.

    name = "chat"                                   # the file's name without .toml
    title = "Chat"
    description = "Team chat."
    base_url = "https://chat.example.org/api"       # "" where only an account can know it
    words = ["chat", "channel"]                     # how people speak about it
    success = [{ path = "$.ok", equals = true, says = "the service said no" }]

    [oauth]                                         # how a login goes: see mapper.manifest_oauth
    issuer = "https://accounts.example.org"

    [code]                                          # what programs that use it expect: see CodeFacts
    tokens = ["CHAT_TOKEN"]

    [scopes."chat:write"]
    description = "Send messages."
    risk = "write"                                  # read, write, delete, admin; virtual = true where it is cut by us

    [methods."messages.send"]
    http = "POST /channels/{channel}/messages"
    description = "Post a message to a channel."
    scopes = ["chat:write"]                         # any one of them suffices
    risk = "write"
    audience = ["channel"]                          # who gets something by it: see mapper.manifest_audience
    words = ["send a message"]
    defaults = { priority = "low" }                 # used when the caller leaves it out
    fixed = { nonce = "$action.key" }               # the caller can't set these at all; fixed_query: in the query
    idempotency = "nonce"                           # what makes a repetition harmless: a fixed argument, or a header
    irreversible = "…"                              # why, for a method that changes something and has no undo

    [methods."messages.send".parameters]            # [location] type[:format][[]][!] words; "!" is required
    channel = "string:channel! Where to post."
    text = { type = "string", required = true, maxLength = 4000, description = "The message." }

    again = "@channel"                              # as [shared.channel] has it

    [methods."messages.send".undo]                  # pre, guard and verify are optional and must be reads
    note = "Others may have read it."
    calls = [{ method = "messages.delete", arguments = { channel = "$request.channel", id = "$response.id" } }]
    guard = { method = "messages.get", arguments = { … }, expect = [{ path = "$.text", equals = "$request.text" }] }

An expectation is `{ path, equals | not_equals | contains | lacks | exists | absent, says }` or `{ status = [404] }`.
An object that a list `lacks` stands for each item that has its fields. Where a service answers a call
that makes something with what was there already, the undo has `after`, which reads the list of `pre` again, the path
`made` of that list, and `fields`, the arguments that a new item shows: `$made` is then the one item that is new.
`probe` stands beside `undo` and has the form of `guard`. A reference that ends in `?` may lead nowhere. A parameter
goes into the path where the path names it, else into the query (GET, DELETE) or the body, unless its first word says
`query`, `repeat`, `body`, `header` or `mail`; one in the path is required or has a default. With `mail = "raw"` the
`mail` parameters (to, cc, bcc, subject, body, inReplyTo) make a letter, whose base64url text stands at that place of
the JSON body. Unknown keys are refused everywhere.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from mapper import manifest_audience, manifest_oauth, manifest_templates
from mapper.json_schema import problem, short_form
from mapper.templates import Reference, references
from mapper.toml_tables import File, ManifestError, Table
from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.services import BodyFormat, CodeFacts, Location, Method, Placement, Risk, Scope, Service, Source

__all__ = ["ManifestError", "load"]

_SERVICE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_METHOD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*")
_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,80}")
_PREFIX = re.compile(r"[A-Za-z0-9._-]{0,20}")
_NEVER_A_KEY = frozenset({"authorization", "host", "cookie", "content-type", "content-length", "connection", "accept"})
_HTTP = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) (/\S*)")
_SEGMENT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.\-]*)\}|[A-Za-z0-9._~:@!$&'()*+,;=%-]*")
_LOCATIONS: tuple[Location, ...] = ("path", "query", "repeat", "body", "header", "mail")
_MAIL_PARTS = {
    "to": "array",
    "cc": "array",
    "bcc": "array",
    "subject": "string",
    "body": "string",
    "inReplyTo": "string",
}
_MAIL_PLACE = re.compile(r"[A-Za-z]+(\.[A-Za-z]+)*")


def load(text: str, *, file: str, source: Source = "bundled") -> Service:
    """The service that `text` describes. `file` is its name, for messages, and must be `<service>.toml`.

    Raises ManifestError naming the file, the key and the line.
    """
    root = Table.read(File(file, text))
    name = root.take("name", str)
    if not _SERVICE_NAME.fullmatch(name):
        root.fail("must be lower-case letters, digits and _", "name")
    if file.rsplit("/", 1)[-1] != f"{name}.toml":
        root.fail(f"a service of this name belongs into {name}.toml", "name")
    title, description = root.take("title", str), root.take("description", str)
    base_url = _base_url(root)
    words = root.texts("words")
    success = manifest_templates.expects(root, "success")
    placement = _placement(root.table("placement"))
    headers = _headers(root)
    scopes = {key: _scope(name, key, table) for key, table in root.table("scopes").tables()}
    oauth = manifest_oauth.read(root, scopes)
    code = _code(root.table("code"))
    shared = root.take("shared", dict, {})
    drafts = [_method(name, key, table, scopes, shared) for key, table in root.table("methods").tables()]
    root.done()
    if not drafts:
        root.fail("a service without methods can't be used", "methods")
    known = {method.name: method for method, _ in drafts}
    methods = {}
    for method, table in drafts:
        undo, probe = manifest_templates.read(method, known, table)
        why = table.take("irreversible", str, "")
        if why and (undo is not None or method.risk is Risk.READ):
            table.fail("says that it can't be taken back, which is untrue or needless here", "irreversible")
        if method.risk > Risk.READ and undo is None:
            if not why:
                table.fail("changes something, so it needs 'undo', or 'irreversible' with the reason")
            described = f"{method.description} Can't be taken back: {why}"
            method = replace(method, description=described)
        table.done()
        methods[method.name] = replace(method, undo=undo, probe=probe)
    _check_scopes(root, scopes, methods)
    return Service(
        name=name,
        title=title,
        description=description,
        base_url=base_url,
        methods=MappingProxyType(methods),
        scopes=MappingProxyType(scopes),
        placement=placement,
        success=success,
        words=words,
        headers=headers,
        source=source,
        oauth=replace(oauth, source=source) if oauth is not None else None,
        code=code,
    )


def _base_url(root: Table) -> str:
    url = root.take("base_url", str, "").rstrip("/")
    if url:
        _checked_base(root, url, "base_url")
    return url


def _checked_base(table: Table, url: str, key: str) -> None:
    try:
        origin = Origin.parse(url)
    except InvalidInput as error:
        table.fail(error.message.rstrip("."), key)
    if origin.scheme != "https" or any(char in url for char in "?#{}"):
        table.fail("must be an https URL without query, fragment or braces", key)


def _placement(table: Table) -> Placement:
    made = Placement(
        header=table.take("header", str, "Authorization"), format=table.take("format", str, "Bearer {secret}")
    )
    if not _HEADER.fullmatch(made.header):
        table.fail("isn't a header's name", "header")
    if made.format.count("{secret}") != 1 or not made.format.isprintable():
        table.fail("must hold {secret} once", "format")
    table.done()
    return made


def _code(table: Table) -> CodeFacts:
    made = CodeFacts(
        tokens=table.texts("tokens"),
        prefix=table.take("prefix", str, ""),
        sdk=table.take("sdk", str, ""),
        query=table.texts("query"),
        either=table.take("either", bool, False),
        bases=tuple(base.rstrip("/") for base in table.texts("bases")),
    )
    for name in made.tokens:
        if not _VARIABLE.fullmatch(name) or name.startswith("GOEX_"):
            table.fail(f"{name!r} isn't a variable that a program reads a token from", "tokens")
    if not _PREFIX.fullmatch(made.prefix):
        table.fail("is at most 20 letters, digits, dots, - and _", "prefix")
    for name in made.query:
        if not _PARAMETER_NAME.fullmatch(name.removeprefix("$")):
            table.fail(f"{name!r} isn't a parameter's name", "query")
    for base in made.bases:
        _checked_base(table, base, "bases")
    table.done()
    return made


def _headers(root: Table) -> dict[str, str]:
    headers = root.table("headers").rest()
    for key, value in headers.items():
        if not _HEADER.fullmatch(key) or not isinstance(value, str) or not value.isprintable():
            root.fail("isn't a header with a printable value", "headers", key)
    return headers


def _risk(table: Table) -> Risk:
    word = table.take("risk", str)
    if word.upper() not in Risk.__members__:
        table.fail("must be read, write, delete or admin", "risk")
    return Risk.parse(word)


def _scope(service: str, name: str, table: Table) -> Scope:
    made = Scope(
        service=service,
        name=name,
        description=table.take("description", str),
        risk=_risk(table),
        virtual=table.take("virtual", bool, False),
    )
    table.done()
    return made


def _method(
    service: str, name: str, table: Table, scopes: dict[str, Scope], shared: dict[str, Any]
) -> tuple[Method, Table]:
    if not _METHOD_NAME.fullmatch(name):
        table.fail("a method's name is words of letters, digits and _, joined by dots")
    match = _HTTP.fullmatch(table.take("http", str))
    if match is None:
        table.fail("must read like 'GET /things/{id}'", "http")
    verb, path = match[1], match[2]
    places = _path_parameters(table, path)
    allowed = table.texts("scopes")
    for scope in allowed:
        if scope not in scopes:
            table.fail(f"{scope!r} isn't a scope of this service", "scopes")
    if not allowed:
        table.fail("a method without scopes couldn't be called by anybody", "scopes")
    default_place: Location = "query" if verb in ("GET", "HEAD", "DELETE") else "body"
    properties, required, locations = _parameters(table.table("parameters"), places, default_place, shared)
    mail = _mail(table, properties, locations)
    defaults = _defaults(table, properties, required, places, locations, default_place)
    idempotency = _idempotency(table, properties, defaults, locations)
    for place in places:
        if place not in locations:
            table.fail(f"the path names {{{place}}}, which is no parameter and not fixed", "http")
        if place not in required and place not in defaults:
            table.fail("is in the path, so it is required: end its type with '!', or give it a default", place)
    in_body = "body" in locations.values() or bool(mail)
    body: Any = table.take("body", str, "json" if in_body else "none")
    if body not in ("json", "form", "none") or in_body != (body != "none"):
        table.fail("must be json or form where a parameter goes into the body, else none", "body")
    if mail and body != "json":
        table.fail("must be json where a letter goes into it", "body")
    made = Method(
        service=service,
        name=name,
        description=table.take("description", str),
        http=verb,
        path=path,
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        locations=MappingProxyType(locations),
        scopes=allowed,
        risk=_risk(table),
        body=_body(body),
        mail=mail,
        words=table.texts("words"),
        defaults=defaults,
        idempotency=idempotency,
    )
    made = replace(made, audience=manifest_audience.read(table, made.risk, frozenset(properties)))
    if (verb in ("GET", "HEAD")) != (made.risk is Risk.READ) and verb != "POST":
        table.fail(f"{verb} and a risk of {made.risk.word} don't go together", "risk")
    return made, table


def _mail(table: Table, properties: dict[str, Any], locations: dict[str, Location]) -> str:
    """Where the letter goes; "" where there is none."""
    place = table.take("mail", str, "")
    parts = [name for name, location in locations.items() if location == "mail"]
    if bool(place) != bool(parts) or (place and not _MAIL_PLACE.fullmatch(place)):
        table.fail("must name a place in the body, like 'raw', exactly where there are mail parameters", "mail")
    for name in parts:
        items = properties[name].get("items", {})
        if properties[name].get("type") != _MAIL_PARTS.get(name) or (items and items.get("type") != "string"):
            table.fail("isn't a part of a letter: to, cc, bcc (lists of texts), subject, body, inReplyTo", name)
    return place


def _body(word: str) -> BodyFormat:
    return "json" if word == "json" else "form" if word == "form" else "none"


def _path_parameters(table: Table, path: str) -> tuple[str, ...]:
    found: list[str] = []
    for segment in path[1:].split("/"):
        match = _SEGMENT.fullmatch(segment)
        if match is None or segment in (".", ".."):
            table.fail(f"{segment!r} isn't a path segment: a parameter is a whole one, like {{id}}", "http")
        if match[1]:
            found.append(match[1])
    if len(set(found)) != len(found):
        table.fail("the path names a parameter twice", "http")
    return tuple(found)


def _parameters(
    table: Table, places: tuple[str, ...], default: Location, shared: dict[str, Any]
) -> tuple[dict[str, Any], list[str], dict[str, Location]]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    locations: dict[str, Location] = {}
    for name, written in table.rest().items():
        if not _PARAMETER_NAME.fullmatch(name):
            table.fail("isn't a parameter's name", name)
        place: str = "path" if name in places else default
        if isinstance(written, str) and written.startswith("@"):
            if written[1:] not in shared:
                table.fail(f"{written[1:]!r} isn't among the shared parameters", name)
            written = shared[written[1:]]
        if isinstance(written, str):
            word, _, description = written.partition(" ")
            if word in _LOCATIONS:
                place = word
                word, _, description = description.partition(" ")
            parsed = short_form(word)
            if parsed is None:
                table.fail("must begin with a type, like 'string! …', or be a table", name)
            schema, needed = parsed
            if description:
                schema["description"] = description.strip()
        elif isinstance(written, dict):
            inner = Table(table.file, written, (*table.path, name))
            place = inner.take("in", str, place)
            needed = inner.take("required", bool, False)
            schema = inner.rest()
            if "type" not in schema and "anyOf" not in schema and "enum" not in schema:
                inner.fail("'type' is missing")
        else:
            table.fail("must be text or a table", name)
        wrong = problem(schema)
        if wrong:
            table.fail(wrong, name)
        if place not in _LOCATIONS or (place == "path") != (name in places):
            table.fail(f"can't be in the {place}: a parameter is in the path exactly where the path names it", name)
        properties[name], locations[name] = schema, _location(place)
        if needed:
            required.append(name)
    return properties, required, locations


def _location(word: str) -> Location:
    return next(place for place in _LOCATIONS if place == word)


def _defaults(
    table: Table,
    properties: dict[str, Any],
    required: list[str],
    places: tuple[str, ...],
    locations: dict[str, Location],
    default: Location,
) -> dict[str, Any]:
    """Defaults and fixed arguments, as one table of templates; `locations` gets the places of the fixed ones."""
    made: dict[str, Any] = {}
    kinds: tuple[Literal["defaults", "fixed", "fixed_query"], ...] = ("defaults", "fixed", "fixed_query")
    for kind in kinds:
        for name, value in table.take(kind, dict, {}).items():
            if kind == "defaults" and (name not in properties or name in required):
                table.fail("a default is for a parameter that may be left out", kind, name)
            if kind != "defaults":
                if name in properties or name in made:
                    table.fail("is a parameter, so it can't be fixed", kind, name)
                locations[name] = "path" if name in places else "query" if kind == "fixed_query" else default
            found = manifest_templates.checked(table, (kind, name), partial(_references, value))
            for reference in found:
                if reference.source != "action":
                    table.fail(f"{reference} isn't known before the call; $action.key is", kind, name)
            made[name] = value
    return made


def _idempotency(
    table: Table, properties: dict[str, Any], defaults: dict[str, Any], locations: dict[str, Location]
) -> str:
    """The name of the key, which is a header of its own where it isn't an argument; "" where there is none."""
    name = table.take("idempotency", str, "")
    if not name:
        return ""
    if name in properties:
        table.fail("is a parameter, so whoever calls could choose it", "idempotency")
    if name not in defaults:
        if not _HEADER.fullmatch(name) or name.lower() in _NEVER_A_KEY:
            table.fail("isn't a fixed argument, and can't be a header", "idempotency")
        defaults[name], locations[name] = "$action.key", "header"
    if defaults[name] != "$action.key":
        table.fail("must be fixed to $action.key", "idempotency")
    return name


def _references(value: Any) -> list[Reference]:
    return list(references(value))


def _check_scopes(root: Table, scopes: dict[str, Scope], methods: dict[str, Method]) -> None:
    for name, scope in scopes.items():
        worst = max(
            (method for method in methods.values() if name in method.scopes), key=lambda m: m.risk, default=None
        )
        if worst is None:
            root.fail("unlocks no method", "scopes", name)
        if worst.risk > scope.risk:
            root.fail(f"is said to be {scope.risk.word}, but unlocks {worst.name} ({worst.risk.word})", "scopes", name)
