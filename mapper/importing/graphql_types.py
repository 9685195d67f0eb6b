"""The types of a GraphQL schema, from its SDL or from the answer to an introspection query. Pure.

Rules: only names that GraphQL's grammar allows are taken, since they are printed into documents that are sent; a part
that can't be read is a problem with its place, and the rest is taken; a type that is described twice is the first one,
and what extends it is added. Nothing is looked up elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphql import GraphQLSyntaxError, parse
from graphql.language import ast

from mapper.importing.document_files import Broken, Source
from mapper.importing.import_report import BadPart

NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,199}")
MAX_WRAPS = 8  # lists and non-nulls around a type
MAX_FIELDS = 10_000  # of one type
COMPOSITE = frozenset({"object", "interface", "union"})
_STANDARD = ("Int", "Float", "String", "Boolean", "ID")


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as a field or an argument has it: `[Issue!]` is a list, not needed, of needed `Issue`s."""

    name: str  # of the innermost type
    needed: bool = False
    of: TypeRef | None = None  # of a list: its items

    def __str__(self) -> str:
        return f"{f'[{self.of}]' if self.of is not None else self.name}{'!' if self.needed else ''}"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a field, or a field of an input type."""

    name: str
    type: TypeRef
    has_default: bool
    said: str

    @property
    def needed(self) -> bool:
        return self.type.needed and not self.has_default


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object or an interface."""

    name: str
    type: TypeRef
    arguments: tuple[Argument, ...] = ()
    said: str = ""
    deprecated: bool = False


@dataclass(slots=True)
class Kind:
    """One named type. `fields` of an object or interface, `inputs` of an input type, `values` of an enum, `members` of
    a union."""

    name: str
    kind: str  # scalar, object, interface, union, enum, input
    said: str = ""
    fields: dict[str, Field] = field(default_factory=dict)
    inputs: dict[str, Argument] = field(default_factory=dict)
    values: dict[str, None] = field(default_factory=dict)
    members: dict[str, None] = field(default_factory=dict)
    one_of: bool = False


@dataclass(slots=True)
class Schema:
    """All types by name, and the names of the root types ("" for none)."""

    types: dict[str, Kind] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)  # query, mutation, subscription
    problems: list[BadPart] = field(default_factory=list)

    def root(self, operation: str) -> Kind | None:
        return self.types.get(self.roots.get(operation, ""))

    def is_composite(self, name: str) -> bool:
        return name in self.types and self.types[name].kind in COMPOSITE

    def add(self, kind: Kind, *, extends: bool) -> None:
        known = self.types.get(kind.name)
        if known is None:
            self.types[kind.name] = kind
        elif known.kind != kind.kind:
            self.problems.append(BadPart(f"is a type of another kind, too ({kind.kind})", kind.name))
        elif not extends and kind.name not in _STANDARD:
            self.problems.append(BadPart("is described twice", kind.name))
        else:
            known.fields = {**known.fields, **kind.fields, **known.fields}
            known.inputs = {**known.inputs, **kind.inputs, **known.inputs}
            known.values |= kind.values
            known.members |= kind.members


def read_schema(source: Source) -> Schema:
    """The schema that a file holds. Raises BadPart when it holds none."""
    schema = Schema(types={name: Kind(name, "scalar") for name in _STANDARD})
    if source.text.lstrip("\ufeff \t\r\n").startswith("{"):
        _read_introspection(source.json(), schema)
    else:
        _read_sdl(source.text, schema)
    if schema.root("query") is None and schema.root("mutation") is None:
        raise BadPart("has neither a type Query nor a type Mutation: it isn't a whole GraphQL schema")
    return schema


# ---- SDL

_KINDS = {
    "scalar_type": "scalar", "object_type": "object", "interface_type": "interface", "union_type": "union",
    "enum_type": "enum", "input_object_type": "input",
}  # fmt: skip


