"""What happened, and taking it back: `log`, `show`, `undo`, `redo`, `commit`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, shown, to_json
from policies.errors import ExitStatus, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

LAST = "last"

ActionArgument = Annotated[
    str, typer.Argument(metavar="[ID]", help="An action; left out, the last one that it fits.", show_default=False)
]
Detach = Annotated[bool, typer.Option("--detach", help="Leave it running and print its id.")]


def log(
    verify: Annotated[bool, typer.Option("--verify", help="Check the hash chain and its MAC.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many rows, newest first.")] = 50,
    action: Annotated[str, typer.Option(metavar="ID", help="Only rows of this action.")] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Only rows of this agent.")] = "",
    as_json: Json = False,
) -> None:
    """The journal, newest first; with --verify, whether anybody has altered it."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        if verify:
            raise typer.Exit(_verify(client, out))
        reply = client.call("Person/Log", pb.LogRequest(limit=limit, action_id=action, agent=agent), pb.LogReply)
    out.message(reply)
    if not as_json:
        _rows(out, reply)


def show(action_id: ActionArgument = LAST, as_json: Json = False) -> None:
    """One action: what it was, what it did, how it is taken back, and each of its steps."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.follow import show_outcome
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        action = client.get(resolve(client, action_id, "show"))
        rows = client.call("Person/Log", pb.LogRequest(action_id=action.id, limit=1000), pb.LogReply)
    if as_json:
        out.json({"action": to_json(action), "log": to_json(rows)["rows"]})
        return
    out.fields(
        (
            ("action", action.id),
            ("agent", action.agent),
            ("state", action.state),
            ("kind", action.kind),
            ("takes back", action.target),
            ("in words", action.intent),
            ("risk", action.risk),
            ("created", action.created),
            ("updated", action.updated),
            ("undo", f"{action.undo_class}: {action.undo_text}" if action.undo_class else ""),
            ("session", action.session),
            ("digest", action.digest),
        )
    )
    for line in action.lines:
        out.say("  │ " + shown(line))
    show_outcome(out, action, printed=False)
    _rows(out, rows)
    if action.can_undo:
        out.progress(f"Take it back with: goex undo {action.id}")


def undo(action_id: ActionArgument = LAST, detach: Detach = False, as_json: Json = False) -> None:
    """Take an action back. Refused, with the difference, when someone changed the state since."""
    _revert("undo", action_id, detach, as_json)


def redo(action_id: ActionArgument = LAST, detach: Detach = False, as_json: Json = False) -> None:
    """Do an action that was undone again: its result is restored, it isn't run anew."""
    _revert("redo", action_id, detach, as_json)


def commit(action_id: ActionArgument = LAST, detach: Detach = False, as_json: Json = False) -> None:
    """Keep an action for good: what undo would need is dropped."""
    _revert("commit", action_id, detach, as_json)


def resolve(client: Client, wanted: str, verb: str) -> str:
    """The id that `wanted` stands for: `last` is the newest action that the verb fits. Raises InvalidInput."""
    if wanted != LAST:
        return wanted
    for action in client.actions(limit=200):
        if verb == "show" or (action.can_redo if verb == "redo" else action.can_undo):
            return action.id
    raise InvalidInput(f"There is no action to {verb}.", next_step="See what happened with: goex log")


def _revert(verb: str, action_id: str, detach: bool, as_json: bool) -> None:
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.follow import exit_code, follow
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        target = resolve(client, action_id, verb)
        request = pb.RevertRequest(action_id=target, verb=verb, detach=detach)
        raise typer.Exit(exit_code(follow(client, client.revert(request), out, detach=detach)))


def _verify(client: Client, out: Output) -> int:
    from goex.rpc import goex_pb2 as pb

    reply = client.call("Person/VerifyLog", pb.VerifyLogRequest(), pb.VerifyLogReply, seconds=600.0)
    out.message(reply)
    if not out.as_json:
        if reply.good and reply.authenticated:
            out.say(f"The journal is whole: {reply.rows} rows, head {shown(reply.head[:16])}.")
        elif reply.good:
            out.say(f"The chain of {reply.rows} rows is whole; the vault is sealed, so its head couldn't be checked.")
            out.progress("Unseal it with: goex vault unlock")
        else:
            out.say(f"The journal was altered: {shown(reply.problem)}", "bold red")
    if not reply.good:
        return int(ExitStatus.FAILED)
    return int(ExitStatus.OK if reply.authenticated else ExitStatus.SEALED)


def _rows(out: Output, reply: pb.LogReply) -> None:
    def step(row: pb.LogRow) -> str:
        before = getattr(row, "from")
        return f"{before} → {row.to}" if before else row.to

    def facts(row: pb.LogRow) -> str:
        try:
            found = json.loads(row.facts_json) if row.facts_json else {}
        except ValueError:
            return row.facts_json
        if not isinstance(found, dict):
            return row.facts_json
        return " ".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in found.items())

    out.table(
        ("row", "at", "action", "agent", "what", "step", "facts"),
        [
            (str(row.number), row.at[:19], row.action_id, row.agent, row.kind, step(row), facts(row))
            for row in reply.rows
        ],
    )
