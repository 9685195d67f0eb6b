"""SQL: statements on a person's database, checked, bounded, in one transaction, taken back exactly or refused.

Rules: only text that was made anew from the checked tree runs, and it is in the plan that was decided on. The schema,
the place and the bounds of the plan are compared again where it runs. A connection that breaks while it commits is
looked after at once: what became of it is found out, or said to be unknown. Errors and plans show no row to an agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, cast
from urllib.parse import quote

from policies.accounts import Account
from policies.actions import Action, Outcome, Plan, Revert, Sql
from policies.databases import SERVICE
from policies.display_text import counted
from policies.errors import Conflict, InvalidInput, Unavailable, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.base import Context, DryLine, DryRun, Footprint, Settlement
from runtimes.database_overview import Seen
from runtimes.sql import plan_text, plans
from runtimes.sql.contract import (
    WRITES,
    Dialect,
    Doubtful,
    Job,
    Limits,
    Place,
    Policy,
    Program,
    Ran,
    Schema,
    Session,
    Settled,
    Survey,
)
from runtimes.sql.database_address import facts, place_of, reachable
from runtimes.sql.drivers import driver_of
from runtimes.sql.pair_policy import PairRevert, Pairs
from runtimes.sql.session_thread import in_session
from vault.lease import Lease, Lend

T = TypeVar("T")
_LONGEST = 200_000  # characters of statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an action's text says on a database's tables."""

    schema: Schema
    program: Program
    policy: Policy
    undo: Program | None = None  # of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What assessing found in a database."""

    read: Read
    survey: Survey
    rows: tuple[str, ...]  # for each statement the one row that it names, or ""
    departs: tuple[str, ...] = ()  # tables that the entry asks to be held, where the request says otherwise


