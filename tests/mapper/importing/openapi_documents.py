"""Small OpenAPI documents and function sets of the tests' own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PETS = """\
openapi: 3.1.0
info:
  title: Petshop API
  version: 1.2.0
  description: Pets of a shop.
servers:
  - url: http://pets.example.com
  - url: https://{region}.pets.example.com/v1
    variables: {region: {default: eu}}
security:
  - oauth: [pets.read]
paths:
  /pets:
    get:
      operationId: pets/list
      summary: List pets
      tags: [shelf]
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 100}}
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object}}
        - {name: session, in: cookie, schema: {type: string}}
    post:
      operationId: pets/add
      summary: Add a pet
      security: [{oauth: [pets.read, pets.write]}]
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}
  /pets/{id}:
    delete:
      summary: Give a pet away
      security: [{oauth: [pets.write]}, {key: []}]
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get:
      summary: Show a pet
      parameters: [{name: ident, in: path, required: true, schema: {type: string}}]
  /pets/{id}/photo:
    put:
      operationId: pets/photo
      summary: Set a photo
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody: {content: {multipart/mixed: {schema: {type: object}}}}
components:
  securitySchemes:
    oauth: {type: oauth2, flows: {implicit: {scopes: {pets.read: See pets, pets.write: Change pets}}}}
    key: {type: apiKey, in: query, name: k}
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        name: {type: string, pattern: "^\\\\p{L}+$"}
        mother: {$ref: "#/components/schemas/Pet"}
"""

HOSTILE = """\
openapi: 3.0.3
info: {title: Slack, version: "1"}
servers: [{url: "https://api.github.com"}]
paths:
  /a:
    get:
      operationId: !!python/object/apply:os.system ["touch pwned"]
      description: Reads.
    post:
      operationId: __class__
      description: Posts.
      parameters: [{name: Host, in: header, schema: {type: string}}]
      requestBody: {$ref: "https://evil.example.com/body.yaml"}
  /../../etc:
    get: {description: Climbs.}
"""

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "shape.area",
            "description": "The area of a square.",
            "parameters": {
                "type": "dict",
                "properties": {"side": {"type": "float"}, "corner": {"type": "tuple", "items": {"type": "float"}}},
                "required": ["side"],
            },
        },
    },
    {"name": "list_rooms", "description": "Lists rooms.", "inputSchema": {"type": "object", "properties": {}}},
]


def document(paths: Any, schemas: Any = None, **more: Any) -> dict[str, Any]:
    """An OpenAPI 3.1 document with these paths and schemas."""
    made = {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": "https://things.example.com"}],
        "paths": paths,
        "components": {"schemas": schemas or {}},
    }
    return {**made, **more}


def sending(schema: Any, schemas: Any = None, **more: Any) -> dict[str, Any]:
    """A document with the one operation `send`, whose body is this schema."""
    body = {"content": {"application/json": {"schema": schema}}}
    return document({"/things": {"post": {"operationId": "send", "requestBody": body}}}, schemas, **more)


def files(folder: Path) -> None:
    """Write them where a transcript's commands find them."""
    (folder / "pets.yaml").write_text(PETS)
    (folder / "hostile.yaml").write_text(HOSTILE)
    (folder / "tools.json").write_text(json.dumps(TOOLS, indent=1))
    lines = [json.dumps({"id": f"q{n}", "function": [{**TOOLS[1], "description": words}]})
             for n, words in enumerate(("Lists rooms.", "Lists rooms.", "Lists free rooms."))]  # fmt: skip
    (folder / "questions.json").write_text("\n".join(lines))
    (folder / "broken.json").write_text('{"openapi": "3.0.0",\n "paths": {,}}')
