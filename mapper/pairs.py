"""Undo pairs from outside the manifests: read strictly, and checked against the catalog like a manifest's.

A pair is a table with `method` (`service.method`), optionally `when` (patterns for some arguments) or `request` (one
request exactly), and `undo`, as a manifest has it:

    method = "notes.archive"
    when = { folder = "inbox-*" }

    [undo]
    note = "…"
    pre = { method = "get", arguments = { id = "$request.id" } }
    calls = [{ method = "unarchive", arguments = { id = "$request.id" } }]
    verify = { method = "get", arguments = { id = "$request.id" }, expect = [{ path = "$.archived", equals = false }] }

Rules: every call of it is one of the same service, so that host and account are the action's own; what is read around
it is a read that is believed to be one. A model's pair is held to more: its arguments come from the request, the answer
or what was read before, never from the model; what it deletes or gives away must be in the reach of a permission that
the action itself can be granted, and be something that the action's answer named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mapper import manifest_templates
from mapper.catalog import Catalog
from mapper.templates import references
from mapper.toml_tables import File, ManifestError, Table
from policies.errors import Unsupported
from policies.jsonvalue import JsonObject, canonical
from policies.reversions import Pair, undo_to_json
from policies.services import CallTemplate, Expect, Method, Risk, Service, Source, UndoTemplate, believed_risk

MAX_PAIRS = 200  # in one file


def of_catalog(catalog: Catalog, method: Method) -> Pair | None:
    """The pair that the catalog has for a method; None where it has none."""
    if method.undo is None:
        return None
    return Pair(
        service=method.service,
        method=method.name,
        undo=method.undo,
        source=method.undo.source,
        wire=wire(catalog, method, method.undo),
    )


def read_file(text: str, name: str, catalog: Catalog, *, source: Source = "developer") -> tuple[Pair, ...]:
    """The pairs of a TOML file: one, or several as `[[pair]]`. Raises ManifestError, UnknownName."""
    root = Table.read(File(name, text))
    if not root.has("pair"):
        return (read(root, catalog, source=source),)
    items = root.take("pair", list)
    root.done()
    if not 0 < len(items) <= MAX_PAIRS or not all(isinstance(item, dict) for item in items):
        root.fail(f"must be one to {MAX_PAIRS} tables", "pair")
    return tuple(read(Table(root.file, item, ("pair",)), catalog, source=source) for item in items)


def from_json(value: JsonObject, catalog: Catalog, *, source: Source) -> Pair:
    """The pair that `to_json` wrote, or a model. Raises ManifestError, UnknownName."""
    if not isinstance(value, dict):
        raise ManifestError("An undo pair must be an object.")
    return read(Table(File("the pair", ""), value), catalog, source=source)


def to_json(pair: Pair) -> dict[str, Any]:
    """All of a pair but who says so."""
    made: dict[str, Any] = {"method": pair.method_id, "undo": undo_to_json(pair.undo)}
    if pair.when:
        made["when"] = dict(pair.when)
    if pair.request is not None:
        made["request"] = dict(pair.request)
    return made


def read(table: Table, catalog: Catalog, *, source: Source) -> Pair:
    """One pair, checked. Raises ManifestError about the key that is wrong, UnknownName, Unsupported."""
    method = catalog.method(table.take("method", str))
    service = catalog.service(method.service)
    if method.risk is Risk.READ and service.source != "imported":
        table.fail("only reads, so there is nothing to take back", "method")
    when = table.take("when", dict, {})
    request = table.take("request", dict, {}) if table.has("request") else None
    for name, pattern in when.items():
        if name not in method.parameters["properties"] or not isinstance(pattern, str):
            table.fail(f"{method.id} has no such argument, or this isn't a text to match", "when", name)
    if when and request is not None:
        table.fail("is either for some arguments or for one request exactly", "request")
    undo, _ = manifest_templates.read(method, service.methods, table)
    table.done()
    if undo is None:
        table.fail("is missing", "undo")
    undo = replace(undo, source=source)
    _check(table, service, method, undo)
    if source == "model":
        _check_model(table, service, method, undo)
    return Pair(
        service=method.service,
        method=method.name,
        undo=undo,
        source=source,
        when=when,
        request=request,
        wire=wire(catalog, method, undo),
    )


def methods_of(undo: UndoTemplate) -> Iterator[str]:
    """The names of all methods that an undo may call."""
    yield from (call.method for call in (*undo.sends, *undo.reads))


def why_unusable(catalog: Catalog, pair: Pair) -> str:
    """Say why no call can be taken back by this pair, whatever its arguments are; "" where some can."""
    service = catalog.service(pair.service)
    undo = pair.undo
    for name in dict.fromkeys(methods_of(undo)):
        method = service.methods.get(name)
        if method is None:
            return f"{pair.service} has no method {name} any more."
        if method.unsupported:
            return f"{method.id} can't be called through GoEx: {method.unsupported}"
    for read in undo.reads:
        if believed_risk(service, service.methods[read.method]) is not Risk.READ:
            return f"{pair.service}.{read.method} would only be read, and isn't sure to be a read."
    return ""


def wire(catalog: Catalog, method: Method, undo: UndoTemplate) -> str:
    """A hash over how each method of a pair is called: a pair is proven for these calls, and no others."""
    known = catalog.service(method.service).methods
    names = sorted({method.name, *methods_of(undo)})
    facts = {name: _called(known[name]) if name in known else None for name in names}
    return hashlib.sha256(canonical(facts)).hexdigest()[:32]


def _called(method: Method) -> list[Any]:
    own = [method.document] if method.document else []
    return [method.http, method.path, dict(method.locations), method.body, dict(method.defaults), method.mail, *own]


def _check(table: Table, service: Service, method: Method, undo: UndoTemplate) -> None:
    for name in methods_of(undo):
        if service.methods[name].unsupported:
            raise Unsupported(f"{service.name}.{name} can't be called through GoEx, so it can't be part of an undo.")
    for template in undo.reads if service.source == "imported" else ():
        read = service.methods[template.method]
        if read.http not in ("GET", "HEAD") and believed_risk(service, read) is not Risk.READ:
            table.fail(f"{template.method} isn't sure to be a read: only its document says so", "undo")


def _check_model(table: Table, service: Service, method: Method, undo: UndoTemplate) -> None:
    if undo.verify is None:
        table.fail("needs a read-back: what a model says is only believed once it was read back", "undo", "verify")
    for template in (*undo.sends, *undo.reads):
        _check_values(table, service.methods[template.method], template)
    for call in undo.sends:
        target = service.methods[call.method]
        if target.risk <= Risk.WRITE:
            continue
        if not set(target.scopes) & set(method.scopes):
            table.fail(
                f"{call.method} ({target.risk.word}) needs a permission that {method.name} has no use for", "undo"
            )
        if not any(one.source == "response" for value in call.arguments.values() for one in references(value)):
            table.fail(f"{call.method} ({target.risk.word}) must name what the action's answer named", "undo")


def _check_values(table: Table, method: Method, template: CallTemplate) -> None:
    for name, value in template.arguments.items():
        schema = method.parameters["properties"][name]
        for literal in _literals(value):
            if not isinstance(literal, bool) and not (literal in schema.get("enum", ()) and literal is value):
                table.fail(
                    f"{name} of {template.method} must come from $request, $response or $pre, not from a model", "undo"
                )
    for expect in template.expect:
        _check_expected(table, expect)


def _check_expected(table: Table, expect: Expect) -> None:
    if expect.op == "status" and not set(expect.value) <= {200, 201, 204, 404, 410}:
        table.fail("a status that says nothing of what is there", "undo")


def _literals(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _literals(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _literals(child)
    elif not any(True for _ in references(value)):
        yield value


def names_nothing_new(arguments: JsonObject, before: object) -> bool:
    """Whether every value of `arguments` was there before the action already, in its request or what was read first:
    then it isn't what the action made."""
    known = {canonical(leaf) for leaf in _leaves(before)}
    texts = {str(leaf) for leaf in _leaves(before)}
    own = [leaf for leaf in _leaves(arguments) if not isinstance(leaf, bool) and leaf is not None]
    return all(canonical(leaf) in known or str(leaf) in texts for leaf in own)


def _leaves(value: object) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _leaves(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _leaves(child)
    else:
        yield value
