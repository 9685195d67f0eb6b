"""Tells the person in a Matrix room of theirs that a question waits, where nobody answered it for a while.

Rules: nothing is read from the room, so nothing there answers. A message holds one question's sentence (or not even
that) and the page's address: never a payload, plain text alone, in which no name is a link or calls anybody. However
many questions there are, it is one message a minute at most, and of each agent's half as often after each that nobody
answered: one that asks for show silences no other. The credential is a Matrix account's of the vault, and goes to that
account's origin; a sealed vault sends nothing. What fails is logged, and delays the next message as one that was sent;
sent again, it is the same message to the homeserver, which may have taken it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from goex.config import Notify
from goex.daemon import question
from goex.engine.core import Core
from goex.engine.events import Approval
from goex.journal.actions import ActionRow
from policies.actions import ApiCalls, Revert
from policies.errors import GoexError, Unavailable
from vault.lease import Lease

if TYPE_CHECKING:
    from vault.store import Vault

log = logging.getLogger("goex.daemon")

SERVICE = "matrix"
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
_REMEMBERED = timedelta(days=1)  # how long after its end a pause still makes the next one longer
_LOOK_SECONDS = 2.0
_SECONDS = 20.0  # for one request
_LARGEST_ANSWER = 65_536
_LONGEST = 500  # characters of a sentence
_LABEL = "away"
_KINDS = {
    "files": "a program in a folder",
    "code": "a program for services",
    "sql": "statements",
    "mongo": "operations on a database",
    "task": "a task",
    "revert": "an undo or redo",
}
_ANSWERED = ("approved", "denied")
# Without these before a letter a client of Matrix makes neither a link nor a mention of a word.
_LINKED = re.compile(r"[.:@\u3002\uff0e\uff61](?=\S)")

# With the credential, to a room, a text; the same `id` is the same message. Raises GoexError.
Send = Callable[[Lease, str, str, str], None]


class Away:
    """Looks every two seconds, for as long as `start` was and `close` wasn't called. `page`: the page's public address;
    "": none. `send` waits for the network, and is called in a thread of its own."""

    def __init__(
        self,
        settings: Notify,
        core: Core,
        vault: Callable[[], Vault],
        page: str,
        *,
        clock: Callable[[], datetime],
        send: Send | None = None,
    ) -> None:
        self._settings = settings
        self._core = core
        self._vault = vault
        self._page = page
        self._clock = clock
        self._send = send or send_to_room
        self._told: set[str] = set()
        self._seen: set[str] = set()  # what waited at the last look
        self._next: datetime | None = None  # before which nothing is sent
        # By agent: the pause after the next message about it, and before when none is sent.
        self._pauses: dict[str, tuple[timedelta, datetime]] = {}
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the background; without a room nothing is begun."""
        if self._settings.matrix_room and self._looking is None:
            self._looking = asyncio.create_task(self._look_until_closed())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})

    async def _look_until_closed(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001  looking must go on
                log.error("the room isn't told of what waits: internal error (%s)", type(error).__name__)

    async def look(self) -> None:
        """Send a message where one is due."""
        approvals, now = self._core.approvals, self._clock()
        waiting = set(approvals.queue.order())
        gone, self._seen = self._seen - waiting, waiting
        if any(approvals.get(id).state in _ANSWERED for id in gone):  # somebody is there
            self._pauses.clear()
        self._told &= waiting
        if _is_before(now, self._next) or not waiting - self._told or self._sealed():
            return
        after = timedelta(seconds=self._settings.matrix_after)
        due = [
            one
            for one in approvals.pending()
            if one.id not in self._told and datetime.fromisoformat(one.created) + after <= now
        ]
        first = next((one for one in due if not self._is_paused(self._agent(one), now)), None)
        if first is None:
            return
        agent = self._agent(first)
        # A message a minute adds one at most, so they stay few.
        self._pauses = {name: one for name, one in self._pauses.items() if now < one[1] + _REMEMBERED}
        pause, _ = self._pauses.get(agent, (FIRST_PAUSE, now))
        self._next, self._pauses[agent] = now + FIRST_PAUSE, (min(2 * pause, LONGEST_PAUSE), now + pause)
        try:
            await self._tell(first, len(waiting) - 1)
        except GoexError as error:
            log.warning("the room wasn't told of what waits: %s", error.message)
        else:
            self._told |= {one.id for one in due}
            log.info("the room was told of %d questions", len(due))

    def _agent(self, approval: Approval) -> str:
        found = self._core.approvals.queue.get(approval.id)
        return found.agent if found is not None else ""

    def _is_paused(self, agent: str, now: datetime) -> bool:
        return agent in self._pauses and _is_before(now, self._pauses[agent][1])

    def _sealed(self) -> bool:
        try:
            return self._vault().state != "unsealed"
        except GoexError:  # there is none
            return True

    async def _tell(self, first: Approval, others: int) -> None:
        vault, settings = self._vault(), self._settings
        text = self._text(first, others)
        try:
            lease = vault.lease(
                SERVICE,
                vault.resolve(SERVICE, settings.matrix_account).name,
                action_id=_LABEL,
                expires=self._core.clock() + timedelta(seconds=2 * _SECONDS),
            )
            # Of each question one message is shown at most. Hashed: a homeserver isn't told what isn't in a message.
            id = hashlib.sha256(b"goex.v1.away\0" + first.id.encode()).hexdigest()
            await _unwaited(lambda: self._send(lease, settings.matrix_room, text, id))
        finally:
            vault.end_leases(_LABEL)

    def _text(self, first: Approval, others: int) -> str:
        sentence = "A question waits for you."
        if self._settings.matrix_sentence:
            row = self._core.actions.get(first.action_id)
            plan = row.the_plan()
            target = ""
            if isinstance(plan.action, Revert):
                target = _kind(self._core.actions.get(plan.action.target))
            sentence = unlinked(question.sentence(row, plan, self._core.catalog, target))[:_LONGEST]
        more = f"{others} more {'waits' if others == 1 else 'wait'}." if others else ""
        where = f"{self._page}/#waiting/{first.id}" if self._page else "Answer it where GoEx runs: goex approve"
        return "\n".join(part for part in (sentence, more, where) if part)


async def _unwaited(work: Callable[[], None]) -> None:
    """Run it in a thread, which the daemon's end doesn't wait for. Raises what it raises."""
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def end(error: Exception | None) -> None:
        if done.done():
            return  # nobody waits any more
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as raised:  # noqa: BLE001  it is raised where it is waited for
            error = raised
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(end, error)

    threading.Thread(target=run, name="goex-away", daemon=True).start()
    await done


def _is_before(now: datetime, then: datetime | None) -> bool:
    """Whether a pause until `then` isn't over; one that a clock that was put back makes longer is."""
    return then is not None and now < then <= now + LONGEST_PAUSE


def _kind(row: ActionRow) -> str:
    """What an action was, without what it was asked with."""
    action = row.action()
    if isinstance(action, ApiCalls):
        return ", ".join(dict.fromkeys(call.id for call in action.calls))
    return _KINDS.get(row.kind, row.kind)


def unlinked(text: str) -> str:
    """Return `text` so that no client makes a link or a mention of a part of it."""
    return _LINKED.sub(lambda found: f"[{found[0]}]", text)


def send_to_room(lease: Lease, room: str, text: str, id: str) -> None:
    """Send a text message to a room of the account's homeserver, which shows one of that id once. Raises
    Unavailable."""
    from policies.tls import client_context
    from vault.oauth import http_request

    account = lease.account
    if account.format != "string":
        raise Unavailable(f"{account.id} isn't a token.")
    way = http_request.Way(
        private=account.private,
        context=client_context(account.ca_pem),
        resolve=http_request.system_resolve,
        seconds=_SECONDS,
        limit=_LARGEST_ANSWER,
    )
    url = f"{account.base_url.rstrip('/')}/_matrix/client/v3/rooms/{quote(room, safe='')}/send/m.room.message/"
    body = {"msgtype": "m.text", "body": text, "m.mentions": {}}
    failure = ""
    try:
        reply = http_request.send_json(
            way,
            "PUT",
            url + f"goex-{id}",
            json.dumps(body).encode(),
            token=lease.secret.reveal().decode(),
        )
        failure = "" if reply.status == 200 else f"it answered {reply.status}"
    except http_request.Failed as error:
        failure = error.why
    except UnicodeDecodeError:
        failure = "the account's token isn't text"
    if failure:
        raise Unavailable(f"The homeserver wasn't reached with {account.id}: {failure}.")
