"""What every part of the engine works with: the journal, grants, the catalog, the vault, the runtimes, the clock.

Nothing here decides or runs anything. A step is written by `step`, and whoever watches hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from goex.engine.approvals import Approvals
from goex.engine.consent import (
    AccountKey,
    Consent,
    Lender,
    NeedsConsent,
    Opens,
    least,
    opens,
    unconnected,
    uses,
    wider,
)
from goex.engine.events import Hub, Printed, Progressed, Stepped
from goex.engine.grant_store import GrantStore
from goex.engine.quota import Quotas
from goex.engine.records import PayloadSealer, SealedRecords
from goex.engine.rulebook import Rulebook
from goex.journal.actions import EVERYBODYS, ActionRow, Actions, Whose
from goex.journal.chain import Journal, Transaction
from goex.journal.states import Event, State
from mapper.catalog import Catalog
from policies.accounts import Account
from policies.actions import Action, ApiCalls, Code, Mongo, Plan, Revert, Sql
from policies.databases import SERVICE
from policies.display_text import escape
from policies.errors import Conflict, Denied, ExitStatus, GoexError, InvalidInput, Unsupported
from policies.grants import ANONYMOUS, PERSON
from policies.jsonvalue import JsonObject, parse
from policies.limits import BREAKER, NOT_CONFINED, QUOTA, Breaker, Confinement, Quota
from policies.tasks import Task
from runtimes.base import Context, Runtime
from vault.errors import NoAccount
from vault.lease import Lease

MOST_TOLD = 5000  # questions whose answers may be on their way
_NEXT = {State.DONE: "undo", State.PARTIAL: "undo", State.UNDONE: "redo"}  # what may be done with an action now
UNAUTHORIZED = 401  # the service takes the credential no longer, whatever its server said of how long it lasts


class VaultForEngine(PayloadSealer, Protocol):
    """The part of the vault that the engine needs."""

    def require_open(self) -> None:
        """Raise unless the vault is unsealed."""
        ...

    def resolve(self, service: str, name: str = "") -> Account: ...

    def end_leases(self, action_id: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks: the agent's name, its session, and what the daemon saw of it."""

    agent: str
    session: str
    source: str
    process: str = ""  # `Peer.process` of it
    since: str = ""  # when the agent got its name, which another may have had before
    connection: str = ""  # by which it came: an agent's without a name outlives its sessions

    @property
    def owns_all(self) -> bool:
        return self.agent == PERSON

    @property
    def own(self) -> Whose:
        """Whose actions it may see."""
        if self.owns_all:
            return EVERYBODYS
        session = self.session if self.agent == ANONYMOUS else ""
        return Whose(agent=self.agent, session=session, since=self.since)

    def owns(self, row: ActionRow) -> bool:
        """The person sees all; an agent its own; agents without a name only what their session asked for."""
        if self.owns_all:
            return True
        if row.created < self.since:
            return False
        return row.agent == self.agent and (self.agent != ANONYMOUS or row.session == self.session)


