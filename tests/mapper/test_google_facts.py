"""Google's bundled manifests say what Google's own discovery documents say: paths, parameters, no scope too many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.services import Method

CATALOG = Catalog.bundled()
DOCUMENTS = {"gmail": "gmail.v1.json", "google_calendar": "calendar.v3.json", "google_drive": "drive.v3.json"}
# Methods that are cut out of another one, with one of its arguments fixed or required.
CUT = {f"files.{name}": "files.update" for name in ("move", "trash", "untrash", "star", "unstar")}
CUT["files.createFolder"] = "files.create"
METHODS = [method for name in DOCUMENTS for method in CATALOG.service(name).methods.values()]


def documents() -> dict[str, Any]:
    package = pytest.importorskip("googleapiclient.discovery_cache.documents")
    folder = Path(next(iter(package.__path__)))
    return {name: json.loads((folder / file).read_text()) for name, file in DOCUMENTS.items()}


@pytest.fixture(scope="module")
def google() -> dict[str, tuple[Any, dict[str, Any]]]:
    made = {}
    for name, document in documents().items():
        found: dict[str, Any] = {}
        todo = [document]
        while todo:
            part = todo.pop()
            for method in part.get("methods", {}).values():
                found[method["id"].partition(".")[2]] = method
            todo.extend(part.get("resources", {}).values())
        made[name] = (document, found)
    return made


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.id)
def test_a_method_is_googles(google: dict[str, tuple[Any, dict[str, Any]]], method: Method) -> None:
    document, methods = google[method.service]
    theirs = methods[CUT.get(method.name, method.name)]
    base = CATALOG.service(method.service).base_url
    assert method.http == theirs["httpMethod"]
    assert base + method.path == document["rootUrl"] + document["servicePath"] + theirs["path"]
    known = {scope for scope in CATALOG.service(method.service).scopes if scope in theirs["scopes"]}
    assert set(method.scopes) == known
    parameters = {**document["parameters"], **theirs.get("parameters", {})}
    body = document["schemas"][theirs["request"]["$ref"]]["properties"] if "request" in theirs else {}
    for name, place in method.locations.items():
        if place in ("path", "query", "repeat"):
            assert (parameters[name].get("location", "query") == "path") == (place == "path"), name
            schema = method.parameters["properties"].get(name, {})
            assert bool(parameters[name].get("repeated")) == (place == "repeat"), name
            assert set(schema.get("enum", ())) <= set(parameters[name].get("enum", schema.get("enum", ()))), name
        elif place == "body":
            assert name in body, name
    for part in filter(None, method.mail.split(".")):
        assert part in body
        body = document["schemas"].get(body[part].get("$ref", ""), {}).get("properties", {})
    for name, theirs_ in theirs.get("parameters", {}).items():
        assert not theirs_.get("required") or name in method.locations, name