def _read_sdl(text: str, schema: Schema) -> None:
    try:
        document = parse(text.removeprefix("\ufeff"), no_location=True)
    except GraphQLSyntaxError as error:
        line = error.locations[0].line if error.locations else 0
        raise Broken(f"isn't a GraphQL schema: {error.message[:200].rstrip('.')}", line) from error
    except RecursionError as error:
        raise BadPart("is nested too deeply to be read") from error
    later: list[ast.DefinitionNode] = []
    for node in document.definitions:
        if isinstance(node, ast.SchemaDefinitionNode | ast.SchemaExtensionNode):
            for each in node.operation_types or ():
                schema.roots.setdefault(each.operation.value, each.type.name.value)
        elif isinstance(node, ast.TypeExtensionNode):
            later.append(node)
        elif isinstance(node, ast.TypeDefinitionNode):
            schema.add(_kind_of(node, schema, _KINDS[node.kind.removesuffix("_definition")]), extends=False)
        elif isinstance(node, ast.ExecutableDefinitionNode):
            schema.problems.append(BadPart("is a query and no part of a schema", _named(node)))
    for node in later:
        schema.add(_kind_of(node, schema, _KINDS[node.kind.removesuffix("_extension")]), extends=True)
    if not schema.roots:
        schema.roots = {name.lower(): name for name in ("Query", "Mutation", "Subscription") if name in schema.types}


def _named(node: Any) -> str:
    name = getattr(node, "name", None)
    return name.value if name is not None else "query"


def _kind_of(node: Any, schema: Schema, kind: str) -> Kind:
    made = Kind(node.name.value, kind, _words(node))
    made.one_of = any(one.name.value == "oneOf" for one in node.directives or ())
    if kind == "enum":
        made.values = {one.name.value: None for one in node.values or ()}
    elif kind == "union":
        made.members = {one.name.value: None for one in node.types or ()}
    elif kind == "input":
        made.inputs = {one.name: one for one in _sdl_inputs(node.fields, schema, made.name)}
    elif kind in ("object", "interface"):
        for each in _bounded(node.fields, schema, made.name):
            where = (made.name, each.name.value)
            try:
                one = Field(
                    each.name.value,
                    _sdl_type(each.type),
                    tuple(_sdl_inputs(each.arguments, schema, *where)),
                    _words(each),
                    any(one.name.value == "deprecated" for one in each.directives or ()),
                )
            except BadPart as bad:
                schema.problems.append(BadPart(bad.what, *where))
                continue
            made.fields.setdefault(one.name, one)
    return made


def _sdl_inputs(nodes: Any, schema: Schema, *where: str) -> Iterator[Argument]:
    for node in _bounded(nodes, schema, *where):
        try:
            made = _sdl_type(node.type)
        except BadPart as bad:
            raise BadPart(bad.what, *where, node.name.value) from None
        yield Argument(node.name.value, made, node.default_value is not None, _words(node))


def _sdl_type(node: Any, level: int = 0) -> TypeRef:
    if level > MAX_WRAPS:
        raise BadPart(f"has a type with more than {MAX_WRAPS} lists around it")
    needed = isinstance(node, ast.NonNullTypeNode)
    inner = node.type if needed else node
    if isinstance(inner, ast.ListTypeNode):
        of = _sdl_type(inner.type, level + 1)
        return TypeRef(of.name, needed, of)
    return TypeRef(inner.name.value, needed)


def _words(node: Any) -> str:
    said = getattr(node, "description", None)  # what extends a type has none
    return said.value if said is not None else ""


# ---- introspection


