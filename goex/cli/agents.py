"""`goex agents`: names for agents, each with a token that is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, local, shown

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

app = App(help="Agents that have a name.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.")]


@app.command("add")
def add(name: Name, as_json: Json = False) -> None:
    """Give an agent a name, and print its token: once, never again."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import goex_pb2 as pb

    reply = call(out, "Person/AddAgent", pb.AddAgentRequest(name=name), pb.AddAgentReply, presence=True)
    if not as_json:
        say_rules(out, reply)
        out.progress("The agent sends this token as `authorization: Bearer …`. It isn't shown again.")
        out.say(shown(reply.token))


def say_rules(out: Output, reply: pb.AddAgentReply) -> None:
    """Which rules hold for an agent from its first action on: they may have been written for another of its name."""
    if reply.rules:
        many = "A rule in force names" if len(reply.rules) == 1 else f"{len(reply.rules)} rules in force name"
        holds = "it holds" if len(reply.rules) == 1 else "they hold"
        out.progress(
            shown(f"{many} {reply.name}, and {holds} for this agent: {', '.join(reply.rules)}. See: goex rules")
        )


@app.command("list")
def list_agents(as_json: Json = False) -> None:
    """The agents that have a name."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import goex_pb2 as pb

    reply = call(out, "Person/ListAgents", pb.ListAgentsRequest(), pb.ListAgentsReply)
    if as_json:
        return
    if not reply.agents:
        out.say("No agent has a name yet.")
        out.progress("Give one with: goex agents add NAME")
        return
    out.table(
        ("agent", "since", "last seen"),
        [(agent.name, local(agent.created), local(agent.last_seen) or "never") for agent in reply.agents],
    )


@app.command("remove")
def remove(name: Name, as_json: Json = False) -> None:
    """Take an agent's name away: its token stops working and its grants end."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import goex_pb2 as pb

    call(out, "Person/RemoveAgent", pb.RemoveAgentRequest(name=name), pb.RemoveAgentReply)
    if not as_json:
        out.say(f"Removed {shown(name)}.")
