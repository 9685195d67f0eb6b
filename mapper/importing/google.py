"""Google's discovery documents: those inside the package google-api-python-client, or a folder of the same.

Rules: a document leads to a host of Google's or is refused; the OAuth token goes into the Authorization header and
nowhere else, so parameters that carry credentials, choose another method or another form of the answer aren't taken.
Every method that can be read is taken; what can't is a problem with its line, and a document as a whole only fails
where it isn't known whose it is. Nothing of the package is executed.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mapper.importing.document_files import MAX_PROBLEMS, Source, plain
from mapper.importing.google_schemas import converted
from mapper.importing.import_report import BadPart
from mapper.importing.operation_shapes import Shapes, ways_back
from mapper.importing.safe_methods import risk as risk_in
from mapper.importing.scope_refusals import refused_scopes
from mapper.json_schema import problem as schema_problem
from mapper.json_schema import referred
from mapper.scope_text import SENDS_NO_BYTES
from mapper.store.import_rows import Document, DocumentMethod, DocumentScope
from mapper.store.service_names import MAX_METHOD_NAME, METHOD_NAME, VERSION
from policies.accounts import Origin
from policies.errors import InvalidInput, Unavailable
from policies.services import Location, Risk

PROVIDER = "google"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_HOST = ".googleapis.com"
_SEGMENT = re.compile(
    r"(?:\{\+?([A-Za-z_][A-Za-z0-9_.\-]*)\}(?::[A-Za-z][A-Za-z0-9_]*)?|[A-Za-z0-9._~:@!$&'()*+,=%-]+)"
)
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,99}")
_SCOPE = re.compile(r"[!-~]{1,200}")
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,199}")
_VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_NEVER = frozenset(
    {"access_token", "oauth_token", "bearer_token", "key", "callback", "alt", "uploadtype", "upload_protocol"}
)

VIRTUAL = {
    Risk.READ: "Read what {title} shows. Google has no permission for it, so GoEx cuts one and holds to it.",
    Risk.WRITE: "Change things through {title}. Google has no permission for it, so GoEx cuts one and holds to it.",
    Risk.DELETE: "Delete things through {title}. Google has no permission for it, so GoEx cuts one and holds to it.",
    Risk.ADMIN: "Change who may do what in {title}. Google has no permission for it, so GoEx cuts one and holds to it.",
}


def package_folder() -> Path:
    """Where the installed package keeps its documents. Raises Unavailable when it isn't installed."""
    try:
        found = importlib.util.find_spec("googleapiclient")  # finds, and runs nothing of it
    except (ImportError, ValueError):
        found = None
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        folder = Path(place) / "discovery_cache" / "documents"
        if folder.is_dir():
            return folder
    raise Unavailable(
        "The package with Google's documents isn't installed.",
        next_step='Install it with: pip install "goex[google]"; or name a folder of documents with --from.',
    )


def read_index(source: Source) -> dict[tuple[str, str], bool]:
    """(name, version) to whether it is the preferred one, from index.json. Raises BadPart."""
    items = source.json().get("items")
    if not isinstance(items, list):
        raise BadPart("must be a list", "items")
    found = {}
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("version"), str):
            found[item["name"], item["version"]] = item.get("preferred") is True
    return found


def identity(raw: dict[str, Any]) -> tuple[str, str]:
    """The (name, version) of a document. Raises BadPart."""
    if raw.get("kind", "discovery#restDescription") != "discovery#restDescription":
        raise BadPart("isn't a discovery document", "kind")
    for key, form in (("name", _NAME), ("version", VERSION)):
        value = raw.get(key)
        if not isinstance(value, str) or not form.fullmatch(value):
            raise BadPart(f"{str(value)[:60]!r} isn't the {key} of an API", key)
    return raw["name"], raw["version"]


def read_document(source: Source, raw: dict[str, Any], preferred: bool | None) -> tuple[Document, list[BadPart]]:
    """A document, and the parts of it that couldn't be taken. Raises BadPart when nothing of it can."""
    name, version = identity(raw)
    title = plain(raw.get("title"), 100) or name
    base_url = _base_url(raw)
    problems: list[BadPart] = []
    schemas = _schemas(raw, problems)
    scopes = _scopes(raw, problems)
    needed = _needed(raw)
    methods: dict[str, DocumentMethod] = {}
    bodies: dict[str, Any] = {}
    answers: dict[str, tuple[Any, frozenset[int]]] = {}
    for keys, own in _methods(raw, problems):
        try:
            method = _method(own, keys, name, scopes, schemas, needed)
            if method.name in methods:
                raise BadPart(f"another method has the id {method.origin_id!r}, too", *keys, "id")
        except BadPart as bad:
            problems.append(bad)
        else:
            methods[method.name] = method
            bodies[method.origin_id] = own.get("request")
            answers[method.origin_id] = own.get("response"), frozenset()
    if not methods and problems:
        raise problems[0]
    virtual = sorted({method.scopes[0] for method in methods.values() if method.scopes[0] not in scopes})
    declared = (
        *scopes.values(),
        *(
            DocumentScope(name=word, description=VIRTUAL[Risk.parse(word)].format(title=title), virtual=True)
            for word in virtual
        ),
    )
    named = raw.get("schemas", {})
    document = Document(
        provider=PROVIDER,
        provider_name=name,
        version=version,
        title=title,
        description=plain(raw.get("description"), 300),
        base_url=base_url,
        file=source.name,
        sha256=source.sha256,
        scopes=declared,
        methods=tuple(methods.values()),
        schemas=schemas,
        preferred=preferred,
        undos=ways_back(methods.values(), declared, bodies, answers, Shapes(lambda name: (name, named[name]))),
    )
    return document, problems[:MAX_PROBLEMS]