def _read_introspection(raw: dict[str, Any], schema: Schema) -> None:
    inner = raw.get("data") if isinstance(raw.get("data"), dict) else raw
    found = inner.get("__schema") if isinstance(inner, dict) else None
    types = found.get("types") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(types, list):
        raise BadPart("isn't the answer to an introspection query: it has no __schema with types")
    for operation in ("query", "mutation", "subscription"):
        about = found.get(f"{operation}Type")
        if isinstance(about, dict) and isinstance(about.get("name"), str):
            schema.roots[operation] = about["name"]
    for place, each in enumerate(types):
        where = ("__schema", "types", str(place))
        try:
            made = _introspected(each, where, schema)
        except BadPart as bad:
            schema.problems.append(bad)
            continue
        if not made.name.startswith("__"):
            schema.add(made, extends=False)


_INTROSPECTED = {
    "SCALAR": "scalar", "OBJECT": "object", "INTERFACE": "interface", "UNION": "union", "ENUM": "enum",
    "INPUT_OBJECT": "input",
}  # fmt: skip


def _introspected(raw: Any, where: tuple[str, ...], schema: Schema) -> Kind:
    name = _name(raw, where)
    kind = _INTROSPECTED.get(str(raw.get("kind")))
    if kind is None:
        raise BadPart(f"{str(raw.get('kind'))[:40]!r} isn't a kind of type", *where, "kind")
    made = Kind(name, kind, _text(raw.get("description")), one_of=raw.get("isOneOf") is True)
    for one, place in _each(raw, "enumValues" if kind == "enum" else "", where, schema):
        made.values[_name(one, place)] = None
    for one, place in _each(raw, "possibleTypes" if kind == "union" else "", where, schema):
        made.members[_name(one, place)] = None
    for one, place in _each(raw, "inputFields" if kind == "input" else "", where, schema):
        made.inputs.setdefault(_name(one, place), _input(one, place))
    for one, place in _each(raw, "fields" if kind in ("object", "interface") else "", where, schema):
        try:
            own = _name(one, place)
            arguments = tuple(_input(each, here) for each, here in _each(one, "args", place, schema))
            made.fields.setdefault(
                own,
                Field(
                    own,
                    _type(one.get("type"), (*place, "type")),
                    arguments,
                    _text(one.get("description")),
                    one.get("isDeprecated") is True,
                ),
            )
        except BadPart as bad:
            schema.problems.append(bad)
    return made


def _each(
    raw: dict[str, Any], key: str, where: tuple[str, ...], schema: Schema
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    if not key or raw.get(key) is None:
        return
    if not isinstance(raw[key], list):
        raise BadPart("must be a list", *where, key)
    for place, one in enumerate(_bounded(raw[key], schema, *where, key)):
        yield one, (*where, key, str(place))


def _input(raw: Any, where: tuple[str, ...]) -> Argument:
    return Argument(
        _name(raw, where),
        _type(raw.get("type"), (*where, "type")),
        raw.get("defaultValue") is not None,
        _text(raw.get("description")),
    )


def _type(raw: Any, where: tuple[str, ...], level: int = 0) -> TypeRef:
    if level > 2 * MAX_WRAPS:
        raise BadPart(f"has a type with more than {MAX_WRAPS} lists around it", *where)
    if not isinstance(raw, dict):
        raise BadPart("must be a type", *where)
    kind, below = raw.get("kind"), raw.get("ofType")
    if kind == "NON_NULL":
        made = _type(below, (*where, "ofType"), level + 1)
        return TypeRef(made.name, True, made.of)
    if kind == "LIST":
        made = _type(below, (*where, "ofType"), level + 1)
        return TypeRef(made.name, False, made)
    return TypeRef(_name(raw, where))


def _name(raw: Any, where: tuple[str, ...]) -> str:
    name = raw.get("name") if isinstance(raw, dict) else None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadPart(f"{str(name)[:60]!r} can't be a name in GraphQL", *where, "name")
    return name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _bounded(found: Any, schema: Schema, *where: str) -> Any:
    listed = found or ()
    if len(listed) > MAX_FIELDS:
        schema.problems.append(BadPart(f"has {len(listed):,} parts; the first {MAX_FIELDS:,} are taken", *where))
    return listed[:MAX_FIELDS]
