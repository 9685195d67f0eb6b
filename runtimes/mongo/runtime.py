"""MongoDB: operations from allow-lists, bounded, in one transaction where the server has them, taken back exactly.

Rules: what runs is parsed from the text that was decided on; the place and the bounds of the plan are compared again
where it runs. What undo needs is in the records before the commit. A connection that breaks while it commits is looked
after at once: what became of it is found out, or said to be unknown. Errors and plans show no document to an agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from policies.accounts import Account
from policies.actions import Action, Mongo, Outcome, Plan, Revert
from policies.databases import SERVICE
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.base import Context, DryLine, DryRun, Footprint, Settlement
from runtimes.database_overview import Seen
from runtimes.sql.contract import Doubtful, Limits
from runtimes.sql.session_thread import in_session
from vault.lease import Lease, Lend
from vault.secret import Secret

if TYPE_CHECKING:
    from runtimes.mongo.backend import Backend

T = TypeVar("T")
Connect = Callable[[Account, Secret, Limits], "Backend"]


def _connect(account: Account, secret: Secret, limits: Limits) -> Backend:
    from runtimes.mongo.connection import connect  # the driver takes a while to load

    return connect(account, secret, limits)


@dataclass(frozen=True, slots=True)
class MongoRuntime:
    """`runtimes.base.Runtime` for `Mongo`. `lend` gives the credential for what isn't decided on yet: counting, dry
    runs."""

    lend: Lend
    limits: Limits = field(default_factory=Limits)
    connect: Connect = _connect
    kind: str = "mongo"

    # ---- the action

    async def assess(self, action: Action, context: Context) -> Plan:
        """See `Runtime.assess`. Raises InvalidInput, Unsupported (with the reason), Unavailable."""
        from runtimes.mongo import plans, session
        from runtimes.mongo.operations import parse

        if not isinstance(action, Mongo):
            raise InvalidInput(f"An action of kind {action.kind!r} isn't for MongoDB.")
        program = parse(action.operations)
        with self.lend(action.database, context.action_id) as lease:
            found, facts = await self._in(lease, lambda backend: (session.survey(backend, program), backend.facts))
            return plans.plan(action, lease.account, program, facts, found.collections, found.rows, self.limits)

    async def prepare(self, plan: Plan, context: Context) -> None:
        """See `Runtime.prepare`. The documents themselves are kept where they are written, before that counts."""
        from runtimes.mongo import session

        await self._in(self._lease(plan, context), lambda backend: session.prepare(plan, context, backend))

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """See `Runtime.execute`. Raises Conflict, Unsupported, Unavailable: nothing was touched then; `Doubtful` when
        it can't be known."""
        from runtimes.mongo import session

        lease = self._lease(plan, context)
        job = session.job_of(plan, context, self.limits)
        try:
            return await self._in(lease, lambda backend: session.run(plan, job, backend))
        except Doubtful as doubt:
            settlement = await self._settled(plan, context, lease)
            if settlement.outcome is None:
                raise Doubtful(" ".join((doubt.message, *settlement.evidence)), next_step=doubt.next_step) from None
            return settlement.outcome

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        """See `Runtime.settle`. Where a transaction may still be under way its marker's place is taken, so that it
        can't be committed any more."""
        if context.leases:
            return await self._settled(plan, context, self._lease(plan, context))
        with self.lend(_database(plan), context.action_id) as lease:
            return await self._settled(plan, context, lease)

    async def _settled(self, plan: Plan, context: Context, lease: Lease) -> Settlement:
        from runtimes.mongo import session

        if not isinstance(plan.action, Mongo):
            said = "It stopped on its way; running it again finishes what was begun."
            return Settlement(outcome=None, evidence=(said,))
        job = session.job_of(plan, context, self.limits)
        try:
            return await self._in(lease, lambda backend: session.settle(plan, job, backend))
        except Unavailable as error:
            return Settlement(outcome=None, evidence=(f"The database can't be asked: {error.message}",))

    # ---- dry runs

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """See `Runtime.dry_run`: in a transaction that is rolled back; without transactions only what is found."""
        from runtimes.mongo import session

        with self.lend(_database(plan), context.action_id) as lease:
            _same_place(plan, lease.account)
            job = session.job_of(plan, context, self.limits)
            return await self._in(lease, lambda backend: session.dry_run(plan, job, backend))

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        """See `Runtime.dry_revert`. Raises Conflict with the documents that aren't as recorded."""
        from runtimes.mongo import plan_text, session

        if revert.verb == "commit":
            lines = tuple(DryLine("note", line) for line in revert_plan.lines)
            return DryRun(ok=True, summary="Nothing of it would be kept for an undo.", lines=lines)
        verb = revert.verb
        with self.lend(_database(plan), target.action_id) as lease:
            _same_place(plan, lease.account)
            job = session.job_of(plan, target, self.limits)
            ran = await self._in(lease, lambda backend: session.check_revertible(plan, target, job, backend, verb))
        state = "before" if verb == "undo" else "after"
        said = f"It would be as it was {state} the action: {plan_text.tally(ran, verb)}."
        return DryRun(ok=True, summary=said, lines=tuple(plan_text.dry_lines(ran, verb)))

    async def reap(self) -> None:
        """See `Runtime.reap`: a dry run's transaction ends with its connection."""

    # ---- taking back

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """See `Runtime.assess_revert`. Raises Unsupported, Conflict (with the documents that aren't as recorded)."""
        from runtimes.mongo import plans, session

        if not plan.undo.get("policy"):
            raise Unsupported("This action only read, so there is nothing to take back.")
        verb = revert.verb
        with self.lend(_database(plan), context.action_id) as lease:
            _same_place(plan, lease.account)
            if verb == "commit":
                return plans.commit_plan(revert, plan, lease.account)
            job = session.job_of(plan, context, self.limits)
            ran, facts = await self._in(
                lease,
                lambda backend: (session.check_revertible(plan, context, job, backend, verb), backend.facts),
            )
            return plans.revert_plan(revert, plan, lease.account, ran.changes, facts)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        """See `Runtime.execute_revert`. Raises Conflict, having touched nothing; `Doubtful` when it can't be known:
        run again, it finishes."""
        from runtimes.mongo import session

        verb = revert.verb
        if verb == "commit":
            await self.forget(plan, target)
            return Outcome(ok=True, summary=f"Committed {revert.target}: what undo would need is gone.")
        job = session.job_of(plan, target, self.limits)
        lease = self._lease(plan, context)
        return await self._in(lease, lambda backend: session.revert(plan, job, backend, verb))

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        """See `Runtime.footprint`."""
        from runtimes.mongo import session

        return session.footprint(plan, context)

    async def forget(self, plan: Plan, context: Context) -> None:
        """See `Runtime.forget`. The marker is removed where the server can be reached; nothing depends on that."""
        from runtimes.mongo import session

        session.forget(plan, context)
        if not plan.undo.get("policy") or not plan.resolved["transactions"]:
            return
        try:
            with self.lend(_database(plan), context.action_id) as lease:
                _same_place(plan, lease.account)
                await self._in(lease, lambda backend: session.unmark(context.action_id, backend))
        except GoexError:
            context.note("marker-left", {"database": _database(plan)})

    # ---- the person's own looking

    async def look(self, lease: Lease) -> Seen:
        """See `Looks.look`; the entry may not be in the vault yet."""
        from runtimes.mongo import session

        return await self._in(lease, session.look)

    # ---- inside

    async def _in(self, lease: Lease, work: Callable[[Backend], T]) -> T:
        name = lease.account.name
        return await in_session(name, lambda: self.connect(lease.account, lease.secret, self.limits), work)

    @staticmethod
    def _lease(plan: Plan, context: Context) -> Lease:
        """The lease on the plan's database. Raises Conflict when its entry leads elsewhere now."""
        name = _database(plan)
        for lease in context.leases:
            if (lease.account.service, lease.account.name) == (SERVICE, name):
                _same_place(plan, lease.account)
                return lease
        raise Conflict(f"Nothing was lent for the database {name}.", next_step="Ask again.")


def _same_place(plan: Plan, account: Account) -> None:
    from runtimes.mongo.connection import facts_of

    if dict(facts_of(account)) != dict(plan.resolved["place"]):
        raise Conflict(
            f"The entry {account.name} leads to another place than when this was planned: nothing was touched.",
            next_step="See it with: goex db list",
        )


def _database(plan: Plan) -> str:
    return str(plan.resolved["database"])
