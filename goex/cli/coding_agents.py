"""`goex connect`: writes the configuration of a coding agent so that it reaches GoEx, and takes it out again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, shown
from policies.errors import Denied, InvalidInput, Unavailable

if TYPE_CHECKING:
    from goex.coding_agents.configurations import Change


class Name(StrEnum):
    """The clients whose configuration is known."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    COPILOT = "copilot"
    VSCODE = "vscode"
    CURSOR = "cursor"


def run(
    client: Annotated[
        Name, typer.Argument(help="Whose configuration: claude, codex, gemini, copilot, vscode, cursor.")
    ],
    agent: Annotated[str, typer.Option(help="The agent's name for GoEx; the client's by default.")] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with an agent's token; by default one is made, and kept."),
    ] = None,
    socket: Annotated[Path | None, typer.Option(help="agent.sock, where it isn't this user's own.")] = None,
    project: Annotated[Path | None, typer.Option(help="This project's folder, not your own settings.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take GoEx out of the configuration again.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write without asking; the difference is still shown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Connect a coding agent: GoEx's MCP server, and a hook that asks your rules about the agent's own tools.

    The difference is shown first, and what else the files hold stays as it is. With --json nothing is written without
    --write.
    """
    from goex.cli.connect import paths
    from goex.coding_agents.configurations import Program, changes
    from goex.coding_agents.configurations import write as write_change

    out = Output(as_json)
    name = agent or client.value
    if "/" in name or name.startswith("."):
        raise InvalidInput(f"{name[:60]!r} isn't a name for an agent.", next_step="Name it like the client.")
    file = (token_file or paths().config_dir / "agents" / f"{name}.token").absolute()
    if token_file is not None and not remove and not file.is_file():
        raise InvalidInput(f"There is no {file}.", next_step="Name a file that holds an agent's token.")
    # Not every client passes on where this user's sockets are.
    place = (socket or paths().agent_socket).absolute()
    program = Program(command=_command(), arguments=("--token-file", str(file), "--socket", str(place)))
    found = changes(client.value, program, os.environ, project.absolute() if project else None, remove=remove)
    named = remove or file.is_file()
    differences = [{"file": str(change.file), "difference": list(_difference(change))} for change in found]
    if not as_json:
        for line in (line for each in differences for line in each["difference"]):
            out.say(shown(line), {"+": "green", "-": "red"}.get(line[:1], ""))
    writes = write or (not as_json and (not found or _agreed()))
    if found and not writes and not as_json:
        raise Denied("Nothing was written.")
    if writes and not named:
        _name(out, name, file)
    for change in found if writes else ():
        write_change(change)
        if not as_json:
            out.say(f"Wrote {shown(str(change.file))}." if change.after else f"Removed {shown(str(change.file))}.")
    hints = []
    if remove and token_file is None and file.is_file():
        hints.append(f"The agent keeps its name. To end that: goex agents remove {name}; rm {file}")
    if client is Name.CODEX and not remove and (found or not named):
        hints.append("Codex runs a new hook once you trust it: /hooks in Codex.")
    out.json({"changes": differences, "written": writes and bool(found), "next": hints})
    if as_json:
        return
    if not found and named:
        out.say("Nothing to change.")
        return
    for hint in hints:
        out.progress(hint)


def _difference(change: Change) -> Iterator[str]:
    """What would be different in a file, line by line."""
    import difflib

    before, after = (change.before or "").splitlines(), change.after.splitlines()
    title = str(change.file)
    yield from difflib.unified_diff(
        before, after, title if change.before is not None else "/dev/null", title if after else "/dev/null", lineterm=""
    )


def _agreed() -> bool:
    from goex.cli.prompt import Terminal

    terminal = Terminal.controlling()
    if terminal is None:
        raise Unavailable("There is no terminal to ask on.", next_step="Read the difference, then add --write.")
    return terminal.agrees("Write this? [y/N] ")


def _name(out: Output, name: str, file: Path) -> None:
    """Name the agent and keep its token, for its owner alone."""
    from goex.cli.agents import say_rules
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.paths import make_private
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        reply = call_with_presence(client, "Person/AddAgent", pb.AddAgentRequest(name=name), pb.AddAgentReply)
    try:
        make_private(file.parent)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as kept:
            kept.write(reply.token + "\n")
    except OSError as error:
        raise Unavailable(
            f"The token can't be kept at {file}: {error.strerror}.",
            next_step=f"Mend that, then: goex agents remove {name}, and connect again.",
        ) from error
    if not out.as_json:
        out.say(f"Named the agent {shown(name)}; its token is in {shown(str(file))}.")
        say_rules(out, reply)


def _command() -> str:
    """This program, in full: a client is started in another environment."""
    own = Path(sys.argv[0])
    return str(own.absolute()) if own.name == "goex" and own.is_file() else str(Path(sys.executable).with_name("goex"))
