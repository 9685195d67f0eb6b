"""Plans of operations: needs, bounds, what is digested; and what a revert of them needs. Pure.

Rules: every collection that is read or written is a need of its own; a write whose filter keeps out nothing counts as
deleting. What runs later is parsed anew from the action's own text, which the digest binds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from policies.accounts import Account
from policies.actions import Mongo, Need, Plan, Revert, UndoClass
from policies.databases import RISKS, SERVICE
from policies.display_text import escape_name
from policies.services import Risk
from policies.typed_json import to_json
from runtimes.base import dropping
from runtimes.mongo import plan_text
from runtimes.mongo.backend import Collection, Facts
from runtimes.mongo.connection import address_of, facts_of
from runtimes.mongo.operations import Program, Write, parse
from runtimes.mongo.records import Change
from runtimes.sql.bounds import stepped
from runtimes.sql.contract import Limits
from runtimes.sql.plans import reverting
from runtimes.sql.reads_through import closure, everything

_KEPT = ("database", "databases", "tables", "place", "policy", "transactions")  # of a plan, in that of its revert


def plan(
    action: Mongo,
    account: Account,
    program: Program,
    facts: Facts,
    collections: Mapping[str, Collection],
    rows: int,
    limits: Limits,
) -> Plan:
    """The plan of a program that was looked at: it may change `rows` documents."""
    reads = program.reads_only
    bound = 0 if reads else stepped(rows)
    named = {collection for collection, _ in program.uses()}
    through = behind(program, collections)
    lines = (
        f"Database: {plan_text.where(action.database, address_of(account), encrypted=not account.private)}",
        *plan_text.operations(action.operations, program),
        *(escape_name(f"It reads {name} (through {view}).") for name, view in through.items()),
        *(() if reads else plan_text.bounds(program, bound, dict(collections), transactions=facts.transactions)),
        *facts.remarks,
    )
    exact = UndoClass.EXACT if facts.transactions else UndoClass.COMPENSATING
    return Plan(
        action=action,
        needs=_needs(action, collections),
        undo_class=UndoClass.NOTHING if reads else exact,
        undo_text="It only reads: there is nothing to take back."
        if reads
        else plan_text.undo_text(transactions=facts.transactions),
        resolved={
            "database": action.database,
            "databases": [action.database],
            "tables": sorted(named | through.keys()),
            **({"through": sorted(through)} if through else {}),  # that are read, and no operation names
            "policy": "" if reads else "reversal",
            "place": dict(facts_of(account)),
            "operations": list(action.operations),
            "transactions": facts.transactions,
        },
        bounds={"rows": bound},
        catalog_hash="",
        image_id="",
        limits=to_json(limits),
        lines=lines,
        undo={"policy": "" if reads else "reversal"},
    )


def behind(program: Program, collections: Mapping[str, Collection]) -> dict[str, str]:
    """The collections that are read without being named, each with the view that it is read through."""
    beneath = {name: one.stands_on for name, one in collections.items()}
    uses = program.uses()
    return {
        name: collection
        for collection, _ in reversed(list(uses))
        for name in everything(closure(collection, beneath), collections)
        if (name, "find") not in uses and name != collection
    }


def _needs(action: Mongo, collections: Mapping[str, Collection]) -> tuple[Need, ...]:
    texts: dict[tuple[str, str], dict[str, None]] = {}
    risks: dict[tuple[str, str], Risk] = {}
    for text in action.operations:
        program = parse([text])
        uses = program.uses() | {(name, "find"): [] for name in behind(program, collections)}
        for use, operations in uses.items():
            everywhere = use[1] in ("update", "delete") and any(
                isinstance(one, Write) and one.everywhere for one in operations
            )
            risk = max(RISKS[use[1]], Risk.DELETE) if everywhere else RISKS[use[1]]
            texts.setdefault(use, {})[text] = None
            risks[use] = max(risks.get(use, risk), risk)
    return tuple(
        Need(
            service=SERVICE,
            account=action.database,
            scope=f"{collection}:{verb}",
            risk=risks[collection, verb],
            methods=(verb,),
            arguments=tuple({"operation": text} for text in said),
        )
        for (collection, verb), said in texts.items()
    )


def revert_plan(revert: Revert, target: Plan, account: Account, changes: Iterable[Change], facts: Facts) -> Plan:
    """The plan of an undo or a redo that moves these documents."""
    action = cast(Mongo, target.action)
    undo = revert.verb == "undo"
    found: dict[tuple[str, str], int] = {}
    for change in changes:
        use = change.collection, _verb(change)
        found[use] = found.get(use, 0) + 1
    if not found:  # it is so already: what it was for is asked about all the same
        found = {(need.scope.rpartition(":")[0], "update"): 0 for need in target.needs if need.methods != ("find",)}
    state = "before" if undo else "after"
    bounded = tuple(
        escape_name(f"At most {plan_text.counted(stepped(number))} of {collection}: {_SAYS[verb]}")
        for (collection, verb), number in found.items()
        if number
    )
    how = "in one transaction" if facts.transactions else "one after the other, since the server has no transactions"
    return reverting(
        revert,
        target,
        kept=_KEPT,
        needs=tuple(
            Need(
                service=SERVICE,
                account=action.database,
                scope=f"{collection}:{verb}",
                risk=RISKS[verb],
                methods=(verb,),
                arguments=({"verb": revert.verb, "target": revert.target},),
            )
            for collection, verb in found
        ),
        lines=(
            f"Database: {plan_text.where(action.database, address_of(account), encrypted=not account.private)}",
            f"The documents become as they were {state} the action, {how}. No operation runs again.",
            *bounded,
        ),
        undo_class=UndoClass.EXACT if facts.transactions else UndoClass.COMPENSATING,
        undo_text=f"{'Redo' if undo else 'Undo'} of the same action takes this back, as exactly.",
    )


_SAYS = {"insert": "put back", "update": "set back", "delete": "removed"}


def _verb(change: Change) -> str:
    return "insert" if change.before is None else "delete" if change.after is None else "update"


def commit_plan(revert: Revert, target: Plan, account: Account) -> Plan:
    """The plan of a commit: it drops what undo would need."""
    action = cast(Mongo, target.action)
    return reverting(
        revert,
        target,
        kept=_KEPT,
        needs=(dropping(revert),),
        lines=(
            f"Database: {plan_text.where(action.database, address_of(account), encrypted=not account.private)}",
            f"The documents that undo of {revert.target} would need are dropped; of the database only the marker is.",
        ),
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="The action can't be undone or redone after this.",
    )
