"""What takes back what a program did: the requests that left, reversed newest first by the reversion set. Pure.

Rules: only what is known to have gone well is taken back. One request that can't be stops all of it, with its reason:
what is left half taken back helps nobody.
"""

from __future__ import annotations

from dataclasses import replace

from mapper.catalog import Catalog
from policies.actions import Plan, Revert, UndoClass
from policies.display_text import escape
from policies.errors import Unsupported
from policies.reversions import ReversionSet
from policies.typed_json import to_json
from runtimes.base import Context
from runtimes.code.plans import NOT_READ
from runtimes.code.record import Record, permits_of
from runtimes.code.written_headers import another_effect
from runtimes.rest.plan_text import step_lines
from runtimes.rest.plans import needs_of
from runtimes.rest.undo import Reversal, Seen, reversal
from runtimes.sandbox.contract import Profile


def reversed_(plan: Plan, kept: Record, context: Context, catalog: Catalog, reversions: ReversionSet) -> Reversal:
    """The reversal of what is still there. `context` is the program's own. Raises Unsupported for an account that is
    gone."""
    permits = permits_of(plan)
    seen = []
    unread: dict[int, str] = {}
    for one in kept.sent:
        if not kept.done(one.number) or one.number in kept.undone:
            continue
        permit = permits[one.permit]
        account = context.accounts.get((permit.service, permit.account))
        if account is None:
            raise Unsupported(
                f"The account {permit.service}/{permit.account} is gone, so nothing can be taken back there."
            )
        stuck = "" if one.whole else NOT_READ
        if stuck := stuck or another_effect(permit, catalog.method(permit.method_id)):
            unread[one.number] = stuck
            continue
        seen.append(
            Seen(
                number=one.number,
                service=permit.service,
                method=permit.method,
                account=account,
                arguments=one.arguments,
                answer=kept.answers[one.number],
            )
        )
    back = reversal(seen, catalog, reversions, action_id=context.action_id)
    return replace(back, stuck={**back.stuck, **unread})


def assess_undo(
    revert: Revert,
    plan: Plan,
    kept: Record,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet,
) -> Plan:
    """The plan of an undo. Raises Unsupported when something can't be taken back, or nothing is there."""
    permits = permits_of(plan)
    back = reversed_(plan, kept, context, catalog, reversions)
    if back.stuck:
        stuck = "; ".join(
            f"{permits[kept.sent[number].permit].method_id} (request {number + 1}): {why.rstrip('.')}"
            for number, why in sorted(back.stuck.items())
        )
        raise Unsupported(
            escape(f"Not all that it did can be taken back, so nothing is: {stuck}."),
            next_step="Look at the service, and take it back there.",
        )
    if not back.steps:
        said = "Nothing that it changed is still there" if not kept.unsettled else "It can't be known what it changed"
        raise Unsupported(f"{said}, so there is nothing to take back.", next_step="Look at the service.")
    lines = [line for step in back.steps for line in step_lines(step)]
    lines += [
        escape(f"{permits[one.permit].method_id} was sent, and it isn't known whether it happened: it stays.")
        for one in kept.unsettled
    ]
    return Plan(
        action=revert,
        needs=needs_of(back.steps, catalog, context.granted, context.intent),
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="A program isn't run again by a redo: it might do something else.",
        resolved={"verb": "undo", "turn": 0, "steps": [to_json(step) for step in back.steps], "probes": []},
        bounds={"requests": len(back.steps)},
        catalog_hash=catalog.entry_hash(dict.fromkeys(step.method_id for step in back.steps)),
        image_id=image_id,
        limits={**to_json(profile.limits), "image": profile.image, "runtime": profile.runtime},
        lines=tuple(lines),
    )
