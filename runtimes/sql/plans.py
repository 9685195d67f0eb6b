"""Plans of statements: needs, bounds, what is digested; and their programs back from them. Pure.

Rules: every table that is read or written is a need of its own, those too that only a cascade or a trigger reaches; a
write without a WHERE counts as deleting. A partition that is used through its parent, and what a trigger reads, are
decided on by what forbids them alone (`besides`, `within`). What runs later is the program in the plan, which the
digest binds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

from policies.actions import Need, Plan, Revert, Sql, UndoClass
from policies.databases import OTHERWISE, PAIRS, RISKS, SERVICE
from policies.display_text import counted, escape
from policies.jsonvalue import JsonObject, JsonValue
from policies.services import Risk
from policies.typed_json import from_json, to_json
from runtimes.base import dropping
from runtimes.sql import plan_text
from runtimes.sql.bounds import stepped
from runtimes.sql.contract import (
    OPPOSITE,
    WRITES,
    Dialect,
    Limits,
    Place,
    Policy,
    Program,
    Reached,
    Schema,
    Survey,
)
from runtimes.sql.database_address import facts
from runtimes.sql.reads_through import behind, beside, parts


def written(program: Program) -> frozenset[str]:
    """The tables that a program says it writes."""
    return frozenset(use.table for one in program.statements for use in one.uses if use.verb in WRITES)


def plan(
    action: Sql,
    place: Place,
    schema: Schema,
    program: Program,
    policy: Policy,
    survey: Survey,
    *,
    hold_hours: int,
    limits: Limits,
    rows: tuple[str, ...],
    pair: JsonObject | None = None,
    departs: tuple[str, ...] = (),
) -> Plan:
    """The plan of a program that was checked and surveyed. `departs`: tables that the entry asks to be held, though
    this isn't: that needs a permission of its own, which none for the rows gives."""
    reads = program.reads_only
    reached = () if reads else survey.reached
    rows_written = sum(one.rows for one in reached)
    most = 0 if reads else stepped(rows_written)
    bound = 0 if reads else stepped(rows_written if survey.bound is None else survey.bound)
    needs = _needs(action.database, program, reached, policy, schema)
    undo_program = read_program(pair["undo"]) if pair is not None else None
    undo_needs = _needs(action.database, undo_program, (), "reversal", schema) if undo_program is not None else ()
    asked = {need.scope.rpartition(":")[0] for need in (*needs, *undo_needs)} - {""}
    read = set(beside(survey.reads, schema)) - {one.table for one in reached}
    besides = _besides(program, undo_program, reached, schema)
    children = {table for table, _ in besides}
    for name in read:
        besides.setdefault((name, "select"), list(range(len(program.statements))))
    within = (children | read) - asked
    through = {name for one in program.statements for name in behind(one, schema)} | children
    tables = asked | within
    needs += tuple(replace(need, why="undo") for need in undo_needs)
    if departs:
        needs += (_special(action.database, OTHERWISE, dict.fromkeys(one.sql for one in program.statements)),)
    if reads:
        undo_class, undo_text = UndoClass.NOTHING, "It only reads: there is nothing to take back."
    else:
        undo_class = UndoClass.COMPENSATING if policy == "pairs" else UndoClass.EXACT
        undo_text = plan_text.undo_text(policy, hold_hours, survey, place.dialect)
    undo: dict[str, JsonValue] = {"policy": "" if reads else policy, "strategy": dict(survey.strategy)}
    if not reads and policy == "versioning" and place.dialect is not Dialect.SQLITE:
        undo["hold_hours"] = hold_hours
    if pair is not None:
        undo["pair"] = dict(pair)
    return Plan(
        action=action,
        needs=needs,
        undo_class=undo_class,
        undo_text=undo_text,
        resolved={
            "database": action.database,
            "databases": [action.database],
            "tables": sorted(tables),
            "policy": undo["policy"],
            "place": dict(facts(place)),
            "program": to_json(program),
            "rows": list(rows),
            "schema_hash": schema.hash,
            "reached": [
                {"table": one.table, "verb": one.verb, "rows": stepped(one.rows), "why": one.why} for one in reached
            ],
            **({"through": sorted(through)} if through else {}),  # that are read, and no statement names
            **({"within": sorted(within)} if within else {}),  # of the tables, those that need no permission
            **({"besides": [[*key, numbers] for key, numbers in sorted(besides.items())]} if besides else {}),
            "counters": list(survey.counters),
            "notes": list(survey.notes),
            "most": most,  # that it is held to; `bounds` are what rules and limits go by, and say less of the data
        },
        bounds={"rows": bound},
        catalog_hash="",
        image_id="",
        limits=to_json(limits),
        lines=(
            f"Database: {plan_text.where(action.database, place)}",
            *plan_text.program_lines(program, schema),
            *(plan_text.survey_lines(survey, schema, most, uncounted=_uncounted(program)) if not reads else ()),
            *plan_text.reading(sorted(read - asked)),
            *(plan_text.departing(departs, policy) if departs else ()),
            *(_pair_said(pair) if pair is not None else ()),
        ),
        undo=undo,
    )


