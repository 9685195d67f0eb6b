"""What ways back are derived from: a document's operations with their bodies and answers, one level deep. Pure.

Rules: only what a document says plainly counts. An object that may be one of several, or whose parts disagree, has no
shape; a chain of references and a pile of `allOf` are followed a bounded way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mapper.importing.derived_undo import derive
from mapper.importing.import_report import BadPart
from mapper.importing.operation import Field, Op, Shape
from mapper.store.import_rows import DocumentMethod, DocumentScope, own_keys
from policies.reversions import undo_to_json

MAX_OPS = 50_000  # of one document: beyond it nothing is derived
_DEEP = 12
_LEVELS = 3  # of values in values that are described
_MOST = 2_000_000  # fields of one document that are put together; beyond it nothing has a shape
_HOLE = re.compile(r"\{\+?([^{}]+)\}")
_OUTPUT = re.compile(r"^\s*\[?output[ -]only\b|(^|[.,;(]\s*)read[ -]only[.)]?(\s*nullable\.?)?\s*$", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_REQUIRED = re.compile(r"\s*required\.", re.IGNORECASE)  # which some documents say in words alone
# Annotations of OData and JSON-LD.
_TAGS = frozenset({"@odata.type", "@type"})
_SELECT = "$select"  # OData's
_BESIDE_IT = "x-ms-navigationProperty"  # what is related to a thing: not shown with it unless asked for
_INPUT = re.compile(r"\s*\[?input[ -]only\b", re.IGNORECASE)
# Names of an envelope around the thing; one named like the thing is told by the path. Any other may be a part of it.
_AROUND = frozenset(
    {"content", "data", "entity", "item", "object", "payload", "record", "resource", "response", "result", "value"}
)
# What stands beside the thing itself where an answer (or a body) is an envelope around it.
_BESIDE = frozenset(
    (
        "apiversion", "code", "error", "errors", "included", "info", "jsonapi", "links", "_links", "message",
        "messages", "meta", "metadata", "ok", "pagination", "request_id", "requestid", "response_code",
        "responsestatus", "result_info", "status", "status_code", "statuscode", "success", "timestamp", "version",
        "warnings",
    )
)  # fmt: skip
# An answer with one of these says how the request went; the thing is inside of it.
_REPORTS = frozenset({"ok", "request_id", "requestid", "response_code", "status_code", "statuscode", "success"})
_SCALARS = frozenset({"boolean", "integer", "number", "string"})
# What an alternative of an object may say that only says which fields must be there.
_ONLY_NEEDS = frozenset({"required", "title", "description"})
# An answer of these alone says that it was done, and nothing of what became of it.
_DONE = frozenset({"code", "error", "errors", "message", "messages", "ok", "success", "warnings"})

Resolve = Callable[[str], tuple[str, Any]]  # a reference to a schema's name and the schema. Raises BadPart, KeyError


class Shapes:
    """Reads shapes of one document."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._known: dict[str, Shape | None] = {}
        self._inner: dict[tuple[str, int], Field] = {}
        self._left = _MOST

    def of(self, schema: Any) -> Shape | None:
        """The object that a schema describes; None where it isn't plainly one."""
        try:
            return self._of(schema, 0)
        except (BadPart, KeyError, TypeError, AttributeError, ValueError):
            return None

    def inside(self, schema: Any, path: str) -> tuple[str, Shape | None]:
        """The thing that an answer or a body holds, and where: ("data.", …) inside of an envelope, else ("", …)."""
        whole = self.of(schema)
        if whole is None:
            return "", None
        held = [name for name in whole.fields if name.lower() not in _BESIDE]
        if len(held) > 1 and any(name.lower() in _REPORTS for name in whole.fields):
            # Beside the thing stand plain values alone: `service`, `operation`.
            objects = [name for name in held if not whole.fields[name].kinds or whole.fields[name].kinds - _SCALARS]
            held = [name for name in objects if name.lower() in _AROUND] if len(objects) == 1 else held
        if len(held) != 1 or not _PLAIN.fullmatch(held[0]) or whole.fields[held[0]].kinds - {"object"}:
            return "", whole
        if held[0].lower() not in _AROUND and not _named_in(held[0], path):
            return "", whole
        inner = self.of(self._property(schema, held[0], 0))
        return (f"{held[0]}.", inner) if inner is not None else ("", whole)

    def _property(self, schema: Any, name: str, depth: int) -> Any:
        """The schema of a field; None where it isn't found."""
        try:
            while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str) and depth < _DEEP:
                schema, depth = self._resolve(schema["$ref"])[1], depth + 1
        except (BadPart, KeyError):
            return None
        if not isinstance(schema, Mapping) or depth >= _DEEP:
            return None
        own = schema.get("properties")
        if isinstance(own, Mapping) and name in own:
            return own[name]
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            found = self._property(part, name, depth + 1)
            if found is not None:
                return found
        return None

    def form(self, method: DocumentMethod) -> Shape | None:
        """What the arguments that a form is made of are; None where it is made of something else, too."""
        if method.body != "form" or {"file", "whole", "mail"} & set(method.locations.values()):
            return None
        fields = {
            name: self._written(method.properties.get(name)) for name, at in method.locations.items() if at == "body"
        }
        needed = frozenset(name for name in method.required if name in fields)
        return Shape(name="", fields=fields, needed=needed) if fields else None

    def _written(self, about: Any) -> Field:
        """A field by the schema of its argument, whose references are no longer the document's."""
        try:
            return self._field("", about, 0)
        except (BadPart, KeyError, TypeError, AttributeError, ValueError):
            return Field()

    def list_in(self, schema: Any) -> tuple[str, Shape | None]:
        """Where in an answer the one list of it is, and what is in it; "" where there is none, or it isn't the only
        one."""
        try:
            for _ in range(_DEEP):
                if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
                    schema = self._resolve(schema["$ref"])[1]
            if isinstance(schema, Mapping) and schema.get("type") == "array":
                return "$", self.of(schema.get("items"))
        except (BadPart, KeyError, TypeError, ValueError):
            return "", None
        found = self.of(schema)
        lists = [name for name, about in found.fields.items() if about.kinds == {"array"}] if found is not None else []
        if len(lists) != 1 or not _PLAIN.fullmatch(lists[0]):
            return "", None
        held = self._property(schema, lists[0], 0)
        return f"$.{lists[0]}", self.of(held.get("items")) if isinstance(held, Mapping) else None

    def _of(self, schema: Any, depth: int) -> Shape | None:
        if not isinstance(schema, Mapping) or depth > _DEEP or self._left < 0:
            return None
        if isinstance(schema.get("$ref"), str):
            reference = schema["$ref"]
            if reference not in self._known:
                self._known[reference] = None  # while it is read: what holds itself has no shape that way
                name, found = self._resolve(reference)
                made = self._of(found, depth + 1)
                self._known[reference] = replace(made, name=name) if made else None
            return self._known[reference]
        if (only := _only(schema)) is not None:
            return self._of(only, depth + 1)
        if not _is_plain(schema):
            return None
        fields: dict[str, Field] = {}
        needed: set[str] = set()
        others, varies = bool(schema.get("additionalProperties", False)), bool(schema.get("discriminator"))
        built_on = schema.get("allOf", ())
        for part in built_on:
            inner = self._of(part, depth + 1)
            if inner is None:
                return None
            fields.update(inner.fields)
            others = others or inner.open
            # What adds to a schema of several kinds is one of these kinds; what adds nothing is that schema itself.
            adds = len(built_on) > 1 or "properties" in schema
            varies = varies or (inner.varies and not ("$ref" in part and adds))
            self._left -= 1 + len(inner.fields)
            needed |= inner.needed
        kind = schema.get("type", "object" if "properties" in schema or fields else "")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            return None
        for name, about in schema.get("properties", {}).items():
            fields[name] = self._field(name, about, depth)
        self._left -= 1 + len(fields)
        needed |= {str(name) for name in schema.get("required", ()) if isinstance(schema.get("required"), list)}
        return Shape(name="", fields=fields, needed=frozenset(needed), open=others, varies=varies) if fields else None

    def _field(self, name: str, about: Any, depth: int, level: int = 0) -> Field:
        if not isinstance(about, Mapping):
            return Field()
        described = str(about.get("description", ""))
        read_only = about.get("readOnly") is True or bool(_OUTPUT.search(described))
        write_only = about.get("writeOnly") is True or bool(_INPUT.match(described)) or about.get(_BESIDE_IT) is True
        tag = name in _TAGS or "const" in about
        held = self._of(about, depth + 1) if name == "metadata" and not level else None
        return replace(
            self._value(about, level),
            kinds=self._kinds(about, depth),
            inner=frozenset(held.fields) if held is not None else frozenset(),
            read_only=read_only,
            write_only=write_only,
            tag=tag,
        )

    def _value(self, about: Any, level: int) -> Field:
        """The `parts`, `needed`, `items`, `alternatives` and `choices` of a value: nothing where they aren't plainly
        said."""
        if not isinstance(about, Mapping) or level >= _LEVELS or self._left < 0:
            return Field()
        reference = about.get("$ref")
        if isinstance(reference, str):
            if (reference, level) not in self._inner:
                self._inner[reference, level] = Field()
                self._inner[reference, level] = self._value(self._resolve(reference)[1], level)
            return self._inner[reference, level]
        if (only := _only(about)) is not None:
            return self._value(only, level + 1)
        if not _is_plain(about):
            several = [one for key in ("oneOf", "anyOf") for one in _listed(about.get(key))]
            self._left -= len(several)
            return Field(alternatives=tuple(self._field("", one, 0, level + 1) for one in several))
        parts: dict[str, Field] = {}
        needed: set[str] = set()
        for one in about["allOf"] if isinstance(about.get("allOf"), list) else ():
            inner = self._value(one, level)
            if not inner.parts:
                return Field()
            parts |= inner.parts
            needed |= inner.needed
        own = about.get("properties")
        for name, each in own.items() if isinstance(own, Mapping) else ():
            parts[name] = self._field(name, each, 0, level + 1)
        listed = about.get("required")
        needed |= {str(name) for name in listed if name in parts} if isinstance(listed, list) else set()
        self._left -= 1 + len(parts)
        items = about.get("items")
        of = self._field("", items, 0, level + 1) if isinstance(items, Mapping) else None
        choices = about.get("enum")
        texts = [one for one in choices if one is not None] if isinstance(choices, list) else []
        listed_texts = frozenset(texts) if all(isinstance(one, str) for one in texts) else frozenset()
        return Field(parts=parts, needed=frozenset(needed), items=of, choices=listed_texts)

    def _kinds(self, about: Any, depth: int) -> frozenset[str]:
        if not isinstance(about, Mapping) or depth > _DEEP:
            return frozenset()
        if isinstance(about.get("$ref"), str):
            return self._kinds(self._resolve(about["$ref"])[1], depth + 1)
        kind = about.get("type")
        if isinstance(kind, str):
            return frozenset({kind}) if kind != "any" else frozenset()
        if isinstance(kind, list):
            return frozenset(str(one) for one in kind if one != "null")
        return frozenset({"object"}) if "properties" in about else frozenset()


