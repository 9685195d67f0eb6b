"""What every part of the engine works with: the journal, the ledger, the catalog, the vault, the runtimes, the clock.

Nothing here decides or runs anything. A step is written by `step`, and whoever watches hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from goex.engine.approvals import Approvals
from goex.engine.events import Hub, Printed, Progressed, Stepped
from goex.engine.ledger import Ledger
from goex.engine.records import PayloadSealer, SealedRecords
from goex.journal.actions import ActionRow, Actions
from goex.journal.chain import Journal, Transaction
from goex.journal.states import Event
from mapper.catalog import Catalog
from policies.accounts import Account
from policies.actions import Action, ApiCalls, Plan, Revert
from policies.errors import ExitStatus, GoexError, InvalidInput, Unsupported
from policies.grants import ANONYMOUS, PERSON
from policies.jsonvalue import JsonObject
from runtimes.base import Context, Runtime
from vault.lease import Lease


class VaultForEngine(PayloadSealer, Protocol):
    """The part of the vault that the engine needs."""

    def require_open(self) -> None:
        """Raise unless the vault is unsealed."""
        ...

    def resolve(self, service: str, name: str = "") -> Account: ...

    def lease(self, service: str, name: str, *, action_id: str, expires: datetime) -> Lease: ...

    def end_leases(self, action_id: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks: the agent's name, its session, and what the daemon saw of it."""

    agent: str
    session: str
    source: str

    @property
    def owns_all(self) -> bool:
        return self.agent == PERSON

    def owns(self, row: ActionRow) -> bool:
        """The person sees all; an agent its own; agents without a name only what their session asked for."""
        if self.owns_all:
            return True
        return row.agent == self.agent and (self.agent != ANONYMOUS or row.session == self.session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for: exactly one of words, an action, or a model's proposal.

    `choice` (1-based) takes a candidate of an earlier mapping of the same words; `ask_seconds` 0 is the longest.
    """

    intent: str = ""
    action: Action | None = None
    proposal: str = ""
    choice: int = 0
    detach: bool = False
    ask_seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the person set, in seconds: the longest that an answer may take, and how long a lease lives at most."""

    ask_seconds: float = 300.0
    lease_seconds: float = 600.0


class Lost(GoexError):
    """It can't be known what happened. `difference` is the evidence."""

    code = "unknown"
    exit_status = ExitStatus.UNKNOWN

    def __init__(self, message: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(message, next_step="Look at the service or the folder, then undo or commit it.")
        self.difference = evidence


@dataclass(slots=True)
class Core:
    """Shared by the engine's parts."""

    journal: Journal
    ledger: Ledger
    catalog: Catalog
    vault: VaultForEngine
    runtimes: Mapping[str, Runtime]
    settings: Settings
    clock: Callable[[], datetime]
    hub: Hub = field(default_factory=Hub)
    actions: Actions = field(init=False)
    approvals: Approvals = field(init=False)

    def __post_init__(self) -> None:
        self.actions = Actions(self.journal)
        self.approvals = Approvals(self.journal, self.clock)

    def step(self, transaction: Transaction, row: ActionRow, event: Event, **changes: Any) -> ActionRow:
        """One step of the table, within a transaction."""
        after = self.actions.step(transaction, row, event, **changes)
        self.hub.publish(row.id, Stepped(row.state, event, after.state))
        return after

    def stepped(self, row: ActionRow, event: Event, **changes: Any) -> ActionRow:
        """One step in a transaction of its own: on disk when this returns."""
        with self.journal.transaction() as transaction:
            return self.step(transaction, row, event, **changes)

    def runtime_of(self, action: Action) -> Runtime:
        """The runtime of that kind. Raises Unsupported."""
        found = self.runtimes.get(action.kind)
        if found is None:
            raise Unsupported(f"GoEx can't run actions of kind {action.kind!r} yet.")
        return found

    def resolved(self, action: Action) -> Action:
        """Calls validated against the catalog, their accounts named. Raises InvalidInput, Unsupported."""
        if not isinstance(action, ApiCalls):
            return action
        calls = []
        for call in action.calls:
            checked = self.catalog.validate(call)
            self.catalog.check_callable(call.id)  # before anybody is told to connect an account for it
            calls.append(replace(checked, account=self.vault.resolve(call.service, call.account).name))
        return ApiCalls(calls=tuple(calls))

    def target_of(self, revert: Revert) -> ActionRow:
        """The action that a revert is about. Raises for one that can't be reverted at all."""
        target = self.actions.get(revert.target)
        if target.kind == "revert":
            raise Unsupported(
                f"{target.id} is itself an undo, redo or commit.",
                next_step=f"Revert the action that it was about: {target.target}",
            )
        return target

    def subject(self, action: Action) -> Action:
        """What an action works on: itself, or the target of a revert."""
        if isinstance(action, Revert):
            return self.target_of(action).the_plan().action
        return action

    def leases(self, row: ActionRow, plan: Plan) -> tuple[Lease, ...]:
        """One lease for each account that the plan uses, ending with the action."""
        expires = self.clock() + timedelta(seconds=self.settings.lease_seconds)
        accounts = dict.fromkeys(
            (need.service, need.account) for need in plan.required if need.service in self.catalog.services
        )
        return tuple(self.vault.lease(service, name, action_id=row.id, expires=expires) for service, name in accounts)

    def records(self, row: ActionRow) -> SealedRecords:
        return SealedRecords(self.journal, self.vault, row.id, row.agent)

    def context(self, row: ActionRow, subject: Action | None = None, leases: tuple[Lease, ...] = ()) -> Context:
        """What a runtime gets for `row`. `subject` (by default what its plan is about) names the accounts."""
        if subject is None and row.plan:
            subject = self.subject(row.the_plan().action)
        accounts: dict[tuple[str, str], Account] = {}
        if isinstance(subject, ApiCalls):
            for call in subject.calls:
                account = self.vault.resolve(call.service, call.account)
                accounts[account.service, account.name] = account
        loop = asyncio.get_running_loop()

        def note(kind: str, facts: JsonObject) -> None:
            if kind in set(Event):
                raise InvalidInput(f"{kind!r} is a step's name, not a note's.")
            self.journal.append(kind, action_id=row.id, agent=row.agent, facts=facts)

        def progress(text: str) -> None:
            loop.call_soon_threadsafe(self.hub.publish, row.id, Progressed(text))

        def output(stream: str, data: bytes) -> None:
            loop.call_soon_threadsafe(self.hub.publish, row.id, Printed(stream, data))

        return Context(
            action_id=row.id,
            agent=row.agent,
            accounts=accounts,
            granted=self.ledger.standing(row.agent, row.session),
            leases=leases,
            records=self.records(row),
            note=note,
            progress=progress,
            output=output,
            intent=row.intent,
        )
