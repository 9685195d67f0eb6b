"""`goex log`: what happened, newest first; whether it was altered; what grants were used for; and all of it as lines.

By default each action is a line of its own; `--rows` shows the chain's rows, of which every step, request and decision
is one. The same options choose among either, and among what `--export` writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goex.cli.help_text import Command
from goex.cli.output import Json, Output, local, shown, to_json
from policies.display_text import counted
from policies.errors import ExitStatus, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import audit_pb2 as audit

_NOT_PROVEN = 3  # as the verifier that stands alone ends, where something isn't signed or can't be checked or opened


class LogCommand(Command):
    """Groups the options of the log."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Which": (
            "since", "until", "agent", "service", "risk", "session", "state", "kind", "action", "task", "grep", "limit",
            "before",
        ),
        "Something else than actions": ("rows", "verify", "scopes", "export", "verify_export", "head"),
    }  # fmt: skip


def log(
    since: Annotated[str, typer.Option(metavar="TIME", help="Not before: 2h, yesterday, 2026-11-01.")] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="Not after; a day counts whole.")] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Of this agent; yours: person.")] = "",
    service: Annotated[str, typer.Option(metavar="NAME", help="That touch this service.")] = "",
    risk: Annotated[str, typer.Option(metavar="RISK", help="At least: read, write, delete or admin.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Of this session.")] = "",
    state: Annotated[str, typer.Option(metavar="STATE", help="In this state now: done, denied, unknown, …")] = "",
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="calls, files, sql, mongo, code, task, revert or intent; with --rows a row's kind."
        ),
    ] = "",
    action: Annotated[str, typer.Option(metavar="ID", help="This action alone.")] = "",
    task: Annotated[
        str, typer.Option(metavar="ID", help="The actions of this task; without it, a task is one line.")
    ] = "",
    grep: Annotated[str, typer.Option(metavar="TEXT", help="With this text in what was asked or came of it.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 50,
    before: Annotated[str, typer.Option(metavar="N", help="Older ones: the number below the last page.")] = "",
    rows: Annotated[bool, typer.Option("--rows", help="The chain's rows: each step, request and decision.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the hash chain, its MAC, and the sealed records.")
    ] = False,
    scopes: Annotated[
        bool, typer.Option("--scopes", help="What each standing grant was used for; unused ones first.")
    ] = False,
    export: Annotated[
        str, typer.Option(metavar="FILE", help="Write rows, oldest first, as JSON lines; - for stdout.")
    ] = "",
    verify_export: Annotated[
        str, typer.Option(metavar="FILE", help="Check what --export wrote; needs no daemon.")
    ] = "",
    head: Annotated[str, typer.Option(metavar="HASH", help="With --verify-export: the head that it must have.")] = "",
    as_json: Json = False,
) -> None:
    """What was done, newest first: when, by whom, who decided on what, and what came of it."""
    out = Output(as_json)
    wanted_ways = [name for name, given in _ways(rows, verify, scopes, export, verify_export) if given]
    if len(wanted_ways) > 1:
        raise InvalidInput(f"{' and '.join(wanted_ways)} don't go together.", next_step="Choose one of them.")
    if head and not verify_export:
        raise InvalidInput("--head is for --verify-export.", next_step="goex log --verify prints the head.")
    if verify_export:
        raise typer.Exit(_verify_export(verify_export, head, out))
    from goex.cli.connect import connect
    from goex.rpc import audit_pb2 as audit

    now = datetime.now(UTC)
    wanted = audit.Wanted(
        since=_time(since, now),
        until=_time(until, now, end=True),
        agent=agent,
        service=service,
        risk=risk,
        session=session,
        state=state,
        kind=kind,
        text=grep,
        limit=limit,
    )
    with connect(out) as client:
        if verify:
            raise typer.Exit(_verify(client, out))
        if scopes:
            _scopes(client, agent, out)
            return
        if action:
            from goex.cli.action_ids import resolve

            wanted.action_id = resolve(client, action)
        if task:
            from goex.cli.action_ids import resolve

            wanted.task = resolve(client, task)
        if export:
            _export(client, wanted, export, out)
        elif rows:
            wanted.before = _number(before)
            _rows(client, wanted, out)
        else:
            wanted.before = _number(before)
            _actions(client, wanted, out)


def _ways(rows: bool, verify: bool, scopes: bool, export: str, verify_export: str) -> tuple[tuple[str, Any], ...]:
    return (
        ("--rows", rows), ("--verify", verify), ("--scopes", scopes), ("--export", export),
        ("--verify-export", verify_export),
    )  # fmt: skip


def _actions(client: Client, wanted: audit.Wanted, out: Output) -> None:
    from goex.cli.action_text import show_actions
    from goex.rpc import audit_pb2 as audit

    page = client.call("Audit/Actions", wanted, audit.ActionsPage)
    out.message(page)
    if out.as_json:
        return
    if not page.actions:
        out.say("Nothing that was done is like that." if _narrowed(wanted) else "Nothing was done yet.")
        return
    show_actions(out, [each for each in page.actions if not _folded(each) or _narrowed(wanted)])
    folded = Counter(_folded(each) for each in page.actions if not _narrowed(wanted))
    for id, count in folded.items():
        if id:
            out.say(shown(f"{counted(count, 'action')} in task {id}: goex log --task {id}"))
    if page.before:
        out.progress(f"Older ones: the same with --before {page.before}. One as a whole: goex show ID")


def _folded(action: audit.LoggedAction) -> str:
    """The task that it was done in, whose entry stands for it while nothing is wrong with it; "" for none."""
    if action.state not in ("done", "undone", "committed"):
        return ""
    return next((grant.for_action for grant in action.decided.grants if grant.width == "task"), "")


def _rows(client: Client, wanted: audit.Wanted, out: Output) -> None:
    from goex.cli.journal_table import show_rows
    from goex.rpc import goex_pb2 as pb

    reply = client.call("Audit/Rows", wanted, pb.LogReply)
    out.message(reply)
    if out.as_json:
        return
    if not reply.rows:
        out.say("No row is like that." if _narrowed(wanted) else "Nothing is written down yet.")
        return
    show_rows(out, reply.rows)
    if out.on_terminal:
        out.progress("Hashes and all other facts: add --json")
    if len(reply.rows) == wanted.limit:
        out.progress(f"Older ones: the same with --before {reply.rows[-1].number}")


def _verify(client: Client, out: Output) -> int:
    from goex.rpc import audit_pb2 as audit
    from goex.rpc import goex_pb2 as pb

    reply = pb.VerifyLogReply()
    for step in client.streamed("Audit/Verify", pb.VerifyLogRequest(), audit.VerifyProgress):
        if step.HasField("result"):
            reply = step.result
        elif step.rows:
            out.progress(f"Checked {step.checked} of {counted(step.rows, 'row')}.")
    vault = client.status().vault
    out.json({**to_json(reply), "vault": vault})
    if not out.as_json:
        if reply.good and reply.authenticated:
            those = "1 row is" if reply.signed == 1 else f"{reply.signed} rows are"
            signed = f" {those} signed by passkeys." if reply.signed else ""
            out.say(f"The journal is whole: {counted(reply.rows, 'row')}, head {shown(reply.head)}.{signed}")
        elif reply.good:
            rows = counted(reply.rows, "row")
            out.say(f"The chain of {rows} is whole; the vault is sealed, so its head couldn't be checked.")
        else:
            out.say(f"The journal was altered: {shown(reply.problem)}", "bold red")
        if reply.good and reply.problem:
            out.say(shown(reply.problem), "bold red")
            out.progress("Come back from a vault backup that has the key: goex vault restore FILE --replace")
        if reply.good and vault != "unsealed":
            out.say(f"It wasn't checked whether what is sealed can be opened: the vault is {shown(vault)}.")
            absent = vault == "absent"
            out.progress("Make it with: goex vault init" if absent else "Unseal it with: goex vault unlock")
        for each in reply.unproven:
            out.say(f"Not proven: {shown(each)}.", "bold red")
    if not reply.good:
        return int(ExitStatus.FAILED)
    if not reply.authenticated:
        return int(ExitStatus.SEALED)
    return _NOT_PROVEN if reply.problem or reply.unproven else int(ExitStatus.OK)


def _export(client: Client, wanted: audit.Wanted, to: str, out: Output) -> None:
    from goex.cli import log_export

    if to == log_export.STDOUT and out.as_json:
        raise InvalidInput("With --export - stdout is the lines themselves.", next_step="Leave --json out.")
    count = log_export.export(client, wanted, to, out)
    if to == log_export.STDOUT:
        out.progress(f"{counted(count, 'row')}.")
        return
    out.json({"file": to, "rows": count})
    if not out.as_json:
        out.say(f"Wrote {counted(count, 'row')} to {shown(to)}.")
        out.progress("Check it, here or elsewhere, with: goex log --verify-export FILE")


def _verify_export(path: str, head: str, out: Output) -> int:
    from goex.cli.log_export import verify_file

    good, words, found = verify_file(path, head)
    out.json(found)
    if not out.as_json:
        out.say(shown(words), "" if good else "bold red")
    if good and (found["unchecked"] or found["unproven"]):
        return _NOT_PROVEN
    return int(ExitStatus.OK if good else ExitStatus.FAILED)


def _scopes(client: Client, agent: str, out: Output) -> None:
    from goex.rpc import audit_pb2 as audit

    reply = client.call("Audit/Scopes", audit.ScopesRequest(agent=agent), audit.ScopesReply, seconds=600.0)
    if out.as_json:
        unused = [each.grant.id for each in reply.scopes if not each.uses]
        out.json({**to_json(reply), "unused": unused})
        return
    if not reply.scopes:
        out.say("Nothing is granted for longer than one action.")
        return
    if out.on_terminal:
        for each in reply.scopes:
            out.say(shown(f"{each.grant.id}  {each.grant.agent}  {each.grant.service}:{each.grant.scope}"))
            left = _uncalled(each)
            parts = (_used(each), _called(each), f"never called: {left}" if left else "")
            out.block(" · ".join(part for part in parts if part))
    else:
        out.table(
            ("grant", "agent", "scope", "account", "duration", "used", "last", "called", "never called"),
            [
                (
                    each.grant.id,
                    each.grant.agent,
                    f"{each.grant.service}:{each.grant.scope}",
                    each.grant.account,
                    each.grant.width,
                    str(each.uses),
                    local(each.last_used),
                    ", ".join(each.methods),
                    _uncalled(each),
                )
                for each in reply.scopes
            ],
        )
    unused = [each.grant.id for each in reply.scopes if not each.uses]
    if unused:
        out.say("Never used; take them back with:")
        out.say("  " + shown(" ".join(["goex revoke", *unused])))


def _used(each: audit.UsedScope) -> str:
    if not each.uses:
        return f"{each.grant.width}, never used since {local(each.grant.created)}"
    return f"{each.grant.width}, used {counted(each.uses, 'time')}, last {local(each.last_used)}"


def _called(each: audit.UsedScope) -> str:
    return f"called {', '.join(each.methods)}" if each.methods else ""


def _uncalled(each: audit.UsedScope) -> str:
    """How much more the scope would allow than was called."""
    if not each.methods_open:
        return ""
    left = each.methods_open - len(each.methods)
    if left <= 0:
        return "nothing"
    named = ", ".join(each.methods_unused[:3])
    more = f" and {left - 3} more" if left > 3 else ""
    return f"{named}{more}" if named else f"{left} more"


def _narrowed(wanted: audit.Wanted) -> bool:
    return any(field.name not in ("limit",) for field, _ in wanted.ListFields())


def _time(text: str, now: datetime, *, end: bool = False) -> str:
    if not text:
        return ""
    from goex.cli.times import moment

    return moment(text, now, end=end).isoformat()


def _number(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(f"{text[:40]!r} isn't a number.", next_step="Use the one that the last page ended with.")
    return int(text)
