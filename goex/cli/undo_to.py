"""`goex undo --to`, `redo --to`, `commit --to`: back to a point, again from there, or kept for good up to there.

Rules: the whole way is shown before its first step, with what stays and why; each step is an action of its own, which
is decided on and compared as ever. What somebody changed since is left, with what it stands on, and the rest is undone;
at any other failure the rest stays. Either way it is said what that is.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from goex.cli.action_ids import resolve
from goex.cli.output import Output, local, shown, to_json
from policies.display_text import counted
from policies.errors import ExitStatus, GoexError, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

_DOES = {"undo": "Taking back", "redo": "Bringing back", "commit": "Keeping for good"}
_ASKS = {"undo": "Take back", "redo": "Bring back", "commit": "Keep for good"}
_NOT = {"undo": "Not undone", "redo": "Not redone", "commit": "Not committed"}
_DONE = {"undo": "taken back", "redo": "brought back", "commit": "kept for good"}


def go(client: Client, verb: str, to: str, everyone: bool, agent: str, dry_run: bool, out: Output) -> int:
    """Show the way and take it. Returns the exit status."""
    steps = client.way_back(_request(client, verb, to, everyone, agent))
    able = [step for step in steps if step.can]
    show(out, verb, steps)
    if dry_run or not able:
        return int(ExitStatus.OK)
    if not _meant(verb, len(able), out):
        out.say("Nothing was done.")
        return int(ExitStatus.DENIED)
    if verb == "commit":
        return _commit(client, able, out)
    return each(client, verb, able, out)


def _request(client: Client, verb: str, to: str, everyone: bool, agent: str) -> pb.WayBackRequest:
    """The point: an action, or a moment as a person writes it. Raises InvalidInput."""
    from goex.cli.times import moment
    from goex.rpc import goex_pb2 as pb

    made = pb.WayBackRequest(verb=verb, everyone=everyone, agent=agent)
    try:
        made.moment = moment(to, datetime.now(UTC)).isoformat()
    except InvalidInput:  # then it is an action's id, or the beginning of one
        made.action_id = resolve(client, to)
        if "-" not in made.action_id:  # every action's id has one
            raise InvalidInput(
                f"{to[:60]!r} is neither an action nor a time.",
                next_step="A time is like 2h, 3d, yesterday or 2026-11-01 09:30; goex log lists the actions.",
            ) from None
    return made


def show(out: Output, verb: str, steps: tuple[pb.WayStep, ...]) -> None:
    """The whole way, with what stays and why."""
    if out.as_json:
        out.json({"steps": [to_json(step) for step in steps]})
        return
    if not steps:
        out.say(f"Nothing there can be {_DONE[verb]}.")
        return
    able = sum(step.can for step in steps)
    out.say(f"{_DOES[verb]} {counted(able, 'action')}, in this order:" if able else "None of these can be taken back:")
    for step in steps:
        action = step.action
        line = f"{local(action.created)}  {action.id}  {action.agent}  {step.what}"
        if step.can:
            note = action.undo_class if verb != "commit" else ""
            out.block(f"{line}{f'  ({note})' if note else ''}", style="")
            if step.why:
                out.block(f"also, because {step.why}", indent=6)
        else:
            out.block(line, style="red")
            out.block(f"{_NOT[verb]}: {step.why}", indent=6, style="red")


def _meant(verb: str, count: int, out: Output) -> bool:
    """On a terminal, whether the person wants it. It approves nothing: each step is asked for by itself."""
    from goex.cli.prompt import Terminal

    terminal = None if out.as_json else Terminal.find()
    if terminal is None:
        return True
    return terminal.agrees(f"{_ASKS[verb]} {counted(count, 'action')} (yes or no) [no]: ")


def each(client: Client, verb: str, steps: list[pb.WayStep], out: Output) -> int:
    """Take these steps, each as an action of its own: an undo passes over those that somebody changed since, or took
    back; anything else that fails is the last. Returns the first failure's exit status."""
    from goex.cli.follow import exit_code
    from goex.cli.missing_accounts import carry_out
    from goex.cli.output import print_error
    from goex.rpc import goex_pb2 as pb

    left: list[str] = []
    status, mend, done = ExitStatus.OK, False, 0
    for number, step in enumerate(steps):
        if not out.as_json:
            out.say(shown(f"{number + 1} of {len(steps)}: {step.action.id}"), "bold")
        request = pb.RevertRequest(action_id=step.action.id, verb=verb)
        rest = [one.action.id for one in steps[number + 1 :]]
        try:
            ended = carry_out(client, partial(client.revert, request), out)
            code = ExitStatus(exit_code(ended))
            step_shown = ended.finished is not None and bool(ended.finished.problem.next_step)
        except KeyboardInterrupt:
            again = f"How {step.action.id} stands: goex show {step.action.id}. Run it again to go on."
            with suppress(OSError):  # where the terminal is gone
                _say_left(verb, done, len(steps), [*left, *rest], again, out)
            raise
        except GoexError as error:  # refused before it was one, or lost sight of
            print_error(error, as_json=out.as_json)
            code, step_shown = error.exit_status, bool(error.next_step)
        if code is ExitStatus.OK:
            done += 1
            continue
        status = status or code
        left.append(step.action.id)
        if code is not ExitStatus.CONFLICT or verb != "undo":
            mend = step_shown
            left += rest
            break
    if left:
        again = "Once that is mended, run it again to go on." if mend else "Run it again to go on."
        if status is ExitStatus.CONFLICT:
            again = f"goex {verb} ID says what stands in the way of one, and tries it again."
        _say_left(verb, done, len(steps), left, again, out)
    return int(status)


def _say_left(verb: str, done: int, total: int, left: list[str], again: str, out: Output) -> None:
    but = f", {', '.join(left)} not" if left else ""
    out.progress(f"{done} of {total} {_DONE[verb]}{but}. {again}")


def _commit(client: Client, steps: list[pb.WayStep], out: Output) -> int:
    """One action for all of them: nothing of it depends on what was done before."""
    from goex.cli.follow import exit_code
    from goex.cli.missing_accounts import carry_out
    from goex.rpc import goex_pb2 as pb

    ids = [step.action.id for step in steps]
    request = pb.RevertRequest(action_id=ids[-1], verb="commit", also=ids[:-1])
    return exit_code(carry_out(client, lambda: client.revert(request), out))
