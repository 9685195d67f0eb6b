"""`goex task`: propose what may be done without being asked again; and `goex undo --task`, which takes all of it back.

Rules: a task is one question. Taking one back is a task, too (several, of more undos than a task has lines): it allows
just these undos, once each, which then run one after the other, newest first, each compared as ever. It ends with them,
however they end.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from goex.cli.action_ids import resolve
from goex.cli.output import Json, Output, local
from policies.errors import ExitStatus, GoexError, InvalidInput
from policies.tasks import MOST_LINES, OWN, UNDO

if TYPE_CHECKING:
    from goex.client import Client, Events
    from goex.rpc import goex_pb2 as pb

_FOR_EXAMPLE = 'For example: {"title": "Look around", "minutes": 30, "allows": [{"method": "slack.users.list"}]}'
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_UNDO_MINUTES = 60  # that the undos are allowed where nothing is left of the command that could end it


def task(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The task as JSON; - for stdin.")],
    agent: Annotated[str, typer.Option(metavar="NAME", help="Give it to this agent; else it is yours, here.")] = "",
    as_json: Json = False,
) -> None:
    """Allow a list of things in one answer: which methods, with which arguments, how often, how long. What is outside
    of it, and what can't be undone, is asked as ever."""
    from goex.cli.connect import connect
    from goex.cli.follow import exit_code
    from goex.cli.input_text import MAX_TEXT, read_text
    from goex.cli.missing_accounts import carry_out
    from goex.task_proposal import proposal
    from policies.jsonvalue import parse

    out = Output(as_json)
    written = parse(read_text(file, "The task"), limit=MAX_TEXT, what="The task")
    if not isinstance(written, dict):
        raise InvalidInput("A task is a JSON object.", next_step=_FOR_EXAMPLE)
    request = proposal(written, agent=agent)
    with connect(out) as client:
        ended = carry_out(client, lambda: client.execute(request), out)
        code = exit_code(ended)
        if code == ExitStatus.OK and not as_json:
            _say_end(client, ended.action_id, out)
        raise typer.Exit(code)


def _say_end(client: Client, id: str, out: Output) -> None:
    """Until when a task holds, how to end it before, and how to take back what is done in it."""
    from goex.rpc import goex_pb2 as pb

    grants = client.call("Person/Grants", pb.GrantsRequest(), pb.GrantsReply).grants
    ends = max((grant.expires for grant in grants if grant.why == id), default="")
    until = f"It holds until {local(ends)}. " if ends else ""
    out.progress(f"{until}End it before: goex revoke --task {id}. How much of it is used: goex grants")
    out.progress(f"Take back what was done in it with: goex undo --task {id}")


def undo_all(client: Client, id: str, dry_run: bool, out: Output) -> int:
    """Take back all that was done in a task. Returns the exit status."""
    from goex.cli.prompt import handling
    from goex.cli.undo_to import each, show
    from goex.rpc import goex_pb2 as pb

    id = resolve(client, id)
    steps = client.way_back(pb.WayBackRequest(verb=UNDO, task=id))
    show(out, UNDO, steps)
    able = [step for step in steps if step.can]
    if dry_run or not able:
        return int(ExitStatus.OK)
    if len(able) == 1:
        return each(client, UNDO, able, out)
    ids = [step.action.id for step in able]
    with handling(dict.fromkeys(_ENDING, _interrupted)), _allowed(client, id, ids, out) as code:
        return code or each(client, UNDO, able, out)


def _interrupted(*_: object) -> NoReturn:
    """A signal that ends the command does it as Ctrl-C does."""
    raise KeyboardInterrupt


@contextmanager
def _allowed(client: Client, task: str, ids: list[str], out: Output) -> Iterator[int]:
    """These undos are allowed, once each, until it is left; or the exit status of the question that was answered no."""
    from goex.cli.follow import exit_code
    from goex.cli.missing_accounts import carry_out
    from goex.cli.prompt import handling
    from goex.task_proposal import proposal

    asked: list[Events] = []
    code = 0

    def ask(request: pb.ExecuteRequest) -> Events:
        asked.append(client.execute(request))
        return asked[-1]

    try:
        for start in range(0, len(ids), MOST_LINES):
            lines = [
                {"method": f"{OWN}.{UNDO}", "arguments": {"target": {"in": [one]}}, "times": 1}
                for one in ids[start : start + MOST_LINES]
            ]
            written = {"title": f"Take back task {task}", "minutes": _UNDO_MINUTES, "allows": lines}
            code = exit_code(carry_out(client, partial(ask, proposal(written)), out))
            if code:
                break
        yield code
    finally:
        with handling(dict.fromkeys((*_ENDING, signal.SIGINT), signal.SIG_IGN)):  # a closed terminal sends several
            for events in asked:
                if events.action_id:
                    _end(client, events.action_id, out)


def _end(client: Client, task: str, out: Output) -> None:
    from goex.rpc import goex_pb2 as pb

    try:
        client.call("Person/Revoke", pb.RevokeRequest(task=task), pb.RevokeReply)
    except GoexError as error:
        with suppress(OSError):  # the terminal is gone
            out.progress(f"Task {task} still allows what is left of it: {error} End it with: goex revoke --task {task}")
