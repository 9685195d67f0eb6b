"""Documents that are nearly those of real services: seeded changes of their values, their shape and their bytes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import yaml

from tests.mapper.importing.documents import discovery, method
from tests.mapper.importing.openapi_documents import HOSTILE, PETS, TOOLS, document

_REF = {"$ref": "#/components/schemas/A"}
SCHEMAS: dict[str, Any] = {
    "A": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "b": _REF}},
    "B": {"allOf": [_REF, {"required": ["x"], "properties": {"y": {"type": "array", "items": _REF}}}]},
    "C": {"oneOf": [_REF, {"type": "string", "enum": ["a", "b"]}], "nullable": True},
}
_SEND = {
    "operationId": "send",
    "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}],
    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/B"}}}},
    "security": [{"key": []}, {"oauth": ["read", "write"]}],
    "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/C"}}}}},
}
_ITEM = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_PATHS = {
    "/things": {"post": _SEND, "get": {"operationId": "list", "tags": ["Things"], "summary": "List things"}},
    "/things/{id}": {"parameters": [_ITEM], "get": {"operationId": "show"}, "delete": {"responses": {"404": {}}}},
}
OPENAPI = document(
    _PATHS,
    SCHEMAS,
    security=[{"key": []}],
    components={
        "schemas": SCHEMAS,
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "oauth": {"type": "oauth2", "flows": {"implicit": {"scopes": {"read": "See", "write": "Change"}}}},
        },
    },
)
SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "Things", "version": "1"},
    "host": "things.example.com",
    "schemes": ["https"],
    "consumes": ["application/json"],
    "paths": {
        "/things/{id}": {
            "put": {
                "operationId": "put",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "type": "string"},
                    {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/A"}},
                ],
            },
            "get": {"parameters": [{"name": "id", "in": "path", "required": True, "type": "integer"}]},
        }
    },
    "definitions": {"A": {"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}, "required": ["a"]}},
    "securityDefinitions": {"basic": {"type": "basic"}},
}
OLDER = {**OPENAPI, "openapi": "3.0.3"}
GOOGLE = discovery(
    "things",
    methods={
        "list": method("things.list"),
        "send": method("things.send", httpMethod="POST", path="v1/things", request={"$ref": "A"}),
    },
    schemas={"A": {"id": "A", "type": "object", "properties": {"b": {"$ref": "A"}, "n": {"type": "integer"}}}},
)
SEEDS: tuple[tuple[str, Any], ...] = (
    ("openapi", OPENAPI),
    ("openapi", OLDER),
    ("openapi", SWAGGER),
    ("openapi", yaml.safe_load(PETS)),
    ("openapi", HOSTILE),
    ("functions", TOOLS),
    ("discovery", GOOGLE),
)

_MOST = 20_000  # values of one document, beyond which it isn't changed any more
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**400, 2**63, "", "x" * 5000, "a" * 400 + "#x", "\u202e", "$ref", "{", "/{a}{b}",
    "../..", "#/", "#/components/schemas/B", "#/paths", "#/definitions/A", "https://evil.example/x", "(a+)+$", "\x00",
    "object", "array", "get", "null", "oneOf", "GET", "ü" * 300, [], {}, [[]], [None], {"$ref": "#/"}, {"a": {"a": {}}},
    {"required": ["x"]}, {"allOf": [{"required": ["z"]}, {"properties": {}}]}, {"type": ["string", "null"]},
)  # fmt: skip
_KEYS = (
    "required", "properties", "allOf", "anyOf", "oneOf", "items", "$ref", "type", "enum", "nullable", "readOnly", "in",
    "name", "security", "servers", "url", "parameters", "additionalProperties", "const", "pattern", "minimum", "tags",
    "operationId", "description", "x-amazon-apigateway-authtype", "scopes", "repeated", "id", "path", "httpMethod", "",
)  # fmt: skip


def mutated(seed: int, number: int) -> tuple[str, str, str]:
    """(the kind, the file's name, the text) of one document."""
    random = Random(f"{seed}/{number}")
    kind, whole = random.choice(SEEDS)
    if isinstance(whole, str):
        return kind, "things.yaml", _bytes(random, whole)
    made = copy.deepcopy(whole)
    for _ in range(random.choice((1, 1, 2, 3, 6, 12))):
        try:
            made = random.choice(_SHAPES)(random, made)
        except RecursionError:  # nested so deep that it can't even be copied
            break
        if sum(1 for _ in islice(_places(made), _MOST)) == _MOST:
            break
    yamled = kind != "discovery" and random.random() < 0.15
    try:
        text = yaml.dump(made, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)) if yamled else json.dumps(made)
    except (ValueError, RecursionError, yaml.YAMLError):
        text = "{}"
    if random.random() < 0.2:
        text = _bytes(random, text)
    return kind, "things.yaml" if yamled else "things.json", text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a value."""
    stack = [value]
    while stack:
        one = stack.pop()
        pairs = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, child in pairs:
            yield one, key
            if isinstance(child, dict | list):
                stack.append(child)


def _somewhere(random: Random, made: Any) -> tuple[Any, Any] | None:
    found = list(_places(made))
    return random.choice(found) if found else None


def _replaced(random: Random, made: Any) -> Any:
    if place := _somewhere(random, made):
        place[0][place[1]] = copy.deepcopy(random.choice(_ODD))
    return made


def _removed(random: Random, made: Any) -> Any:
    if place := _somewhere(random, made):
        del place[0][place[1]]
    return made


def _added(random: Random, made: Any) -> Any:
    holders = [one for one, _ in _places(made) if isinstance(one, dict)]
    if holders:
        random.choice(holders)[random.choice(_KEYS)] = copy.deepcopy(random.choice(_ODD))
    return made


def _moved(random: Random, made: Any) -> Any:
    """A part of the document in another's place."""
    one, two = _somewhere(random, made), _somewhere(random, made)
    if one and two:
        two[0][two[1]] = copy.deepcopy(one[0][one[1]])
    return made