def _uncounted(program: Program) -> bool:
    return any(
        one.verb in ("update", "delete") and not one.everywhere and one.most is None and not one.count_sql
        for one in program.statements
    )


def keeps_the_file(plan: Plan) -> bool:
    """Whether its undo puts a whole SQLite file back, of which a copy is kept."""
    return str((plan.undo.get("strategy") or {}).get("kind", "")) == "pages"


def held_to(plan: Plan) -> int:
    """More rows than these, and all of it is rolled back."""
    return int(plan.resolved.get("most", plan.bounds.get("rows", 0)))


def pair(undo: Program, proof: JsonObject) -> JsonObject:
    """What a plan holds of the undo that came with its action."""
    return {"undo": to_json(undo), "proof": dict(proof)}


def pair_lines(target: Plan, verb: str) -> Iterator[str]:
    """What the revert of such an action does."""
    if verb == "redo":
        return
    yield "By these statements, after which the rows are compared with those that were kept:"
    yield from _undo_texts(target.undo["pair"])


def _pair_said(pair: JsonObject) -> Iterator[str]:
    yield "It comes with these statements, which are said to take it back:"
    yield from _undo_texts(pair)
    yield from (escape(line) for line in pair["proof"]["lines"])


def _undo_texts(pair: JsonObject) -> Iterator[str]:
    for one in pair["undo"]["statements"]:
        yield from plan_text.barred(one["sql"])


def _besides(
    program: Program, undo: Program | None, reached: Iterable[Reached], schema: Schema
) -> dict[tuple[str, str], list[JsonValue]]:
    """Of each partition and verb that a permission for the parent covers, the statements, by their numbers."""
    back = [use for one in (undo.statements if undo is not None else ()) for use in one.uses]
    written = {(use.table, use.verb) for one in program.statements for use in one.uses}
    wholly = (one for one in reached if not _holds(one, written, schema))
    found: dict[tuple[str, str], list[JsonValue]] = {}
    for number, statement in enumerate(program.statements):
        for key in parts(statement.uses, schema):
            found.setdefault(key, []).append(number)
    for key in parts((*back, *wholly), schema):
        found.setdefault(key, list(range(len(program.statements))))
    return found


def _holds(one: Reached, written: Iterable[tuple[str, str]], schema: Schema) -> bool:
    """Whether it is reached only since it holds a partition that is written by its name: no other of its partitions
    is."""
    table = schema.tables.get(one.table)
    if table is None or one.why != "cascade" or not any((name, one.verb) in written for name in table.parts):
        return False
    return all({key.on_delete, key.on_update} <= {"NO ACTION", "RESTRICT"} for key in table.foreign_keys)


def _needs(
    database: str, program: Program, reached: Iterable[Reached], policy: Policy, schema: Schema
) -> tuple[Need, ...]:
    """One for each table and verb."""
    statements: dict[tuple[str, str], dict[str, None]] = {}
    risks: dict[tuple[str, str], Risk] = {}
    for statement in program.statements:
        for use in statement.uses:
            key = use.table, use.verb
            risk = RISKS[use.verb]
            if statement.everywhere and use.table in (statement.table, *statement.others) and use.verb in WRITES:
                risk = max(risk, Risk.DELETE)
            statements.setdefault(key, {})[statement.sql] = None
            risks[key] = max(risks.get(key, risk), risk)
        for table in behind(statement, schema):
            statements.setdefault((table, "select"), {})[statement.sql] = None
            risks.setdefault((table, "select"), RISKS["select"])
    everything = dict.fromkeys(one.sql for one in program.statements)
    for one in reached:
        key = one.table, one.verb
        if key not in statements:  # only a cascade or a trigger does it
            statements[key], risks[key] = dict(everything), RISKS[one.verb]
    needs = [
        _rows_need(database, table, verb, *({"statement": sql} for sql in texts), risk=risks[table, verb])
        for (table, verb), texts in statements.items()
    ]
    if policy == "pairs" and not program.reads_only:
        needs.append(_special(database, PAIRS, everything))
    return tuple(needs)


def _rows_need(database: str, table: str, verb: str, *arguments: JsonObject, risk: Risk | None = None) -> Need:
    """What is done to one table. `risk`: where it is another than the verb's own."""
    return Need(
        service=SERVICE,
        account=database,
        scope=f"{table}:{verb}",
        risk=RISKS[verb] if risk is None else risk,
        methods=(verb,),
        arguments=arguments,
    )


def _special(database: str, scope: str, statements: Iterable[str]) -> Need:
    """Something that no permission for a table's rows gives."""
    return Need(
        service=SERVICE,
        account=database,
        scope=scope,
        risk=Risk.DELETE,
        methods=(scope,),
        arguments=tuple({"statement": sql} for sql in statements),
    )


