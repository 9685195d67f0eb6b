"""`goex daemon`: the daemon by hand. The other commands start it when they need it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from goex.cli import rules
from goex.cli.help_text import App
from goex.cli.output import Json, Output, shown
from policies.errors import ExitStatus, Unavailable

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

app = App(help="The daemon, by hand.")
STOP_SECONDS = 60.0


@app.command("run")
def run() -> None:
    """Run the daemon in the foreground, until SIGTERM or Ctrl-C."""
    # The daemon would carry the command line's modules for as long as it runs.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "goex.daemon"])  # noqa: S606


@app.command("start")
def start(as_json: Json = False) -> None:
    """Start the daemon when it isn't running."""
    out = Output(as_json)
    from goex.cli.connect import connect

    with connect(out) as client:
        reply = client.status()
    out.message(reply)
    if not as_json:
        out.say(f"The daemon runs (process {reply.pid}).")
        if reply.vault == "sealed":
            out.progress("Its vault is sealed; open it with: goex vault unlock")


@app.command("stop")
def stop(as_json: Json = False) -> None:
    """Let the daemon finish what runs, and stop it."""
    out = Output(as_json)
    from goex.cli.connect import connect, paths
    from goex.client import NotRunning, running
    from goex.rpc import goex_pb2 as pb

    try:
        client = connect(out, start=False)
    except NotRunning:
        out.json({"stopped": False})
        if not as_json:
            out.say("The daemon isn't running.")
        return
    with client:
        pid = client.status().pid
        # A daemon that is gone before its answer got out has stopped as well.
        with suppress(NotRunning):
            client.call("Person/Shutdown", pb.ShutdownRequest(), pb.ShutdownReply, seconds=STOP_SECONDS)
    deadline = time.monotonic() + STOP_SECONDS
    # Until the process has ended: before that it holds the lock, and another one couldn't start.
    while running(paths().user_socket) or _alive(pid):
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The daemon still runs after {STOP_SECONDS:.0f} s; an action may be under way.",
                next_step="See it with: goex log",
            )
        time.sleep(0.05)
    out.json({"stopped": True})
    if not as_json:
        out.say("The daemon has stopped.")


def _alive(pid: int) -> bool:
    try:
        # The state follows the name, which may hold anything, in brackets. A zombie has ended.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def _vault(reply: pb.StatusReply) -> str:
    said = reply.vault + (f", keyed by {reply.keyed_by}" if reply.keyed_by else "")
    return said + (f" ({reply.vault_trouble})" if reply.vault_trouble else "")


@app.command("status")
def status(as_json: Json = False) -> None:
    """What the daemon says about itself. Doesn't start it."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.client import NotRunning

    try:
        client = connect(out, start=False)
    except NotRunning:
        out.json({"running": False})
        if not as_json:
            out.say("The daemon isn't running.")
            out.progress("Start it with: goex daemon start")
        raise typer.Exit(int(ExitStatus.UNAVAILABLE)) from None
    with client:
        reply = client.status()
        notes = rules.notes(client, out) if reply.vault == "unsealed" and not as_json else ()
    if as_json:
        from goex.cli.output import to_json

        out.json({"running": True, **to_json(reply)})
        return
    out.fields(
        (
            ("process", str(reply.pid)),
            ("version", reply.version),
            ("vault", _vault(reply)),
            ("seals itself", reply.sealing or "never by itself"),
            ("docker", reply.docker or "answers"),
            ("image", reply.image or ("not known" if reply.docker else "built")),
            ("model", reply.model or "none: the embedded proposer"),
            ("waiting", str(reply.pending)),
            ("for you", reply.user_socket),
            ("for agents", ", ".join(dict.fromkeys([reply.agent_socket, *reply.agent_sockets]))),
            ("state", reply.state_dir),
        )
    )
    if reply.pending:
        out.progress(shown(f"{reply.pending} waiting for you: goex approve"))
    for line in (*map(shown, reply.warnings), *notes):
        out.progress(line)
