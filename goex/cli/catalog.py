"""`goex catalog`: what can be called at all.

Rules: it reads and writes the catalog's file itself, so that it works without a daemon; a running daemon sees what has
changed at its next question. Only the accounts come from the daemon, and only if one runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, shown
from policies.display_text import counted
from policies.errors import Unsupported

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb
    from mapper.catalog import Catalog
    from mapper.importing.import_report import Progress, Report

app = App(help="What can be called at all.")
importing = App(help="Import services from API documents.")
app.add_typer(importing, name="import")

_SHOWN = 20  # problems, or odd entries of a kind, that are shown unless all are asked for
_EVERY = 0.5  # seconds between two lines of progress, on a terminal
_EVERY_FILE = 10.0  # and elsewhere

All = Annotated[bool, typer.Option("--all", help="Every version of an imported service, not the main one alone.")]


@app.command("list")
def list_services(every: All = False, as_json: Json = False) -> None:
    """The services."""
    out = Output(as_json)
    from goex.catalog_views import services_reply
    from goex.rpc import goex_pb2 as pb

    reply = services_reply(_open(), pb.ServicesRequest(versions=every), _accounts())
    out.message(reply)
    if reply.trouble:
        out.progress(reply.trouble)
    if as_json:
        return
    imported = any(s.source == "imported" for s in reply.services)
    out.table(
        ("service", "what", "methods", "at", "accounts"),
        [
            (s.name, s.title, str(s.method_count), s.base_url or "where its account says", ", ".join(s.accounts))
            for s in reply.services
        ],
    )
    if imported:
        total = sum(s.method_count for s in reply.services)
        there = f"{counted(len(reply.services), 'service')}, {counted(total, 'method')}"
        out.progress(f"{there}. Find one: goex catalog search WORDS")
    out.progress("What one can do: goex catalog show SERVICE")
    out.progress("Connect one by logging in: goex auth login SERVICE; by a token: goex vault put SERVICE")


@app.command("show")
def show(
    service: Annotated[str, typer.Argument(metavar="SERVICE[.METHOD]", help="A service, or one of its methods.")],
    as_json: Json = False,
) -> None:
    """A service's methods; or one method with its arguments."""
    out = Output(as_json)
    from goex.catalog_views import services_reply
    from goex.rpc import goex_pb2 as pb

    name, _, method = service.partition(".")
    if not name:
        from policies.errors import InvalidInput

        raise InvalidInput("The service's name is empty.", next_step="See which there are: goex catalog list")
    (found,) = services_reply(_open(), pb.ServicesRequest(service=name, method=method), _accounts()).services
    out.message(found.methods[0] if method else found)
    if as_json:
        return
    if method:
        _method(out, found.name, found.methods[0])
        return
    if found.source == "imported":
        version = f"{found.version}{'' if found.main else ', not the main version'}"
        out.fields(
            (
                ("service", f"{found.title} ({version}), imported from {found.provider}"),
                ("what", found.description),
                ("at", found.base_url),
                ("accounts", ", ".join(found.accounts)),
            )
        )
    out.table(
        ("method", "risk", "scopes", "what", "undo"),
        [(m.name, m.risk, ", ".join(m.scopes), m.description, m.undo) for m in found.methods],
    )


@app.command("search")
def search(
    words: Annotated[list[str], typer.Argument(help="What it does, in words, or its name.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="How many are shown.")] = 20,
    as_json: Json = False,
) -> None:
    """Methods by their name, or by what they do."""
    out = Output(as_json)
    from mapper.method_search import search as find

    found = find(_open(), " ".join(words), limit=limit)
    out.json(
        {
            "methods": [
                {
                    "method": one.id,
                    "risk": one.risk.word,
                    "description": one.description,
                    "unsupported": one.unsupported,
                }
                for one in found
            ]
        }
    )
    if as_json:
        return
    if not found:
        out.say("Nothing in the catalog fits these words.")
        return
    out.table(("method", "risk", "what"), [(one.id, one.risk.word, _sentence(one.description)) for one in found])
    out.progress(f"Its arguments: goex catalog show {found[0].id}")


@app.command("lint", short_help="Entries that look wrong.")
def lint(
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="Only this one.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Show each of them, however many there are.")] = False,
    as_json: Json = False,
) -> None:
    """Entries of the catalog that look wrong: descriptions that are missing, paths twice, risks that can't be."""
    out = Output(as_json)
    from mapper.lint import KINDS
    from mapper.lint import lint as look

    found = list(look(_open(), service))
    out.json({"findings": [{"kind": one.kind, "name": one.name, "what": one.what} for one in found]})
    if as_json:
        return
    if not found:
        out.say("Nothing looks wrong.")
    for kind, words in KINDS.items():
        these = [one for one in found if one.kind == kind]
        if these:
            out.say(f"{words[0].upper()}{words[1:]} ({len(these)}):")
            for one in these if every else these[:_SHOWN]:
                out.say(shown(f"  {one.name}: {one.what}"))
            if len(these) > _SHOWN and not every:
                out.say(f"  … and {len(these) - _SHOWN} more: --all shows them")


