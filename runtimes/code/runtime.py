"""Code: a program that somebody untrusted wrote, in a container whose only way out are the requests that it may make.

Rules: what it may call is fixed before it runs, by reading it and by what was named. What it changes is recorded as it
leaves, and is taken back as planned calls are: newest first, by the reversion set, compared and read back. It is never
run a second time by GoEx itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from mapper.catalog import Catalog
from policies.actions import Action, Code, Outcome, Plan, Revert
from policies.display_text import counted
from policies.errors import ExitStatus, GoexError, InvalidInput, Unsupported
from policies.reversions import NoReversions, ReversionSet
from policies.typed_json import to_json
from runtimes.base import Context, DryRun, Footprint, Settlement
from runtimes.code import record
from runtimes.code.dryrun import dry_run_of, pretended
from runtimes.code.footprint import footprint
from runtimes.code.outcomes import outcome
from runtimes.code.plans import accounts_of, assess_code, look
from runtimes.code.reader import Reader
from runtimes.code.record import Record
from runtimes.code.run import CodeRunner, Run
from runtimes.code.undo import assess_undo, reversed_
from runtimes.gateway.contract import Gateway
from runtimes.rest.dryrun import dry_run
from runtimes.rest.path_owner import learn_paths
from runtimes.rest.plans import assess_commit
from runtimes.rest.run import Runner
from runtimes.rest.undo import COMMITTED, planned_steps
from runtimes.rest.undo_run import undo
from runtimes.sandbox.contract import Profile, Sandbox

P = ParamSpec("P")
T = TypeVar("T")
_LITTLE = 1000  # characters of a program, or of what it printed
_PROFILE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class CodeRuntime:
    """`runtimes.base.Runtime` for `Code`. `profile` is that of calls, which undo is made with; `profiles` gives that of
    a program by its name (None: that of calls, with another image)."""

    sandbox: Sandbox
    gateway: Gateway
    catalog: Catalog
    profile: Profile = field(default_factory=Profile)
    reversions: ReversionSet = field(default_factory=NoReversions)
    profiles: Callable[[str], Profile] | None = None
    kind: str = "code"
    _reader: Reader = field(init=False, default_factory=Reader)
    _begun: dict[str, Run] = field(init=False, default_factory=dict)  # by action; until they are run

    async def assess(self, action: Action, context: Context) -> Plan:
        """Read the program and plan what it may call. Runs nothing. Raises InvalidInput; Unavailable without an
        image."""
        if not isinstance(action, Code):
            raise InvalidInput(f"An action of kind {action.kind!r} isn't a program.")
        if not _PROFILE.fullmatch(action.profile):
            raise InvalidInput(
                "This can't be the name of a profile.", next_step="goex images list shows those that there are."
            )
        profile = self._profile_of(action)
        image = await self.sandbox.image_id(profile)
        self.sandbox.prepare(profile)  # while it is being decided on
        accounts = accounts_of(action, context.accounts)
        await learn_paths(self.catalog, (service for service, _ in accounts))
        seen = await self._reader.read(action.language, action.program, context.agent)
        looked = await _aside(len(action.program), look, action, accounts, self.catalog, seen)
        return assess_code(action, looked, context, self.catalog, profile, image, self.reversions)

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """See `Runtime.dry_run`: the program runs in a container, and no request leaves; what it tried is told."""
        action = _program(plan)
        accounts = accounts_of(action, context.accounts)
        context = replace(context, leases=pretended(plan, context))
        permits = record.planned_permits(plan)
        report = await self._runner(action).begin(action, permits, accounts, context, Record(), dry=True).finish()
        return dry_run_of(report, accounts, self.catalog)

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        """See `Runtime.dry_revert`: the requests as they would leave."""
        return dry_run(planned_steps(revert_plan))

    async def reap(self) -> None:
        """See `Runtime.reap`: dry runs leave nothing here."""

    async def prepare(self, plan: Plan, context: Context) -> None:
        """No inverse is made beforehand: what undo needs is recorded as each request leaves. The gateway is told to
        open, which it does in a process of its own while `run` is written here."""
        run = self._begun[context.action_id] = self._begin(plan, context)
        context.ending.push_async_callback(self._abandon, context.action_id, run)
        await asyncio.sleep(0)  # so that it is told

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """Run the program. Raises only when nothing was sent."""
        run = self._begun.pop(context.action_id, None) or self._begin(plan, context)
        report = await run.finish()
        printed = len(report.result.stdout) + len(report.result.stderr) if report.result else 0
        accounts = accounts_of(_program(plan), context.accounts)
        return await _aside(printed, outcome, report, run.watch.kept, accounts, self.catalog)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        """Say what left and how it was answered, from the record. Reads only."""
        if not isinstance(plan.action, Code):
            return Settlement(
                outcome=None, evidence=("It stopped on its way; running it again finishes what was begun.",)
            )
        try:
            kept = record.load(context.records) or Record()
        except GoexError as error:
            if error.exit_status is not ExitStatus.SEALED:
                raise
            return Settlement(
                outcome=None,
                evidence=("What was sent is recorded in the vault, which is sealed. Unlock it: goex vault unlock",),
            )
        if not kept.sent:
            summary = "It was stopped before it changed anything."
            return Settlement(outcome=Outcome(ok=False, summary=summary, touched=False))
        permits = [permit for _, permit in record.planned_permits(plan).values()]
        open_ = [f"{permits[one.permit].method_id} was sent, and no answer to it is known." for one in kept.unsettled]
        open_ += [f"Taken back since: {permits[kept.sent[number].permit].method_id}." for number in kept.undone]
        open_ += [f"Its undo wasn't confirmed: {permits[kept.sent[n].permit].method_id}." for n in kept.doubtful]
        if open_:
            return Settlement(outcome=None, evidence=tuple(open_))
        done = sum(kept.done(one.number) for one in kept.sent)
        summary = f"GoEx was stopped while the program ran: {done} of {counted(len(kept.sent), 'request')} for changes"
        return Settlement(outcome=Outcome(ok=False, summary=f"{summary} went well.", touched=True))

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """The plan of an undo or commit. Raises Unsupported."""
        match revert.verb:
            case "commit":
                return assess_commit(revert, plan)
            case "redo":
                raise Unsupported(
                    "A program isn't run again by a redo: it might do something else.",
                    next_step=f"Run it anew, and decide on that: goex exec --again {revert.target}",
                )
            case "undo":
                image = await self.sandbox.image_id(self.profile)
                kept = self._kept(plan, context)
                return assess_undo(
                    revert, plan, kept, context, self.catalog, self.profile, image, self.reversions
                )  # fmt: skip

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        """Run a revert. Raises Conflict, with the difference, when the service isn't as the program left it."""
        if revert.verb == "commit":
            await self.forget(plan, target)
            return Outcome(ok=True, summary=f"Committed {revert.target}: what undo would need is gone.")
        kept = self._kept(plan, target)
        done = kept.as_call_record()
        back = reversed_(plan, replace(kept, undone=[]), target, self.catalog, self.reversions)
        done.undo = [to_json(undo) for undo in back.undos]
        runner = Runner(self.sandbox, self.gateway, self.catalog, self.profile)
        return await undo(runner, revert_plan, plan, done, target, context, self.reversions)

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        """See `Runtime.footprint`: by the ids of the requests that left."""
        return footprint(
            plan, None if record.is_forgotten(context.records) else self._kept(plan, context), self.catalog
        )

    async def forget(self, plan: Plan, context: Context) -> None:
        """Drop what was recorded: there is no undo any more. Idempotent."""
        record.forget(context.records)

    def _profile_of(self, action: Code) -> Profile:
        return self.profiles(action.profile) if self.profiles else replace(self.profile, image=action.profile)

    def _runner(self, action: Code) -> CodeRunner:
        return CodeRunner(self.sandbox, self.gateway, self.catalog, self._profile_of(action), self.reversions)

    def _begin(self, plan: Plan, context: Context) -> Run:
        action = _program(plan)
        accounts = accounts_of(action, context.accounts)
        return self._runner(action).begin(action, record.planned_permits(plan), accounts, context, Record())

    async def _abandon(self, action_id: str, run: Run) -> None:
        if self._begun.get(action_id) is run:
            del self._begun[action_id]
        await run.abandon()

    def _kept(self, plan: Plan, context: Context) -> Record:
        kept = record.load(context.records)
        if kept is None:
            raise Unsupported(COMMITTED)
        return kept


async def _aside(size: int, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Do it in a thread, unless it is over sooner than a thread is there."""
    return work(*arguments, **named) if size < _LITTLE else await asyncio.to_thread(work, *arguments, **named)


def _program(plan: Plan) -> Code:
    if not isinstance(plan.action, Code):
        raise InvalidInput("This isn't a program.")
    return plan.action
