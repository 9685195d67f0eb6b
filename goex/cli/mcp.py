"""`goex mcp`: the MCP server for agents, a client of agent.sock."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from goex.cli import mcp_servers
from goex.cli.help_text import App
from goex.cli.input_text import read_file
from policies.errors import InvalidInput, Unavailable

app = App(
    no_args_is_help=False,
    invoke_without_command=True,
    help="Serve agents by the Model Context Protocol; add MCP servers as services.",
)
app.command("add", short_help="Add a published MCP server as a service.")(mcp_servers.add)
app.command("list")(mcp_servers.list_servers)
app.command("review", short_help="What a server says now, beside what you agreed to.")(mcp_servers.review)
app.command("remove")(mcp_servers.remove)
TOKEN = "GOEX_AGENT_TOKEN"  # noqa: S105  # the name of a variable
SOCKET = "GOEX_AGENT_SOCKET"
_MOST_TOKEN = 1000  # bytes
_TOKEN = re.compile(r"[!-~]+")
_BY_HAND = """\
This speaks MCP on standard input and output, for an agent that starts it; Ctrl-D ends it.
See how a coding agent is configured for it: goex connect --help (claude, codex and others; --json only prints it)
"""


@app.callback()
def run(
    context: typer.Context,
    over_http: Annotated[bool, typer.Option("--http", help="Serve HTTP on 127.0.0.1, not standard input.")] = False,
    port: Annotated[int, typer.Option(help="For --http; 0: any that is free.", min=0, max=65535)] = 7463,
    service: Annotated[
        str, typer.Option(help="Services whose methods are tools of their own, with commas between.")
    ] = "",
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file with the agent's token; else {TOKEN} of the environment.")
    ] = None,
    socket: Annotated[Path | None, typer.Option(help=f"agent.sock; else {SOCKET} of the environment.")] = None,
) -> None:
    """Serve agents by the Model Context Protocol.

    On standard input for one agent, whose token is in GOEX_AGENT_TOKEN or a file; with --http for all agents, each with
    its token as the bearer. A person decides what runs, as for every agent.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        from goex.mcp import transports
    except ModuleNotFoundError as error:
        raise Unavailable("The MCP server isn't installed.", next_step="Install it: pip install 'goex[mcp]'") from error
    import asyncio

    from goex.logs import own_words_to_stderr

    own_words_to_stderr("warning")
    place = agent_socket(socket)
    services = [name.strip() for name in service.split(",") if name.strip()]
    token = agent_token(token_file)
    with suppress(KeyboardInterrupt):
        if over_http:
            asyncio.run(transports.http(place, port, token, services, transports.say))
        else:
            if sys.stdin.isatty():  # nobody types this protocol: somebody looks what the command does
                sys.stderr.write(_BY_HAND)
            asyncio.run(transports.stdio(place, token, services))


def agent_socket(given: Path | None) -> Path:
    """The agent's socket: the one that is given, that of the environment, or this user's own."""
    from goex.cli.connect import paths

    return given or Path(os.environ.get(SOCKET) or paths().agent_socket)


def agent_token(file: Path | None) -> str:
    """The agent's token: of a file, or of the environment. Raises InvalidInput."""
    if file is None:
        return os.environ.get(TOKEN, "")
    try:
        token = read_file(file, _MOST_TOKEN).decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not _TOKEN.fullmatch(token):
        raise InvalidInput(f"{file} holds no agent's token.", next_step="Name the file that goex agents add made.")
    return token
