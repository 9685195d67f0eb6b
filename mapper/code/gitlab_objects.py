"""python-gitlab, by its table: managers have an address and give objects, which have managers below them.

Rules: an object's address is known by the id that it is asked for with, where that is the one that it has afterwards:
a project that is found by its path is a number from then on, unless it is `lazy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Listed,
    Lit,
    Stream,
    Thing,
    Value,
    choices,
    each,
    parts_of,
    plain,
    text,
)
from mapper.code.library_table import table
from mapper.code.sent_requests import Request

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_MADE = frozenset({"gitlab.Gitlab", "gitlab.client.Gitlab"})
_GITLAB = "https://gitlab.com"
_NUMBERED = frozenset({"id", "iid"})  # keys that an object has as a number, however it was asked for
# What the library keeps to itself.
_OWN = (
    "get_all", "all", "as_list", "iterator", "lazy", "retry_transient_errors", "max_retries", "obey_rate_limit",
    "timeout", "extra_headers",
)  # fmt: skip
_PAGES = ("get_all", "all", "iterator")
_RAW = {"http_get": "GET", "http_list": "GET", "http_post": "POST", "http_put": "PUT", "http_delete": "DELETE"}


def made(name: str, args: Sequence[Value], given: Fields) -> Value | None:
    """A client, where a call of something imported gives one."""
    if name not in _MADE:
        return None
    if given.more or given.get("api_version") not in (None, Lit("4")):
        return UNKNOWN
    url = given.get("url") or (args[0] if args else Lit(None))
    return _thing("Gitlab", (), Lit(_GITLAB) if url == Lit(None) else url)


def attribute(owner: Thing, name: str) -> Value | None:
    """An attribute of an object; None for what is only a function."""
    entry = table("gitlab")[owner["cls"]]
    manager = entry.get("managers", {}).get(name)
    if manager in table("gitlab"):
        return _thing(manager, _below(table("gitlab")[manager]["path"], owner["path"]), owner["base"])
    known = name in entry["methods"] or name in _RAW or name in ("auth", "version") or name.startswith("__")
    return None if known or (owner["cls"], name) in _ALIKE else UNKNOWN


def assigned(owner: Thing, name: str, value: Value) -> Thing:
    """The object after `owner.name = value`, which its `save` sends."""
    return owner.but(sets=(owner["sets"] or Fields()).merged(Fields(((name, value),))))


def called(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    """A function of an object."""
    kind: Any = _ALIKE.get((owner["cls"], name)) or table("gitlab")[owner["cls"]]["methods"].get(name)
    if isinstance(kind, list):
        return _own(reader, owner, kind, args, given)
    match kind:
        case "get" | "get_alone" | "update" | "delete":
            return _item(reader, owner, kind, args, given)
        case "list":
            return _listed(reader, owner, given)
        case "create":
            return _created(reader, owner, given.get("data") or (args[0] if args else Fields()), given.without("data"))
        case "save":  # a list of the object's that is only read is sent, too
            sets: Fields = owner["sets"] or Fields()
            entry: dict[str, Any] = next(
                (one for one in table("gitlab").values() if one.get("gives") == owner["cls"]), {}
            )
            body = Fields(sets.merged(given).items, True)
            _send(reader, owner, entry.get("update", "PUT"), owner["path"], body=body)
        case "delete_self" | "refresh":
            _send(reader, owner, "GET" if kind == "refresh" else "DELETE", owner["path"], given)
        case None if owner["cls"] == "Gitlab":
            return _client(reader, owner, name, args, given)
    return UNKNOWN


_ALIKE = {("ProjectFile", "save"): "save", ("ProjectFileManager", "create"): "create",
          ("ProjectPipelineManager", "create"): "create"}  # fmt: skip


def _client(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    if name == "__enter__":
        return owner
    if name in ("auth", "version"):
        _send(reader, owner, "GET", (Lit("user" if name == "auth" else "version"),))
    elif name in _RAW and args:
        body = given.get("post_data") or (args[2] if len(args) > 2 else None)
        query = given.get("query_data") or (args[1] if len(args) > 1 else None)
        asked = query if isinstance(query, Fields) else Fields(more=query is not None)
        for (one,) in each(args[0]):
            known, path = plain(one)
            if known and isinstance(path, str) and path.startswith("/"):
                where = tuple(Lit(part) for part in path.strip("/").split("/"))
                reader.seen.spend(len(where))
                _send(reader, owner, _RAW[name], where, asked.merged(given.without("post_data", "query_data")), body)
            else:
                reader.seen.unread.append((reader.line, f"{name} of an address that isn't written there"))
    return UNKNOWN


def _item(reader: Following, owner: Thing, kind: str, args: list[Value], given: Fields) -> Value:
    alone = kind == "get_alone"
    key = Lit(None) if alone else given.get("id") or (args[0] if args else Lit(None))
    gives: Value = UNKNOWN
    for (one,) in each(key):
        path = owner["path"] if one == Lit(None) else (*owner["path"], _segment(one))
        body = given.get("new_data") or (args[1] if len(args) > 1 else None)
        lazy = given.get("lazy") or (args[1] if kind == "get" and len(args) > 1 else Lit(False))
        if kind == "update":
            _send(reader, owner, table("gitlab")[owner["cls"]]["update"], path, given.without("id", "new_data"), body)
        elif kind == "delete" or lazy != Lit(True):
            _send(reader, owner, "DELETE" if kind == "delete" else "GET", path, given.without("id", "lazy"))
        gives = _object(owner, one, path, lazy == Lit(True)) if "get" in kind and len(choices(key)) == 1 else UNKNOWN
        if "get" in kind and len(choices(key)) > 1:
            gives = _object(owner, UNKNOWN, path, lazy=False)
    return gives


def _listed(reader: Following, owner: Thing, given: Fields) -> Value:
    if given.get("path") is not None or given.get("query_parameters") is not None:
        reader.seen.unread.append((reader.line, "a list of python-gitlab's with an address or parameters of its own"))
        return Stream(_object(owner, UNKNOWN, owner["path"], lazy=False))
    pages = given.more or any(given.get(name) not in (None, Lit(False), Lit(None)) for name in _PAGES)
    # The next page's address is the server's, with whatever parameters it has there.
    _send(reader, owner, "GET", owner["path"], Fields(given.items, given.more or pages))
    return Stream(_object(owner, UNKNOWN, owner["path"], lazy=False))


def _created(reader: Following, owner: Thing, data: Value, given: Fields) -> Value:
    path = owner["path"]
    for (one,) in each(data):
        if owner["cls"] == "ProjectFileManager":
            name = one.get("file_path") if isinstance(one, Fields) else None
            path, one = (*path, _segment(name or UNKNOWN)), one.without("file_path") if isinstance(one, Fields) else one
        elif owner["cls"] == "ProjectPipelineManager":
            path = (*path[:-1], Lit("pipeline"))
        _send(reader, owner, "POST", path, given, one)
    return _object(owner, UNKNOWN, owner["path"], lazy=False)


def _own(reader: Following, owner: Thing, asked: Sequence[Any], args: list[Value], given: Fields) -> Value:
    """A function of a class's own."""
    verb, where, arguments, names = asked
    named = {**dict(zip(arguments, args, strict=False)), **dict(given.items)}
    path = list(owner["path"])
    for part in where.strip("/").split("/") if where else ():
        path.append(_segment(named.pop(part[1:-1], UNKNOWN)) if part.startswith("{") else Lit(part))
    sent = {name: named.pop(argument) for argument, name in names or () if argument in named}
    left = {name: value for name, value in named.items() if name in arguments}
    asks = Fields.of({name: value for name, value in named.items() if name not in left}, given.more)
    fields = Fields(tuple(sent.items()), names is None or bool(left) or len(args) > len(arguments))
    if verb in ("GET", "DELETE"):
        _send(reader, owner, verb, tuple(path), asks.merged(fields))
    else:
        _send(reader, owner, verb, tuple(path), asks, fields)
    return UNKNOWN