def _base_url(raw: dict[str, Any]) -> str:
    root, below = raw.get("rootUrl"), raw.get("servicePath", "")
    if not isinstance(root, str) or not isinstance(below, str):
        raise BadPart("must be text", "rootUrl" if not isinstance(root, str) else "servicePath")
    url = (root.rstrip("/") + "/" + below.strip("/")).rstrip("/")
    try:
        origin = Origin.parse(url)
    except InvalidInput as error:
        raise BadPart(error.message.rstrip("."), "rootUrl") from error
    if origin.scheme != "https" or not re.fullmatch(r"https://[A-Za-z0-9.\-]+(?:/[A-Za-z0-9._~-]+)*", url):
        raise BadPart(f"{url[:100]!r} isn't a plain https address", "rootUrl")
    if any(part in (".", "..") for part in url.split("/")):
        raise BadPart("holds a dot segment", "servicePath")
    if not origin.host.endswith(_HOST):
        raise BadPart(f"{origin.host[:100]!r} isn't a host of Google's (*{_HOST})", "rootUrl")
    return url


def _schemas(raw: dict[str, Any], problems: list[BadPart]) -> dict[str, Any]:
    """The schemas that can be taken, and whose references all lead to such ones."""
    found = raw.get("schemas", {})
    if not isinstance(found, dict):
        problems.append(BadPart("must be an object", "schemas"))
        return {}
    made: dict[str, Any] = {}
    for name, schema in found.items():
        try:
            if not _SCHEMA.fullmatch(name):
                raise BadPart("isn't the name of a schema", "schemas", name)
            made[name] = converted(schema, found, ("schemas", name))
            wrong = schema_problem(made[name], defs=found)
            if wrong:
                raise BadPart(wrong, "schemas", name)
        except BadPart as bad:
            problems.append(bad)
            made.pop(name, None)
    if len(made) < len(found):
        users: dict[str, list[str]] = {}
        for name, schema in made.items():
            for wanted in referred(schema):
                users.setdefault(wanted, []).append(name)
        lost = [name for name in users if name not in made]
        while lost:
            for name in users.get(lost.pop(), ()):
                if made.pop(name, None) is not None:
                    lost.append(name)
    return made


def _scopes(raw: dict[str, Any], problems: list[BadPart]) -> dict[str, DocumentScope]:
    keys = ("auth", "oauth2", "scopes")
    found: Any = raw
    for key in keys:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    if not isinstance(found, dict):
        problems.append(BadPart("must be an object", *keys))
        return {}
    made = {}
    for name, about in found.items():
        if not _SCOPE.fullmatch(name) or not isinstance(about, dict):
            problems.append(BadPart("isn't a scope", *keys, name[:100]))
            continue
        made[name] = DocumentScope(name=name, description=plain(about.get("description"), 300))
    return made


