"""Function sets: tools as JSON Schema, in the forms that models' interfaces and evaluations use. One file at a time.

Rules: a list of tools, one tool, an answer to MCP's `tools/list`, questions with their functions; as JSON, or as JSON
lines. Types may be looser than JSON Schema's (`dict`, `float`, `tuple`, `any`). A function has no address, so that it
can be mapped to and evaluated, and not called. The same function again is one function; another one of its name gets a
number. What a tool says about its own harmlessness isn't believed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mapper.importing.document_files import Broken, Source, plain
from mapper.importing.import_report import BadPart, Problem
from mapper.importing.pointers import Pointers
from mapper.importing.risks import risk_of
from mapper.importing.schema_import import Shapes
from mapper.importing.trees import Tree, read, read_json
from mapper.json_schema import REF
from mapper.store.import_rows import Document, DocumentMethod, DocumentScope
from mapper.store.service_names import MAX_METHOD_NAME, METHOD_NAME
from policies.services import Location, Risk

PROVIDER = "functions"
MAX_FUNCTIONS = 100_000

_NO_ADDRESS = "it is a function without an address, for mapping and evaluation alone."
_VIRTUAL = {
    Risk.READ: "Ask the functions of {title}.",
    Risk.WRITE: "Use the functions of {title}.",
    Risk.DELETE: "Delete things with the functions of {title}.",
    Risk.ADMIN: "Change who may do what with the functions of {title}.",
}


@dataclass(frozen=True, slots=True)
class Found:
    """One tool of a file as it is written there: where, by keys, in the value that begins on `line`."""

    raw: Any
    keys: tuple[str, ...]
    tree: Tree
    line: int


def find(source: Source) -> tuple[list[Found], list[Problem]]:
    """The tools of a file, and the lines of it that couldn't be read. Raises Broken when nothing could."""
    try:
        tree = read(source)
    except Broken as whole:
        found, problems = _lines(source)
        if not found:
            raise whole
        return found, problems
    return list(_tools(tree.value, (), tree, 1)), []


def read_functions(found: list[Found], name: str, source: Source) -> tuple[Document, list[Problem]]:
    """The functions as the service `name`, and what couldn't be taken. Raises BadPart when nothing could."""
    problems: list[tuple[Found, BadPart]] = []
    methods: dict[str, DocumentMethod] = {}
    schemas: dict[str, Any] = {}
    known: dict[str, dict[str, str]] = {}  # name -> what it says, to the name that it got
    for each in found[:MAX_FUNCTIONS]:
        try:
            own, said, parameters = _parts(each)
            content = json.dumps([said, parameters], sort_keys=True)
            duplicates = known.setdefault(own, {})
            if content in duplicates:
                continue
            given = own if own not in methods else _numbered(own, max(2, len(duplicates) + 1), methods)
            method, bad = _method(each, given, own, said, parameters, schemas)
            problems.extend((each, one) for one in bad)
            if given != own:
                problems.append(
                    (
                        each,
                        BadPart(
                            f"another function is {own[:60]!r}, too; it is called {given[:60]}", *each.keys, "name"
                        ),
                    )
                )
        except BadPart as bad_part:
            problems.append((each, bad_part))
            continue
        duplicates[content] = given
        methods[given] = method
    if len(found) > MAX_FUNCTIONS:
        problems.append((found[0], BadPart(f"more than {MAX_FUNCTIONS:,} functions aren't taken")))
    if not methods:
        raise problems[0][1] if problems else BadPart("holds no function")
    risks = sorted({method.risk for method in methods.values()})
    document = Document(
        provider=PROVIDER,
        provider_name=name,
        version="1",
        title=name,
        description="Functions without an address: for mapping and evaluation.",
        base_url="",
        file=source.name,
        sha256=source.sha256,
        scopes=tuple(
            DocumentScope(name=risk.word, description=_VIRTUAL[risk].format(title=name), virtual=True) for risk in risks
        ),
        methods=tuple(methods.values()),
        schemas=schemas,
    )
    return document, _placed(problems, source)


