"""Grants: what the person allowed, and for how long.

*Once* belongs to one digest and is consumed when it is used. *Session* ends with the session it was given in.
*Permanent* lasts until it expires or is revoked. *Task* is one line of a task (`policies.task_cover` decides, over a
whole plan). A grant never covers more than it says: another agent, account,
scope, or arguments outside its constraints, and it doesn't apply. Matching compares fields, never text. An argument
that an answer fills in is a reference, which equals itself whatever it comes to stand for: no grant but *once*, which
is bound to the whole plan, covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from policies.actions import Need
from policies.jsonvalue import JsonObject, JsonValue, canonical

ANONYMOUS = "anonymous"
PERSON = "person"  # the agent name of what the person types at the command line


class Width(StrEnum):
    """How far an approval reaches."""

    ONCE = "once"
    SESSION = "session"
    PERMANENT = "permanent"
    TASK = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One permission of one agent on one account, with its history.

    `constraints` maps an argument's name to the only value it may have; every call that uses the scope must
    match. With `only` a call has no arguments but these and those that are `free`, which may be anything, and `methods`
    are those that it holds for (empty: all that the scope opens); one that is held to either without `only` was given
    before it said all that was shown (`is_outdated`), and covers nothing. `entries` are the hashes of catalog entries
    as they were when it was given: where there are any, a method that isn't among them, or whose entry is another one
    now, isn't covered (`Grant.knows`). `digest` is set exactly for once-grants, `session` for session grants and for a
    task's that its own agent proposed. `times` and `within` are a task's: how often (0: any number), and the bounds of
    its arguments (None: any).
    """

    id: str
    agent: str
    service: str
    account: str
    scope: str
    width: Width
    created: datetime
    expires: datetime | None
    by: str  # who decided, as the daemon saw it: user, terminal
    why: str  # the action that it was asked for
    constraints: Mapping[str, JsonValue] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    only: bool = False
    free: tuple[str, ...] = ()
    entries: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    session: str = ""
    revoked: datetime | None = None
    used: datetime | None = None  # for once-grants: consumed
    uses: int = 0  # actions that were allowed on it; of a task's the calls
    last_used: datetime | None = None
    times: int = 0
    within: Mapping[str, JsonObject] | None = None

    def covers(self, need: Need, *, agent: str, digest: str, session: str, now: datetime) -> bool:
        """Whether this grant alone satisfies `need` now."""
        if self.revoked is not None or self.is_over(now) or self.is_outdated:
            return False
        if (self.agent, self.service, self.account, self.scope) != (
            agent,
            need.service,
            need.account,
            need.scope,
        ):
            return False
        match self.width:
            case Width.ONCE:
                if self.used is not None or not digest or self.digest != digest:
                    return False
            case Width.SESSION:
                if not session or self.session != session or agent == ANONYMOUS:
                    return False
            case Width.PERMANENT:
                if agent == ANONYMOUS:
                    return False
            case Width.TASK:
                return False  # never by one need alone
        if self.width is not Width.ONCE and need.unseen:
            return False
        if self.methods and not set(need.methods) <= set(self.methods):
            return False
        return self._arguments_match(need)

    @property
    def is_outdated(self) -> bool:
        """Whether it is of an earlier version, and would hold with arguments that nobody was shown."""
        stands = self.width in (Width.SESSION, Width.PERMANENT)
        return stands and bool(self.constraints or self.methods) and not self.only

    def knows(self, method: str, entry: str) -> bool:
        """Whether it holds for that method of its service, whose catalog entry is hashed to `entry` now."""
        return not self.entries or (bool(entry) and self.entries.get(method) == entry)

    def is_over(self, now: datetime) -> bool:
        """Whether its time is over; also while its beginning is still to come, since a clock was set back: for how long
        it was used already isn't known then."""
        return now < self.created or (self.expires is not None and now >= self.expires)

    def unused_since(self) -> datetime:
        """When it was used last, or given."""
        return self.last_used or self.created

    def _arguments_match(self, need: Need) -> bool:
        named = {*self.constraints, *self.free}
        if self.only and any(arguments.keys() - named for arguments in need.arguments):
            return False
        if not self.constraints:
            return True
        if not need.arguments:
            return False
        return all(
            name in arguments and canonical(arguments[name]) == canonical(value)
            for arguments in need.arguments
            for name, value in self.constraints.items()
        )
