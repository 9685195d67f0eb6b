"""Tasks: their plan, and the grants that a yes to one makes.

Rules: a task is always asked for, with presence, by nobody without a name; what it allows is bound to its agent, its
session, its methods as the catalog has them, and its end. The person's own task may be given to an agent, and may take
back actions. The person may narrow each line, and the time; nobody can widen either.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from goex.engine.catalog_entries import entry, is_imported
from goex.engine.core import Core
from goex.engine.grant_issue import Yes
from goex.journal.actions import ActionRow
from policies.actions import Action, Need, Outcome, Plan, Revert, UndoClass
from policies.databases import SERVICE as DATABASE
from policies.display_text import counted, escape
from policies.errors import InvalidInput, Unsupported
from policies.grants import ANONYMOUS, PERSON, Grant, Width
from policies.services import Risk, believed_risk
from policies.tasks import BEGIN, OWN, UNDO, Allowance, Task
from policies.typed_json import from_json, to_json
from runtimes.base import Context, DryRun, Footprint, Settlement
from runtimes.files.plans import READ_SCOPE
from runtimes.files.plans import SCOPE as FILES_SCOPE
from runtimes.files.plans import SERVICE as FILES

_READS = frozenset({"select", "find"})
_LIKE, _LIKE_FOLDER = '{"channel": {"is": "#ops"}, "text": {"any": true}}', "{}"


def plan_of(core: Core, task: Task, row: ActionRow) -> Plan:
    """What a task would allow. Pure but for the catalog and the names of accounts. Raises InvalidInput for one that
    can't be held to."""
    if row.agent == ANONYMOUS:
        raise InvalidInput("An agent without a name has no task.", next_step="goex agents add NAME gives it one.")
    if task.agent and row.agent != PERSON:
        raise InvalidInput("Only the person gives a task to another.", next_step="Propose it for yourself.")
    known = {agent.name for agent in core.grant_store.agents()}
    if task.agent and task.agent not in known:
        raise InvalidInput(f"There is no agent {task.agent[:40]!r}.", next_step="goex agents list")
    checked = [_checked(core, line, row.agent) for line in task.allows]
    lines = [line for line, _ in checked]
    ids = [f"{line.service}.{line.method}" for line in lines if line.service in core.catalog.services]
    who = task.agent or row.agent
    return Plan(
        action=task,
        needs=(
            Need(
                service=OWN,
                account=who,
                scope=BEGIN,
                risk=max(Risk.WRITE, *(risk for _, risk in checked)),
                methods=(BEGIN,),
            ),
        ),
        undo_class=UndoClass.NOTHING,
        undo_text="goex revoke ends it; goex undo --task takes back what was done in it.",
        resolved={"task": [to_json(line) for line in lines], "agent": who},
        bounds={},
        catalog_hash=core.catalog.entry_hash(dict.fromkeys(ids)) if ids else "",
        image_id="",
        limits={},
        lines=(
            *((f"“{escape(task.title)}”",) if task.title else ()),
            *(f"{number}. {line.text}" for number, line in enumerate(lines, 1)),
            f"Unasked by {escape(who)}, for {_span(task.seconds)}. All else is asked, and what can't be undone.",
        ),
    )


def given(core: Core, row: ActionRow, plan: Plan, yes: Yes, now: datetime) -> tuple[Grant, ...]:
    """The grants of a yes to a task, narrowed as the person wants. Raises InvalidInput for what isn't narrower."""
    assert isinstance(plan.action, Task)
    lines = [_line(one) for one in plan.resolved["task"]]
    if any(not 0 <= number < len(lines) for number in yes.narrowed):
        raise InvalidInput("The task has no such line.", next_step="See its lines: goex approve")
    seconds = timedelta(seconds=plan.action.seconds)
    if yes.lasts is not None and yes.lasts > seconds:
        raise InvalidInput("A task can be made shorter, never longer.")
    made, base = [], secrets.token_hex(5)
    for number, line in enumerate(lines):
        times = yes.narrowed.get(number, line.times)
        if line.times and times > line.times:
            raise InvalidInput("A line's count can be made smaller, never larger.")
        if number in yes.narrowed and times == 0:
            continue
        imported = is_imported(core.catalog, line.service)
        made.append(
            Grant(
                id=f"g-{base}{number:02x}",
                agent=plan.resolved["agent"],
                service=line.service,
                account=line.account,
                scope=line.method,
                width=Width.TASK,
                created=now,
                expires=now + min(yes.lasts or seconds, seconds),
                by=yes.by,
                why=row.id,
                methods=(line.method,),
                entries={line.method: entry(core.catalog, line.service, line.method)} if imported else {},
                session="" if plan.action.agent else row.session,
                times=times,
                within=line.arguments,
            )
        )
    if not made:
        raise InvalidInput("Nothing is left of this task.", next_step="Say no to it.")
    return tuple(made)