def revert_plan(
    revert: Revert,
    target: Plan,
    place: Place,
    lines: Iterable[str],
    *,
    held: bool,
    again: bool = True,
    program: Program | None = None,
) -> Plan:
    """The plan of an undo or a redo. `held`: its transaction still waits, and is rolled back; `again`: redo can hold it
    anew then. `program`: the statements that take it back, of a pair."""
    undo = revert.verb == "undo"
    action = cast(Sql, target.action)
    bound = held_to(target)
    rows = f"{bound} row{'s' if bound != 1 else ''}"
    if held:
        says = "Its transaction, which is held, is rolled back. Nobody else has seen what it did."
    else:
        state = "before" if undo else "after"
        says = f"At most {rows} will be as {'they were' if bound != 1 else 'it was'} {state} the action."
        if program is None:
            says += " No statement runs again."
        if not undo and held_until_committed(target):
            hours = counted(int(target.undo["hold_hours"]), "hour")
            says += f" That is held again: nobody else sees it, for {hours} at most."
    needs = {
        (one["table"], OPPOSITE[one["verb"]] if undo and not held else one["verb"]): None
        for one in target.resolved["reached"]
    }
    if program is not None:
        needs |= {(use.table, use.verb): None for one in program.statements for use in one.uses}
    return reverting(
        revert,
        target,
        needs=tuple(
            _rows_need(action.database, table, verb, {"verb": revert.verb, "target": revert.target})
            for table, verb in needs
        ),
        lines=(f"Database: {plan_text.where(action.database, place)}", says, *lines),
        undo_class=UndoClass.EXACT if again else UndoClass.IRREVERSIBLE,
        undo_text=_after_revert(target, undo=undo, held=held, again=again),
    )


def held_until_committed(target: Plan) -> bool:
    """Whether an action's change, and that of its redo, waits unseen in a transaction for commit or undo."""
    return "hold_hours" in target.undo


def _after_revert(target: Plan, *, undo: bool, held: bool, again: bool) -> str:
    if not again:
        return "What is rolled back is gone: to have it again, ask for the action anew."
    if undo and held:
        return "Its rows are kept: redo of the same action holds them again, in a new transaction, until you commit."
    if not undo and held_until_committed(target):
        return "Undo of the same action rolls this back, commit makes it last."
    return f"{'Redo' if undo else 'Undo'} of the same action takes this back, as exactly."


def commit_plan(revert: Revert, target: Plan, place: Place, *, held: bool) -> Plan:
    """The plan of a commit: of a held transaction it is the change itself."""
    action = cast(Sql, target.action)
    if held:
        return reverting(
            revert,
            target,
            needs=tuple(
                _rows_need(action.database, one["table"], one["verb"], {"verb": "commit", "target": revert.target})
                for one in target.resolved["reached"]
            ),
            lines=(
                f"Database: {plan_text.where(action.database, place)}",
                f"The transaction of {revert.target}, which is held, is committed: everybody sees what it did.",
            ),
            undo_class=UndoClass.IRREVERSIBLE,
            undo_text="Nothing is kept of it: it can't be undone after this.",
        )
    kept = "The copy of the file that is kept" if keeps_the_file(target) else "What is kept"
    return reverting(
        revert,
        target,
        needs=(dropping(revert),),
        lines=(
            f"Database: {plan_text.where(action.database, place)}",
            f"{kept} for the undo of {revert.target} is dropped; the database isn't touched.",
        ),
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="The action can't be undone or redone after this.",
    )


def reverting(
    revert: Revert,
    target: Plan,
    *,
    kept: Iterable[str] = ("database", "databases", "tables", "place", "schema_hash", "policy"),
    needs: tuple[Need, ...],
    lines: tuple[str, ...],
    undo_class: UndoClass,
    undo_text: str,
) -> Plan:
    """Return the plan of a revert, with what is `kept` of its target's."""
    kept = (*kept, *({"within"} & target.resolved.keys()))
    return Plan(
        action=revert,
        needs=needs,
        undo_class=undo_class,
        undo_text=undo_text,
        resolved={**{name: target.resolved[name] for name in kept}, "verb": revert.verb, "target": revert.target},
        bounds=target.bounds,
        catalog_hash="",
        image_id="",
        limits=target.limits,
        lines=lines,
        undo={"policy": target.undo.get("policy", "")},
    )


def program_of(plan: Plan) -> Program:
    """The program that a plan holds. Raises InvalidInput for what `plan` didn't make."""
    return read_program(plan.resolved.get("program"))


def read_program(program: JsonValue) -> Program:
    """Return the program that `to_json` wrote. Raises InvalidInput for anything else."""
    return from_json(Program, program, "The program of this plan")


def limits_of(plan: Plan) -> Limits:
    return from_json(Limits, dict(plan.limits), "The limits of this plan")
