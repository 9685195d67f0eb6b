"""Whether a plan is within a task: all of it, or nothing.

Rules: each call, and each statement, needs a line of its own count; what can't be taken back is never within, nor what
an answer fills in, nor a program for services, nor a permission that changes something and that no call of it explains.
What GoEx itself reads for a call's undo goes with the call, as it does when the call is allowed once. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from policies.actions import MOVED, ApiCalls, Files, Need, Plan, Revert, Sql, UndoClass
from policies.grants import ANONYMOUS, Grant, Width
from policies.jsonvalue import JsonValue
from policies.services import Risk
from policies.tasks import OWN, UNDO, within

# service, method, account, arguments: what one use of a line is for
_Use = tuple[str, str, str, Mapping[str, JsonValue]]


def covering_task(plan: Plan, grants: Iterable[Grant], *, agent: str, session: str, now: datetime) -> tuple[Grant, ...]:
    """The lines of one task that `plan` uses, each as often as it uses it; () where no task covers all of it."""
    if plan.unseen or (plan.undo_class is UndoClass.IRREVERSIBLE and plan.risk > Risk.READ):
        return ()
    uses = tuple(_uses(plan))
    if not uses:
        return ()
    tasks: dict[str, list[Grant]] = {}
    for grant in grants:
        if _holds(grant, agent=agent, session=session, now=now):
            tasks.setdefault(grant.why, []).append(grant)
    for lines in tasks.values():
        if found := _matched(uses, lines):
            return found
    return ()


def _holds(grant: Grant, *, agent: str, session: str, now: datetime) -> bool:
    return (
        grant.width is Width.TASK
        and grant.agent == agent != ANONYMOUS
        and grant.session in ("", session)
        and grant.revoked is None
        and grant.expires is not None
        and not grant.is_over(now)
    )


def _matched(uses: tuple[_Use, ...], lines: list[Grant]) -> tuple[Grant, ...]:
    spent: dict[str, int] = {}
    found: list[Grant] = []
    for service, method, account, arguments in uses:
        for line in lines:
            left = line.times == 0 or line.uses + spent.get(line.id, 0) < line.times
            same = (line.service, line.scope, line.account) == (service, method, account)
            if left and same and within(line.within, arguments):
                spent[line.id] = spent.get(line.id, 0) + 1
                found.append(line)
                break
        else:
            return ()
    return tuple(found)


def _uses(plan: Plan) -> Iterator[_Use]:
    """What the plan would use; nothing where no task can be for it."""
    action = plan.action
    if isinstance(action, ApiCalls):
        called = {(call.service, call.account, call.method) for call in action.calls}
        accounts = {(service, account) for service, account, _ in called}
        for need in plan.required:
            own = all((need.service, need.account, method) in called for method in need.methods)
            if not own and (need.risk > Risk.READ or (need.service, need.account) not in accounts):
                return
        for call in action.calls:
            yield call.service, call.method, call.account, call.arguments
    elif isinstance(action, Files | Sql):
        rows = plan.bounds.get("rows")
        for need in plan.required:
            arguments: dict[str, JsonValue] = {} if isinstance(action, Files) or rows is None else {"rows": rows}
            for _ in range(_times(plan, need)):
                yield need.service, need.scope, need.account, arguments
    elif isinstance(action, Revert) and action.verb == "undo" and not action.regardless and MOVED not in plan.resolved:
        yield OWN, UNDO, "", {"target": action.target}


def _times(plan: Plan, need: Need) -> int:
    """How often the plan does what it needs this permission for: once for each statement, also for two alike, which
    stand in the permission once."""
    texts = {one.get("statement") for one in need.arguments}
    program = plan.resolved.get("program", {}) if isinstance(plan.action, Sql) else {}
    return max(1, sum(one["sql"] in texts for one in program.get("statements", ())))
