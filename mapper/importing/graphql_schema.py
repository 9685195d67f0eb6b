"""GraphQL schemas, as SDL or as the answer to an introspection query: root fields as methods of a service.

Rules: a root field of Query is a read unless its name, words or arguments say otherwise, one of Mutation changes
something; each is a permission of its own, and is sent as the one document that is printed here, with its arguments as
variables. Subscriptions aren't imported. A schema names no server: whoever imports it says where it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mapper.importing.document_files import Source, plain
from mapper.importing.graphql_documents import Documents
from mapper.importing.graphql_types import Argument, Field, Schema, read_schema
from mapper.importing.import_report import BadPart
from mapper.importing.pointers import Pointers
from mapper.importing.risks import risk_of
from mapper.importing.safe_methods import risk
from mapper.importing.schema_import import Shapes
from mapper.store.import_rows import Document, DocumentMethod, DocumentScope
from mapper.store.service_names import MAX_METHOD_NAME, METHOD_NAME
from policies.graphql import MAX_DOCUMENT, operation_of
from policies.services import Risk

PROVIDER = "graphql"
MAX_METHODS = 20_000
MAX_ARGUMENTS = 200
_UPLOAD = "Upload"  # what libraries call a file, which is sent as a part of a multipart body
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")
_PLAIN: dict[str, dict[str, Any]] = {
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": ["string", "integer"]},
}


def read_document(source: Source, name: str, endpoint: str) -> tuple[Document, list[BadPart]]:
    """The schema of a file as the service `name` at `endpoint`, and what of it couldn't be taken.

    Raises BadPart when nothing could.
    """
    base_url, path = place_of(endpoint)
    schema = read_schema(source)
    reader = _Reader(schema, path)
    methods = reader.methods()
    if not methods:
        bad = [*schema.problems, *reader.problems, BadPart("has no root field that can be a method")]
        raise bad[0]
    title = urlsplit(endpoint).hostname or name
    document = Document(
        provider=PROVIDER,
        provider_name=name,
        version="1",
        title=title,
        description=f"The GraphQL API at {title}.",
        base_url=base_url,
        file=source.name,
        sha256=source.sha256,
        scopes=tuple(
            DocumentScope(name=one.name, description=f"Make the {one.origin_id.replace('.', ' ', 1)}.", virtual=True)
            for one in methods
        ),
        methods=tuple(methods),
        schemas=reader.shapes.finish(),
    )
    return document, [*schema.problems, *reader.problems, *reader.shapes.problems.values()]


def place_of(endpoint: str) -> tuple[str, str]:
    """An endpoint as a base URL and the path below it, which is its last segment."""
    parts = urlsplit(endpoint)
    *before, last = parts.path.split("/") if parts.path.strip("/") else ("", "")
    return f"{parts.scheme}://{parts.netloc}{'/'.join(before)}", f"/{last}"


class _Reader:
    def __init__(self, schema: Schema, path: str) -> None:
        self._schema = schema
        self._path = path
        self._documents = Documents(schema)
        self._known: dict[str, Any] = {}  # JSON Schemas of input types and enums, as the arguments refer to them
        self.shapes = Shapes(Pointers({"types": self._known}))
        self.problems: list[BadPart] = []

    def methods(self) -> list[DocumentMethod]:
        made: dict[str, DocumentMethod] = {}
        for operation in ("query", "mutation"):
            root = self._schema.root(operation)
            for each in root.fields.values() if root is not None else ():
                if len(made) >= MAX_METHODS:
                    self.problems.append(BadPart(f"more than {MAX_METHODS:,} root fields aren't taken"))
                    return [*made.values()]
                try:
                    one = self._method(operation, each, made)
                except BadPart as bad:
                    self.problems.append(BadPart(bad.what, root.name if root else "", each.name))
                    continue
                made[one.name] = one
        asleep = self._schema.root("subscription")
        if asleep is not None and asleep.fields:
            self.problems.append(
                BadPart(f"its subscriptions ({len(asleep.fields):,}) aren't imported: GoEx follows none", asleep.name)
            )
        return [*made.values()]

    def _method(self, operation: str, root: Field, taken: dict[str, DocumentMethod]) -> DocumentMethod:
        name = root.name if root.name not in taken else f"{operation}.{root.name}"
        if len(name) > MAX_METHOD_NAME or not METHOD_NAME.fullmatch(name) or name in taken:
            raise BadPart("can't be a method's name")
        if root.type.name not in self._schema.types:
            raise BadPart(f"has the type {root.type.name[:60]}, which isn't described")
        if len(root.arguments) > MAX_ARGUMENTS:
            raise BadPart(f"has {len(root.arguments)} arguments; at most {MAX_ARGUMENTS} are taken")
        unsupported = ""
        arguments: dict[str, Argument] = {}
        for one in root.arguments:
            if one.type.name == _UPLOAD:
                if one.needed:
                    unsupported = f"{one.name} is a file, which isn't sent as JSON."
                continue
            arguments.setdefault(one.name, one)
        document = self._documents.document(operation, root, tuple(arguments.values()))
        if operation_of(document) != operation:
            raise BadPart(f"makes a document of more than {MAX_DOCUMENT:,} characters")
        properties = {one.name: self._property(one, root) for one in arguments.values()}
        return DocumentMethod(
            origin_id=f"{operation}.{root.name}",
            name=name,
            description=plain(root.said, 400),
            http="POST",
            path=self._path,
            risk=self._risk(operation, root, properties),
            scopes=(name,),
            properties=properties,
            required=tuple(one.name for one in arguments.values() if one.needed),
            locations=dict.fromkeys(arguments, "variable"),
            body="json",
            document=document,
            unsupported=unsupported,
        )

    def _risk(self, operation: str, root: Field, properties: Mapping[str, dict[str, Any]]) -> Risk:
        """A query reads unless its own words or arguments say that it changes something, as of a GET."""
        if operation == "query":
            asked = [(name, self.shapes.followed(schema)) for name, schema in properties.items()]
            return risk("GET", root.name, said=(root.said[:2000],), parameters=asked)
        return max(Risk.WRITE, risk_of("POST", root.name))

    def _property(self, one: Argument, root: Field) -> dict[str, Any]:
        raw = self._raw(one)
        self._describe(one.type.name)
        return self.shapes.schema(raw, (root.name, one.name))

    def _raw(self, one: Argument) -> dict[str, Any]:
        made = self._of_type(one.type)
        if said := plain(one.said, 200):
            made["description"] = said
        return made

    def _of_type(self, ref: Any) -> dict[str, Any]:
        if ref.of is not None:
            made: dict[str, Any] = {"type": "array", "items": self._of_type(ref.of)}
        elif ref.name in _PLAIN:
            made = dict(_PLAIN[ref.name])
        elif ref.name in self._schema.types and self._schema.types[ref.name].kind in ("enum", "input"):
            made = {"$ref": f"#/types/{ref.name}"}
        else:
            made = {"title": ref.name}  # a scalar of the service's own, which may be any value
        if not ref.needed and made.keys() != {"title"}:
            made["nullable"] = True
        return made

    def _describe(self, name: str) -> None:
        """Write down an input type or an enum, and all that it refers to."""
        todo = [name]
        while todo:
            kind = self._schema.types.get(todo.pop())
            if kind is None or kind.name in self._known or kind.kind not in ("enum", "input"):
                continue
            if kind.kind == "enum":
                self._known[kind.name] = {"type": "string", "enum": [*kind.values], "description": kind.said}
                continue
            made: dict[str, Any] = {
                "type": "object",
                "description": kind.said,
                "properties": {one.name: self._raw(one) for one in kind.inputs.values()},
                "required": [one.name for one in kind.inputs.values() if one.needed],
                "additionalProperties": False,
            }
            if kind.one_of:
                made |= {"minProperties": 1, "maxProperties": 1}
            self._known[kind.name] = made
            todo += [one.type.name for one in kind.inputs.values()]
