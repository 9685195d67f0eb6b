"""`import.openapi_ops_per_s`: operations of OpenAPI documents into a catalog, with its search index, in a second.

The documents are made here, the same each time: ten of 200 operations, each operation with parameters, a body and an
answer whose schemas refer to each other. One import of all of them, one after another, each into the same catalog, is a
round. The floor parses the same documents as JSON, nothing more.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from mapper.importing.files import import_openapi
from tools.bench.measure import Row, Timings

NAME = "import.openapi_ops_per_s"
DOCUMENTS, OPERATIONS = 10, 200
_THINGS = ("order", "invoice", "user", "ticket", "page", "bucket", "device", "report", "branch", "message")


async def measure(*, documents: int = DOCUMENTS, operations: int = OPERATIONS, rounds: int = 3) -> tuple[Row, ...]:
    return (await asyncio.to_thread(_measure, documents, operations, rounds),)


def document(number: int, operations: int) -> dict[str, Any]:
    """One document; every fourth operation reads a collection, and the others create, change and remove in it."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for each in range(-(-operations // 4)):
        thing = f"{_THINGS[each % len(_THINGS)]}{each}"
        link = f"{_THINGS[(each + 1) % len(_THINGS)]}{each + 1}" if each + 1 < operations // 4 else thing
        schemas[thing] = {
            "type": "object",
            "required": ["title"],
            "properties": {
                "id": {"type": "string", "readOnly": True},
                "title": {"type": "string", "description": f"What the {thing} is called."},
                "state": {"type": "string", "enum": ["open", "closed"]},
                "amount": {"type": "integer", "minimum": 0},
                "related": {"$ref": f"#/components/schemas/{link}"},
            },
        }
        body = {"application/json": {"schema": {"$ref": f"#/components/schemas/{thing}"}}}
        answer = {"200": {"description": "It.", "content": body}}
        many = {"type": "array", "items": {"$ref": f"#/components/schemas/{thing}"}}
        key = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
        page = {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}}
        paths[f"/{thing}s"] = {
            "get": {
                "operationId": f"list_{thing}s",
                "summary": f"Lists every {thing}.",
                "parameters": [page],
                "responses": {"200": {"description": "All.", "content": {"application/json": {"schema": many}}}},
            },
            "post": {
                "operationId": f"create_{thing}",
                "summary": f"Creates one {thing}.",
                "requestBody": {"required": True, "content": body},
                "responses": answer,
            },
        }
        paths[f"/{thing}s/{{id}}"] = {
            "parameters": [key],
            "put": {
                "operationId": f"replace_{thing}",
                "summary": f"Changes one {thing}.",
                "requestBody": {"required": True, "content": body},
                "responses": answer,
            },
            "delete": {
                "operationId": f"delete_{thing}",
                "summary": f"Removes one {thing}.",
                "responses": {"204": {"description": "Gone."}},
            },
        }
    return {
        "openapi": "3.0.3",
        "info": {"title": f"Bench service {number}", "version": "1"},
        "servers": [{"url": f"https://bench{number}.example.com/v1"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _measure(documents: int, operations: int, rounds: int) -> Row:
    values: list[float] = []
    floors: list[float] = []
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as place:
        files = [Path(place) / f"bench{number}.json" for number in range(documents)]
        total = 0
        for number, file in enumerate(files):
            made = document(number, operations)
            total += sum(1 for path in made["paths"].values() for verb in path if verb != "parameters")
            file.write_text(json.dumps(made), encoding="utf-8")
        for number in range(rounds + 1):
            catalog = Path(place) / f"catalog{number}.db"
            began = time.perf_counter()
            imported = sum(one.methods for file in files for one in import_openapi(catalog, file, file.stem).imported)
            values.append(total / (time.perf_counter() - began))
            assert imported == total, (imported, total)
            began = time.perf_counter()
            for file in files:
                json.loads(file.read_bytes())
            floors.append(total / (time.perf_counter() - began))
    value, floor = Timings(tuple(values[1:])), Timings(tuple(floors[1:]))
    return Row(
        name=NAME,
        value=value.p50,
        floor_name="parse the same JSON",
        floor=floor.p50,
        p95=value.percentile(0.05),
        floor_p95=floor.percentile(0.05),
        rounds=rounds,
        unit="ops/s",
    )
