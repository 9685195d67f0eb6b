"""`goex approve` and `goex deny`: the person decides.

Rules: approving needs a terminal and a person at it; denying needs neither, since a denial can only stop something.
Lists are cut; what is decided on is fetched whole, and shown whole, first.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.follow import next_of
from goex.cli.output import Json, Output, local, print_error, shown, to_json
from goex.cli.prompt import Terminal, Verdict, decide, settled_words
from goex.cli.question_text import summary
from policies.display_text import counted
from policies.errors import Denied, GoexError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

_LISTED = 20  # on a terminal, before the first question


def approve(
    approval_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="A question's id (q-…), or a waiting action's.", show_default=False)
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and ask about each one as it comes.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Only list them.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what ID would do, on a copy; nothing is decided.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what waits for you and decide, one after the other. Without a terminal it only lists."""
    out = Output(as_json)
    if dry_run and not approval_id:
        raise InvalidInput("A dry run of which one?", next_step="goex approve ID --dry-run")
    from goex.cli.connect import connect

    terminal = None if as_json or listing else Terminal.find()
    with connect(out) as client:
        if dry_run:
            raise typer.Exit(_dry_run(client, approval_id, out))
        if watch:
            _watch(client, terminal, out)
        elif approval_id:
            _one(client, approval_id, terminal, out)
        elif as_json:
            out.json({"approvals": [to_json(approval) for approval in client.approvals()]})
        else:
            pending = client.approvals(brief=True)
            if not pending:
                out.say("Nothing waits for you.")
            elif terminal is None:
                _list(out, pending)
                out.progress("Decide in a terminal with: goex approve")
            else:
                _all(client, terminal, pending, out)


def deny(
    approval_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="A question's id (q-…), or a waiting action's.", show_default=False)
    ] = "",
    reason: Annotated[str, typer.Option(help="Why; the agent reads it.")] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Everything that this agent waits for.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Everything that waits in this session.")] = "",
    as_json: Json = False,
) -> None:
    """Say no to what waits."""
    out = Output(as_json)
    if bool(approval_id) == bool(agent or session):
        raise InvalidInput("Name a request, or an agent or a session.", next_step="See what waits: goex approve --list")
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        if not approval_id:
            request = pb.DenyAllRequest(agent=agent, session=session, reason=reason)
            reply = client.call("Person/DenyAll", request, pb.DenyAllReply)
            out.message(reply)
            if not as_json:
                count = len(reply.approval_ids)
                out.say(f"Denied {counted(count, 'request')}." if count else "Nothing of it waits.")
            return
        approval = find(client.approvals(brief=True), approval_id)
        settled = client.decide(
            pb.DecideRequest(approval_id=approval.id, approve=False, reason=reason, same_as=approval.same_as)
        )
    out.message(settled)
    if not as_json:
        also = f", and {len(approval.same_as)} identical to it" if approval.same_as else ""
        out.say(f"Denied {shown(approval.id)}{also}.")


def find(pending: Sequence[pb.Approval], wanted: str) -> pb.Approval:
    """The pending approval of that id, of that action, or with a unique beginning of either. Raises InvalidInput."""
    exact = [approval for approval in pending if wanted in (approval.id, approval.action_id, *approval.same_as)]
    close = [a for a in pending if a.id.startswith(wanted) or a.action_id.startswith(wanted)]
    found = exact or (close if len(wanted) >= 4 else [])
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{wanted!r} fits {len(found)} approvals.", next_step="Write more of the id.")
    raise InvalidInput(
        f"No request {wanted[:80]!r} waits for you; it may have expired or been answered.",
        next_step="See what waits with: goex approve",
    )


def no_terminal() -> Denied:
    """The error for approving without a terminal."""
    return Denied(
        "Approving needs a terminal with a person at it.", next_step="Run the same command in a terminal of your own."
    )


def _one(client: Client, wanted: str, terminal: Terminal | None, out: Output) -> None:
    """The one that was named, whole."""
    found = find(client.approvals(brief=True), wanted)
    approval = client.approvals(approval_id=found.id)[0]
    if out.as_json:
        out.json({"approvals": [to_json(approval)]})
    elif terminal is None:
        _list(out, (found,))
        raise no_terminal()
    else:
        _say(decide(terminal, client, approval), approval, out)


def _dry_run(client: Client, wanted: str, out: Output) -> int:
    """What the one that was named would do. Returns the exit status."""
    from goex.cli.dryrun import show
    from goex.rpc import goex_pb2 as pb

    approval = client.approvals(approval_id=find(client.approvals(brief=True), wanted).id)[0]
    question = pb.DryRunQuestion(approval_id=approval.id, digest=approval.digest)
    return show(client, pb.DryRunRequest(question=question), out)


