"""`goex approve` and `goex deny`: the person decides.

Rules: approving needs a terminal and a person at it; denying needs neither, since a denial can only stop something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, shown, to_json
from goex.cli.prompt import Terminal, Verdict, decide
from policies.errors import Denied, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goex.client import Client
    from goex.rpc import goex_pb2 as pb


def approve(
    approval_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="An approval, or an action that waits.", show_default=False)
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and ask about each one as it comes.")] = False,
    as_json: Json = False,
) -> None:
    """Show what waits for you and decide, one after the other. Without a terminal it only lists."""
    out = Output(as_json)
    from goex.cli.connect import connect

    terminal = None if as_json else Terminal.find()
    with connect(out) as client:
        if watch:
            _watch(client, terminal, out)
            return
        pending = client.approvals()
        if approval_id:
            pending = (find(pending, approval_id),)
        if as_json:
            out.json({"approvals": [to_json(approval) for approval in pending]})
            return
        if not pending:
            out.say("Nothing waits for you.")
            return
        if terminal is None:
            _list(out, pending)
            if approval_id:
                raise no_terminal()
            out.progress("Decide in a terminal with: goex approve ID")
            return
        for approval in pending:
            _ask(client, terminal, approval, out)


def deny(
    approval_id: Annotated[str, typer.Argument(metavar="ID", help="An approval, or an action that waits.")],
    reason: Annotated[str, typer.Option(help="Why; the agent reads it.")] = "",
    as_json: Json = False,
) -> None:
    """Say no to what waits."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        approval = find(client.approvals(), approval_id)
        settled = client.decide(
            pb.DecideRequest(approval_id=approval.id, digest=approval.digest, approve=False, reason=reason)
        )
    out.message(settled)
    if not as_json:
        out.say(f"Denied {shown(approval.id)}.")


def find(pending: Sequence[pb.Approval], wanted: str) -> pb.Approval:
    """The pending approval of that id, of that action, or with a unique beginning of either. Raises InvalidInput."""
    exact = [approval for approval in pending if wanted in (approval.id, approval.action_id)]
    close = [a for a in pending if a.id.startswith(wanted) or a.action_id.startswith(wanted)]
    found = exact or (close if len(wanted) >= 4 else [])
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{wanted!r} fits {len(found)} approvals.", next_step="Write more of the id.")
    raise InvalidInput(
        f"Nothing that waits for you is called {wanted[:80]!r}; it may be settled already.",
        next_step="See what waits with: goex approve",
    )


def no_terminal() -> Denied:
    """The error for approving without a terminal."""
    return Denied(
        "Approving needs a terminal with a person at it.", next_step="Run the same command in a terminal of your own."
    )


def _watch(client: Client, terminal: Terminal | None, out: Output) -> None:
    from goex.client import watch_approvals

    if terminal is None and not out.as_json:
        raise no_terminal()
    asked: set[str] = set()
    out.progress("Waiting for what needs you; Ctrl-C leaves.")
    for approval in watch_approvals(client):
        if out.as_json:
            out.message(approval)
        elif approval.state in ("", "pending") and approval.id not in asked and terminal is not None:
            asked.add(approval.id)
            _ask(client, terminal, approval, out)


def _ask(client: Client, terminal: Terminal, approval: pb.Approval, out: Output) -> None:
    from goex.cli.output import print_error
    from goex.client import Refused

    try:
        verdict = decide(terminal, client, approval)
    except (Refused, Denied) as error:
        # One that was settled elsewhere meanwhile doesn't stop the ones after it.
        print_error(error, as_json=False)
        return
    words = {
        Verdict.APPROVED: "Allowed.",
        Verdict.DENIED: "Denied.",
        Verdict.LATER: "Left open.",
        Verdict.GONE: "It was settled elsewhere.",
    }
    out.say(words[verdict])
    if verdict is Verdict.LATER:
        out.progress(f"Come back to it with: goex approve {approval.id}")


def _list(out: Output, pending: Sequence[pb.Approval]) -> None:
    out.table(
        ("approval", "agent", "risk", "what", "until"),
        [(a.id, a.agent, a.risk, "\n".join(a.lines[:1]) or a.intent, a.deadline) for a in pending],
    )
