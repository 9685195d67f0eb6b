"""Sessions of the page at `[web] public_url`, which a passkey or a link began.

Rules: a session lives as long as the call that began it, and twelve hours at most. It ends when the vault is sealed,
when its passkey is removed, or when the person ends it, and with the daemon. It shows no presence.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from policies.errors import Denied
from vault.passkeys import Passkey, Passkeys

LASTS = timedelta(hours=12)
MOST = 8  # the oldest ends when one more begins


class NoPageSession(Denied):
    """The page speaks for a session that has ended."""

    code = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSession:
    """One session. `passkey`: what began it; None for a link. `over` is set when it has ended."""

    id: str
    passkey: Passkey | None
    begun: datetime
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ends(self) -> datetime:
        return self.begun + LASTS

    @property
    def how(self) -> str:
        """How it began, in words."""
        return f"passkey {self.passkey.id}" if self.passkey else "by a link"


class PageSessions:
    """Those that are open. `known`: the passkeys that count now; None while the vault is sealed."""

    def __init__(self, clock: Callable[[], datetime], known: Callable[[], Passkeys | None]) -> None:
        self._clock = clock
        self._known = known
        self._open: dict[str, PageSession] = {}

    @contextmanager
    def opened(self, passkey: Passkey | None) -> Iterator[PageSession]:
        """A new session, which ends with the block."""
        while len(self._open) >= MOST:
            self.end(next(iter(self._open)))
        session = PageSession(id=f"ps-{secrets.token_hex(16)}", passkey=passkey, begun=self._clock())
        self._open[session.id] = session
        try:
            yield session
        finally:
            self.end(session.id)

    async def lasting(self, session: PageSession) -> None:
        """Return when it has ended."""
        try:
            async with asyncio.timeout((session.ends - self._clock()).total_seconds()):
                await session.over.wait()
        except TimeoutError:
            self.end(session.id)

    def get(self, id: str) -> PageSession:
        """Raises NoPageSession unless it is open."""
        self.sweep()
        if (found := self._open.get(id)) is None:
            raise NoPageSession("This session of the page has ended.", next_step="Sign in again.")
        return found

    def all(self) -> tuple[PageSession, ...]:
        """Oldest first."""
        self.sweep()
        return tuple(self._open.values())

    def end(self, id: str) -> None:
        """Idempotent."""
        if (session := self._open.pop(id, None)) is not None:
            session.over.set()

    def end_all(self) -> None:
        for id in tuple(self._open):
            self.end(id)

    def sweep(self) -> None:
        """End those whose time or passkey is gone."""
        now, known = self._clock(), self._known()
        counting = {one.id for one in known.all} if known else set()
        for id, session in tuple(self._open.items()):
            removed = session.passkey is not None and session.passkey.id not in counting
            if known is None or now >= session.ends or removed:
                self.end(id)
