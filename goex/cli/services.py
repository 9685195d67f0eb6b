"""`goex catalog`: what can be called at all."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from goex.cli.output import Json, Output, shown
from policies.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What can be called at all.")


@app.command("list")
def list_services(as_json: Json = False) -> None:
    """The services."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        reply = client.call("Person/Services", pb.ServicesRequest(), pb.ServicesReply)
    out.message(reply)
    if not as_json:
        out.table(
            ("service", "what", "methods", "at", "accounts"),
            [
                (s.name, s.title, str(len(s.methods)), s.base_url or "where its account says", ", ".join(s.accounts))
                for s in reply.services
            ],
        )
        out.progress("What one can do: goex catalog show SERVICE; connect one: goex vault put SERVICE")


@app.command("show")
def show(
    service: Annotated[str, typer.Argument(metavar="SERVICE[.METHOD]", help="A service, or one of its methods.")],
    as_json: Json = False,
) -> None:
    """A service's methods; or one method with its arguments."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    name, _, method = service.partition(".")
    with connect(out) as client:
        reply = client.call("Person/Services", pb.ServicesRequest(service=name), pb.ServicesReply)
    found = [one for one in reply.services if one.name == name]
    methods = [one for each in found for one in each.methods if not method or one.name in (method, service)]
    if not methods:
        raise InvalidInput(f"{service!r} isn't in the catalog.", next_step="See what is: goex catalog list")
    if method:
        out.message(methods[0])
    else:
        out.message(found[0])
    if as_json:
        return
    if not method:
        out.table(
            ("method", "risk", "scopes", "what", "undo"),
            [(m.name, m.risk, ", ".join(m.scopes), m.description, m.undo) for m in methods],
        )
        return
    one = methods[0]
    out.fields(
        (
            ("method", f"{name}.{one.name}"),
            ("what", one.description),
            ("risk", one.risk),
            ("scopes", ", ".join(one.scopes)),
            ("undo", one.undo),
        )
    )
    _arguments(out, f"{name}.{one.name}", one.parameters_json)


def _arguments(out: Output, method: str, schema_json: str) -> None:
    """A method's arguments, from its JSON Schema, and how a call of it is written."""
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
    rows = [
        (key, _kind(value), "yes" if key in needed else "", str(value.get("description", "")))
        for key, value in sorted(properties.items(), key=lambda item: item[0] not in needed)
        if isinstance(value, dict)
    ]
    if not rows:
        out.say("It takes no arguments.")
    else:
        out.table(("argument", "kind", "needed", "what"), rows)
    words = [f"{key}{'=' if _kind(properties[key]) == 'text' else ':='}…" for key in needed if key in properties]
    out.progress(" ".join(["Call it with: goex exec --call", method, *words]))


def _kind(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return " or ".join(str(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join("text" if one == "string" else str(one) for one in kinds)