@dataclass(frozen=True, slots=True)
class SqlRuntime:
    """`runtimes.base.Runtime` for `Sql`. `lend` gives the credential for what isn't decided on yet: reading the schema,
    counting, dry runs. `protected` are GoEx's own folders, in which no database of a person's is."""

    lend: Lend
    limits: Limits = field(default_factory=Limits)
    protected: tuple[Path, ...] = ()
    pairs: Pairs | None = None
    kind: str = "sql"

    # ---- the action

    async def assess(self, action: Action, context: Context) -> Plan:
        """See `Runtime.assess`. Raises InvalidInput, Unsupported (with the reason), Unavailable."""
        if not isinstance(action, Sql):
            raise InvalidInput(f"An action of kind {action.kind!r} isn't SQL.")
        if not action.statements.strip():
            raise InvalidInput("There is no statement in this request.", next_step='goex exec --db NAME --sql "…"')
        if len(action.statements) > _LONGEST:
            raise InvalidInput(
                f"The statements are {len(action.statements)} characters long; at most {_LONGEST} are read.",
                next_step="Make several actions of them.",
            )
        with self.lend(action.database, context.action_id) as lease:
            place = place_of(lease.account)
            read: Read | None = None
            proof: JsonObject | None = None
            if action.undo:  # what needs no row of the database comes first
                read = await self._in(lease, lambda session: self._read(session, action, lease, place.database))
                if read.undo is not None:
                    assert self.pairs is not None
                    proof = await self.pairs.proven(
                        read.program, read.undo, read.schema, context.action_id, context.agent
                    )
            found = await self._in(lease, lambda session: self._look(session, action, lease, place.database))
            terms = lease.terms
        assert terms is not None
        tried, read = read, found.read
        if tried is not None and tried != read:
            raise Conflict("The database's tables changed while this was looked at.", next_step="Ask for it again.")
        return plans.plan(
            action,
            place,
            read.schema,
            read.program,
            read.policy,
            found.survey,
            hold_hours=terms.hold_hours,
            limits=self.limits,
            rows=found.rows,
            pair=plans.pair(read.undo, proof) if read.undo is not None and proof is not None else None,
            departs=found.departs,
        )

    def _read(self, session: Session, action: Sql, lease: Lease, database: str) -> Read:
        from runtimes.sql.checking.check import check, refuse_referenced  # its parser takes a while to load

        schema = session.schema()
        program = check(action.statements, schema, database=database)
        if not program.statements:
            raise InvalidInput("There is no statement in this request.", next_step='goex exec --db NAME --sql "…"')
        refuse_referenced(program, schema)
        policy = self._policy(action, program, lease)
        undo = check(action.undo, schema, database=database) if policy == "pairs" else None
        return Read(schema=schema, program=program, policy=policy, undo=undo)

    def _look(self, session: Session, action: Sql, lease: Lease, database: str) -> Found:
        from runtimes.sql.checking.row_bounds import named_row

        read = self._read(session, action, lease, database)
        survey = session.survey(read.program, read.policy, self.limits)
        return Found(
            read=read,
            survey=survey,
            rows=tuple(named_row(statement, read.schema) for statement in read.program.statements),
            departs=_departs(action, read.program, read.policy, survey, lease),
        )

    def _policy(self, action: Sql, program: Program, lease: Lease) -> Policy:
        assert lease.terms is not None
        policy: Policy = action.policy or lease.terms.applies(plans.written(program))
        if action.undo and policy != "pairs":
            raise InvalidInput(
                "Statements that take it back belong to the policy pairs.", next_step="Add --policy pairs."
            )
        if program.reads_only:
            return "reversal"
        if policy == "pairs" and not action.undo.strip():
            raise InvalidInput(
                "Taking back by a pair needs the statements that take it back.",
                next_step="Say them with --undo-sql, or use --policy reversal.",
            )
        if policy == "pairs" and self.pairs is None:
            raise Unsupported("Pairs can't be tried here.", next_step="Use --policy reversal.")
        return policy

    async def prepare(self, plan: Plan, context: Context) -> None:
        """See `Runtime.prepare`: what undo needs is made in the statement's own transaction, before it is committed.
        What is looked at here is that the entry is still the one that was planned with."""
        self._lease(plan, context)

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """See `Runtime.execute`. Raises Conflict, Unsupported, Unavailable: nothing was touched then; `Doubtful` when
        it can't be known."""
        lease = self._lease(plan, context)
        job = self._job(plan, context)
        try:
            ran = await self._in(lease, lambda session: session.run(job))
        except Doubtful as doubt:
            settlement = await self._settled(plan, context, lease)
            if settlement.outcome is None:
                raise Doubtful(" ".join((doubt.message, *settlement.evidence)), next_step=doubt.next_step) from None
            return settlement.outcome
        return _outcome(plan, ran)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        """See `Runtime.settle`."""
        if context.leases:
            return await self._settled(plan, context, self._lease(plan, context))
        with self.lend(_database(plan), context.action_id) as lease:
            return await self._settled(plan, context, lease)

    async def _settled(self, plan: Plan, context: Context, lease: Lease) -> Settlement:
        job = self._job(plan, context)
        if not isinstance(plan.action, Sql):
            return Settlement(
                outcome=None, evidence=("It stopped on its way; running it again finishes what was begun.",)
            )
        if job.program.reads_only:
            said = "It was stopped; it only read, and nothing was changed."
            return Settlement(outcome=Outcome(ok=False, summary=said, touched=False))
        try:
            found = await self._in(lease, lambda session: session.settle(job))
        except Unavailable as error:
            return Settlement(outcome=None, evidence=(f"The database can't be asked: {error.message}",))
        match found.state:
            case "nothing":
                said = "It was stopped before anything was changed for good: its transaction was rolled back."
                return Settlement(outcome=Outcome(ok=False, summary=said, touched=False))
            case "undone":
                said = "What it changed is as it was before."
                return Settlement(outcome=Outcome(ok=False, summary=said, touched=False))
            case "unknown":
                return Settlement(outcome=None, evidence=found.evidence or ("The database doesn't say.",))
            case "held" | "done":
                return Settlement(outcome=_outcome(plan, found.ran, held=found.state == "held"))

    # ---- dry runs

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """See `Runtime.dry_run`: it is run in a transaction that is rolled back. Raises as `execute` does."""
        with self.lend(_database(plan), context.action_id) as lease:
            self._same_place(plan, lease.account)
            job = self._job(plan, context)
            ran = await self._in(lease, lambda session: session.trial(job))
        return DryRun(
            ok=True,
            summary=f"It would do this, and was rolled back: {plan_text.tally(ran)}.",
            lines=tuple(plan_text.dry_lines(ran)),
        )

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        """See `Runtime.dry_revert`. Raises Conflict with the rows that aren't as recorded."""
        if revert.verb == "commit":
            return DryRun(
                ok=True,
                summary="Nothing of it would be kept for an undo.",
                lines=tuple(DryLine("note", line) for line in revert_plan.lines),
            )
        verb = revert.verb
        with self.lend(_database(plan), target.action_id) as lease:
            self._same_place(plan, lease.account)
            job = self._job(plan, target)
            ran = await self._in(lease, lambda session: session.compare(job, verb))
        state = "before" if verb == "undo" else "after"
        return DryRun(
            ok=True,
            summary=f"It would be as it was {state} the action: {plan_text.tally(ran, verb)}.",
            lines=tuple(plan_text.dry_lines(ran, verb=verb)),
        )

    async def reap(self) -> None:
        """See `Runtime.reap`: a dry run's transaction ends with its connection."""

    # ---- taking back

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """See `Runtime.assess_revert`. Raises Unsupported, Conflict (with the rows that aren't as recorded)."""
        if not plan.undo.get("policy"):
            raise Unsupported("This action only read, so there is nothing to take back.")
        verb = revert.verb
        with self.lend(_database(plan), context.action_id) as lease:
            self._same_place(plan, lease.account)
            place = place_of(lease.account)
            job = self._job(plan, context)
            if verb == "commit":
                held = _holds(plan) and (await self._in(lease, lambda session: session.settle(job))).state == "held"
                return plans.commit_plan(revert, plan, place, held=held)

            if (pair := self._pair(plan, job)) is not None:
                ran = await self._in(lease, lambda session: _look_at_pair(pair, session, verb, plan))
                lines = (*plans.pair_lines(plan, verb), *plan_text.changes_bounded(ran, verb))
                program = pair.undo if verb == "undo" else None
                return plans.revert_plan(revert, plan, place, lines, held=False, program=program)

            def look(session: Session) -> tuple[Settled, Ran]:
                found = session.settle(job)
                _refuse_pointless(verb, found, plan)
                return found, session.compare(job, verb)

            found, ran = await self._in(lease, look)
        held = found.state == "held" and place.dialect is not Dialect.SQLITE
        lines = () if held else plan_text.changes_bounded(ran, verb)
        return plans.revert_plan(revert, plan, place, lines, held=held, again=found.again)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        """See `Runtime.execute_revert`. Raises Conflict, having touched nothing; `Doubtful` when it can't be known:
        run again, it finishes."""
        job = self._job(plan, target)
        verb = revert.verb
        if verb == "commit":
            return await self._commit(revert, plan, job, context)
        lease, pair = self._lease(plan, context), self._pair(plan, job)
        if pair is not None:
            ran = await self._in(lease, lambda session: pair.revert(session, verb))
        else:
            ran = await self._in(lease, lambda session: session.revert(job, verb))
        state = "before" if verb == "undo" else "after"
        summary = f"{_database(plan)} is as it was {state} the action: {plan_text.tally(ran, verb)}."
        if verb == "redo" and plans.held_until_committed(plan):
            summary = _held_again(plan, ran)
        return Outcome(ok=True, summary=summary, changes=plan_text.changes(ran, verb))

    async def _commit(self, revert: Revert, plan: Plan, job: Job, context: Context) -> Outcome:
        if job.policy == "versioning" and any(lease.account.name == _database(plan) for lease in context.leases):
            lease = self._lease(plan, context)

            def commit(session: Session) -> bool:
                held = session.settle(job).state == "held"
                session.commit(job)
                return held

            if await self._in(lease, commit):
                return Outcome(ok=True, summary=f"Committed {revert.target}: what it did is there for good.")
        return Outcome(ok=True, summary=f"Committed {revert.target}: what undo would need is gone.")

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        """See `Runtime.footprint`: whole tables, the row that a statement names by its whole key, or a whole file."""
        program, database = plans.program_of(plan), _database(plan)
        if plans.keeps_the_file(plan):  # whatever else is written there ends its undo
            whole = frozenset({f"db/{quote(database, safe='')}"})
            return Footprint(reads=whole, writes=whole)
        reads = {_path(database, str(table)) for table in plan.resolved.get("through", ())}
        writes: set[str] = set()
        written: set[str] = set()
        for statement, row in zip(program.statements, plan.resolved["rows"], strict=True):
            for use in statement.uses:
                path = _path(database, use.table, str(row) if use.table == statement.table else "")
                reads.add(path)
                if use.verb in WRITES:
                    writes.add(path)
                    written.add(use.table)
        reached = plan.resolved["reached"]
        beyond = {str(one["table"]) for one in reached if one["why"] != "statement" or one["table"] not in written}
        writes |= {_path(database, table) for table in beyond}
        return Footprint(reads=frozenset(reads | writes), writes=frozenset(writes))

    async def forget(self, plan: Plan, context: Context) -> None:
        """See `Runtime.forget`: what undo needs is in the records alone."""

    async def described(self, database: str, action_id: str) -> tuple[Schema, Place, Lease]:
        """The schema of an entry's database, where it is, and the lease that was looked with (ended by then): for
        words that a model turns into statements. Raises as `assess` does."""
        with self.lend(database, action_id) as lease:
            place = place_of(lease.account)
            return await self._in(lease, lambda session: session.schema()), place, lease

    # ---- the person's own looking

    async def look(self, lease: Lease) -> Seen:
        """See `Looks.look`; the entry may not be in the vault yet."""
        schema = await self._in(lease, lambda session: session.schema())
        return Seen(
            version=schema.version,
            tables=tuple(plan_text.seen(table) for table in schema.tables.values()),
            can=schema.notes,
        )

    async def roll_back(self, plan: Plan, context: Context) -> Settled:
        """Roll back an action's transaction if it is still held, and nothing else; what became of it. Raises Conflict
        for another place, Unavailable, Unsupported: what became of it isn't known then."""
        job = self._job(plan, context)
        return await self._in(self._lease(plan, context), lambda session: session.roll_back(job))

    # ---- inside

    async def _in(self, lease: Lease, work: Callable[[Session], T]) -> T:
        place = place_of(lease.account)

        def opened() -> Session:
            return driver_of(place.dialect, self.protected).open(reachable(place), lease.secret, self.limits)

        return await in_session(lease.account.name, opened, work)

    def _job(self, plan: Plan, context: Context) -> Job:
        policy = str(plan.undo.get("policy") or "reversal")
        return Job(
            id=context.action_id,
            program=plans.program_of(plan),
            policy=cast(Policy, policy),
            rows=plans.held_to(plan),
            limits=plans.limits_of(plan),
            records=context.records,
            schema_hash=str(plan.resolved["schema_hash"]),
            strategy=dict(plan.undo.get("strategy") or {}),
            progress=context.progress,
        )

    def _pair(self, plan: Plan, job: Job) -> PairRevert | None:
        """How an action that came with its undo is taken back; None for any other."""
        found = plan.undo.get("pair")
        if found is None:
            return None
        if self.pairs is None:
            raise Unsupported("Pairs can't be used here.", next_step="See daemon.log.")
        undo = plans.read_program(found["undo"])
        return PairRevert(job, undo, str(found["proof"]["key"]), self.pairs.failed)

    def _lease(self, plan: Plan, context: Context) -> Lease:
        """The lease on the plan's database. Raises Conflict when its entry leads elsewhere now."""
        name = _database(plan)
        for lease in context.leases:
            if (lease.account.service, lease.account.name) == (SERVICE, name):
                self._same_place(plan, lease.account)
                return lease
        raise Conflict(f"Nothing was lent for the database {name}.", next_step="Ask again.")

    @staticmethod
    def _same_place(plan: Plan, account: Account) -> None:
        if dict(facts(place_of(account))) != dict(plan.resolved["place"]):
            raise Conflict(
                f"The entry {account.name} leads to another place than when this was planned: nothing was touched.",
                next_step="See it with: goex db list",
            )