def unknown_action(id: str, principal: Principal) -> InvalidInput:
    """What is said of an action that isn't there, or isn't this principal's. Only the person has a command line."""
    where = "goex log lists them." if principal.owns_all else "See the list of your actions."
    return InvalidInput(f"There is no action {id[:60]!r}.", next_step=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for: exactly one of words, an action, or a model's proposal.

    `choice` (1-based) takes a candidate of an earlier mapping of the same words, `answer` answers its clarification;
    `ask_seconds` 0 is the longest.
    """

    intent: str = ""
    action: Action | None = None
    proposal: str = ""
    choice: int = 0
    answer: str = ""
    detach: bool = False
    ask_seconds: float = 0
    database: str = ""  # of words: the only one that they are about
    account: str = ""  # of words: that of each call which they name none for
    folder: str = ""
    code_services: tuple[str, ...] = ()  # of words: what is asked for is a program that uses these
    reads_only: bool = False  # whatever else it would do is refused
    key: str = ""  # another wish of this principal with the same key is the same action
    sent: JsonObject | None = None  # what was said in place of an action that is made of an earlier one


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the person set, in seconds: the longest that an answer may take, and how long a lease lives at most."""

    ask_seconds: float = 300.0
    lease_seconds: float = 600.0
    confinement: Confinement = NOT_CONFINED
    breaker: Breaker = BREAKER
    quota: Quota = QUOTA
    model_calls: int = 1  # that one mapping makes at most
    page_key: Path | None = None  # the file that the person's page holds while it runs


class Lost(GoexError):
    """It can't be known what happened. `difference` is the evidence."""

    code = "unknown"
    exit_status = ExitStatus.UNKNOWN

    def __init__(self, message: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(message, next_step="Look at the service or the folder, then undo or commit it.")
        self.difference = evidence


async def _nobody_told() -> None:
    """For an engine without a vault."""


@dataclass(slots=True)
class Core:
    """Shared by the engine's parts."""

    journal: Journal
    grant_store: GrantStore
    catalog: Catalog
    vault: VaultForEngine
    lender: Lender
    runtimes: Mapping[str, Runtime]
    settings: Settings
    clock: Callable[[], datetime]
    acknowledge: Callable[[], Awaitable[None]] = _nobody_told  # returns once the vault knows what it has to know
    hub: Hub = field(default_factory=Hub)
    actions: Actions = field(init=False)
    approvals: Approvals = field(init=False)
    rules: Rulebook = field(init=False)
    quotas: Quotas = field(init=False)
    _told: dict[str, dict[AccountKey, Opens]] = field(init=False, default_factory=dict)  # by action, oldest first

    def __post_init__(self) -> None:
        settings = self.settings
        self.rules = Rulebook(self.journal, self.clock, self.catalog, settings.confinement, settings.breaker)
        self.quotas = Quotas(self.journal, self.clock, settings.quota)
        self.actions = Actions(self.journal)
        self.approvals = Approvals(self.journal, self.actions, self.clock)

    def step(self, transaction: Transaction, row: ActionRow, event: Event, **changes: Any) -> ActionRow:
        """One step of the table, within a transaction."""
        after = self.actions.step(transaction, row, event, **changes)
        self.hub.publish(row.id, Stepped(row.state, event, after.state))
        return after

    def stepped(self, row: ActionRow, event: Event, *, lasting: bool = True, **changes: Any) -> ActionRow:
        """One step in a transaction of its own: on disk when this returns, or (not `lasting`) with the next that is."""
        with self.journal.transaction(lasting=lasting) as transaction:
            return self.step(transaction, row, event, **changes)

    def check_named(self, principal: Principal) -> None:
        """Raise Denied for an agent that was removed since it was found to be the caller, also where another has its
        name now. It counts as long as nothing is awaited after it."""
        if self.grant_store.named_since(principal.agent) != principal.since:
            raise Denied(
                f"The agent {principal.agent!r} was removed while this call was under way.",
                next_step="The person adds an agent with: goex agents add NAME",
            )

    def is_named(self, row: ActionRow) -> bool:
        """Whether the agent that asked for an action, or that the person's task is for, still has the name that it had
        then."""
        action = row.action() if row.agent == PERSON else None
        name = action.agent if isinstance(action, Task) and action.agent else row.agent
        since = self.grant_store.named_since(name)
        return name in (PERSON, ANONYMOUS) or (since != "" and since <= row.created)

    def runtime_of(self, action: Action) -> Runtime:
        """The runtime of that kind. Raises Unsupported."""
        found = self.runtimes.get(action.kind)
        if found is None:
            raise Unsupported(f"GoEx can't run actions of kind {action.kind!r} yet.")
        return found

    def resolved(self, action: Action) -> Action:
        """Calls validated against the catalog, their accounts named; of code the accounts of its services. Raises
        InvalidInput, Unsupported."""
        if isinstance(action, Code):
            return self._code_resolved(action)
        if not isinstance(action, ApiCalls):
            return action
        calls = []
        for call in action.calls:
            checked = self.catalog.validate(call)
            self.catalog.check_callable(call.id)  # before anybody is told to connect an account for it
            calls.append(replace(checked, account=self.account(call.service, call.account).name))
        return ApiCalls(calls=tuple(calls))

    def _code_resolved(self, action: Code) -> Code:
        """Every service as "service/account", also those that only a method names."""
        wanted = dict.fromkeys(name.partition("/")[::2] for name in action.services)
        for id in action.methods:
            service = self.catalog.method(id).service
            if not any(each == service for each, _ in wanted):
                wanted[service, ""] = None
        found: dict[str, None] = {}
        for service, name in wanted:
            self.catalog.service(service)
            found[self.account(service, name).id] = None
        return replace(action, services=tuple(found))

    def account(self, service: str, name: str) -> Account:
        """The account of that name, or the service's only one. For a service that can be logged in to, and isn't yet,
        the account that a login would make: so that it can be said what it would have to ask for. It can be planned
        with, and never run: it has no credential. Raises NoAccount, AccountUnclear, RecordAltered."""
        try:
            return self.vault.resolve(service, name)
        except NoAccount:
            known = self.catalog.service(service)
            try:
                self.vault.resolve(service)
            except NoAccount:
                if known.oauth is not None and known.base_url and escape(name) == name and "/" not in name:
                    return unconnected(known, name or "default")
            except GoexError:
                pass  # there are others: the name is wrong
            raise

    def target_of(self, revert: Revert) -> ActionRow:
        """The action that a revert is about (of several the last). Raises for one that can't be reverted at all."""
        return self.reverted(revert.target)

    def reverted(self, id: str) -> ActionRow:
        """The action of that id, as a target. Raises for one that can't be reverted at all."""
        target = self.actions.get(id)
        if target.kind == "revert":
            verb = _NEXT.get(self.actions.get(target.target).state, "show")
            raise Unsupported(
                f"{target.id} is itself an undo, redo or commit.",
                next_step=f"Of the action that it was about: goex {verb} {target.target}",
            )
        return target

    def subject(self, action: Action) -> Action:
        """What an action works on: itself, or the target of a revert."""
        if isinstance(action, Revert):
            return self.target_of(action).the_plan().action
        return action

    def check_consent(self, plan: Plan) -> None:
        """Raises NeedsConsent unless every account that the plan uses is connected, and allows what it needs."""
        lacking = self.lacking(plan)
        if lacking:
            raise NeedsConsent(lacking, connected=self._connected(lacking[0].service, lacking[0].account))

    def lacking(self, plan: Plan) -> tuple[Consent, ...]:
        """What the person would have to agree to before the plan can run, account by account."""
        return tuple(
            Consent(service, name, use.missing)
            for (service, name), use in uses(plan, self.catalog, self.lender).items()
            if use.missing or not self._connected(service, name)
        )

    @staticmethod
    def was_refused_for_consent(row: ActionRow) -> bool:
        """Whether an action ended for want of a login."""
        return bool(row.problem) and parse(row.problem).get("code") == NeedsConsent.code

    def opens(self, plan: Plan) -> dict[AccountKey, Opens]:
        """What the prompt says of each account's credential; nothing of those that can't be looked at now."""
        accounts: dict[AccountKey, Account] = {}
        try:
            for need in plan.required:
                if need.service in self.catalog.services:
                    accounts[need.service, need.account] = self.vault.resolve(need.service, need.account)
            return opens(plan, accounts, self.catalog, self.lender)
        except GoexError:  # sealed meanwhile, or removed: the prompt then promises nothing
            return {}

    def told(self, row: ActionRow, plan: Plan) -> dict[AccountKey, Opens]:
        """As `opens`, for the person to read; what runs then must not have a credential that opens more."""
        now = self.opens(plan)
        before = self._told.get(row.id, {})
        self._told[row.id] = {key: least(each, before.get(key)) for key, each in now.items()}
        while len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]
        return now

    async def leases(self, row: ActionRow, plan: Plan) -> tuple[Lease, ...]:
        """One lease for each account that the plan uses, for the scopes that it needs, ending with the action.

        Raises NeedsConsent; Conflict when a service that was seen to narrow its tokens doesn't any more, or a login
        was given more meanwhile: what the person was told of the credential would be untrue.
        """
        told = self._told.pop(row.id, {})
        expires = self.clock() + timedelta(seconds=self.settings.lease_seconds)
        made: list[Lease] = []
        for (service, name), use in uses(plan, self.catalog, self.lender).items():
            if use.missing:
                raise NeedsConsent((Consent(service, name, use.missing),))
            promised = self.lender.narrows(self.vault.resolve(service, name), use.spelled)
            lease = await self.lender.lease(service, name, action_id=row.id, expires=expires, scopes=use.spelled)
            if promised == "token" and use.spelled and lease.narrowed != "token":
                raise Conflict(
                    f"{service}/{name} gave a token for more than this needs, which it didn't do before.",
                    next_step="Ask again: the question then says that only GoEx's gateway holds it.",
                )
            before = told.get((service, name)) if lease.narrowed != "token" else None
            if before is not None and wider(before, self.opens(plan).get((service, name))):
                raise Conflict(
                    f"The credential of {service}/{name} opens more now than when you were asked.",
                    next_step="Ask again: the question then says what it opens.",
                )
            facts: JsonObject = {
                "service": service,
                "account": name,
                "narrowed": lease.narrowed,
                "scopes": list(lease.scopes),
                "needed": list(use.scopes),
            }
            self.journal.append("lease", lasting=False, action_id=row.id, agent=row.agent, facts=facts)
            made.append(lease)
        for name in sorted({need.account for need in plan.required if need.service == SERVICE}):
            lease = await self.lender.lease(SERVICE, name, action_id=row.id, expires=expires, scopes=())
            scopes = sorted({need.scope for need in plan.required if (need.service, need.account) == (SERVICE, name)})
            facts = {"service": SERVICE, "account": name, "narrowed": lease.narrowed, "scopes": [], "needed": scopes}
            self.journal.append("lease", lasting=False, action_id=row.id, agent=row.agent, facts=facts)
            made.append(lease)
        return tuple(made)

    def _connected(self, service: str, name: str) -> bool:
        try:
            self.vault.resolve(service, name)
        except NoAccount:
            return False
        return True

    def records(self, row: ActionRow) -> SealedRecords:
        return SealedRecords(self.journal, self.vault, row.id, row.agent)

    def context(self, row: ActionRow, subject: Action | None = None, leases: tuple[Lease, ...] = ()) -> Context:
        """What a runtime gets for `row`. `subject` (by default what its plan is about) names the accounts."""
        if subject is None and row.plan:
            subject = self.subject(row.the_plan().action)
        accounts: dict[tuple[str, str], Account] = {}
        if isinstance(subject, ApiCalls):
            for call in subject.calls:
                account = self.account(call.service, call.account)
                accounts[account.service, account.name] = account
        elif isinstance(subject, Code):
            for each in subject.services:
                account = self.account(*each.partition("/")[::2])
                accounts[account.service, account.name] = account
        elif isinstance(subject, Sql | Mongo):
            accounts[SERVICE, subject.database] = self.vault.resolve(SERVICE, subject.database)
        loop = asyncio.get_running_loop()

        def note(kind: str, facts: JsonObject) -> None:
            if kind in set(Event):
                raise InvalidInput(f"{kind!r} is a step's name, not a note's.")
            self.journal.append(kind, action_id=row.id, agent=row.agent, facts=facts)
            if kind == "answer" and facts.get("status") == UNAUTHORIZED:
                for lease in leases:
                    self.lender.distrust(lease.account.service, lease.account.name)

        def progress(text: str) -> None:
            loop.call_soon_threadsafe(self.hub.publish, row.id, Progressed(text))

        def output(stream: str, data: bytes) -> None:
            loop.call_soon_threadsafe(self.hub.publish, row.id, Printed(stream, data))

        return Context(
            action_id=row.id,
            agent=row.agent,
            accounts=accounts,
            granted=self.grant_store.standing(row.agent, row.session),
            leases=leases,
            records=self.records(row),
            note=note,
            progress=progress,
            output=output,
            intent=row.intent,
        )
