"""`goex hook`: answers a coding agent's hook by what the rules say, a client of agent.sock."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from goex.cli.mcp import SOCKET, TOKEN, agent_socket, agent_token
from policies.errors import ExitStatus, GoexError, InvalidInput

SECONDS = 10.0


def run(
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file with the agent's token; else {TOKEN} of the environment.")
    ] = None,
    socket: Annotated[Path | None, typer.Option(help=f"agent.sock; else {SOCKET} of the environment.")] = None,
) -> None:
    """Answer a hook of Claude Code, Codex, Gemini CLI, Copilot or VS Code, whose event is read from standard input.

    What rules forbid is denied, what they permit for Action::"tool" is allowed, a shell command that GoEx can run with
    undo is denied with the tool to use instead. All else is left to the client's own question, and so is what can't be
    judged. An event that can't be read is refused: status 2, which each client takes as a no.
    """
    from policies.jsonvalue import canonical

    try:
        said = _said(socket, token_file)
        if said is not None:
            sys.stdout.buffer.write(canonical(said) + b"\n")
            sys.stdout.flush()
    except Exception as error:
        # Any other status than 2 is a warning to the clients, who then go on: also where nothing can be said.
        with suppress(Exception):
            _say(error)
        _drop_unwritable()
        raise typer.Exit(int(ExitStatus.USAGE)) from error


def _say(error: Exception) -> None:
    """Why the event is refused."""
    from goex.cli.output import print_error

    if not isinstance(error, InvalidInput):
        error = InvalidInput(
            f"The event can't be judged ({type(error).__name__}).", next_step="See what it holds: it was refused."
        )
    print_error(error, as_json=False)


def _drop_unwritable() -> None:
    """Leave what can't be written: Python would try it again at the end, and make its failure the status."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (AttributeError, OSError, ValueError):
            setattr(sys, name, None)


def _said(socket: Path | None, token_file: Path | None) -> dict[str, Any] | None:
    """What the client is to read; None for nothing."""
    from goex.client import Client
    from goex.coding_agents.hook_formats import LONGEST, judged, read_event, unjudged
    from goex.rpc import goex_pb2 as pb

    use = read_event(sys.stdin.buffer.read(LONGEST + 1).decode("utf-8", "replace"))
    if use is None:
        return None
    try:
        with Client(agent_socket(socket), token=agent_token(token_file)) as client:
            reply = client.call("Actions/Judge", use.request, pb.JudgeReply, seconds=SECONDS)
        return judged(use, reply.verdict, reply.reason)
    except GoexError as error:
        return unjudged(use, error.message)
