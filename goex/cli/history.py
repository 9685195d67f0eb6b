"""Taking back what happened: `undo`, `redo`, `commit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.action_ids import LAST, ActionArgument, resolve
from goex.cli.action_text import changed_nothing
from goex.cli.output import Json, Output, shown
from policies.errors import Conflict, Denied, InvalidInput, Unsupported

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb


@dataclass(frozen=True, slots=True)
class Point:
    """What --to names, and whose actions it is about."""

    to: str
    everyone: bool
    agent: str

    def check(self, verb: str, action_id: str, alone: bool) -> None:
        """Raises InvalidInput for options that don't go together."""
        if not self.to and (self.everyone or self.agent):
            raise InvalidInput(
                "--everyone and --agent belong to --to.", next_step=f"For example: goex {verb} --to 2h --everyone"
            )
        if not action_id:  # of a script whose variable is empty, which doesn't mean the last one
            raise InvalidInput("The action's id is empty.", next_step=f"For the last action: goex {verb}")
        if self.to and (action_id != LAST or alone):
            raise InvalidInput(
                "--to names all since a point, so neither another action nor --detach or --regardless go with it.",
                next_step=f"Write either goex {verb} ID or goex {verb} --to POINT.",
            )


_NAMED = 5  # actions that were passed over
_UNDER_WAY = {"asking": "it waits for your decision", "allowed": "it is running", "prepared": "it is running"}
_UNDER_WAY["running"] = "it is running"

Detach = Annotated[bool, typer.Option("--detach", help="Leave it running and print its id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what it would do; nothing is asked or done.")]


To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="POINT",
        help="Back to a point: an action, with all of its session that came after it; or a time, like 2h or today.",
    ),
]
Forward = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="POINT",
        help="All that was undone from a point on: an action, with its session after it; or a time, like 2h or today.",
    ),
]
Until = Annotated[
    str,
    typer.Option("--to", metavar="POINT", help="All up to a point: an action, with its session before it; or a time."),
]
Everyone = Annotated[bool, typer.Option("--everyone", help="With --to: not only the session of that action.")]
Agent = Annotated[str, typer.Option("--agent", metavar="NAME", help="With --to: only this agent's actions.")]
Regardless = Annotated[
    bool,
    typer.Option("--regardless", help="Also when later actions depend on it. The present state is still compared."),
]


