"""Which way of taking back a change of a database gets, where whoever asks doesn't say it.

The table's own, or the database's, unless a rule forbids that: then the first exact one that no rule forbids. That is
how a rule demands one: by forbidding the others.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from goex.engine.core import Core
from goex.journal.actions import ActionRow
from policies.actions import Plan, Sql, UndoPolicy
from policies.decisions import Request
from policies.digest import digest
from policies.errors import GoexError
from runtimes.base import Runtime

_EXACT: tuple[UndoPolicy, ...] = ("reversal", "versioning")


async def as_rules_want(core: Core, row: ActionRow, action: Sql, runtime: Runtime, plan: Plan) -> Plan:
    """The plan, or one that is taken back otherwise where a rule forbids this one. Raises nothing of its own."""
    policy = plan.undo.get("policy")
    if action.policy or not policy or not _forbidden(core, row, plan):
        return plan
    for other in _EXACT:
        if other == policy:
            continue
        with suppress(GoexError):  # it can't be taken back that way: then the rule forbids it
            made = await runtime.assess(replace(action, policy=other), core.context(row, action))
            made = replace(made, action=action)
            if not _forbidden(core, row, made):
                return made
    return plan


def _forbidden(core: Core, row: ActionRow, plan: Plan) -> bool:
    """Whether a rule of the person's forbids it; not confinement, which no other way would change."""
    request = Request(
        agent=row.agent,
        session=row.session,
        digest=digest(plan, agent=row.agent),
        plan=plan,
        situation=core.rules.counts.situation(row.agent, row.session),
    )
    try:
        said = core.rules.judge(request, core.clock())
    except Exception:  # noqa: BLE001  what can't be judged is denied where it is decided
        return False
    return bool(said.forbid) and not said.refusal
