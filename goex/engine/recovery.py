"""After a restart: every action that was under way is settled, taken up again, or said to be unknown.

Rules: what hadn't begun never begins by itself, except that a question which is still open, or was answered with yes,
goes on (not when the process that asked is gone, and nobody has answered); what had begun is probed by its runtime,
which reads only, and unknown where it can't be; a revert finishes what it began, since reverts are idempotent.
Containers of the earlier daemon are gone before any of this.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from goex.engine.core import Lost
from goex.engine.engine import Arrived, Engine
from goex.engine.events import Approval, Finished, Problem
from goex.engine.peers import ended
from goex.engine.trust import confirmed
from goex.journal.actions import ActionRow
from goex.journal.states import BEFORE_DECISION, UNDER_WAY, Event, State
from policies.actions import Plan, Revert
from policies.errors import Conflict, GoexError, Unsupported
from policies.jsonvalue import parse
from runtimes.base import Settlement

log = logging.getLogger("goex.engine")

_LIMIT = 64 * 2**20  # our own rows come back whole
_NOT_KNOWN = "The daemon stopped while this ran, and it can't be known what it did."
FOLLOWED_WITHIN = 60.0  # seconds in which a client that isn't detached must be back


async def recover(engine: Engine, follow_within: float = FOLLOWED_WITHIN, *, distrust: bool = False) -> None:
    """Settle what an earlier daemon left. Call it once the vault is unlocked and grants are loaded. With `distrust`
    no question is taken up and no revert finished: the journal is not the one that was written last."""
    rows = engine.core.actions.in_states({*UNDER_WAY, State.UNKNOWN})
    believed = confirmed(engine.core.journal, rows)
    for row in rows:
        if engine.is_under_way(row.id):
            continue
        if row.id not in believed:
            log.error("action %s stays %s: the journal knows it otherwise", row.id, row.state)
            engine.core.journal.append("action-altered", action_id=row.id, facts={"state": row.state})
            continue
        try:
            await _one(engine, row, follow_within, distrust=distrust)
        except GoexError as error:
            log.error("action %s stays %s: %s", row.id, row.state, error)
        except Exception:  # of the others nothing is wrong
            log.exception("action %s stays %s: it met a defect", row.id, row.state)


async def _one(engine: Engine, row: ActionRow, follow_within: float, *, distrust: bool) -> None:
    plan: Plan | None = None
    unread: tuple[str, ...] = ()
    try:
        plan = row.the_plan() if row.plan or row.digest else None
    except Unsupported as error:  # of another version of GoEx
        unread = _evidence(row, error)
    except GoexError as error:
        engine.core.journal.append("action-altered", action_id=row.id, facts={"state": row.state})
        if row.state is not State.RUNNING:  # ended as one that never ran, it would keep no long plan to verify
            raise
        unread = _evidence(row, error)
    if row.state in BEFORE_DECISION or (row.state is State.ASKING and (distrust or unread)):
        _never_began(engine, row, Event.WITHDRAW, unread)
    elif row.state is State.ASKING:
        _take_up(engine, row, follow_within)
    elif row.state in (State.ALLOWED, State.PREPARED):
        if plan and row.kind != "revert":  # it may have been prepared: that is written together with the beginning
            with suppress(GoexError):
                await engine.core.runtime_of(plan.action).forget(plan, engine.core.context(row))
        _never_began(engine, row, Event.FAIL, unread)
    elif plan is None and row.state is State.RUNNING:  # as running it would hold others up
        _lose(engine, row, Lost(_NOT_KNOWN, unread))
    elif plan is None:
        log.error("action %s stays %s: %s", row.id, row.state, " ".join(unread))
    elif isinstance(plan.action, Revert):
        if row.state is State.RUNNING and distrust:
            evidence = ("It was running in an older log, and may have ended since.",)
            _lose(engine, row, Lost("The log was put back while this ran.", evidence))
        elif row.state is State.RUNNING:
            await _finish_revert(engine, row, plan)
    else:
        await _probe(engine, row, plan)
    if not engine.is_under_way(row.id):
        ended = engine.core.actions.get(row.id)
        engine.core.hub.publish(row.id, Finished(row=ended, problem=engine.problem(ended)))


async def look_again(engine: Engine, id: str, *, by: str) -> ActionRow:
    """Look once more at an action that is unknown, because the person asks: a service may be back that wasn't there.
    Raises Conflict for any other, and for one that the journal doesn't confirm."""
    row = engine.core.actions.get(id)
    if row.state is not State.UNKNOWN or engine.is_under_way(id) or row.kind == "revert":
        raise Conflict(f"Action {id} is {row.state}: there is nothing to find out.", next_step=f"goex show {id}")
    if id not in confirmed(engine.core.journal, (row,)):
        raise Conflict(f"Action {id} isn't what the journal says of it.", next_step="goex log --verify")
    engine.core.vault.require_open()
    if id in _looked_at:
        raise Conflict(f"Action {id} is being looked at already.", next_step="Wait a moment.")
    _looked_at.add(id)
    try:
        engine.core.journal.append("look", action_id=id, agent=row.agent, facts={"by": by})
        await _probe(engine, row, row.the_plan())
    finally:
        _looked_at.discard(id)
    return engine.core.actions.get(id)