def _checked(core: Core, line: Allowance, agent: str) -> tuple[Allowance, Risk]:
    """A line with its account named, and its risk. Raises InvalidInput, NoAccount."""
    if line.service == OWN:
        bound = (line.arguments or {}).get("target", {})
        if agent != PERSON or line.method != UNDO or set(bound) != {"in"} or not line.times:
            raise InvalidInput("A task doesn't do this by itself.", next_step="Ask for it: goex undo")
        return line, Risk.DELETE
    risk = _risk(core, line)
    if risk > Risk.READ and (line.arguments is None or not line.times):
        raise InvalidInput(
            f"{line.service[:60]}.{line.method[:60]} changes something: its arguments and how often are to be bounded.",
            next_step=f'Like "arguments": {_LIKE_FOLDER if line.service == FILES else _LIKE}, "times": 3.',
        )
    if line.service == FILES:
        return line, risk
    account = core.vault.resolve(DATABASE, line.account) if line.service == DATABASE else None
    name = (account or core.account(line.service, line.account)).name
    return replace(line, account=name), risk


def _risk(core: Core, line: Allowance) -> Risk:
    if line.service == FILES:
        plain = Path(line.account).is_absolute() and os.path.normpath(line.account) == line.account
        if line.method not in (FILES_SCOPE, READ_SCOPE) or not plain or line.arguments:
            raise InvalidInput(
                f"A folder's line is {FILES}.{FILES_SCOPE} or {FILES}.{READ_SCOPE}, its account the folder's whole "
                "path, without arguments."
            )
        return Risk.READ if line.method == READ_SCOPE else Risk.DELETE
    if line.service == DATABASE:
        table, _, verb = line.method.rpartition(":")
        if not table or not verb or "*" in line.method or not set(line.arguments or ()) <= {"rows"}:
            raise InvalidInput("A database's line is like orders:update, and its only argument is rows.")
        if verb not in _READS:
            return Risk.DELETE
        if "any" not in (line.arguments or {}).get("rows", {"any": True}):
            raise InvalidInput(
                "`rows` bounds the rows that a statement changes, and this line only reads: it may read all of them.",
                next_step="Leave rows out of lines that read.",
            )
        return Risk.READ
    method = core.catalog.method(f"{line.service}.{line.method}")
    core.catalog.check_callable(method.id)
    names = method.parameters.get("properties", {})
    if unknown := {name for name in line.arguments or () if not {name, name.partition(".")[0]} & set(names)}:
        raise InvalidInput(f"{method.id} has no argument {sorted(unknown)[0][:60]!r}.", next_step="goex catalog show")
    return believed_risk(core.catalog.service(line.service), method)


def _line(value: Mapping[str, Any]) -> Allowance:
    return from_json(Allowance, value, "A line of the task")


def _span(seconds: int) -> str:
    minutes = -(-seconds // 60)
    return counted(minutes, "minute") if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class TaskRuntime:
    """The runtime of tasks. Its effect is the grants, which came with the yes: they hold once it is done."""

    kind = "task"

    async def assess(self, action: Action, context: Context) -> Plan:
        raise Unsupported("A task is assessed by the engine.")

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        raise Unsupported("A task does nothing by itself, so there is nothing to try.")

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        raise _not_undone(revert)

    async def reap(self) -> None:
        """Nothing is left of an earlier daemon."""

    async def prepare(self, plan: Plan, context: Context) -> None:
        """Nothing is changed by it."""

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        return _started(context)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        return Settlement(outcome=_started(context))

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        raise _not_undone(revert)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        raise _not_undone(revert)

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        return Footprint(reads=frozenset(), writes=frozenset())

    async def forget(self, plan: Plan, context: Context) -> None:
        """Nothing is kept for it."""


def _started(context: Context) -> Outcome:
    return Outcome(ok=True, summary=f"Task {context.action_id} has begun.", touched=False)


def _not_undone(revert: Revert) -> Unsupported:
    return Unsupported(
        "A task itself changed nothing.",
        next_step=f"What was done in it: goex undo --task {revert.target}. To end it: goex revoke --task ID",
    )