def _lines(source: Source) -> tuple[list[Found], list[Problem]]:
    """JSON lines: one value a line."""
    found: list[Found] = []
    problems: list[Problem] = []
    for number, line in enumerate(source.text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = read_json(line, number)
        except Broken as bad:
            if not found and not problems:
                return [], []  # not lines of JSON at all
            problems.append(Problem(file=source.name, line=number, where="", what=bad.what))
            continue
        found.extend(_tools(value, (), Tree(value, line), number))
    return found, problems


def _tools(value: Any, keys: tuple[str, ...], tree: Tree, line: int) -> Iterator[Found]:
    """Every tool in a value: in lists, in the envelopes that are in use, or the value itself."""
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from _tools(each, (*keys, str(place)), tree, line)
        return
    if isinstance(value, dict) and "name" not in value:
        for envelope in ("tools", "functions", "result", "function"):
            if isinstance(value.get(envelope), list) or (
                envelope in ("result", "function") and isinstance(value.get(envelope), dict)
            ):
                yield from _tools(value[envelope], (*keys, envelope), tree, line)
                return
    yield Found(value, keys, tree, line)


def _parts(found: Found) -> tuple[str, str, Any]:
    """(name, description, schema of the arguments) of a tool. Raises BadPart."""
    raw = found.raw
    if not isinstance(raw, dict):
        raise BadPart("must be a function, which is an object with a name", *found.keys)
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise BadPart("a function must have a name", *found.keys)
    schema: Any = next(
        (raw[key] for key in ("parameters", "inputSchema", "input_schema") if raw.get(key) is not None), {}
    )
    if not isinstance(schema, dict):
        raise BadPart("must be an object", *found.keys, "parameters")
    return name, plain(raw.get("description"), 400), schema


def _method(
    found: Found, name: str, origin: str, said: str, schema: dict[str, Any], schemas: dict[str, Any]
) -> tuple[DocumentMethod, list[BadPart]]:
    if len(name) > MAX_METHOD_NAME or not METHOD_NAME.fullmatch(name):
        raise BadPart(f"{name[:60]!r} can't be a function's name here", *found.keys, "name")
    key = next((key for key in ("parameters", "inputSchema", "input_schema") if key in found.raw), "parameters")
    shapes = Shapes(Pointers(schema), loose=True)
    whole = shapes.opened(schema, ())
    named = shapes.finish()
    problems = [BadPart(bad.what, *found.keys, key, *bad.keys) for bad in shapes.problems.values()]
    properties = whole.get("properties", {})
    for one in (*properties.values(), *named.values()):
        _renamed(one, name)
    schemas.update({f"{name}.{each}": value for each, value in named.items()})
    hints = found.raw.get("annotations")
    risk = risk_of("POST", origin)
    if isinstance(hints, dict) and hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        risk = max(risk, Risk.DELETE)
    locations: dict[str, Location] = dict.fromkeys(properties, "body")
    method = DocumentMethod(
        origin_id=origin[:MAX_METHOD_NAME],
        name=name,
        description=said,
        http="",
        path="",
        risk=risk,
        scopes=(risk.word,),
        properties=properties,
        required=tuple(each for each in whole.get("required", ()) if each in properties),
        locations=locations,
        body="json",
        unsupported=_NO_ADDRESS,
    )
    return method, problems


def _renamed(schema: dict[str, Any], function: str) -> None:
    """Definitions are a document's, and each function has its own: they get the function's name before theirs."""
    todo: list[Any] = [schema]
    while todo:
        one = todo.pop()
        if isinstance(one.get("$ref"), str):
            one["$ref"] = REF + f"{function}.{one['$ref'].removeprefix(REF)}"
        todo.extend(one[key] for key in ("items", "additionalProperties") if isinstance(one.get(key), dict))
        todo.extend(one.get("anyOf", ()))
        todo.extend(one.get("properties", {}).values())


def _numbered(name: str, number: int, taken: dict[str, DocumentMethod]) -> str:
    stem = name[: MAX_METHOD_NAME - 8]
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def _placed(problems: list[tuple[Found, BadPart]], source: Source) -> list[Problem]:
    """The problems with their lines; one pass over each value that has any."""
    trees: dict[int, list[tuple[Found, BadPart]]] = {}
    for each, bad in problems:
        trees.setdefault(id(each.tree), []).append((each, bad))
    made = []
    for members in trees.values():
        lines = members[0][0].tree.lines([bad.keys for _, bad in members])
        made += [
            Problem(file=source.name, line=each.line + line - 1, where=".".join(bad.keys), what=bad.what)
            for (each, bad), line in zip(members, lines, strict=True)
        ]
    return made
