"""Tells the person in a Matrix room of theirs that a question waits, where nobody answered it for a while.

Rules: nothing is read from the room, so nothing there answers. A message holds one question's sentence (or not even
that) and the page's address: never a payload, plain text alone, in which no name is a link or calls anybody. However
many questions there are, it is one message a minute at most, and half as often after each that nobody answered. The
credential is a Matrix account's of the vault, and goes to that account's origin; a sealed vault sends nothing. What
fails is logged, and delays the next message as one that was sent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from goex.config import Notify
from goex.daemon.brief_views import brief_view
from goex.engine.core import Core
from goex.engine.events import Approval
from policies.errors import GoexError, Unavailable
from vault.lease import Lease

if TYPE_CHECKING:
    from vault.store import Vault

log = logging.getLogger("goex.daemon")

SERVICE = "matrix"
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
_LOOK_SECONDS = 2.0
_SECONDS = 20.0  # for one request
_LARGEST_ANSWER = 65_536
_LONGEST = 500  # characters of a sentence
_LABEL = "away"
_ANSWERED = ("approved", "denied")
# Without these before a letter a client of Matrix makes neither a link nor a mention of a word.
_LINKED = re.compile(r"[.:@\u3002\uff0e\uff61](?=\S)")

Send = Callable[[Lease, str, str], None]  # with the credential, to a room, a text. Raises GoexError


class Away:
    """Looks every two seconds, for as long as `start` was and `close` wasn't called. `page`: the page's public address;
    "": none. `send` waits for the network, and is called in a thread."""

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
        self._pause = FIRST_PAUSE
        self._next: datetime | None = None  # before which nothing is sent
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
        for id in self._told - waiting:
            if approvals.get(id).state in _ANSWERED:  # somebody is there
                self._pause, self._next = FIRST_PAUSE, None
        self._told &= waiting
        if self._next is not None and now < self._next <= now + LONGEST_PAUSE:
            return
        if not waiting - self._told or self._sealed():
            return
        after = timedelta(seconds=self._settings.matrix_after)
        due = [
            one
            for one in approvals.pending()
            if one.id not in self._told and datetime.fromisoformat(one.created) + after <= now
        ]
        if not due:
            return
        self._next, self._pause = now + self._pause, min(2 * self._pause, LONGEST_PAUSE)
        try:
            await self._tell(due[0], len(waiting) - 1)
        except GoexError as error:
            log.warning("the room wasn't told of what waits: %s", error.message)
        else:
            self._told |= {one.id for one in due}
            log.info("the room was told of %d questions", len(due))

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
            await asyncio.to_thread(self._send, lease, settings.matrix_room, text)
        finally:
            vault.end_leases(_LABEL)

    def _text(self, first: Approval, others: int) -> str:
        sentence = "A question waits for you."
        if self._settings.matrix_sentence:
            row = self._core.actions.get(first.action_id)
            made = brief_view(self._core, first, row, row.the_plan() if row.plan else None)
            sentence = unlinked(made.question.sentence)[:_LONGEST] or sentence
        more = f"{others} more {'waits' if others == 1 else 'wait'}." if others else ""
        where = f"{self._page}/#waiting/{first.id}" if self._page else "Answer it where GoEx runs: goex approve"
        return "\n".join(part for part in (sentence, more, where) if part)


def unlinked(text: str) -> str:
    """Return `text` so that no client makes a link or a mention of a part of it."""
    return _LINKED.sub(lambda found: f"[{found[0]}]", text)


def send_to_room(lease: Lease, room: str, text: str) -> None:
    """Send a text message to a room of the account's homeserver. Raises Unavailable."""
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
            url + f"goex-{secrets.token_hex(16)}",
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
