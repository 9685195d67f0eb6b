"""What the person was asked and answered, as the chain has it: what rules are suggested from.

Rules: a yes counts where the chain, recomputed up to its head, confirms it and the plan's digest. Each no counts that
the table still has: one too many only narrows. Of a denied call whose plan was too long to be kept it isn't known what
it was, so its agent's yes counts nowhere on the services that it was for. A yes to a method that the imported catalog
describes otherwise now was a yes to another one, and so was a yes to an earlier agent of the name. A question that a
grant settled by itself was answered by nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from goex.engine.catalog_entries import is_as_planned
from goex.engine.core import Core
from goex.journal.actions import ActionRow
from goex.journal.chain import Row, moment
from goex.journal.story import NOBODY
from policies.actions import Plan
from policies.errors import Conflict, GoexError
from policies.jsonvalue import parse
from policies.rules.suggestions import Answer, Asked

log = logging.getLogger("goex.engine")

MOST_ROWS = 100_000  # of the chain's end that are looked at
_AT_ONCE = 500
_LIMIT = 64 * 2**20  # our own rows come back whole


def answers(core: Core) -> tuple[Asked, ...]:
    """Each call that was asked for, with its answer, oldest first. Raises JournalBroken. May run in a thread."""
    journal = core.journal
    chain = journal.authentic(max(1, journal.count - MOST_ROWS + 1))
    assessed = {row.action_id: parse(row.facts, limit=_LIMIT) for row in chain if row.kind == "assess"}
    digests = {id: facts["digest"] for id, facts in assessed.items()}
    answered: dict[str, tuple[Answer, Row]] = {}
    for row in (*_earlier_denials(core, chain[0].number if chain else 0), *chain):
        answer = _answer(row)
        if answer is not None and (answer == "no" or row.action_id not in answered):
            answered[row.action_id] = answer, row
    ids = [id for id, (answer, _) in answered.items() if answer == "no" or id in digests]
    found: list[Asked] = []
    unknown: list[tuple[str, frozenset[str] | None]] = []  # an agent, and services; None: all
    for start in range(0, len(ids), _AT_ONCE):
        rows = core.actions.those(ids[start : start + _AT_ONCE])
        for id in ids[start : start + _AT_ONCE]:
            answer, row = answered[id]
            action, digest = rows.get(id), digests.get(id, "")
            if answer == "no" and _is_left_out(action, digest):
                services = assessed.get(id, {}).get("services")
                unknown.append((row.agent, None if services is None else frozenset(services)))
                continue
            plan = _plan(action, digest, denied=answer == "no")
            if plan is not None and (answer != "yes" or _holds(core, row, plan)):
                found.append(Asked(agent=row.agent, plan=plan, answer=answer, at=moment(row.at)))
    return tuple(one for one in found if one.answer != "yes" or not _is_unknown(one, unknown))


def _holds(core: Core, row: Row, plan: Plan) -> bool:
    """Whether a yes says something of the agent and the methods that have these names now."""
    since = core.grant_store.named_since(row.agent)
    return bool(since) and since <= row.at and is_as_planned(core.catalog, plan)


def _is_left_out(action: ActionRow | None, digest: str) -> bool:
    """Whether it is a call that never ran, whose plan was too long to be kept."""
    return action is not None and action.kind == "calls" and not action.plan and digest in ("", action.digest)


def _is_unknown(one: Asked, unknown: Iterable[tuple[str, frozenset[str] | None]]) -> bool:
    services = {need.service for need in one.plan.required}
    return any(agent == one.agent and (among is None or services & among) for agent, among in unknown)


def _plan(action: ActionRow | None, digest: str, *, denied: bool) -> Plan | None:
    """The plan of a call; None for anything else, and for what isn't what was answered. Raises Conflict where it was
    denied: what that was can't be known then, so nothing can be said to leave it out."""
    try:
        if action is not None and (not digest or action.digest == digest):
            return action.the_plan() if action.kind == "calls" else None
    except GoexError as error:
        log.warning("the plan of an action in the log can't be read: %s", error.message)
    if denied:
        raise Conflict("A denied action in the log isn't what was written.", next_step="goex log --verify")
    return None


def _answer(row: Row) -> Answer | None:
    if row.kind == "expire":
        return ""
    if row.kind == "deny" and row.from_state == "asking":
        return "no" if _by_person(row) else None
    return "yes" if row.kind == "grant" and row.action_id and _by_person(row) else None


def _by_person(row: Row) -> bool:
    return str(parse(row.facts, limit=_LIMIT).get("by", "")) not in NOBODY


def _earlier_denials(core: Core, before: int) -> Iterable[Row]:
    while before > 1:
        rows = core.journal.rows(kind="deny", before=before, limit=1000)
        yield from rows
        before = rows[-1].number if rows else 0