def ways_back(
    methods: Iterable[DocumentMethod],
    scopes: Iterable[DocumentScope],
    bodies: Mapping[str, Any],
    answers: Mapping[str, tuple[Any, frozenset[int]]],
    shapes: Shapes,
) -> dict[str, dict[str, Any]]:
    """What is derived for a document's methods, by their ids, as `policies.reversions.undo_to_json` writes it.

    `bodies` are the schemas of JSON bodies, `answers` those of good answers and the codes that are spoken of.
    """
    own = frozenset(scope.name for scope in scopes if scope.virtual)
    ops = []
    for method in methods:
        if method.unsupported or not method.http:
            continue
        whole = [name for name, place in method.locations.items() if place == "whole"]
        answer, codes = answers.get(method.origin_id, (None, frozenset()))
        around, thing = shapes.inside(answer, method.path)
        body_around, body = (
            shapes.inside(bodies.get(method.origin_id), method.path) if whole == ["body"] else ("", shapes.form(method))
        )
        if method.http in ("PUT", "PATCH") and thing is not None and thing.fields.keys() <= _DONE and 202 not in codes:
            around, thing = "", None
        listed = shapes.list_in(answer)
        holes = _HOLE.findall(method.path)
        said = (name for name, about in method.properties.items() if _REQUIRED.match(str(about.get("description", ""))))
        keys = frozenset(own_keys(method.locations))
        needed = (frozenset(method.required) | frozenset(said) - {"body"}) - keys
        ops.append(
            Op(
                id=method.origin_id,
                name=method.name,
                http=method.http,
                path=method.path.rstrip("/"),  # a slash at the end is the same place, unless both are there
                risk=method.risk,
                scopes=frozenset(method.scopes),
                virtual=own.issuperset(method.scopes),
                needed=needed,
                optional=frozenset(method.properties) - needed - keys,
                holes={name: _types(method.properties.get(name, {})) for name in holes},
                forms={name: str(method.properties.get(name, {}).get("pattern", "")) for name in holes},
                body=_given(body),
                body_around=body_around,
                spread=not whole,
                has_body=method.body != "none",
                answer=thing,
                around=around,
                **_selection(method.properties.get(_SELECT)),
                lists=listed[0],
                items=listed[1],
                untold=answer is None or answer == {},
                codes=codes,
                said=method.description,
            )
        )
    if len(ops) > MAX_OPS:
        return {}
    return {id: undo_to_json(undo) for id, undo in derive(ops).items()}


