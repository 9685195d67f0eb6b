"""`goex catalog`: what can be called at all."""

from __future__ import annotations

from typing import Annotated

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
            [(s.name, s.title, str(len(s.methods)), s.base_url, ", ".join(s.accounts)) for s in reply.services],
        )


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
    out.say(shown(_pretty(one.parameters_json), newlines=True))


def _pretty(text: str) -> str:
    import json

    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