def _below(template: str, parent: Sequence[Value]) -> tuple[Value, ...]:
    """A manager's address: what is in it of its parent's."""
    found: list[Value] = []
    aligned = True
    for place, part in enumerate(template.strip("/").split("/")):
        own = parent[place] if place < len(parent) else UNKNOWN
        slot = part.startswith("{")
        aligned = aligned and (slot or own in (Lit(part), UNKNOWN))
        found.append((own if aligned else UNKNOWN) if slot else Lit(part))
    return tuple(found)


def _object(owner: Thing, key: Value, path: tuple[Value, ...], lazy: bool) -> Value:
    gives = table("gitlab")[owner["cls"]]["gives"]
    if gives not in table("gitlab"):
        return UNKNOWN
    if path == owner["path"] and key != Lit(None):
        path = (*path, UNKNOWN)
    elif not lazy and table("gitlab")[gives]["id"] in _NUMBERED and key != Lit(None):
        known, said = plain(key)
        if not (known and str(said).isdecimal()):
            path = (*owner["path"], UNKNOWN)
    return _thing(gives, path, owner["base"])


def _segment(value: Value) -> Value:
    """An id as the part of an address that it becomes."""
    known, said = plain(value)
    return Lit(quote(str(said), safe="")) if known and type(said) in (str, int) else UNKNOWN


def _thing(cls: str, path: tuple[Value, ...], base: Value) -> Thing:
    return Thing("table", (("lib", "gitlab"), ("cls", cls), ("path", path), ("base", base)))


def _send(
    reader: Following, owner: Thing, verb: str, path: Sequence[Value], query: Fields | None = None,
    body: Value | None = None,
) -> None:  # fmt: skip
    query = (query or Fields()).without(*_OWN)
    # A list is several parameters, or one with commas, and a mapping several with brackets.
    parted = any(isinstance(value, Listed | Fields) for _, value in query.items)
    asked = Fields(
        tuple(pair for pair in query.items if not isinstance(pair[1], Listed | Fields)), query.more or parted
    )
    sends = verb not in ("GET", "DELETE")
    fields = body if isinstance(body, Fields) else Fields(more=body is not None)
    where: list[Any] = ["/api/v4"]
    for segment in path:
        where += ["/", *parts_of(segment)]
    for (base,) in each(owner["base"]):
        front = [part.rstrip("/") if isinstance(part, str) else part for part in parts_of(base)]
        reader.seen.requests.append(
            Request(
                line=reader.line,
                verb=Lit(verb),
                url=text((*front, *where)),
                query=asked,
                body=fields if sends else Fields(),
                kind="json" if sends else "none",  # `{}` where there is nothing to say
                sdk=True,
            )
        )
