"""What the tests of MongoDB share: records in memory, contexts, and a runtime on a server of any kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from policies.accounts import Account
from policies.actions import Mongo, Outcome, Plan, Revert
from policies.databases import SERVICE, Address
from policies.jsonvalue import canonical, parse
from policies.typed_json import from_json, to_json
from runtimes.base import Context, Settlement
from runtimes.mongo.backend import Backend
from runtimes.mongo.extjson import read
from runtimes.mongo.runtime import MongoRuntime
from runtimes.sql.contract import Limits
from vault.lease import Lease
from vault.secret import Secret

ACCOUNT = Account(
    service=SERVICE,
    name="shop",
    origins=(),
    base_url=Address.parse("mongodb://127.0.0.1:27017/shop")[0].url,
    format="database",
    private=True,
)


@dataclass
class Kept:
    """Records that survive a crash. `hook` is called before and after each write."""

    notes: dict[str, bytes] = field(default_factory=dict)
    hook: Callable[[str, str], None] = lambda moment, name: None

    def put(self, name: str, data: bytes) -> None:
        self.hook("before", f"put {name}")
        self.notes[name] = bytes(data)
        self.hook("after", f"put {name}")

    def get(self, name: str) -> bytes | None:
        return self.notes.get(name)


def ejson(text: str) -> Any:
    """A document, as Extended JSON says it."""
    return read(text)


def operation(name: str, collection: str, **rest: Any) -> str:
    """One operation as text."""
    return json.dumps({name: collection, **rest})


@dataclass
class Ground:
    """A runtime on one server, and actions on it by their id."""

    connect: Callable[[], Backend]
    account: Account = ACCOUNT
    limits: Limits = field(default_factory=Limits)
    records: dict[str, Kept] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)

    @property
    def runtime(self) -> MongoRuntime:
        """A new one each time: nothing may be kept in memory."""
        return MongoRuntime(self._lent, limits=self.limits, connect=lambda account, secret, limits: self.connect())

    @contextmanager
    def _lent(self, name: str, action_id: str) -> Iterator[Lease]:
        yield self._lease(action_id)

    def _lease(self, action_id: str) -> Lease:
        return Lease(
            action_id=action_id, account=self.account, secret=Secret(""), expires=datetime(2100, 1, 1, tzinfo=UTC)
        )

    def context(self, id: str, *, leased: bool = True) -> Context:
        return Context(
            action_id=id,
            agent="a1",
            accounts={(SERVICE, self.account.name): self.account},
            granted=frozenset(),
            leases=(self._lease(id),) if leased else (),
            records=self.records.setdefault(id, Kept()),
            note=lambda kind, facts: None,
            progress=lambda text: None,
            output=lambda stream, data: None,
        )

    async def plan(self, *operations: str, id: str = "a-1") -> Plan:
        action = Mongo(database=self.account.name, operations=operations)
        made = await self.runtime.assess(action, self.context(id, leased=False))
        # As the journal keeps it: canonical JSON, which sorts keys.
        return from_json(Plan, parse(canonical(to_json(made))), "It")

    async def do(self, *operations: str, id: str = "a-1") -> Outcome:
        plan = self.plans[id] = await self.plan(*operations, id=id)
        await self.runtime.prepare(plan, self.context(id))
        return await self.runtime.execute(plan, self.context(id))

    async def settle(self, id: str = "a-1") -> Settlement:
        return await self.runtime.settle(self.plans[id], self.context(id))

    async def revert(self, verb: Any, id: str = "a-1") -> Outcome:
        revert = Revert(verb=verb, target=id)
        target = self.context(id, leased=False)
        plan = await self.runtime.assess_revert(revert, self.plans[id], target)
        plan = from_json(Plan, parse(canonical(to_json(plan))), "It")
        return await self.runtime.execute_revert(revert, plan, self.plans[id], target, self.context("r-1"))

    async def rerun(self, verb: Any, id: str = "a-1") -> Outcome:
        """As after a crash: the revert's plan was made already."""
        revert = Revert(verb=verb, target=id)
        plan = self.plans[id]
        return await self.runtime.execute_revert(revert, plan, plan, self.context(id), self.context("r-1"))


def facts(outcome: Outcome) -> Mapping[str, Any]:
    return {"ok": outcome.ok, "touched": outcome.touched, "changes": outcome.changes}