def _outcome(plan: Plan, known: Ran | None, *, held: bool = True) -> Outcome:
    """What happened, as far as it is known: after a crash not always how many rows it was. `held`: where it is to be
    held it is, as far as it changed something."""
    name, ran = _database(plan), known or Ran(reached=())
    changed = known is None or _defines(plan) or any(one.rows for one in ran.reached)
    if _holds(plan) and held and changed:
        rest = f", for {counted(int(plan.undo['hold_hours']), 'hour')} at most"
        summary = f"Held in {name} until you commit or undo it{rest}: {plan_text.tally(ran)}."
    elif plan.undo.get("policy") == "versioning" and held and changed:
        kept = "Everybody sees it; a copy of the file as it was is kept until you commit or undo it."
        summary = f"Changed in {name}: {plan_text.tally(ran)}. {kept}"
    else:
        summary = f"Done in {name}: {plan_text.tally(ran)}."
    return Outcome(
        ok=True,
        summary=summary,
        results=tuple(
            {"columns": list(result.columns), "rows": [list(row) for row in result.rows], "cut": result.cut}
            for result in ran.results
        ),
        changes=plan_text.changes(ran),
        touched=bool(plan.undo.get("policy")) and changed,
    )


def _holds(plan: Plan) -> bool:
    """Whether its transaction is held: SQLite's versioning changes the file at once, and keeps a copy."""
    return plan.undo.get("policy") == "versioning" and bool(plan.undo.get("hold_hours"))


