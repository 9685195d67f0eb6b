"""`goex task`: propose what may be done without being asked again; and `goex undo --task`, which takes all of it back.

Rules: a task is one question. Taking one back is a task, too: it allows just these undos, once each, which then run one
after the other, newest first, each compared as ever.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.action_ids import resolve
from goex.cli.output import Json, Output
from policies.errors import ExitStatus, InvalidInput
from policies.tasks import LONGEST_SECONDS, OWN, UNDO

if TYPE_CHECKING:
    from goex.client import Client


def task(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The task as JSON; - for stdin.")],
    agent: Annotated[str, typer.Option(metavar="NAME", help="Give it to this agent; else it is yours, here.")] = "",
    as_json: Json = False,
) -> None:
    """Allow a list of things in one answer: which methods, with which arguments, how often, how long. What is outside
    of it, and what can't be undone, is asked as ever."""
    from goex.cli.connect import connect
    from goex.cli.follow import exit_code, follow
    from goex.cli.input_text import MAX_TEXT, read_text
    from goex.task_proposal import proposal
    from policies.jsonvalue import parse

    out = Output(as_json)
    written = parse(read_text(file, "The task"), limit=MAX_TEXT, what="The task")
    if not isinstance(written, dict):
        raise InvalidInput("A task is a JSON object.", next_step="docs/guides/tasks.md has one.")
    request = proposal(written, agent=agent)
    with connect(out) as client:
        raise typer.Exit(exit_code(follow(client, client.execute(request), out)))


def undo_all(client: Client, id: str, dry_run: bool, out: Output) -> int:
    """Take back all that was done in a task. Returns the exit status."""
    from goex.cli.follow import exit_code, follow
    from goex.cli.undo_to import each, show
    from goex.rpc import goex_pb2 as pb
    from policies.jsonvalue import canonical

    id = resolve(client, id)
    steps = client.way_back(pb.WayBackRequest(verb=UNDO, task=id))
    show(out, UNDO, steps)
    able = [step for step in steps if step.can]
    if dry_run or not able:
        return int(ExitStatus.OK)
    if len(able) > 1:
        ids = [step.action.id for step in able]
        line = pb.Allowance(service=OWN, method=UNDO, times=len(ids))
        line.arguments_json = canonical({"target": {"in": ids}}).decode("utf-8")
        task = pb.Task(title=f"Take back task {id}", allows=[line], seconds=LONGEST_SECONDS)
        code = exit_code(follow(client, client.execute(pb.ExecuteRequest(task=task)), out))
        if code:
            return code
    return each(client, UNDO, able, out)
