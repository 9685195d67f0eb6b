"""Calls that were refused until a passkey confirms them, and are let through once when they come again.

Rules: what is confirmed is the very same request, byte for byte, of the same process, and at the public page of the
same session; so neither another program nor another request takes its place. It is shown to the person with all that is
in it but secrets, each text escaped, and doesn't outlive the daemon. What is a secret is said by the protos, field by
field (`debug_redact`), and never guessed; the statement that is signed covers secrets, too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from goex.engine.peers import Peer
from goex.journal.chain import stamp
from goex.json_text import json_lines
from goex.rpc import passkeys_pb2 as ppb
from policies.display_text import escape
from policies.errors import Denied, InvalidInput

LASTS = timedelta(minutes=5)  # that it is shown, and after the confirmation may come again
_MOST = 100
_LONGEST_SHOWN = 200_000  # characters, of its JSON
_LONGEST_LINES = 400_000  # characters of these, which are longer by their indents and what is escaped
_MOST_SHOWN = 6_000_000  # characters of all together, so that one reply holds them
_HIDDEN = "(not shown)"


class PasskeyDue(Denied):
    """A passkey's assertion is due. `difference` names the waiting call that it confirms, where there is one."""

    code = "passkey"

    def __init__(self, what: str, waiting: str = "") -> None:
        where = "confirm it there, while this waits or before you run it again" if waiting else "answer it there"
        super().__init__(f"{what} needs your passkey.", next_step=f"Open the page and {where}: goex web")
        self.difference = (waiting,) if waiting else ()


@dataclass(slots=True, kw_only=True)
class _Waiting:
    view: ppb.WaitingCall
    key: bytes
    until: datetime
    size: int  # characters of what is shown
    confirmed: bool = False


class WaitingCalls:
    """Those that wait."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._calls: dict[str, _Waiting] = {}

    def require(
        self, peer: Peer, what: str, call: str, request: Message, instead: Mapping[str, object] | None = None
    ) -> None:
        """Return for a call that was confirmed, which it is used up by. Raises PasskeyDue. `instead`: by their names,
        what is shown of fields that say nothing to a person, or hold more than may be shown."""
        now = self._sweep()
        shown, lines = _shown(request, instead or {})
        key = self._key(peer, call, request, shown)
        found = next((one for one in self._calls.values() if hmac.compare_digest(one.key, key)), None)
        if found is None:
            view = ppb.WaitingCall(
                id=f"pw-{secrets.token_hex(6)}",
                what=escape(what),
                by=escape(peer.describe()),
                at=stamp(now),
                call=call,
                request=hashlib.sha256(shown.encode()).hexdigest(),
                request_json=shown,
                lines=lines,
            )
            size = len(shown) + _length(lines)
            while len(self._calls) >= _MOST or sum(one.size for one in self._calls.values()) + size > _MOST_SHOWN:
                del self._calls[next(iter(self._calls))]
            found = self._calls[view.id] = _Waiting(view=view, key=key, until=now + LASTS, size=size)
        if not found.confirmed:
            raise PasskeyDue(what, found.view.id)
        del self._calls[found.view.id]

    def open(self) -> list[ppb.WaitingCall]:
        """Those that nobody confirmed yet, oldest first."""
        self._sweep()
        return [one.view for one in self._calls.values() if not one.confirmed]

    def statement(self, id: str) -> dict[str, Any]:
        """What an assertion says that confirms it. Raises InvalidInput."""
        self._sweep()
        if (found := self._calls.get(id)) is None:
            raise InvalidInput(f"No call {id[:40]!r} waits.", next_step="Run it again.")
        return _stated(found)

    def confirm(self, statement: Mapping[str, Any]) -> int:
        """Let the call through once that an assertion stated. Returns for how many seconds. Raises InvalidInput."""
        now = self._sweep()
        found = self._calls.get(statement["waiting"])
        if found is None or _stated(found) != statement:
            raise InvalidInput("That call doesn't wait any more.", next_step="Run it again.")
        found.confirmed, found.until = True, now + LASTS
        return int(LASTS.total_seconds())

    def forget(self) -> None:
        self._calls.clear()

    def _key(self, peer: Peer, call: str, request: Message, shown: str) -> bytes:
        """The call, whole, hashed under a key that nobody has: whoever reads it can't guess a passphrase by it."""
        who = f"{peer.uid} {peer.process or peer.connection} {peer.page_session}"
        made = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in (who.encode(), call.encode(), request.SerializeToString(deterministic=True), shown.encode()):
            made.update(len(part).to_bytes(8, "big") + part)
        return made.digest()

    def _sweep(self) -> datetime:
        now = self._clock()
        for id in [id for id, one in self._calls.items() if one.until <= now]:
            del self._calls[id]
        return now


def _stated(waiting: _Waiting) -> dict[str, Any]:
    view = waiting.view
    return {
        "kind": "presence",
        "waiting": view.id,
        "what": view.what,
        "by": view.by,
        "call": view.call,
        "request": view.request,
        "whole": waiting.key.hex(),
    }


def _shown(request: Message, instead: Mapping[str, object]) -> tuple[str, list[str]]:
    """The request without secrets: as JSON, and as the lines that a person is shown of that. Raises InvalidInput."""
    text = json.dumps(_fields(request, instead), sort_keys=True, indent=1, ensure_ascii=False)
    if len(text) <= _LONGEST_SHOWN and _length(lines := json_lines(json.loads(text))) <= _LONGEST_LINES:
        return text, lines
    raise InvalidInput("This request is too large to be confirmed by a passkey.", next_step="Make it smaller.")


def _length(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _fields(message: Message, instead: Mapping[str, object]) -> dict[str, object]:
    return {
        field.name: instead[field.name] if field.name in instead else _HIDDEN if hides(field) else _readable(value)
        for field, value in message.ListFields()
    }


def _readable(value: Any) -> object:
    if isinstance(value, Message):
        return _fields(value, {})
    return value if isinstance(value, str | int | float) else [_readable(each) for each in value]


def hides(field: FieldDescriptor) -> bool:
    """Whether only that a field is there is shown: its option `debug_redact` says so, and bytes say nothing."""
    return field.type == field.TYPE_BYTES or bool(field.GetOptions().debug_redact)
