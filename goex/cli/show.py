"""`goex show`: one action from what was asked for to what became of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli import action_text
from goex.cli.action_ids import LAST, ActionArgument, resolve
from goex.cli.output import Json, Output, local, shown, to_json
from policies.display_text import counted

if TYPE_CHECKING:
    from goex.rpc import audit_pb2 as audit


def show(
    action_id: ActionArgument = LAST,
    look_again: Annotated[
        bool, typer.Option("--look-again", help="Of an unknown action: find out what it did, if that can be done now.")
    ] = False,
    as_json: Json = False,
) -> None:
    """One action: who asked for what, who decided on what, each request, what came of it, how it is taken back."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.follow import show_outcome
    from goex.cli.journal_table import show_rows
    from goex.rpc import audit_pb2 as audit
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        wanted = resolve(client, action_id)
        if look_again:
            client.call("Person/LookAgain", pb.ActionId(id=wanted), pb.ActionView)
        story = client.call("Audit/Story", pb.ActionId(id=wanted), audit.StoryReply)
    if as_json:
        out.json(_document(story))
        return
    action = story.action
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
            ("asked by", story.source),
            ("mapped", _mapped(story.mapping_json)),
            ("you were asked", local(story.asked_at)),
            ("decided", action_text.decided(story.logged.decided)),
            ("decided by", _by(story.logged.decided)),
            *(("grant", _grant(grant)) for grant in story.logged.decided.grants),
            *(("credential", _leased(lease)) for lease in story.leases),
            ("undo", ": ".join(part for part in (action.undo_class, action.undo_text) if part)),
            *(
                ("then", f"{local(revert.created)}  {revert.id}  {revert.what}: {revert.state}")
                for revert in story.reverts
            ),
            ("session", action.session),
            ("digest", action.digest),
        )
    )
    for line in action.lines:
        out.barred(line)
    if story.exchanges:
        out.say("Requests through the gateway:")
        _exchanges(out, story)
    show_outcome(out, action, printed=False)
    if action.state != "unknown":  # what a service said of a failure, or what differs
        for line in story.problem.details:
            out.barred(line)
    show_rows(out, story.rows, of_one=True)
    if story.rows_left_out:
        out.say(f"… and {story.rows_left_out} older rows: goex log --rows --action {action.id}")
    if story.rows and out.on_terminal:
        out.progress("Hashes and all other facts: add --json")
    if action.state == "unknown":
        _unknown(out, story)
    elif action.can_undo:
        out.progress(f"Take it back with: goex undo {action.id}")
    elif action.can_redo:
        out.progress(f"Do it again with: goex redo {action.id}")


def _unknown(out: Output, story: audit.StoryReply) -> None:
    """What is known of an action that nobody knows the end of, and what the person can do about it."""
    id = story.action.id
    out.say("It can't be known what it did. What was found:", "bold")
    for line in story.problem.details or ("nothing",):
        out.barred(line)
    out.say("You can:", "bold")
    choices = [(f"goex show {id} --look-again", "look once more, after a service or database is back")]
    if story.action.undo_class in ("exact", "compensating"):
        choices.append((f"goex undo {id}", "take back what is recorded of it; refused where it isn't as recorded"))
    choices.append((f"goex commit {id}", "leave everything as it is, and drop what undo would need"))
    out.fields(choices)


def _document(story: audit.StoryReply) -> dict[str, Any]:
    whole = to_json(story)
    return {
        "action": whole["action"],
        "source": whole["source"],
        "mapping": whole.get("mapping", story.mapping_json),
        "asked_at": whole["asked_at"],
        "decided": (whole["logged"] or {}).get("decided"),
        "leases": whole["leases"],
        "requests": whole["exchanges"],
        "reverts": whole["reverts"],
        "problem": whole["problem"],
        "log": whole["rows"],
        "log_left_out": whole["rows_left_out"],
    }


def _mapped(text: str) -> str:
    """The vote: "by gpt-x, 3 of 4 samples agree; rejected 1"."""
    try:
        facts = json.loads(text) if text else {}
    except ValueError:
        return text
    if not isinstance(facts, dict) or not facts:
        return ""
    candidates = facts.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict) else {}
    parts = [f"by {facts.get('proposer', '?')}"]
    if first:
        parts.append(f"votes: {first.get('votes', 0)} of {facts.get('samples', 0)} for {_names(first.get('calls'))}")
        parts.append(f"scopes {_names(first.get('scopes'))}")
    if "choice" in facts:
        parts.append(f"you chose reading {facts['choice']}")
    if rejected := facts.get("rejected"):
        parts.append(f"samples rejected: {len(rejected) + int(facts.get('rejected_more', 0))}")
    return "; ".join(parts)


def _names(value: Any) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list) else ""


def _by(decision: audit.Decided) -> str:
    if not decision.by:
        return ""
    who = "GoEx, by itself" if decision.by == "goex" else decision.by
    return f"{who}, {local(decision.at)}"


def _grant(grant: audit.UsedGrant) -> str:
    account = f" on {grant.account}" if grant.account else ""
    given = f", given {local(grant.at)} by {grant.by} for {grant.for_action}" if grant.by else ""
    return f"{grant.id}: {grant.width or 'unknown width'}, {grant.service}:{grant.scope}{account}{given}"


def _leased(lease: audit.Leased) -> str:
    try:
        facts = json.loads(lease.facts_json)
    except ValueError:
        facts = {}
    more = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in (facts.items() if isinstance(facts, dict) else ())
        if name not in ("service", "account") and value not in ("", [], None)
    ]
    return "; ".join([f"{lease.service}/{lease.account}", *more])


def _exchanges(out: Output, story: audit.StoryReply) -> None:
    if not out.on_terminal:
        out.table(
            ("request", "at", "method", "host", "path", "answer", "bytes"),
            [
                (
                    each.call or each.request,
                    local(each.at),
                    each.method,
                    each.host,
                    each.path,
                    _answer(each),
                    _size(each),
                )
                for each in story.exchanges
            ],
        )
        return
    for each in story.exchanges:
        out.say(shown(f"  {each.method} {each.host}{each.path}"))
        out.block(" · ".join(part for part in (_name(each), _answer(each), _size(each)) if part), indent=4)


def _name(each: audit.Exchanged) -> str:
    return each.call or each.request


def _answer(each: audit.Exchanged) -> str:
    if each.refused:
        return f"refused: {each.refused}"
    if each.status == 0:
        return f"no answer{f': {each.failed}' if each.failed else ''}"
    return f"{each.status}{'' if each.well else ', not as expected'}"


def _size(each: audit.Exchanged) -> str:
    return counted(each.bytes, "byte") if each.status else ""