def _given(body: Shape | None) -> Shape | None:
    """A body's shape: what only the service sets needn't be in it, also where its schema requires that of answers."""
    if body is None:
        return None
    own = {name for name, about in body.fields.items() if about.read_only}
    return replace(body, needed=body.needed - own)


def _only(schema: Mapping[str, Any]) -> Any:
    """What a schema is that says nothing but that it is this or null; None for any other."""
    if not schema.keys() & {"oneOf", "anyOf"} or schema.keys() & {"properties", "allOf", "not", "type", "items"}:
        return None
    if len(schema.keys() & {"oneOf", "anyOf"}) > 1:
        return None
    listed = schema.get("oneOf", schema.get("anyOf"))
    others = [one for one in listed if one != {"type": "null"}] if isinstance(listed, list) else []
    return others[0] if len(others) == 1 else None


def _is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether an object has the fields that it lists, whatever its alternatives are: these say only which of its
    fields must be there."""
    said = [one for key in ("oneOf", "anyOf") for one in _listed(schema.get(key))]
    if "not" in schema:
        said.append(schema["not"])
    return all(isinstance(one, Mapping) and one.keys() <= _ONLY_NEEDS for one in said) and (
        not said or "properties" in schema or "allOf" in schema
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _named_in(name: str, path: str) -> bool:
    """Whether the last fixed part of a path is, or ends with, what `name` is one of: `server` of `/servers/{id}`."""
    fixed = [part for part in path.split("/") if part and "{" not in part]
    one, many = (re.sub(r"[^a-z0-9]", "", text.lower()) for text in (name, fixed[-1] if fixed else ""))
    return len(one) > 2 and many.endswith((one, f"{one}s", f"{one}es", f"{one[:-1]}ies"))


def _selection(schema: Any) -> dict[str, Any]:
    """`Op.select` and `Op.shows` of a method with this parameter."""
    if not isinstance(schema, Mapping) or schema.get("type") != "array":
        return {}
    items = schema.get("items")
    listed = items.get("enum") if isinstance(items, Mapping) else None
    shows = frozenset(str(name) for name in listed) if isinstance(listed, list) else frozenset()
    return {"select": _SELECT, "shows": shows}


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type", ("string", "integer"))
    return frozenset({kind}) if isinstance(kind, str) else frozenset(kind)