def _all(client: Client, terminal: Terminal, pending: Sequence[pb.Approval], out: Output) -> None:
    """What waits, one after the other; then what came meanwhile."""
    asked: set[str] = set()
    if len(pending) > 1:
        _overview(terminal, pending, out)
    while left := [brief for brief in pending if brief.id not in asked]:
        for number, brief in enumerate(left, 1):
            asked.add(brief.id)
            approval = client.approvals(approval_id=brief.id)[0]
            if approval.state not in ("", "pending"):
                out.say(shown(f"{brief.id} is {approval.state} already, by {approval.settled_by}."))
                continue
            verdict = _ask(client, terminal, approval, out)
            if verdict is Verdict.LATER and not _go_on(terminal, number < len(left)):
                return
        pending = client.approvals(brief=True)


def _go_on(terminal: Terminal, more: bool) -> bool:
    """Whether to show the next one, after one that was left open. Asked only where there is one."""
    return not more or terminal.agrees("Go on with the next one (yes or no) [yes]: ", default=True)


def _overview(terminal: Terminal, pending: Sequence[pb.Approval], out: Output) -> None:
    total = sum(max(approval.count, 1) for approval in pending)
    same = f" ({total} with the identical ones)" if total > len(pending) else ""
    out.say(f"{len(pending)} requests wait for you{same}:", "bold")
    now = datetime.now(UTC)
    for approval in pending[:_LISTED]:
        for line in summary(approval, terminal.size[0], now):
            terminal.write(line)
    if len(pending) > _LISTED:
        out.say(f"… and {len(pending) - _LISTED} more. They come one after the other.", "dim")
    agents = {approval.agent for approval in pending if approval.agent != "person"}
    for agent in sorted(agents)[:3]:
        many = sum(max(approval.count, 1) for approval in pending if approval.agent == agent)
        if many > 1:
            out.progress(f"To say no to all {many} of “{agent}”: goex deny --agent {agent}")


def _watch(client: Client, terminal: Terminal | None, out: Output) -> None:
    """Ask about each as it comes, in the order of the queue; what is settled elsewhere meanwhile isn't asked about."""
    from goex.client import watch_approvals

    if out.as_json:
        for approval in watch_approvals(client):
            out.message(approval)
        return
    if terminal is None:
        raise no_terminal()
    states: dict[str, str] = {}
    arrived: queue.SimpleQueue[GoexError | bool] = queue.SimpleQueue()  # whether there is more to come

    def listen() -> None:
        try:
            for approval in watch_approvals(client):
                states[approval.id] = approval.state
                arrived.put(True)
            arrived.put(False)
        except GoexError as error:
            arrived.put(error)

    threading.Thread(target=listen, daemon=True).start()
    out.progress("Waiting for what needs you; Ctrl-C leaves.")
    asked: set[str] = set()
    while more := next_of(arrived):
        if isinstance(more, GoexError):
            raise more
        while waiting := [brief for brief in client.approvals(brief=True) if brief.id not in asked]:
            asked.add(waiting[0].id)
            approval = client.approvals(approval_id=waiting[0].id)[0]
            if approval.state in ("", "pending"):
                _ask(client, terminal, approval, out, _gone(states, approval.id))


def _gone(states: Mapping[str, str], id: str) -> Callable[[], str]:
    """Says whether that one was settled meanwhile, by what the stream told last."""

    def gone() -> str:
        state = states.get(id, "")
        return settled_words(state) if state not in ("", "pending") else ""

    return gone


def _ask(
    client: Client, terminal: Terminal, approval: pb.Approval, out: Output, gone: Callable[[], str] = lambda: ""
) -> Verdict:
    from goex.client import Refused

    try:
        verdict = decide(terminal, client, approval, gone)
    except (Refused, Denied) as error:
        # One that was settled elsewhere meanwhile doesn't stop the ones after it.
        print_error(error, as_json=False)
        return Verdict.GONE
    return _say(verdict, approval, out)


def _say(verdict: Verdict, approval: pb.Approval, out: Output) -> Verdict:
    words = {
        Verdict.APPROVED: "Allowed.",
        Verdict.DENIED: "Denied.",
        Verdict.LATER: "Left open.",
    }
    if verdict in words:  # one that is gone was said to be so
        out.say(words[verdict])
    if verdict is Verdict.LATER:
        out.progress(f"Come back to it with: goex approve {approval.id}")
    return verdict


def _list(out: Output, pending: Sequence[pb.Approval]) -> None:
    if out.on_terminal:
        now = datetime.now(UTC)
        for approval in pending:
            for line in summary(approval, out.console.width, now):
                out.say(line.text, line.style)
        return
    out.table(
        ("approval", "place", "agent", "risk", "undo", "times", "what", "until"),
        [
            (
                a.id,
                str(a.place or ""),
                a.agent,
                a.risk,
                a.undo_class,
                str(max(a.count, 1)),
                " ".join(dict.fromkeys((*a.lines[:1], *a.question.payload[:1]))) or a.intent,  # where, and what
                local(a.deadline),
            )
            for a in pending
        ],
    )
