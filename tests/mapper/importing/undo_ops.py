"""How the labelled documents are written: operations with their labels and facts, and the OpenAPI that they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Ops = Mapping[str, tuple[str, dict[str, Any]]]  # "POST /notes" -> (label, facts)

TEXT, YES, WHOLE = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
ID = {"type": "string", "readOnly": True}


def thing(needed: list[str] | None = None, /, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, **({"required": needed} if needed else {})}


def op(label: str = "", /, **facts: Any) -> tuple[str, dict[str, Any]]:
    """`body`, `form`, `answer`: names of schemas; `codes`; `query`: needed parameters; `optional`: others;
    `headers`: needed ones; `scopes`; `said`: its summary."""
    return label, facts


def written(name: str, schemas: dict[str, Any], ops: Ops) -> dict[str, Any]:
    """The OpenAPI document of some operations."""
    paths: dict[str, dict[str, Any]] = {}
    scopes = sorted({scope for _, facts in ops.values() for scope in facts.get("scopes", ())})
    for key, (_, facts) in ops.items():
        verb, path = key.split(" ")
        paths.setdefault(path, {})[verb.lower()] = _operation(path, facts)
    made: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": name, "version": "1"},
        "servers": [{"url": f"https://{name}.example.org"}],
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if scopes:
        flow = {"authorizationUrl": "https://a.example.org", "tokenUrl": "https://a.example.org/t"}
        flows = {"authorizationCode": {**flow, "scopes": {scope: scope for scope in (*scopes, "all")}}}
        made["components"]["securitySchemes"] = {"login": {"type": "oauth2", "flows": flows}}
        made["security"] = [{"login": ["all"]}]
    return made


def _operation(path: str, facts: dict[str, Any]) -> dict[str, Any]:
    query = [(name, True) for name in facts.get("query", ())] + [(name, False) for name in facts.get("optional", ())]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _type(name)}
        for name in re.findall(r"\{([\w-]+)\}", path)
    ] + [{"name": name, "in": "query", "required": needed, "schema": TEXT} for name, needed in query]
    parameters += [
        {"name": name, "in": "header", "required": True, "schema": TEXT} for name in facts.get("headers", ())
    ]
    if "select" in facts:
        shown = {"type": "array", "items": {"type": "string", "enum": facts["select"]}}
        parameters.append({"name": "$select", "in": "query", "style": "form", "explode": False, "schema": shown})
    made: dict[str, Any] = {"parameters": parameters, "responses": {}}
    if "said" in facts:
        made["summary"] = facts["said"]
    if "name" in facts:
        made["operationId"] = facts["name"]
    if "scopes" in facts:
        made["security"] = [{"login": facts["scopes"]}]
    if "body" in facts:
        made["requestBody"] = {"required": True, "content": _json(facts["body"])}
    if "form" in facts:
        made["requestBody"] = {
            "content": {"application/x-www-form-urlencoded": _json(facts["form"])["application/json"]}
        }
    for code in facts.get("codes", [200]):
        good = "answer" in facts and 200 <= code < 300
        made["responses"][str(code)] = {"description": "", **({"content": _json(facts["answer"])} if good else {})}
    return made


def _type(name: str) -> dict[str, Any]:
    return WHOLE if name in ("number", "productId", "milestone_number") else TEXT


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
