"""`goex grants` and `goex revoke`: what is allowed already, and taking that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, local, shown
from policies.display_text import counted
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb


def list_grants(
    every: Annotated[bool, typer.Option("--all", help="Also used, expired and revoked ones.")] = False,
    as_json: Json = False,
) -> None:
    """What you have allowed, to whom, until when, and how often it was used."""
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
        ("grant", "agent", "scope", "account", "duration", "only when", "until", "used", "last used", "state"),
        [
            (
                grant.id,
                grant.agent,
                f"{grant.service}:{grant.scope}",
                grant.account,
                grant.width,
                "" if grant.constraints_json in ("", "{}") else grant.constraints_json,
                local(grant.ends or grant.expires),
                str(grant.uses),
                local(grant.last_used),
                _state(grant),
            )
            for grant in reply.grants
        ],
    )


def _state(grant: pb.GrantView) -> str:
    return "revoked" if grant.revoked else "used" if grant.used else "stale" if grant.stale else "live"


def _lines(out: Output, grant: pb.GrantView) -> None:
    """One grant for a screen: a line that names it, and below it what it allows, until when, and who decided."""
    out.say(shown(f"{grant.id}  {_state(grant)}  {grant.width}  {grant.agent}  {grant.service}:{grant.scope}"))
    if grant.words:
        for words in grant.words:
            out.block(words, style="")
    elif grant.account:
        out.block(f"on account {grant.account}")
    if grant.constraints_json not in ("", "{}"):
        out.block(f"only when {grant.constraints_json}")
    elif not grant.words:
        out.block("whatever the arguments are")
    if grant.stale:
        out.block(grant.stale, style="bold yellow")
    out.block(_ending(grant))
    times = "once" if grant.uses == 1 else counted(grant.uses, "time")
    out.block(f"used {times}, last on {local(grant.last_used)}" if grant.uses else "never used yet")
    if grant.by:
        out.block(f"given on {local(grant.created)} by {grant.by}, when {grant.why} was asked for")


def _ending(grant: pb.GrantView) -> str:
    if grant.revoked:
        return f"ended on {local(grant.revoked)}"
    if grant.width == "session":
        return f"until its session ends, {local(grant.expires)} at the latest"
    if grant.ends and grant.ends != grant.expires:
        return f"until {local(grant.expires)}, or {local(grant.ends)} if it isn't used before"
    return f"until {local(grant.expires)}" if grant.expires else "until you revoke it"


def revoke(
    grant_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", show_default=False)] = None,
    agent: Annotated[str, typer.Option(metavar="NAME", help="Every grant of this agent.")] = "",
    service: Annotated[str, typer.Option(metavar="NAME", help="Every grant on this service.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Every grant of this session.")] = "",
    task: Annotated[str, typer.Option(metavar="ID", help="Every line of this task, which ends it.")] = "",
    as_json: Json = False,
) -> None:
    """Take grants back, at once, in running sessions too. Of several options, a grant must fit all."""
    out = Output(as_json)
    if bool(grant_ids) + bool(agent or service or session) + bool(task) != 1:
        raise InvalidInput(
            "Name grants, or what they have in common: --agent, --service, --session; or --task alone.",
            next_step="See them with: goex grants",
        )
    from goex.cli.daemon_calls import call
    from goex.rpc import goex_pb2 as pb

    request = pb.RevokeRequest(grant_ids=grant_ids, agent=agent, service=service, session=session, task=task)
    reply = call(out, "Person/Revoke", request, pb.RevokeReply)
    if not reply.grants:
        raise InvalidInput("No live grant is like that: nothing was revoked.", next_step="See them with: goex grants")
    if not as_json:
        out.say(f"Revoked {counted(len(reply.grants), 'grant')}.")