@app.command("remove")
def remove(
    service: Annotated[str, typer.Argument(metavar="SERVICE|PROVIDER", help="One imported service, or all of one.")],
    as_json: Json = False,
) -> None:
    """Remove an imported service, or all of a provider, like google. Accounts stay in the vault."""
    out = Output(as_json)
    from mapper.importing.install import remove as take_out

    gone = take_out(_path(), service, _progress(out))
    out.json({"removed": list(gone)})
    if not as_json:
        out.say(shown(f"Removed {gone[0]}." if len(gone) == 1 else f"Removed {len(gone)} services of {service}."))


@importing.command("google")
def import_google(
    folder: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="A folder of discovery documents, not the installed package's."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import Google's services from the discovery documents in the package google-api-python-client."""
    out = Output(as_json)
    from mapper.importing import install

    report(out, install.import_google(_path(), folder, _progress(out)))


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="What the service is called here.")]


@importing.command("openapi")
def import_openapi(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An OpenAPI 3 or Swagger 2 document, or a folder or zip of its files.",
        ),
    ],
    name: Name = "",
    as_json: Json = False,
) -> None:
    """Import a service from its OpenAPI document."""
    out = Output(as_json)
    from mapper.importing.files import import_openapi as take

    done = take(_path(), file, name, _progress(out))
    report(out, done)
    if not as_json:
        _next(out, done.imported[0].service)


@importing.command("graphql")
def import_graphql(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A schema: SDL, or the JSON that an introspection query answers.")
    ],
    endpoint: Annotated[str, typer.Option("--endpoint", metavar="URL", help="Where the API is, which no schema says.")],
    name: Name = "",
    as_json: Json = False,
) -> None:
    """Import a service from its GraphQL schema: each query and mutation becomes a method."""
    out = Output(as_json)
    from mapper.importing.files import import_graphql as take

    done = take(_path(), file, endpoint, name, _progress(out))
    report(out, done)
    if not as_json:
        _next(out, done.imported[0].service)


@importing.command("functions")
def import_functions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Functions as JSON Schema tools; JSON, or JSON lines.")],
    name: Name = "",
    as_json: Json = False,
) -> None:
    """Import a set of functions, for mapping and evaluation: they have no address, so they can't be called."""
    out = Output(as_json)
    from mapper.importing.files import import_functions as take

    done = take(_path(), file, name, _progress(out))
    report(out, done)
    if not as_json:
        out.progress(f"What they are: goex catalog show {done.imported[0].service}")


def _next(out: Output, service: str) -> None:
    """What an imported service is called, where it is, and how it is connected, if it can be."""
    catalog = _open()
    found = catalog.service(service)
    where = f", at {found.base_url}" if found.base_url else ""
    out.say(shown(f"It is called {service}{where}."))
    try:
        catalog.check_connectable(service)
    except Unsupported as error:
        out.progress(shown(f"{error.message} {error.next_step}"))
        return
    place = "" if found.base_url else " --base-url https://…"
    how = "auth login" if found.oauth is not None else "vault put"
    out.progress(f"Connect it: goex {how} {service}{place}")


def report(out: Output, done: Report) -> None:
    """What an import did, in words or as JSON."""
    out.json(done.to_json())
    if out.as_json:
        return
    for problem in done.problems[:_SHOWN]:
        out.progress(str(problem))
    if len(done.problems) > _SHOWN:
        out.progress(f"… and {counted(len(done.problems) - _SHOWN, 'more problem')}; --json has them all")
    for one in done.imported:
        if one.moved:
            out.say(shown(f"{one.service} is at another address now; it was {one.moved}. Accounts keep theirs."))
    if done.left:
        names = ", ".join(done.left[:10])
        out.say(shown(f"No longer in these documents, and kept: {names}. Remove with: goex catalog remove SERVICE"))
    for kept in done.kept[:_SHOWN]:
        out.say(
            shown(
                f"{kept.service} stays {kept.version}, since accounts and grants may use it; {kept.newer} is"
                f" {kept.newer_service}."
            )
        )
    if done.kept:
        more = f" ({len(done.kept) - _SHOWN} more: --json has them all)" if len(done.kept) > _SHOWN else ""
        out.say(shown(f"To change that{more}: goex catalog remove {done.kept[0].service}, then import again."))
    facts = done.to_json()
    size = _path().stat().st_size / 1e6
    out.say(
        f"Imported {counted(facts['documents'], 'document')}: {counted(facts['services'], 'service')}, "
        f"{counted(facts['methods'], 'method')}, in "
        f"{done.seconds:.0f} s; problems: {len(done.problems)}. The catalog is {size:.1f} MB."
    )


