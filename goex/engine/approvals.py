"""Questions to the person: one row each, settled once, and the daemon owns the deadline.

The first settlement wins, whoever makes it (a person, the deadline, a lost client, a restart): it is an update of a row
that is still pending, in one transaction with its journal row and with the grants or the denial that it makes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, insert, select, update

from goex.engine.events import Approval
from goex.engine.queue import Queue, Waiting, alike
from goex.journal.actions import ActionRow, Actions
from goex.journal.chain import Journal, Transaction, stamp
from goex.journal.schema import approvals
from policies.decisions import Ask
from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse

KEPT_SETTLED = 50

# Made once: building a statement costs more than running it.
_GET = select(approvals).where(approvals.c.id == bindparam("wanted"))
_OF_ACTION = select(approvals).where(approvals.c.action_id == bindparam("wanted")).order_by(approvals.c.created)
_PENDING = select(approvals).where(approvals.c.state == "pending").order_by(approvals.c.created)
_OPEN = insert(approvals)
_SETTLE = (
    update(approvals)
    .where(approvals.c.id == bindparam("wanted"), approvals.c.state == "pending")
    .values(state=bindparam("to"), settled=bindparam("at"), settled_by=bindparam("who"))
)


class AlreadySettled(Conflict):
    """Somebody else, or the deadline, was first."""

    code = "settled"

    @classmethod
    def of(cls, id: str) -> AlreadySettled:
        return cls(
            f"Request {id[:40]} has expired, or was decided already.",
            next_step="See how it ended with: goex log. To have it done, run the command again.",
        )


class Approvals:
    """The questions, and the queue of those that are pending."""

    def __init__(self, journal: Journal, actions: Actions, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Future[None]]] = defaultdict(list)
        self._watchers: set[asyncio.Queue[str]] = set()
        self.queue = Queue()
        left = self._pending()
        rows = actions.those(question.action_id for question in left)
        for question in left:
            if question.action_id in rows:
                self.queue.enter(_waiting(question.id, rows[question.action_id]))

    def open(
        self, transaction: Transaction, *, action_id: str, digest: str, ask: Ask, widths: Iterable[str], seconds: float
    ) -> str:
        """Add a question in the transaction of the action's step; call `opened` after the commit."""
        id = f"q-{secrets.token_hex(6)}"
        transaction.connection.execute(
            _OPEN,
            {
                "id": id,
                "action_id": action_id,
                "digest": digest,
                "state": "pending",
                "created": transaction.now,
                "deadline": stamp(self._clock() + timedelta(seconds=seconds)),
                "reason": ask.reason,
                "widths": canonical([*widths]).decode(),
                "presence": ask.presence,
                "settled": "",
                "settled_by": "",
            },
        )
        return id

    def opened(self, id: str, row: ActionRow) -> None:
        """Put a question that was opened for `row` into the queue, and tell the watchers. After the commit only."""
        self.queue.enter(_waiting(id, row))
        self._tell(id)

    def settle(self, transaction: Transaction, id: str, state: str, *, by: str) -> None:
        """Settle in the caller's transaction. Raises AlreadySettled when another was first."""
        done = transaction.connection.execute(_SETTLE, {"wanted": id, "to": state, "at": transaction.now, "who": by})
        if done.rowcount != 1:
            raise AlreadySettled.of(id)

    def announce(self, id: str) -> None:
        """This one was settled: wake whoever waits for it, and tell the watchers. After the commit only."""
        duplicates = self.queue.duplicates(id)
        self.queue.leave(id)
        for waiting in self._waiting.pop(id, ()):
            if not waiting.done():
                waiting.set_result(None)
        self._tell(id)
        if duplicates and duplicates[0] == id and len(duplicates) > 1:
            self._tell(duplicates[1])  # which is asked now

    def _tell(self, id: str) -> None:
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
            row = connection.execute(_GET, {"wanted": id}).first()
        if row is None:
            raise InvalidInput(f"There is no request {id[:40]!r}.", next_step="goex approve lists them.")
        return _approval(row)

    def pending(self, *, duplicates: bool = False) -> tuple[Approval, ...]:
        """In the order of the queue, identical ones by the one that stands for them; with `duplicates` all."""
        found = {question.id: question for question in self._pending()}
        stand = self.queue.order()
        order = [id for first in stand for id in self.queue.duplicates(first)] if duplicates else stand
        return tuple(found[id] for id in order if id in found)

    def of_action(self, action_id: str) -> tuple[Approval, ...]:
        """Oldest first."""
        with self._journal.read() as connection:
            return tuple(_approval(row) for row in connection.execute(_OF_ACTION, {"wanted": action_id}))

    def _pending(self) -> tuple[Approval, ...]:
        with self._journal.read() as connection:
            return tuple(_approval(row) for row in connection.execute(_PENDING))

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


def _waiting(id: str, row: ActionRow) -> Waiting:
    return Waiting(id, row.id, row.agent, row.session, alike(row))


def _approval(row: Row[Any]) -> Approval:
    values = dict(row._mapping)
    values["widths"] = tuple(parse(values["widths"]))
    del values["settled"]
    return Approval(**values)
