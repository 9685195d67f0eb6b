"""REST: catalogued calls, run in a container through the gateway, taken back by the catalog's reversion set.

Rules: the plan is fixed before the first answer is read. What undo needs is durable before it can be needed: the
templates before the first request, each answer before whatever follows it. Undo compares first, then sets, then reads
back; it is an action like any other and goes the same way.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from mapper.catalog import Catalog
from policies.actions import Action, ApiCalls, Outcome, Plan, Revert
from policies.errors import ExitStatus, GoexError, InvalidInput, Unsupported
from policies.jsonvalue import canonical
from policies.reversions import NoReversions, Result, ReversionSet, Use
from runtimes.base import Context, DryRun, Footprint, Settlement
from runtimes.gateway.contract import Gateway
from runtimes.rest import records as record
from runtimes.rest.dryrun import dry_run, undo_of
from runtimes.rest.footprint import footprint
from runtimes.rest.outcomes import forward
from runtimes.rest.path_owner import learn_paths
from runtimes.rest.plans import assess_calls, assess_commit, assess_redo, assess_undo
from runtimes.rest.records import CallRecord
from runtimes.rest.references import refs_in
from runtimes.rest.requests import bind
from runtimes.rest.run import Report, Runner, wanted_paths
from runtimes.rest.steps import Step
from runtimes.rest.undo import COMMITTED, UndoImpossible, check_promise, planned_steps, why_left
from runtimes.rest.undo_run import drop_repeatable, redo, repeatable, undo
from runtimes.rest.verdicts import Verdict, evidence, judge, reverted_since, settle_answer
from runtimes.sandbox.contract import Profile, Sandbox

TEMPLATES = "templates"


@dataclass(frozen=True, slots=True)
class RestRuntime:
    """`runtimes.base.Runtime` for `ApiCalls`."""

    sandbox: Sandbox
    gateway: Gateway
    catalog: Catalog
    profile: Profile = field(default_factory=Profile)
    reversions: ReversionSet = field(default_factory=NoReversions)
    kind: str = "calls"

    async def assess(self, action: Action, context: Context) -> Plan:
        """Plan the calls. Has no effect and asks no service. Raises InvalidInput, Unavailable without an image."""
        if not isinstance(action, ApiCalls):
            raise InvalidInput(f"An action of kind {action.kind!r} isn't made of calls.")
        image = await self.sandbox.image_id(self.profile)
        self.sandbox.prepare(self.profile)  # while it is being decided on
        await learn_paths(self.catalog, (call.service for call in action.calls))
        return assess_calls(action, context, self.catalog, self.profile, image, self.reversions)

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """See `Runtime.dry_run`: the requests as they would leave. Nothing is sent."""
        return dry_run(planned_steps(plan), undo=undo_of(plan))

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        """See `Runtime.dry_revert`: the requests as they would leave. What they compare first isn't asked now."""
        return dry_run(planned_steps(revert_plan))

    async def reap(self) -> None:
        """See `Runtime.reap`: dry runs leave nothing here."""

    async def prepare(self, plan: Plan, context: Context) -> None:
        """Write the undo templates down; the answers that fill them are recorded as they come."""
        context.records.put(TEMPLATES, canonical({"resolved": dict(plan.resolved), "undo": dict(plan.undo)}))

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """Send the calls in order until one fails. Raises only when nothing was sent."""
        steps, call_record = planned_steps(plan), CallRecord()

        def leaving(step: Step) -> None:
            try:
                check_promise(step, plan, call_record, self.catalog)
            except UndoImpossible as error:
                if error.undo.pair and error.by_guess:
                    failed = Use(
                        pair=error.undo.pair,
                        action=context.action_id,
                        call=step.call,
                        result=Result.FAILED,
                        why=error.why[:500],
                    )
                    self.reversions.used(failed)
                raise

        wanted = wanted_paths(plan.resolved, plan.undo)
        report = await self._runner.run(steps, context, call_record, context.records, wanted=wanted, leaving=leaving)
        exchanges = dict(report.exchanges)
        if report.error is None and not report.unkept and drop_repeatable(call_record, steps, self.catalog):
            # It carries a key by which the service knows it again, so that asking once more can't do it twice.
            context.note("again", {"requests": list(call_record.unsettled)})
            rest = [self._filled(step, call_record, context) for step in steps if not call_record.done(step.id)]
            report = await self._runner.run(rest, context, call_record, context.records, wanted=wanted, leaving=leaving)
            exchanges |= report.exchanges
        if context.answers is not None:
            context.answers.update({id: exchange.body for id, exchange in exchanges.items() if exchange.well})
        with suppress(GoexError):  # what isn't found out now stays open, and is said to be
            await self._ask_about_unsettled(plan, context, call_record)
        return forward(steps, call_record, report, self.catalog, left=why_left(plan, call_record))

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        """Say what happened, from the record and, where that isn't enough, by the catalog's probe. Only reads."""
        if not isinstance(plan.action, ApiCalls):
            return Settlement(
                outcome=None, evidence=("It stopped on its way; running it again finishes what was begun.",)
            )
        try:
            call_record = CallRecord.load(context.records)
        except GoexError as error:
            if error.exit_status is not ExitStatus.SEALED:
                raise
            return Settlement(
                outcome=None, evidence=("What was sent is recorded in the vault, which is sealed.", _UNLOCK)
            )
        steps = planned_steps(plan)
        if call_record is None or not call_record.sent:
            outcome = Outcome(ok=False, summary="It was stopped before anything was sent.", touched=False)
            return Settlement(outcome=outcome)
        unknown = reverted_since(steps, call_record) or await self._ask_about_unsettled(plan, context, call_record)
        if unknown:
            return Settlement(outcome=None, evidence=unknown)
        stopped = Report(trouble="GoEx was stopped before it")
        left = why_left(plan, call_record)
        return Settlement(outcome=forward(steps, call_record, stopped, self.catalog, left=left))

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """The plan of an undo, redo or commit. Raises Unsupported."""
        match revert.verb:
            case "commit":
                return assess_commit(revert, plan)
            case "undo":
                call_record = self._call_record(context)
                image = await self.sandbox.image_id(self.profile)
                return assess_undo(
                    revert, plan, call_record, context, self.catalog, self.profile, image, self.reversions
                )
            case "redo":
                call_record = self._call_record(context)
                image = await self.sandbox.image_id(self.profile)
                return assess_redo(
                    revert, plan, call_record, context, self.catalog, self.profile, image, self.reversions
                )

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        """Run a revert. Raises Conflict, with the difference, when the service isn't as the action left it."""
        match revert.verb:
            case "commit":
                await self.forget(plan, target)
                return Outcome(ok=True, summary=f"Committed {revert.target}: what undo would need is gone.")
            case "undo":
                return await undo(
                    self._runner, revert_plan, plan, self._call_record(target), target, context, self.reversions
                )
            case "redo":
                own = CallRecord.load(context.records) or CallRecord()
                if not repeatable(own, planned_steps(revert_plan), self.catalog):
                    unknown = await self._ask_about_unsettled(revert_plan, context, own)
                else:
                    unknown = ()
                if unknown:
                    return Outcome(ok=False, summary="It can't be known how far it came.", details=unknown)
                return await redo(self._runner, revert_plan, own, target, context)

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        """See `Runtime.footprint`: by the ids that it used and was answered (`runtimes.rest.footprint`)."""
        if not isinstance(plan.action, ApiCalls):
            return Footprint(reads=frozenset({"calls"}), writes=frozenset({"calls"}))
        call_record = None if record.is_forgotten(context.records) else CallRecord.load(context.records)
        return footprint(plan, call_record, self.catalog)

    async def forget(self, plan: Plan, context: Context) -> None:
        """Drop the recorded answers: there is no undo any more. Idempotent."""
        record.forget(context.records)

    @property
    def _runner(self) -> Runner:
        return Runner(self.sandbox, self.gateway, self.catalog, self.profile)

    def _filled(self, step: Step, call_record: CallRecord, context: Context) -> Step:
        """A later run's gateway doesn't know the answers of an earlier one, so they are filled here."""
        if refs_in(step.arguments) and all(ref.request in call_record.answers for ref in refs_in(step.arguments)):
            return bind(step, call_record.answers, self.catalog, context.accounts[step.service, step.account])
        return step

    def _call_record(self, context: Context) -> CallRecord:
        if record.is_forgotten(context.records):
            raise Unsupported(COMMITTED)
        call_record = CallRecord.load(context.records)
        if call_record is None:
            raise Unsupported("Nothing that it sent is recorded, so there is nothing to take back.")
        return call_record

    async def _ask_about_unsettled(self, plan: Plan, context: Context, call_record: CallRecord) -> tuple[str, ...]:
        """Probe for what was sent and may have happened. Enters and saves what is found; returns what stays unknown."""
        steps = {step.id: step for step in planned_steps(plan)}
        probes = {probe.call: probe for probe in planned_steps(plan, "probes")}
        unknown: list[str] = []
        for request in call_record.unsettled:
            step, known = steps[request], call_record.answers.get(request)
            probe = probes.get(step.call)
            if probe is not None and not context.leases:
                return (*evidence(step, known, None, None)[:1], _UNLOCK)
            found = await self._probed(probe, context, call_record) if probe is not None else None
            verdict = judge(probe, found, self.catalog.service(probe.service)) if probe is not None else Verdict.UNKNOWN
            if verdict is Verdict.UNKNOWN:
                unknown += evidence(step, known, probe, found)
            else:
                context.note("probe", {"request": request, "verdict": verdict.value})
                settle_answer(call_record, request, verdict)
                call_record.save(context.records)
        return tuple(unknown)

    async def _probed(self, probe: Step, context: Context, call_record: CallRecord) -> record.Answer | None:
        seen = replace(call_record, answers=dict(call_record.answers))
        try:
            account = context.accounts[probe.service, probe.account]
            await self._runner.run((bind(probe, call_record.answers, self.catalog, account),), context, seen, None)
        except GoexError as error:
            context.note("probe-failed", {"request": probe.id, "why": error.message})
        return seen.answers.get(probe.id)


_UNLOCK = "Unlock the vault with: goex vault unlock. Then GoEx can find out."