def _defines(plan: Plan) -> bool:
    """Whether it changes more than rows, which no count of rows tells."""
    rows = {"select", "insert", "update", "delete"}
    return any(use.verb not in rows for each in plans.program_of(plan).statements for use in each.uses)


def _departs(action: Sql, program: Program, policy: Policy, survey: Survey, lease: Lease) -> tuple[str, ...]:
    """The tables whose changes the entry asks to be held and that this one doesn't hold: also those that only a cascade
    or a trigger reaches. Raises InvalidInput where the request leaves it to the entry, and that says two things."""
    assert lease.terms is not None
    if program.reads_only:
        return ()
    tables = plans.written(program) | {one.table for one in survey.reached}
    if not action.policy:
        lease.terms.applies(tables)
    if policy == "versioning":
        return ()
    return tuple(sorted(table for table in tables if "versioning" in lease.terms.wanted(frozenset({table}))))


def _held_again(plan: Plan, ran: Ran) -> str:
    hours, did = counted(int(plan.undo["hold_hours"]), "hour"), plan_text.tally(ran)
    return f"Held again in {_database(plan)} until you commit or undo it, for {hours} at most: {did}."


def _look_at_pair(pair: PairRevert, session: Session, verb: Literal["undo", "redo"], plan: Plan) -> Ran:
    _refuse_pointless(verb, Settled(state=pair.state(session)), plan)
    return pair.compare(session, verb)


def _refuse_pointless(verb: Literal["undo", "redo"], found: Settled, plan: Plan) -> None:
    wrote = found.ran is None or _defines(plan) or any(one.rows for one in found.ran.reached)
    if found.state == "nothing" or (found.state == "done" and not wrote):
        raise Unsupported("This action changed nothing, so there is nothing to take back.")
    if verb == "undo" and found.state == "undone":
        raise Unsupported("This action is undone already.")
    if verb == "redo" and found.state in ("held", "done"):
        raise Unsupported("This action isn't undone, so there is nothing to do again.")


def _database(plan: Plan) -> str:
    return str(plan.resolved["database"])


def _path(database: str, table: str, row: str = "") -> str:
    """`db/shop/orders`, or `db/shop/orders/id=5`."""
    end = f"/{quote(row, safe='=,')}" if row else ""
    return f"db/{quote(database, safe='')}/{quote(table, safe='.')}{end}"