_looked_at: set[str] = set()


def _never_began(engine: Engine, row: ActionRow, event: Event, why: tuple[str, ...] = ()) -> None:
    engine.end(
        row,
        Problem(
            code="interrupted",
            message="The daemon stopped before this began: nothing was changed.",
            next_step="Ask for it again.",
            details=why,
        ),
        event,
    )


def _take_up(engine: Engine, row: ActionRow, follow_within: float) -> None:
    """A question that was open when the daemon stopped is still open, unless its agent was removed just before; whoever
    asked has a minute to be back, if its process is still there."""
    question = _question(engine, row)
    if question is None or question.state not in ("pending", "approved") or not engine.core.is_named(row):
        _never_began(engine, row, Event.WITHDRAW)
        return
    plan, action = row.the_plan(), row.action()
    assert action is not None

    async def journey() -> Arrived:
        async def again() -> Plan:
            return (await engine.assess(row, action))[1]

        decided = await engine.asking.await_answer(row, plan, again, question.id, resumed=True)
        runtime = engine.core.runtime_of(engine.core.subject(plan.action))
        return await engine.go_on(decided, runtime, plan)

    engine.start(row, journey())
    if not row.detached and question.state == "pending":
        seconds = 0.0 if _principal_ended(engine, row) else follow_within
        asyncio.get_running_loop().call_later(seconds, _unfollowed, engine, row.id)


def _principal_ended(engine: Engine, row: ActionRow) -> bool:
    """Whether the process that asked is gone, so that it can't be back. False where an older GoEx noted none."""
    received = engine.core.journal.rows(action_id=row.id, kind="receive", limit=1)
    return any(ended(str(parse(each.facts, limit=_LIMIT).get("process", ""))) for each in received)


def _unfollowed(engine: Engine, id: str) -> None:
    task = asyncio.ensure_future(engine.left(id))
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)


_leaving: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to tasks


def _question(engine: Engine, row: ActionRow) -> Approval | None:
    found = engine.core.approvals.of_action(row.id)
    return found[-1] if found else None


async def _probe(engine: Engine, row: ActionRow, plan: Plan) -> None:
    _refuse_reverting(engine, row)
    try:
        runtime = engine.core.runtime_of(plan.action)
        context = engine.core.context(row, plan.action, await engine.core.leases(row, plan))
        settlement = await runtime.settle(plan, context)
    except Exception as error:
        if row.state is not State.RUNNING:
            raise
        settlement = Settlement(outcome=None, evidence=_evidence(row, error))  # as running it would hold others up
    finally:
        engine.core.vault.end_leases(row.id)
    _refuse_reverting(engine, row)
    if settlement.outcome is not None:
        engine.running.finish(row, plan, settlement.outcome)
    elif row.state is State.RUNNING:
        _lose(engine, row, Lost(_NOT_KNOWN, settlement.evidence))


def _refuse_reverting(engine: Engine, row: ActionRow) -> None:
    """Raise Conflict while a revert of it runs: that says what becomes of it, and couldn't of what has failed."""
    if (by := engine.reverting.busy({State.RUNNING}).get(row.id)) is not None:
        raise Conflict(f"Action {row.id} is being taken through {by} now.", next_step=f"goex show {by}")


async def _finish_revert(engine: Engine, row: ActionRow, plan: Plan) -> None:
    try:
        context = engine.core.context(row, engine.core.subject(plan.action), await engine.core.leases(row, plan))
        outcome = await engine.reverting.effect(row, plan, context)
    except Exception as error:  # noqa: BLE001  `_evidence` logs what is a defect
        _lose(engine, row, Lost("The daemon stopped while this ran.", _evidence(row, error)))
    else:
        engine.running.finish(row, plan, outcome)
    finally:
        engine.core.vault.end_leases(row.id)


def _lose(engine: Engine, row: ActionRow, lost: Lost) -> None:
    """Of a commit of several each target may be the one in whose middle it stopped."""
    _, targets = row.reverts()
    for id in targets if len(targets) > 1 else ():
        engine.reverting.lose(id, row.id)
    engine.end(row, Problem.of(lost), Event.LOSE)


def _evidence(row: ActionRow, error: Exception) -> tuple[str, ...]:
    if isinstance(error, GoexError):
        return str(error), *getattr(error, "difference", ())
    log.error("action %s met a defect", row.id, exc_info=error)
    return ("An internal error came (see daemon.log).",)