def _methods(raw: dict[str, Any], problems: list[BadPart]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every method with the keys that lead to it; resources within resources, to a depth that is bounded."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), raw)]
    while stack:
        keys, holder = stack.pop()
        for part in ("methods", "resources"):
            below = holder.get(part, {}) if isinstance(holder, dict) else None
            if not isinstance(below, dict) or len(keys) > 40:
                problems.append(BadPart("must be an object, and not too deep", *keys, part))
                continue
            for name, item in below.items():
                if part == "methods":
                    yield (*keys, part, name), item
                else:
                    stack.append(((*keys, part, name), item))


def _method(
    raw: Any,
    keys: tuple[str, ...],
    api: str,
    scopes: dict[str, DocumentScope],
    schemas: dict[str, Any],
    needed: dict[tuple[str, str], list[str]],
) -> DocumentMethod:
    if not isinstance(raw, dict):
        raise BadPart("must be an object", *keys)
    origin_id = raw.get("id")
    if not isinstance(origin_id, str) or len(origin_id) > MAX_METHOD_NAME or not METHOD_NAME.fullmatch(origin_id):
        raise BadPart(f"{str(origin_id)[:60]!r} isn't a method's id", *keys, "id")
    http = raw.get("httpMethod")
    if not isinstance(http, str) or http not in _VERBS:
        raise BadPart(f"{str(http)[:20]!r} isn't an HTTP method that is sent", *keys, "httpMethod")
    path, holes = _path(raw.get("path"), keys)
    properties, required, locations = _parameters(raw.get("parameters", {}), holes, schemas, keys)
    body = raw.get("request")
    if body is not None:
        fields = needed.get((str(body.get("$ref")) if isinstance(body, dict) else "", origin_id), [])
        properties["body"], locations["body"] = _body(body, fields, schemas, keys), "whole"
        if fields:
            required.append("body")
    allowed = raw.get("scopes", [])
    if not isinstance(allowed, list) or not all(isinstance(scope, str) for scope in allowed):
        raise BadPart("must be a list of texts", *keys, "scopes")
    unknown = [scope for scope in allowed if scope not in scopes]
    if unknown:
        raise BadPart(f"{unknown[0][:100]!r} isn't among the document's scopes", *keys, "scopes")
    name = origin_id.removeprefix(f"{api}.")
    asked = [(wire, schema) for wire, schema in properties.items() if locations[wire] in ("query", "repeat")]
    said = str(raw.get("description", ""))[:2000]
    risk = risk_in(http, name, scopes=allowed, path=path, said=(said,), parameters=asked)
    return DocumentMethod(
        origin_id=origin_id,
        name=name,
        description=plain(raw.get("description"), 400) + _media_note(raw, body is not None),
        http=http,
        path=path,
        risk=risk,
        scopes=tuple(sorted(set(allowed))) or (risk.word,),
        properties=properties,
        required=tuple(required),
        locations=locations,
        body="json" if body is not None else "none",
        unsupported=(
            "it sends the bytes of a file, which GoEx doesn't do."
            if raw.get("supportsMediaUpload") is True and body is None
            else ""
        ),
    )


def _media_note(raw: dict[str, Any], has_body: bool) -> str:
    if raw.get("supportsMediaUpload") is True and has_body:
        return f" ({SENDS_NO_BYTES})"
    if raw.get("supportsMediaDownload") is True and "response" not in raw:
        return " (Answers with a file's bytes; of these only the beginning is kept, and only if it is text.)"
    return ""


def _path(path: Any, keys: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    if not isinstance(path, str) or not path or len(path) > 500:
        raise BadPart("must be a path", *keys, "path")
    holes = []
    for segment in path.strip("/").split("/"):
        match = _SEGMENT.fullmatch(segment)
        if match is None or segment in (".", ".."):
            raise BadPart(f"{segment[:60]!r} isn't a path segment", *keys, "path")
        if match[1]:
            holes.append(match[1])
    if len(set(holes)) != len(holes):
        raise BadPart("names a parameter twice", *keys, "path")
    return "/" + path.strip("/"), tuple(holes)


def _parameters(
    raw: Any, holes: tuple[str, ...], schemas: dict[str, Any], keys: tuple[str, ...]
) -> tuple[dict[str, Any], list[str], dict[str, Location]]:
    if not isinstance(raw, dict):
        raise BadPart("must be an object", *keys, "parameters")
    properties: dict[str, Any] = {}
    required: list[str] = []
    locations: dict[str, Location] = {}
    for name, about in raw.items():
        here = (*keys, "parameters", name)
        if not _PARAMETER.fullmatch(name) or name == "body":
            raise BadPart("isn't a parameter's name", *here)
        if name.lower() in _NEVER and name not in holes:
            continue
        schema = converted(about, schemas, here, words=240)
        refused = refused_scopes(about)
        if refused:
            schema["x-refused-scopes"] = refused
        wrong = schema_problem(schema, defs=schemas)
        if wrong:
            raise BadPart(wrong, *here)
        place = about.get("location")
        if place not in ("path", "query") or (place == "path") != (name in holes):
            raise BadPart("is in the path exactly where the path names it, else in the query", *here, "location")
        properties[name] = schema
        locations[name] = "path" if place == "path" else "repeat" if schema.get("type") == "array" else "query"
        if about.get("required") is True or place == "path":
            required.append(name)
    for hole in holes:
        if hole not in properties:
            raise BadPart(f"names {{{hole}}}, which is no parameter", *keys, "path")
    return properties, required, locations


def _body(raw: Any, needed: list[str], schemas: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    made = converted(raw, schemas, (*keys, "request"))
    wrong = schema_problem(made, defs=schemas)
    if wrong:
        raise BadPart(wrong, *keys, "request")
    return {**made, "required": needed} if needed else made


def _needed(raw: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    """(schema, method's id) to the properties that the document's annotations say this method needs in its body."""
    found: dict[tuple[str, str], list[str]] = {}
    schemas = raw.get("schemas", {})
    for schema, about in schemas.items() if isinstance(schemas, dict) else ():
        properties = about.get("properties", {}) if isinstance(about, dict) else {}
        for name, item in properties.items() if isinstance(properties, dict) else ():
            notes = item.get("annotations", {}) if isinstance(item, dict) else {}
            ids = notes.get("required", ()) if isinstance(notes, dict) else ()
            for method in ids if isinstance(ids, list) else ():
                found.setdefault((schema, str(method)), []).append(name)
    return found