def _path() -> Path:
    from goex.cli.connect import paths

    places = paths()
    places.create()
    return places.catalog


def _open() -> Catalog:
    from goex.cli.connect import paths
    from mapper.catalog import Catalog

    return Catalog.open(paths().catalog)


def _accounts() -> dict[str, list[str]]:
    """The accounts of each service, as a running daemon knows them; none without one."""
    from goex.cli.connect import paths
    from goex.client import connect, running
    from goex.rpc import goex_pb2 as pb
    from policies.errors import GoexError

    found: dict[str, list[str]] = {}
    try:
        if running(paths().user_socket):
            with connect(paths(), start=False) as client:
                for one in client.call("Person/VaultList", pb.VaultListRequest(), pb.VaultListReply).accounts:
                    found.setdefault(one.service, []).append(one.account)
    except GoexError:
        return {}  # what can be called doesn't depend on it
    return found


def _progress(out: Output) -> Progress:
    """A line on stderr now and then, so that something is seen to happen."""
    every = _EVERY if sys.stderr.isatty() else _EVERY_FILE
    last = time.monotonic()

    def show(done: int, total: int, what: str) -> None:
        nonlocal last
        if what and time.monotonic() - last >= every:
            last = time.monotonic()
            out.progress(f"{done} of {total}: {what}")

    return show


def _method(out: Output, service: str, one: pb.MethodView) -> None:
    out.fields(
        (
            ("method", f"{service}.{one.name}"),
            ("what", one.description),
            ("risk", one.risk),
            ("scopes", ", ".join(one.scopes)),
            ("undo", one.undo),
            ("can't be called", one.unsupported),
        )
    )
    _arguments(out, f"{service}.{one.name}", one.parameters_json, how=not one.unsupported)


def _arguments(out: Output, method: str, schema_json: str, *, how: bool) -> None:
    """A method's arguments, from its JSON Schema, and `how` a call of it is written."""
    import json

    try:
        schema = json.loads(schema_json or "{}")
    except ValueError:
        schema = None
    properties = schema.get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        out.say(shown(schema_json))
        return
    needed = [str(name) for name in schema.get("required", ())]
    rows = list(_rows(properties, needed))
    body = properties.get("body")
    if isinstance(body, dict):
        inner = schema.get("$defs", {}).get(str(body["$ref"]).rpartition("/")[2], {}) if "$ref" in body else body
        fields = {key: value for key, value in inner.get("properties", {}).items() if not _only_read(value)}
        rows += _rows(fields, body.get("required", inner.get("required", ())), "body.")
    if not rows:
        out.say("It takes no arguments.")
    else:
        out.table(("argument", "kind", "needed", "what"), rows)
    if not how:
        return
    parts = {name for name, _, need, _ in rows if need and name.startswith("body.")} if "body" in needed else set()
    wanted = (parts | {*needed}) - ({"body"} if parts else set())
    words = [f"{name}{'=' if kind == 'text' else ':='}…" for name, kind, need, _ in rows if need and name in wanted]
    out.progress(" ".join(["Call it with: goex exec --call", method, *words]))


def _only_read(field: object) -> bool:
    return isinstance(field, dict) and bool(field.get("readOnly"))


def _rows(properties: dict[str, Any], needed: Sequence[str], before: str = "") -> Iterator[tuple[str, str, str, str]]:
    for key, value in sorted(properties.items(), key=lambda item: item[0] not in needed):
        if isinstance(value, dict):
            said = str(value.get("description", ""))
            yield f"{before}{key}", _kind(value), "yes" if key in needed else "", said


def _sentence(text: str) -> str:
    first, dot, _ = text.partition(". ")
    return first + dot.strip()


def _kind(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return " or ".join(str(value) for value in schema["enum"])
    if isinstance(schema.get("$ref"), str):
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join("text" if one == "string" else str(one) for one in kinds)