def undo(
    action_id: ActionArgument = LAST,
    to: To = "",
    everyone: Everyone = False,
    agent: Agent = "",
    regardless: Regardless = False,
    detach: Detach = False,
    dry_run: DryRun = False,
    task: Annotated[
        str, typer.Option(metavar="ID", help="All that was done in this task; a question for each 20.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Take an action back, or with --to all since a point. Refused, with the difference, when someone changed the
    state since, or a later action depends on it."""
    if task:
        if action_id != LAST or to or everyone or agent or regardless or detach:
            raise InvalidInput("--task names all that was done in it.", next_step="Write goex undo --task ID.")
        from goex.cli.connect import connect
        from goex.cli.task import undo_all

        out = Output(as_json)
        with connect(out) as client:
            raise typer.Exit(undo_all(client, task, dry_run, out))
    _revert("undo", action_id, Point(to, everyone, agent), regardless, detach, dry_run, as_json)


def redo(
    action_id: ActionArgument = LAST,
    to: Forward = "",
    everyone: Everyone = False,
    agent: Agent = "",
    regardless: Regardless = False,
    detach: Detach = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Do an action that was undone again: its result is restored, it isn't run anew. With --to all that was undone
    since a point."""
    _revert("redo", action_id, Point(to, everyone, agent), regardless, detach, dry_run, as_json)


def commit(
    action_id: ActionArgument = LAST,
    to: Until = "",
    everyone: Everyone = False,
    agent: Agent = "",
    detach: Detach = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Keep an action for good, or with --to all up to a point: what undo would need is dropped."""
    _revert("commit", action_id, Point(to, everyone, agent), False, detach, dry_run, as_json)


def last(client: Client, verb: str, out: Output, *, ask: bool) -> str:
    """The newest action that the verb fits; what changed nothing needs no undo. Where newer ones had to be passed over
    they are named, with the reason, and on a terminal the person is asked before an older one is taken; elsewhere it
    isn't taken. Raises Conflict, Unsupported, Denied.
    """
    passed: list[pb.ActionView] = []
    for action in client.actions(limit=200):
        if verb == "undo" and changed_nothing(action):
            continue
        if action.can_redo if verb == "redo" else action.can_undo:
            if passed:
                _name(client, passed, verb, out)
                if ask:
                    _ask_older(client, action.id, passed[0].id, verb, out)
            return action.id
        if _reason(action, verb):
            passed.append(action)
    if not passed:
        raise Conflict(f"There is no action to {verb}.", next_step="See what happened with: goex log")
    _name(client, passed, verb, out)
    raise Unsupported(f"There is no action that {verb} is possible for.", next_step="See what happened with: goex log")


def _reason(action: pb.ActionView, verb: str) -> str:
    """Why the verb doesn't fit an action that may have changed something; "" for one that it isn't about."""
    if action.kind == "revert" or action.undo_class == "nothing":
        return ""
    if verb == "redo":
        return "a program for services isn't run again" if action.state == "undone" else ""
    if action.state in _UNDER_WAY:
        return _UNDER_WAY[action.state]
    if action.state == "committed":
        return "it was committed: what undo would need is gone" if verb == "undo" else ""
    if action.state in ("done", "partial", "unknown"):
        return action.undo_text or "it can't be undone"
    return ""


def _name(client: Client, passed: Sequence[pb.ActionView], verb: str, out: Output) -> None:
    """Say which newer actions the verb doesn't fit: the id, the sentence, the reason."""
    from goex.rpc import audit_pb2 as audit
    from goex.rpc import goex_pb2 as pb

    for action in passed[:_NAMED]:
        story = client.call("Audit/Story", pb.ActionId(id=action.id), audit.StoryReply)
        out.progress(f"{verb} isn't possible for {action.id}: {story.logged.what or action.intent}")
        out.progress(f"      {_reason(action, verb)}")
    if len(passed) > _NAMED:
        out.progress(f"… and {len(passed) - _NAMED} more newer actions: goex log")


def _ask_older(client: Client, older: str, newest: str, verb: str, out: Output) -> None:
    """Ask before an older action is taken than the newest. Raises Unsupported without a terminal, Denied after a no."""
    from goex.cli.prompt import Terminal
    from goex.rpc import audit_pb2 as audit
    from goex.rpc import goex_pb2 as pb

    terminal = None if out.as_json else Terminal.find()
    if terminal is None:
        raise Unsupported(
            f"Your last action, {newest}, isn't one that {verb} is possible for.",
            next_step=f"For the newest one that it is possible for: goex {verb} {older}",
        )
    what = client.call("Audit/Story", pb.ActionId(id=older), audit.StoryReply).logged.what
    out.progress(f"The newest action that {verb} is possible for is {older}: {what}")
    if not terminal.agrees(f"{verb.capitalize()} {shown(older)} (yes or no) [no]: "):
        raise Denied("Nothing was changed.", next_step=f"To name another action: goex {verb} ID; goex log lists them.")


def _revert(
    verb: str, action_id: str, point: Point, regardless: bool, detach: bool, dry_run: bool, as_json: bool
) -> None:
    out = Output(as_json)
    if dry_run and detach:
        raise InvalidInput("--dry-run asks nothing, so --detach means nothing with it.", next_step="Leave it out.")
    point.check(verb, action_id, regardless or detach)
    from goex.cli.connect import connect
    from goex.cli.follow import exit_code
    from goex.cli.missing_accounts import carry_out
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        if point.to:
            from goex.cli.undo_to import go

            raise typer.Exit(go(client, verb, point.to, point.everyone, point.agent, dry_run, out))
        target = resolve(client, action_id) if action_id != LAST else last(client, verb, out, ask=not dry_run)
        request = pb.RevertRequest(action_id=target, verb=verb, detach=detach, regardless=regardless)
        if dry_run:
            from goex.cli.dryrun import show

            raise typer.Exit(show(client, pb.DryRunRequest(revert=request), out))
        raise typer.Exit(exit_code(carry_out(client, lambda: client.revert(request), out, detach=detach)))
