"""`goex grants` and `goex revoke`: what is allowed already, and taking that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, local, shown
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb


def list_grants(
    every: Annotated[bool, typer.Option("--all", help="Also used, expired and revoked ones.")] = False,
    as_json: Json = False,
) -> None:
    """What you have allowed, to whom, and until when."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        reply = client.call("Person/Grants", pb.GrantsRequest(all=every), pb.GrantsReply)
        sealed = not reply.grants and client.status().vault == "sealed"
    out.message(reply)
    if as_json:
        return
    if not reply.grants:
        if sealed:
            out.say("While the vault is sealed, nothing is granted.")
            out.progress("See what will be once it is open: goex vault unlock")
        else:
            out.say("Nothing is granted.")
        return
    if out.on_terminal:
        for grant in reply.grants:
            _lines(out, grant)
        return
    out.table(
        ("grant", "agent", "scope", "account", "width", "only when", "until", "state"),
        [
            (
                grant.id,
                grant.agent,
                f"{grant.service}:{grant.scope}",
                grant.account,
                grant.width,
                "" if grant.constraints_json in ("", "{}") else grant.constraints_json,
                local(grant.expires),
                _state(grant),
            )
            for grant in reply.grants
        ],
    )


def _state(grant: pb.GrantView) -> str:
    return "revoked" if grant.revoked else "used" if grant.used else "live"


def _lines(out: Output, grant: pb.GrantView) -> None:
    """One grant for a screen: a line that names it, and below it what it is bound to."""
    out.say(shown(f"{grant.id}  {_state(grant)}  {grant.width}  {grant.agent}  {grant.service}:{grant.scope}"))
    if grant.account:
        out.block(f"on account {grant.account}")
    bound = "" if grant.constraints_json in ("", "{}") else grant.constraints_json
    out.block(f"only when {bound}" if bound else "whatever the arguments are")
    if grant.width == "session":
        out.block("until its session ends")
    elif grant.expires:
        out.block(f"until {local(grant.expires)}")


def revoke(
    grant_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", show_default=False)] = None,
    agent: Annotated[str, typer.Option(metavar="NAME", help="Every grant of this agent.")] = "",
    as_json: Json = False,
) -> None:
    """Take grants back, at once, in running sessions too."""
    out = Output(as_json)
    if bool(grant_ids) == bool(agent):
        raise InvalidInput("Name grants, or an agent with --agent.", next_step="See them with: goex grants")
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        reply = client.call("Person/Revoke", pb.RevokeRequest(grant_ids=grant_ids, agent=agent), pb.RevokeReply)
    out.message(reply)
    if not as_json:
        out.say(f"Revoked {len(reply.grants)} grant{'' if len(reply.grants) == 1 else 's'}.")
