"""Small discovery documents of the tests' own, in Google's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

READ = "https://www.googleapis.com/auth/things.readonly"
FULL = "https://www.googleapis.com/auth/things"


def method(id: str, http: str = "GET", path: str = "v1/things", **more: Any) -> dict[str, Any]:
    return {"id": id, "httpMethod": http, "path": path, "description": "Does it.", "scopes": [FULL, READ], **more}


def discovery(name: str = "things", version: str = "v1", **more: Any) -> dict[str, Any]:
    """A whole document; `methods`, if given, are those of the resource `things`."""
    methods = more.pop("methods", None) or {"list": method(f"{name}.things.list")}
    return {
        "kind": "discovery#restDescription",
        "name": name,
        "version": version,
        "title": f"{name.title()} API",
        "description": "Keeps things.",
        "rootUrl": f"https://{name.lower()}.googleapis.com/",
        "servicePath": "",
        "auth": {
            "oauth2": {
                "scopes": {
                    FULL: {"description": "See, change and delete your things"},
                    READ: {"description": "See your things"},
                }
            }
        },
        "schemas": {},
        "resources": {"things": {"methods": methods}},
        **more,
    }


def write(folder: Path, document: dict[str, Any], name: str = "") -> Path:
    file = folder / (name or f"{document['name']}.{document['version']}.json")
    file.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return file


def things(folder: Path) -> None:
    """A folder of documents: a service in two versions with a few of everything, and a broken one."""
    folder.mkdir(exist_ok=True)
    thing = {
        "type": "object",
        "properties": {
            "title": {
                "type": "string",
                "description": "What it is called.",
                "annotations": {"required": ["things.things.create"]},
            },
            "kind": {"type": "string", "enum": ["BIG", "SMALL"]},
            "id": {"type": "string", "readOnly": True},
        },
    }
    folded = {"shelf": {"type": "string", "location": "path", "required": True, "description": "Which \u202eshelf."}}
    methods = {
        "list": method("things.things.list", description="Lists your things."),
        "create": method(
            "things.things.create",
            "POST",
            "v1/{+shelf}/things",
            description="Creates a thing. \x1b[2JIt is put on a shelf.",
            parameters=folded,
            request={"$ref": "Thing"},
            scopes=[FULL],
        ),
        "upload": method("things.things.upload", "POST", "v1/upload", supportsMediaUpload=True, description=""),
    }
    write(folder, discovery(methods=methods, schemas={"Thing": thing}))
    write(folder, discovery(version="v1beta"))
    (folder / "broken.json").write_text('{\n "name": "broken",\n "version": }\n')
