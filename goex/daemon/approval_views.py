"""Questions and grants as the wire's messages: whole, in plain words, and with nothing in them that isn't fit to see.

Rules: every text of an approval is escaped here, whoever reads it (a terminal, a screen, a notification server); what
is cut, for lists alone, is said, and has no digest, so that it can't be approved from.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from goex.daemon import code_scope_text
from goex.daemon.action_views import need_view, text
from goex.daemon.audit_views import what
from goex.daemon.credential_views import say_credentials
from goex.daemon.database_scope_text import doing
from goex.daemon.duration_text import Asked, widths
from goex.daemon.question import Standing, question
from goex.engine.catalog_entries import entry
from goex.engine.core import Core
from goex.engine.events import Approval
from goex.engine.grant_issue import Choice, freeable
from goex.engine.rulebook import CATALOG_CHANGED
from goex.journal.actions import ActionRow
from goex.journal.chain import stamp
from goex.rpc import goex_pb2 as pb
from policies.actions import OTHER_ARGUMENTS, Plan, Revert, refers
from policies.databases import SERVICE
from policies.decisions import Ask, Decision
from policies.display_text import counted, escape, escape_name
from policies.grants import Grant, Width
from policies.lookalikes import right_to_left
from policies.tasks import Allowance, Task
from runtimes.code.scopes import PROGRAM
from runtimes.code.scopes import SERVICE as CODE
from runtimes.files.plans import READ_SCOPE

LARGEST_REPLY = 3 * 2**20  # bytes; a client that sets no limit of its own takes 4 MB
_LOOKED_BACK = 20  # actions, for the last one that isn't a revert
_BRIEF = 200  # characters of a text in a list
_IN_LINES = frozenset({"lines", "undo_text"})  # where a line break means one
_NAMES = frozenset({"agent", "service", "account", "scope", "method", "methods"})


def approval_view(core: Core, approval: Approval, row: ActionRow, plan: Plan, decision: Decision) -> pb.Approval:
    """A question with all that the person is shown. `decision` is what would be decided now."""
    queue = core.approvals.queue
    duplicates = queue.duplicates(approval.id)
    missing = decision.needs if isinstance(decision, Ask) else plan.required
    covered = core.grant_store.standing(row.agent, row.session)
    # One that an earlier GoEx asked may have been given more.
    offered = tuple(one for one in approval.widths if one == Choice.ONCE or not plan.unseen)
    asked = Asked(
        row=row,
        plan=plan,
        needs=missing,
        duplicates=max(len(duplicates) - 1, 0),
        now=core.clock(),
        unused=core.grant_store.lapse,
    )
    made = pb.Approval(
        id=approval.id,
        action_id=approval.action_id,
        agent=row.agent,
        digest=approval.digest,
        lines=plan.lines,
        needs=[
            need_view(need, core.catalog, not need.unseen and (need.service, need.account, need.scope) in covered)
            for need in plan.needs
        ],
        undo_class=plan.undo_class,
        undo_text=plan.undo_text,
        risk=plan.risk.word,
        presence=approval.presence,
        widths=offered,
        reason=" ".join(text for text in (approval.reason, _directions(row, plan)) if text),
        created=approval.created,
        deadline=approval.deadline,
        intent=row.intent,
        state=approval.state,
        settled_by=approval.settled_by,
        arguments=freeable(plan),
        source=row.source,
        session=row.session,
        place=queue.place(approval.id),
        waiting=len(queue),
        count=max(len(duplicates), 1),
        same_as=[id for id in duplicates if id != approval.id],
        choices=widths(asked, offered, core.catalog),
        kind=row.kind,
        task=_task(plan),
        question=question(row, plan, offered, core.catalog, _standing(core, row, plan, decision, asked)),
    )
    return escaped(say_credentials(made, core.told(row, plan)))


def _task(plan: Plan) -> pb.Task | None:
    """What a yes may narrow: the lines as the plan resolved them."""
    if not isinstance(plan.action, Task):
        return None
    lines = [
        pb.Allowance(service=line["service"], method=line["method"], account=line["account"], times=line["times"])
        for line in plan.resolved["task"]
    ]
    return pb.Task(title=plan.action.title, allows=lines, seconds=plan.action.seconds, agent=plan.resolved["agent"])


def _standing(core: Core, row: ActionRow, plan: Plan, decision: Decision, asked: Asked) -> Standing:
    """How things stand for the short question: what was given before, and what a revert is of."""
    target, last = "", False
    if isinstance(plan.action, Revert):
        target = what(core.actions.get(plan.action.target))
        latest = core.actions.newest(agent=row.agent, limit=_LOOKED_BACK)
        last = next((one.id for one in latest if one.kind != "revert"), "") == plan.action.target
    unbound = decision.reason if isinstance(decision, Ask) and CATALOG_CHANGED in decision.rules else ""
    return Standing(
        decision=decision,
        given=lambda need: core.grant_store.given(row.agent, need),
        duplicates=asked.duplicates,
        target=target,
        last=last,
        remarks=tuple(text for text in (_directions(row, plan), unbound) if text),
    )


def _directions(row: ActionRow, plan: Plan) -> str:
    """Which letters of it a display may put in another order."""
    found = right_to_left("\n".join((row.intent, row.agent, plan.undo_text, *plan.lines)))
    if not found:
        return ""
    return f"It holds letters that read from right to left ({', '.join(found)}); each run of them is set apart."


def escaped(made: pb.Approval) -> pb.Approval:
    """The same with each text in it fit to be shown."""
    _escape(made)
    return made


def _escape(message: Any) -> None:
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                _escape(inner)
        elif field.type == field.TYPE_STRING:
            shows = escape_name if field.name in _NAMES else partial(escape, newlines=field.name in _IN_LINES)
            if field.is_repeated:
                value[:] = map(shows, value)
            else:
                setattr(message, field.name, shows(value))


# ---- grants


def grant_view(core: Core, grant: Grant) -> pb.GrantView:
    ends = core.grant_store.ends(grant)
    return pb.GrantView(
        id=grant.id,
        agent=grant.agent,
        service=grant.service,
        account=grant.account,
        scope=grant.scope,
        width=grant.width,
        constraints_json=text(dict(grant.constraints)),
        created=stamp(grant.created),
        expires=stamp(grant.expires) if grant.expires else "",
        by=grant.by,
        why=grant.why,
        revoked=stamp(grant.revoked) if grant.revoked else "",
        used=stamp(grant.used) if grant.used else "",
        session=grant.session,
        digest=grant.digest,
        uses=grant.uses,
        last_used=stamp(grant.last_used) if grant.last_used else "",
        ends=stamp(ends) if ends else "",
        words=grant_words(core, grant),
        stale=_given_later(grant, core.clock()) or _stale(core, grant),
        times=grant.times,
    )


def grant_words(core: Core, grant: Grant) -> list[str]:
    """Who may do what with it, and until when."""
    return [escape(line) for line in _grant_words(core, grant)]


def _grant_words(core: Core, grant: Grant) -> list[str]:
    who = "Your own command line" if grant.agent == "person" else f"The agent “{escape_name(grant.agent)}”"
    what = f"{grant.service}:{grant.scope}"
    if grant.width is Width.TASK:
        line = Allowance(
            service=grant.service,
            method=grant.scope,
            account=grant.account,
            arguments=grant.within,
            times=grant.times,
        )
        return [f"{who} may, in task {grant.why}: {line.text}. Used {counted(grant.uses, 'time')}."]
    if grant.width is Width.ONCE:
        return [f"{who} may do action {grant.why}, once."]
    if grant.service == "files":
        program = "one program" if PROGRAM in grant.constraints else "any program"
        reads = grant.scope == READ_SCOPE
        folder = escape_name(grant.account)
        does = f"read {folder} by {program}" if reads else f"run {program} in {folder}"
        said = f"{who} may {does} without asking."
    elif grant.service == CODE:
        which = "one program" if PROGRAM in grant.constraints else "any program"
        said = f"{who} may {code_scope_text.doing(grant.scope, which)} without asking."
    elif grant.service == SERVICE:
        how = "by one statement" if {"statement", "operation"} & grant.constraints.keys() else "by any statement"
        said = f"{who} may {doing(grant.scope, grant.account)} without asking, {how}."
    else:
        only = f" Only {', '.join(grant.methods)}." if grant.methods else ""
        said = f"{who} may use {what} on account {escape_name(grant.account)} without asking.{only}"
    held = [f"the values of {', '.join(grant.constraints)} that it was given for"] if grant.constraints else []
    held += [f"any {', '.join(grant.free)}"] if grant.free else []
    if held:
        alone = ", and no other arguments" if grant.only and OTHER_ARGUMENTS not in grant.free else ""
        bound = f"Only with {' and '.join(held)}{alone}."
    else:
        bound = "" if grant.service in ("files", SERVICE, CODE) else "Whatever the arguments are."
    lines = [said, bound] if bound else [said]
    if grant.entries:
        lines.append(f"Only while the catalog says of {counted(len(grant.entries), 'method')} what it said then.")
    return lines


def _given_later(grant: Grant, now: datetime) -> str:
    """That the clock was set back to before it was given, if so."""
    if grant.revoked is not None or now >= grant.created:
        return ""
    return (
        f"The clock was set back to before it was given ({stamp(grant.created)}): until then it holds for nothing."
        " If the clock is right now, revoke it and allow it anew."
    )


def _stale(core: Core, grant: Grant) -> str:
    """Why it doesn't hold for all that it was given for; "": it does."""
    if grant.width is not Width.ONCE and any(refers(value) for value in grant.constraints.values()):
        return (
            "It was given for values that an answer fills in: what rests on those is asked each time, so it holds for"
            " nothing."
        )
    if grant.is_outdated:
        return (
            "It was given by an earlier version of GoEx, for arguments too that nobody was shown: it holds for nothing,"
            " and what rests on it is asked for again."
        )
    if not grant.entries or grant.revoked is not None:
        return ""
    if (trouble := core.catalog.trouble) is not None:
        return escape(str(trouble))
    now = core.catalog.generation
    known = _seen.setdefault(now, {})
    for earlier in [each for each in _seen if each != now]:
        del _seen[earlier]
    other = []
    for method, then in grant.entries.items():
        key = grant.service, method
        if key not in known:
            known[key] = entry(core.catalog, *key)
        if known[key] != then:
            other.append(method)
    if not other:
        return ""
    named = ", ".join(sorted(other)[:3]) + (f" and {len(other) - 3} more" if len(other) > 3 else "")
    return escape(f"The imported catalog says of {named} something else than when it was given: that is asked anew.")


# Entries' hashes by the catalog's generation: to be told about, not to decide on.
_seen: dict[int, dict[tuple[str, str], str]] = {}
