"""Actions as the log and `show` say them: who decided on what, what came of it, whether it can be taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from goex.cli.output import Output, fold, local, shown
from policies.display_text import counted

if TYPE_CHECKING:
    from goex.rpc import audit_pb2 as audit
    from goex.rpc import goex_pb2 as pb

_VERDICTS = {"allowed": "allowed", "denied": "denied", "expired": "nobody answered", "withdrawn": "withdrawn"}
_SAID_NO = re.compile(r"^(You denied it|The person (denied it|said no))[:. ]*")
_GRANTS_NAMED = 3
_INDENT = 2


def show_actions(out: Output, found: Sequence[audit.LoggedAction]) -> None:
    """A line each; on a screen two: what it was, and below it what became of it."""
    if not out.on_terminal:
        out.table(
            ("action", "at", "agent", "state", "risk", "what", "decided", "outcome", "undo"),
            [
                (
                    action.id,
                    local(action.created),
                    action.agent,
                    action.state,
                    action.risk,
                    what(action),
                    decided(action.decided),
                    action.outcome,
                    undo(action),
                )
                for action in found
            ],
        )
        return
    from rich.text import Text

    lines = Text()  # written at once: the library takes its time for each piece
    width = max(out.console.width - _INDENT, 20)
    for action in found:
        style = "red" if action.state in ("unknown", "partial") else ""
        lines.append(shown(f"{local(action.created)}  {action.id}  {action.agent}  {action.state}") + "\n", style)
        rest = (action.risk, decided(action.decided), "" if said(action) else action.outcome, undo(action))
        for text, dim in ((what(action), ""), (" · ".join(part for part in rest if part), "dim")):
            for line in fold(shown(text), width):
                lines.append(" " * _INDENT + line + "\n", dim)
    lines.rstrip()
    out.say(lines)


def changed_nothing(action: pb.ActionView) -> bool:
    """Whether it ran and is known to have changed nothing, so that there is nothing to take back."""
    try:
        outcome = json.loads(action.outcome_json or "null")
    except ValueError:
        return False
    return isinstance(outcome, dict) and outcome.get("touched") is False


def said(action: audit.LoggedAction) -> bool:
    """Whether the decision's own words tell how it ended, so that the outcome needn't say them again."""
    return action.decided.verdict in ("denied", "expired", "withdrawn") or action.outcome == action.decided.reason


def what(action: audit.LoggedAction) -> str:
    cut = f"… ({counted(action.what_cut, 'more character')}: goex show {action.id})" if action.what_cut else ""
    return (action.what or "nothing that was understood") + cut


def decided(decision: audit.Decided) -> str:
    """Who decided, on what: "you allowed it (once: slack:chat:write)", "denied: rule no-mail forbids it"."""
    rules = f"rule{'s' * (len(decision.rules) > 1)} {', '.join(decision.rules)}" if decision.rules else ""
    if decision.verdict == "allowed" and decision.person:
        basis = "; ".join(part for part in (grants(decision), f"asked because of {rules}" if rules else "") if part)
        return f"you allowed it ({basis})" if basis else "you allowed it"
    if decision.verdict == "allowed":
        basis = " and ".join(part for part in (grants(decision), rules) if part)
        return f"allowed by {basis}" if basis else "allowed"
    word = "you denied it" if decision.person else _VERDICTS.get(decision.verdict, "")
    if decision.verdict == "denied":
        reason = _SAID_NO.sub("", decision.reason, count=1)
        named = all(re.search(rf"(?<![\w-]){re.escape(rule)}(?![\w-])", reason) for rule in decision.rules)
        return ": ".join(part for part in (word, "" if named else rules, reason) if part)
    return word or decision.reason


def grants(decision: audit.Decided) -> str:
    """The grants that it ran on: "once: slack:chat:write", "standing grant g-1 (…, permanent)"."""
    names = []
    for grant in decision.grants[:_GRANTS_NAMED]:
        scope = f"{grant.service}:{grant.scope}" if grant.scope else ""
        if grant.width == "once":
            names.append(f"once: {scope}")
        else:
            inside = ", ".join(part for part in (scope, grant.width) if part)
            names.append(f"grant {grant.id} ({inside})" if inside else f"grant {grant.id}")
    left = len(decision.grants) - _GRANTS_NAMED
    return ", ".join(names) + (f" and {left} more" if left > 0 else "")


def undo(action: audit.LoggedAction) -> str:
    if action.taken_back_by:
        return f"undone by {action.taken_back_by}"
    if action.state == "committed":
        return "kept for good"
    if action.can_redo:
        return "undone"
    if action.held_until:
        return f"held until {local(action.held_until)}: commit or undo it"
    if action.can_undo:
        return "can be undone"
    return "can't be undone" if action.undo_class == "irreversible" and action.state == "done" else ""
