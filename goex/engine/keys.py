"""Idempotency keys: the same request with the same key is the same action, and no other asker's."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields

from goex.engine.core import Core, Principal, Request
from goex.journal.chain import Row
from goex.journal.errors import JournalBroken, JournalFailed, JournalLocked
from policies.errors import ExitStatus, GoexError, InvalidInput
from policies.grants import ANONYMOUS
from policies.jsonvalue import canonical, parse
from policies.typed_json import to_json


class KeyUnknown(GoexError):
    """It can't be known whether a key was used before."""

    code = "unknown"
    exit_status = ExitStatus.UNKNOWN


class KeyTaken(InvalidInput):
    """A key was used for another request."""


_AS_SENT = "sent "  # before the hash of a request whose action depends on more than it says


def asked(request: Request, session: str) -> str:
    """A hash of all that a request says but its key, and not of what it stands for now: that changes. A choice and an
    answer are of what a session was shown."""
    said = {each.name: getattr(request, each.name) for each in fields(request)}
    action = said.pop("sent") or (to_json(request.action) if request.action else None)
    if not request.account:
        del said["account"]  # as in journals of before there was one
    said |= {"action": action, "key": "", "session": session if request.choice or request.answer else ""}
    return (_AS_SENT if _elsewhere(request) else "") + hashlib.sha256(canonical(said)).hexdigest()


def _elsewhere(request: Request) -> bool:
    """Whether what a request stands for depends on more than it says."""
    return bool(request.sent or request.proposal)


@dataclass(frozen=True, slots=True)
class Keys:
    """Which action a principal's key began."""

    core: Core

    def id(self, request: Request, principal: Principal) -> str:
        """A new action's id; with a key always the same, no other asker's, and one that nobody else can work out."""
        return self._keyed_id(request.key, principal) if request.key else f"a-{secrets.token_hex(6)}"

    def _keyed_id(self, key: str, principal: Principal) -> str:
        # Not the session, which ends while the connection is there: the key would begin another action then.
        place = (principal.connection or principal.session) if principal.agent == ANONYMOUS else ""
        whole = canonical([principal.agent, principal.since, place, key])
        return f"a-{self.core.journal.secret_hash(whole)[:24]}"

    def keyed(self, key: str, principal: Principal) -> str:
        """The id of the action that this principal began with this key, whatever the request was; "" where there is
        none. None of its texts is read. Raises KeyUnknown."""
        if not key:
            return ""
        try:
            id = self._keyed_id(key, principal)
        except JournalLocked as error:
            said = "It can't be known whether this key was used before: the vault hasn't been opened since."
            raise KeyUnknown(said, next_step=error.next_step) from error
        return id if self._received(id) else ""

    def _received(self, id: str) -> tuple[Row, ...]:
        """The row of the journal that says how an action began; none where there is no such action. Raises
        KeyUnknown."""
        try:
            return self.core.journal.rows(action_id=id, kind="receive", limit=1)
        except (JournalBroken, JournalFailed) as error:
            said = "It can't be known whether this key was used before: the journal can't be read."
            raise KeyUnknown(said, next_step="goex doctor") from error

    def already(self, request: Request, principal: Principal) -> str:
        """The id of the action that this principal began with this key, by this request; "" where there is none.
        Raises KeyTaken, KeyUnknown."""
        if id := self.keyed(request.key, principal):
            self.check_same(id, request, principal)
        return id

    def check_same(self, id: str, request: Request, principal: Principal) -> None:
        """Raise KeyTaken unless the action of this id was begun by this very request, KeyUnknown where that can't be
        told. None of its texts is read."""
        (received,) = self._received(id)
        facts = parse(received.facts)
        noted, session = facts.get("asked_sha256", ""), facts.get("session", "")
        if noted != asked(request, session) or received.agent != principal.agent:
            if not noted or (_elsewhere(request) and not noted.startswith(_AS_SENT)):
                # An older GoEx noted nothing, or what such a request stood for then.
                raise KeyUnknown(f"What this key began is {id}, perhaps by this request: see how that stands.")
            raise KeyTaken(
                f"This key was used for another request ({id}).", next_step="Use a fresh key for each new request."
            )
        # What was chosen was shown in one session; and an agent without a name has what its session began, alone.
        if session != principal.session and (request.choice or request.answer or principal.agent == ANONYMOUS):
            raise KeyUnknown(f"What this key began is {id}, in another session. The person sees it: goex show {id}")
