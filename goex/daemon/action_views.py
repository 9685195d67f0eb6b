"""Our nouns as the wire's messages. No decision is made here, and no secret can be reached from here."""

from __future__ import annotations

import json

from goex.daemon import code_scope_text, database_scope_text
from goex.daemon.code_scope_text import is_code
from goex.daemon.database_scope_text import is_database
from goex.engine.events import Problem
from goex.engine.held_transactions import hold_ends
from goex.engine.reverts import REVERTIBLE
from goex.journal.actions import ActionRow
from goex.journal.chain import Row, Verification, stamp
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from mapper.least_scopes import also, plain
from mapper.scope_effects import Meaning, meaning
from policies.actions import Call, Clarification, IntentMapping, Need, Plan, UndoClass
from policies.jsonvalue import canonical
from policies.services import Risk
from policies.tasks import BEGIN, OWN
from vault.record import Record


def text(value: object) -> str:
    return canonical(value).decode("utf-8")


def problem_view(problem: Problem) -> pb.Problem:
    return pb.Problem(
        code=problem.code,
        message=problem.message,
        next_step=problem.next_step,
        exit_status=problem.exit_status,
        details=problem.details,
    )


def action_view(row: ActionRow, plan: Plan | None = None) -> pb.ActionView:
    """An action; `plan` is its row's, where it is at hand."""
    plan = plan or row.readable_plan()
    unread = "This version of GoEx can't read its plan; the one that planned it can." if row.plan and not plan else ""
    undo_class = plan.undo_class if plan else None
    takes_back = undo_class in (UndoClass.EXACT, UndoClass.COMPENSATING) and row.kind != "revert"
    return pb.ActionView(
        id=row.id,
        agent=row.agent,
        state=row.state,
        kind=row.kind,
        request_json=row.request,
        digest=row.digest,
        undo_class=undo_class or "",
        undo_text=plan.undo_text if plan else unread,
        lines=plan.lines if plan else (),
        outcome_json=row.outcome,
        created=row.created,
        updated=row.updated,
        intent=row.intent,
        target=row.target,
        can_undo=takes_back and row.state in REVERTIBLE["undo"] and not is_left(row),
        can_redo=takes_back and row.kind != "code" and row.state in REVERTIBLE["redo"],
        risk=plan.risk.word if plan else "",
        session=row.session,
        held_until=held_until(row),
    )


def is_left(row: ActionRow) -> bool:
    """Whether what was answered showed that an action's undo doesn't hold."""
    if '"left":' not in row.outcome:
        return False
    try:
        found = json.loads(row.outcome)
    except ValueError:  # which verifying tells
        return False
    return isinstance(found, dict) and found.get("left") is True


def without_texts(view: pb.ActionView) -> None:
    """Leave out what a list of many doesn't show."""
    for name in ("request_json", "lines", "outcome_json", "undo_text"):
        view.ClearField(name)


def held_until(row: ActionRow) -> str:
    """When GoEx rolls an action's transaction back that is held; "" where none is."""
    over = hold_ends(row)
    return stamp(over) if over is not None else ""


def need_view(need: Need, catalog: Catalog, granted: bool) -> pb.NeedView:
    """One scope in plain words, and what else it would allow."""
    service = catalog.services.get(need.service)
    scope = service.scopes.get(need.scope) if service else None
    if service is not None and scope is not None:
        description = plain(catalog, need.service, need.scope)
        others = also(catalog, need.service, need.scope, set(need.methods))
        means = meaning(catalog, need.service, need.scope)
    elif need.service == "files" and need.risk is Risk.READ:
        description = f"Run a program that can read everything in {need.account}, and change nothing."
        others = ()
        means = Meaning(see=(f"everything in {need.account}",))
    elif need.service == "files":
        description = f"Run a program that can read, change and delete everything in {need.account}."
        others = ()
        all_of_it = (f"everything in {need.account}",)
        means = Meaning(see=all_of_it, change=all_of_it, destroy=all_of_it)
    elif is_database(need):
        description, others, means = database_scope_text.description(need), (), database_scope_text.meaning(need)
    elif is_code(need):
        description, others, means = code_scope_text.description(need), (), code_scope_text.meaning(need)
    elif need.service == OWN and need.scope == BEGIN:
        what = "what the lines of the task allow, unasked, until it ends or you revoke it"
        description, others, means = f"Let {need.account} do {what}.", (), Meaning(change=(what,))
    elif need.service == OWN:
        description = f"Drop what undo would need for action {need.account}: it can't be taken back any more."
        others = ()
        means = Meaning(destroy=(f"what undo would need for action {need.account}",))
    else:
        description, others, means = "GoEx has no description of this permission.", (), Meaning()
    return pb.NeedView(
        service=need.service,
        account=need.account,
        scope=need.scope,
        risk=need.risk.word,
        description=description,
        also=others,
        methods=need.methods,
        why=need.why,
        granted=granted,
        see=means.see,
        change=means.change,
        destroy=means.destroy,
        share=means.share,
    )


def mapping_view(mapping: IntentMapping) -> pb.MapReply:
    return pb.MapReply(
        candidates=[
            pb.Candidate(
                calls=[call_view(call) for call in candidate.calls],
                scopes=candidate.scopes,
                votes=candidate.votes,
                score=candidate.score,
            )
            for candidate in mapping.alternatives
        ],
        agreement=mapping.agreement,
        samples=mapping.samples,
        rejected=[pb.Rejection(sample=r.sample, klass=r.klass, reason=r.reason) for r in mapping.rejected],
        proposer=mapping.proposer,
        sure=mapping.sure,
        notes=mapping.notes,
        clarification=clarification_view(mapping.clarification) if mapping.clarification is not None else None,
    )


def clarification_view(asked: Clarification) -> pb.Clarification:
    return pb.Clarification(
        text=asked.text,
        options=[pb.ClarificationOption(answer=one.answer, methods=one.methods) for one in asked.options],
        methods=asked.methods,
    )


def call_view(call: Call) -> pb.Call:
    return pb.Call(
        service=call.service, method=call.method, arguments_json=text(dict(call.arguments)), account=call.account
    )


def account_view(record: Record) -> pb.AccountView:
    account = record.account
    return pb.AccountView(
        service=account.service,
        account=account.name,
        format=account.format,
        base_url=account.base_url,
        origins=[str(origin) for origin in account.origins],
        private=account.private,
        ca=bool(account.ca_pem),
        created=stamp(record.created),
        updated=stamp(record.updated),
        last_used=stamp(record.last_used) if record.last_used else "",
    )


def log_row(row: Row) -> pb.LogRow:
    return pb.LogRow(
        number=row.number,
        at=row.at,
        action_id=row.action_id,
        agent=row.agent,
        kind=row.kind,
        to=row.to_state,
        facts_json=row.facts,
        hash=row.hash.hex(),
        **{"from": row.from_state},
    )


def verified(found: Verification) -> pb.VerifyLogReply:
    return pb.VerifyLogReply(
        good=found.good,
        rows=found.rows,
        head=found.head,
        problem=found.problem,
        authenticated=found.authenticated,
        signed=found.signed,
        unproven=found.unproven,
    )
