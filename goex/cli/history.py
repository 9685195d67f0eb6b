"""What happened, and taking it back: `log`, `show`, `undo`, `redo`, `commit`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.output import Json, Output, local, shown, to_json
from policies.errors import ExitStatus, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

LAST = "last"
_AGENT_WIDTH = 16
_LEAST_ID = 4  # characters of an id that may stand for the whole
# What a reader on a screen doesn't need of a row: hashes, which verifying looks at, and what other columns show.
_UNREAD_FACTS = frozenset({"digest", "ledger", "manifest", "sha256", "request_sha256", "outcome_sha256", "session"})

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
            ("created", local(action.created)),
            ("updated", local(action.updated)),
            ("undo", f"{action.undo_class}: {action.undo_text}" if action.undo_class else ""),
            ("session", action.session),
            ("digest", action.digest),
        )
    )
    for line in action.lines:
        out.say("  │ " + shown(line))
    show_outcome(out, action, printed=False)
    _rows(out, rows, of_one=True)
    if action.can_undo:
        out.progress(f"Take it back with: goex undo {action.id}")
    elif action.can_redo:
        out.progress(f"Do it again with: goex redo {action.id}")


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
    """The id that `wanted` stands for: itself, the one action whose id begins so, or for `last` the newest that
    the verb fits. Raises InvalidInput.
    """
    recent = client.actions(limit=200)
    if wanted != LAST:
        close = {action.id for action in recent if action.id.startswith(wanted)} if len(wanted) >= _LEAST_ID else set()
        if len(close) > 1 and wanted not in close:
            raise InvalidInput(f"{wanted!r} fits {len(close)} actions.", next_step="Write more of the id.")
        return next(iter(close)) if len(close) == 1 else wanted
    for action in recent:
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


def _rows(out: Output, reply: pb.LogReply, *, of_one: bool = False) -> None:
    """The rows: a table with every fact; on a screen each in a line, with what is worth reading below it."""
    if not out.on_terminal:
        out.table(
            ("row", "at", "action", "agent", "what", "step", "facts"),
            [
                (str(row.number), local(row.at), row.action_id, row.agent, row.kind, _step(row), _all_facts(row))
                for row in reply.rows
            ],
        )
        return
    if not reply.rows:
        out.say("Nothing is written down yet.")
    agents = min(max((len(row.agent) for row in reply.rows), default=0), _AGENT_WIDTH)
    for row in reply.rows:
        where = "" if of_one else f"{row.action_id or '-':<14} {row.agent or '-':<{agents}} "
        out.say(shown(f"{row.number:>4} {local(row.at)} {where}{row.kind} {_step(row)}".rstrip()))
        facts = _worth_reading(row)
        if facts:
            out.block(facts, indent=5)
    if reply.rows:
        out.progress("Hashes and all other facts: add --json")


def _step(row: pb.LogRow) -> str:
    before = getattr(row, "from")
    return f"{before} → {row.to}" if before else row.to


def _facts(row: pb.LogRow) -> dict[str, Any] | None:
    try:
        found = json.loads(row.facts_json) if row.facts_json else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _all_facts(row: pb.LogRow) -> str:
    facts = _facts(row)
    if facts is None:
        return row.facts_json
    return " ".join(f"{name}={_plain(value)}" for name, value in facts.items())


def _worth_reading(row: pb.LogRow) -> str:
    facts = _facts(row)
    if facts is None:
        return row.facts_json
    kept = {name: value for name, value in facts.items() if name not in _UNREAD_FACTS and value not in ("", [], {})}
    problem = kept.get("problem")
    if isinstance(problem, dict) and isinstance(problem.get("message"), str):
        kept["problem"] = problem["message"]
        if kept.get("summary") == problem["message"]:
            del kept["summary"]
    return "; ".join(f"{name}: {_brief(value)}" for name, value in kept.items())


def _brief(value: Any) -> str:
    """A fact for a screen: grants by what they allow, anything else plain."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, list) and all(isinstance(one, dict) and "width" in one for one in value):
        return ", ".join(f"{one.get('id')} {one['width']} {one.get('service')}:{one.get('scope')}" for one in value)
    return _plain(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
