"""The contract that every kind of action keeps, so that one engine can drive them all.

The engine calls, in this order and with a journal row before each: `assess` (no effect), `prepare` (the inverse is
durable when it returns), `execute`. After a crash: `settle`. Taking back is an action of its own, assessed by the
runtime of its target (`assess_revert`) and then executed on the same path (`execute_revert`).

A runtime keeps nothing in memory that a crash may not take: what it needs later goes through `Records`, which seals
it in the vault's name and writes it durably before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Literal, Protocol

from policies.accounts import Account
from policies.actions import Action, Need, Outcome, Plan, Revert
from policies.jsonvalue import JsonObject, JsonValue
from policies.services import Risk
from vault.lease import Lease


class Records(Protocol):
    """Durable, sealed notes of one action (undo payloads: bodies, rows, captures). The journal keeps their hashes.

    Names are short words ("captured", "manifest"). `put` returns when the bytes are on disk.
    """

    def put(self, name: str, data: bytes) -> None: ...

    def get(self, name: str) -> bytes | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the engine gives a runtime for one action. Nothing in it reaches a decision or the vault.

    `granted` are the (service, account, scope) that standing grants of this agent already cover, so that a plan can
    prefer them. `leases` is empty until the decision is made. `note(kind, facts)` writes a journal row first;
    `progress(text)` shows a line to whoever waits; `output(stream, data)` hands on redacted output as it comes.
    """

    action_id: str
    agent: str
    accounts: Mapping[tuple[str, str], Account]  # (service, account name)
    granted: frozenset[tuple[str, str, str]]
    leases: tuple[Lease, ...]
    records: Records
    note: Callable[[str, JsonObject], None]
    progress: Callable[[str], None]
    output: Callable[[str, bytes], None]
    intent: str = ""  # the request in words, if there is one
    keep: bool = False  # of a dry run: what it finds may be applied afterwards, so it is kept for a while
    answers: dict[str, JsonValue] | None = None  # filled by `execute`: each request's whole answer, for who goes on
    ending: AsyncExitStack = field(default_factory=AsyncExitStack)  # what is let go of when its turn to run is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What a probe found after a crash. `outcome` None: it can't be known, and `evidence` is what the person gets."""

    outcome: Outcome | None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What an action that has run read and wrote, to tell whether two actions are independent.

    Each is a path of names: `files/home/you/docs`, `db/shop/orders`, `db/shop/orders/id=5`, `calls/slack/slack.com/C1`;
    one that is above or below another meets it. What isn't known is said by the wider name.
    """

    reads: frozenset[str]
    writes: frozenset[str]


DryKind = Literal["note", "warning", "change", "hunk", "same", "added", "removed", "output", "errors"]


@dataclass(frozen=True, slots=True)
class DryLine:
    """One line of what a dry run found. `note` and `warning` are GoEx's own words; the others hold foreign text, which
    is escaped already. Whatever was left out is said by a line."""

    kind: DryKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What would happen, found out without any effect outside. What happens later may still differ."""

    ok: bool
    summary: str
    lines: tuple[DryLine, ...]
    preview: str = ""  # by which it can be applied, where it was kept


def dropping(revert: Revert) -> Need:
    """The permission that a commit needs which only drops what undo of its target would need."""
    return Need(
        service="goex",
        account=revert.target,
        scope="commit",
        risk=Risk.WRITE,
        methods=("commit",),
        arguments=({"action": revert.target},),
    )


class Runtime(Protocol):
    """One kind of action."""

    @property
    def kind(self) -> str: ...

    async def assess(self, action: Action, context: Context) -> Plan:
        """What `action` will touch, need, and how it is taken back. Has no effect. Raises InvalidInput."""
        ...

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """What `plan` would do, as far as that can be known without any effect. `context.action_id` is the dry run's
        own, nothing is leased and nothing is recorded. What is made for it is gone when this ends, however it ends.

        Raises Conflict when the plan isn't what would run any more.
        """
        ...

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        """What a revert would do. Only reads. Raises Conflict when the state changed since."""
        ...

    async def reap(self) -> None:
        """At the daemon's start: remove what dry runs of an earlier one left. Idempotent."""
        ...

    async def prepare(self, plan: Plan, context: Context) -> None:
        """Make the inverse durable. Nothing has happened yet if this raises. What is begun here that takes a while, and
        would be of no use if `execute` isn't called, is let go of by `context.ending`."""
        ...

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """Run it. Raises only when nothing was touched; every other failure is an Outcome."""
        ...

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        """After a crash between `prepare` and the outcome: find out what happened. Reads only. Idempotent."""
        ...

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """The plan that takes back (or does again) the action of `plan`; `context` is the *target's*.

        Raises Unsupported when it can't be done, Conflict when the state changed since.
        """
        ...

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        """Run a revert. Compare-and-set: raises Conflict, having touched nothing, when the state changed since.

        Idempotent after a crash: run again, it finishes what was begun.
        """
        ...

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        """What the action of `plan` read and wrote, from the plan and the records alone; `context` is its own."""
        ...

    async def forget(self, plan: Plan, context: Context) -> None:
        """Drop what undo would need, of an action that never ran or was committed. Idempotent."""
        ...
