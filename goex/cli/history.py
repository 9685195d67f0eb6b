"""Taking back what happened: `undo`, `redo`, `commit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.client import Client


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
        if self.to and (action_id or alone):
            raise InvalidInput(
                "--to names all since a point, so neither another action nor --detach or --regardless go with it.",
                next_step=f"Write either goex {verb} ID or goex {verb} --to POINT.",
            )


LAST = "last"
_LEAST_ID = 4  # characters of an id that may stand for the whole

ActionArgument = Annotated[
    str, typer.Argument(metavar="[ID]", help="An action; left out, the last one that it fits.", show_default=False)
]
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
Until = Annotated[
    str,
    typer.Option("--to", metavar="POINT", help="All up to a point: an action, with its session before it; or a time."),
]
Everyone = Annotated[bool, typer.Option("--everyone", help="With --to: not only the session of that action.")]
Agent = Annotated[str, typer.Option("--agent", metavar="NAME", help="With --to: only this agent's actions.")]
Regardless = Annotated[
    bool, typer.Option("--regardless", help="Also when later actions stand on it. What is there is compared anyway.")
]


def undo(
    action_id: ActionArgument = "",
    to: To = "",
    everyone: Everyone = False,
    agent: Agent = "",
    regardless: Regardless = False,
    detach: Detach = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take an action back, or with --to all since a point. Refused, with the difference, when someone changed the
    state since, or a later action stands on it."""
    _revert("undo", action_id, Point(to, everyone, agent), regardless, detach, dry_run, as_json)


def redo(
    action_id: ActionArgument = "",
    to: To = "",
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
    action_id: ActionArgument = "",
    to: Until = "",
    everyone: Everyone = False,
    agent: Agent = "",
    detach: Detach = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Keep an action for good, or with --to all up to a point: what undo would need is dropped."""
    _revert("commit", action_id, Point(to, everyone, agent), False, detach, dry_run, as_json)


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


def _revert(
    verb: str, action_id: str, point: Point, regardless: bool, detach: bool, dry_run: bool, as_json: bool
) -> None:
    out = Output(as_json)
    if dry_run and detach:
        raise InvalidInput("--dry-run asks nothing, so --detach means nothing with it.", next_step="Leave it out.")
    point.check(verb, action_id, regardless or detach)
    from goex.cli.connect import connect
    from goex.cli.consent import offer
    from goex.cli.follow import exit_code, follow
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        if point.to:
            from goex.cli.wayback import go

            raise typer.Exit(go(client, verb, point.to, point.everyone, point.agent, dry_run, out))
        target = resolve(client, action_id or LAST, verb)
        request = pb.RevertRequest(action_id=target, verb=verb, detach=detach, regardless=regardless)
        if dry_run:
            from goex.cli.dryrun import show

            raise typer.Exit(show(client, pb.DryRunRequest(revert=request), out))
        ended = follow(client, client.revert(request), out, detach=detach)
        while offer(client, ended, out):
            ended = follow(client, client.revert(request), out, detach=detach)
        raise typer.Exit(exit_code(ended))