def _renamed(random: Random, made: Any) -> Any:
    place = _somewhere(random, made)
    if place and isinstance(place[0], dict):
        key = random.choice(
            (random.choice(_KEYS), "a" * 400 + "#x", "/x/{y}/{y}", "ü/..", "\x00", f"{place[1]}{place[1]}")
        )
        place[0][key] = place[0].pop(place[1])
    return made


def _nested(random: Random, made: Any) -> Any:
    place = _somewhere(random, made)
    if place:
        value = place[0][place[1]]
        key = random.choice(("allOf", "anyOf", "items", "properties", "not"))
        for _ in range(random.choice((2, 10, 60, 190))):
            value = {key: [value] if key.endswith("Of") else {"p": value} if key == "properties" else value}
        place[0][place[1]] = value
    return made


def _many(random: Random, made: Any) -> Any:
    place = _somewhere(random, made)
    if place and isinstance(place[0], dict) and len(json.dumps(place[0][place[1]])) < 500:
        for number in range(random.choice((50, 500))):
            place[0][f"{place[1]}{number}"] = place[0][place[1]]
    return made


def _bytes(random: Random, text: str) -> str:
    letters = list(text)
    for _ in range(random.choice((1, 3, 20))):
        at = random.randrange(len(letters) or 1)
        what = random.choice(("swap", "drop", "twice", "put"))
        if what == "drop":
            letters[at : at + random.choice((1, 10, 200))] = []
        elif what == "twice":
            letters[at:at] = letters[at : at + 200]
        elif letters:
            letters[min(at, len(letters) - 1)] = random.choice(
                "{}[]:,\"\\/#&*!|>%@`'-0\t\n \x00é\u202e" if what == "swap" else "ab$"
            )
    return "".join(letters)


_SHAPES: tuple[Callable[[Random, Any], Any], ...] = (
    _replaced, _removed, _added, _added, _moved, _moved, _renamed, _nested, _many,
)  # fmt: skip
