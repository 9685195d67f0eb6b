"""Questions to the person: one row each, settled once, and the daemon owns the deadline.

The first settlement wins, whoever makes it (a person, the deadline, a lost client, a restart): it is an update of a row
that is still pending, in one transaction with its journal row and with the grants or the denial that it makes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from goex.engine.events import Approval
from goex.journal.chain import Journal, Transaction, stamp
from goex.journal.schema import actions, approvals
from policies.decisions import Ask
from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse

KEPT_SETTLED = 50


class AlreadySettled(Conflict):
    """Somebody else, or the deadline, was first."""

    code = "settled"


class Approvals:
    """The queue: oldest first."""

    def __init__(self, journal: Journal, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Future[None]]] = defaultdict(list)
        self._watchers: set[asyncio.Queue[str]] = set()

    def open(self, transaction: Transaction, *, action_id: str, digest: str, ask: Ask, seconds: float) -> str:
        """Add a question in the transaction of the action's step; call `announce` after the commit."""
        id = f"q-{secrets.token_hex(6)}"
        transaction.connection.execute(
            insert(approvals).values(
                id=id,
                action_id=action_id,
                digest=digest,
                state="pending",
                created=transaction.now,
                deadline=stamp(self._clock() + timedelta(seconds=seconds)),
                reason=ask.reason,
                widths=canonical([width.value for width in ask.widths]).decode(),
                presence=ask.presence,
                settled="",
                settled_by="",
            )
        )
        return id

    def settle(self, transaction: Transaction, id: str, state: str, *, by: str) -> None:
        """Settle in the caller's transaction. Raises AlreadySettled when another was first."""
        done = transaction.connection.execute(
            update(approvals)
            .where(approvals.c.id == id, approvals.c.state == "pending")
            .values(state=state, settled=transaction.now, settled_by=by)
        )
        if done.rowcount != 1:
            raise AlreadySettled(f"Request {id[:40]} was settled already.", next_step="goex log shows how.")

    def announce(self, id: str) -> None:
        """Wake whoever waits for this one, and tell the watchers. After the commit only."""
        for waiting in self._waiting.pop(id, ()):
            if not waiting.done():
                waiting.set_result(None)
        for queue in self._watchers:
            queue.put_nowait(id)

    async def settled(self, id: str) -> Approval:
        """Wait until it isn't pending any more."""
        while True:
            found = self.get(id)
            if found.state != "pending":
                return found
            waiting = asyncio.get_running_loop().create_future()
            self._waiting[id].append(waiting)
            await waiting

    def get(self, id: str) -> Approval:
        with self._journal.read() as connection:
            row = connection.execute(select(approvals).where(approvals.c.id == id)).first()
        if row is None:
            raise InvalidInput(f"There is no request {id[:40]!r}.", next_step="goex approve lists them.")
        return _approval(row)

    def pending(self) -> tuple[Approval, ...]:
        with self._journal.read() as connection:
            query = select(approvals).where(approvals.c.state == "pending").order_by(approvals.c.created)
            return tuple(_approval(row) for row in connection.execute(query))

    def waiting(self, agent: str = "") -> int:
        """How many are pending, of one agent or of all."""
        with self._journal.read() as connection:
            query = select(func.count()).select_from(approvals).where(approvals.c.state == "pending")
            if agent:
                query = query.join(actions, actions.c.id == approvals.c.action_id).where(actions.c.agent == agent)
            return int(connection.execute(query).scalar_one())

    def of_action(self, action_id: str) -> tuple[Approval, ...]:
        """Oldest first."""
        with self._journal.read() as connection:
            query = select(approvals).where(approvals.c.action_id == action_id).order_by(approvals.c.created)
            return tuple(_approval(row) for row in connection.execute(query))

    def recent(self) -> tuple[Approval, ...]:
        with self._journal.read() as connection:
            query = select(approvals).order_by(approvals.c.created.desc()).limit(KEPT_SETTLED)
            return tuple(reversed([_approval(row) for row in connection.execute(query)]))

    def watch(self) -> asyncio.Queue[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._watchers.add(queue)
        return queue

    def unwatch(self, queue: asyncio.Queue[str]) -> None:
        self._watchers.discard(queue)


def _approval(row: Row[Any]) -> Approval:
    values = dict(row._mapping)
    values["widths"] = tuple(parse(values["widths"]))
    del values["settled"]
    return Approval(**values)
