"""Who may use the page: one-time links, and the sessions that they begin.

Rules: a link holds for a minute, once, and at one of the page's origins; it is made by whoever can read a key file that
only this person can; the key is the running page's own and ends with it. A session is a random token that the browser
keeps for one tab and sends as a header, and holds at the origin where it began. There is no cookie: a page of another
origin has nothing that it could send.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from goex.page_address import KEY_BYTES, page_origin
from policies.errors import Unavailable
from policies.regular_file import open_regular, read_regular

LINK_SECONDS = 60
SESSION_SECONDS = 12 * 3600
MOST_SESSIONS = 8  # the oldest ends when one more begins
AT_ONCE, A_SECOND = 20, 1.0  # requests of whoever has no session yet


class KeyFile:
    """The page's key and origin, in a file that is locked for as long as the page runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def take(self, origin: str) -> bytes:
        """Write a new key and hold the file until the process ends. Raises Unavailable when another page holds it."""
        try:
            handle = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise Unavailable(
                f"{self._path} can't be opened: {error.strerror}.", next_step="Move it away, then: goex web"
            ) from error
        for left in range(9, -1, -1):  # whoever looks where the page is holds it for a moment
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if not left:
                    os.close(handle)
                    raise Unavailable("The page runs already.", next_step="End it, then: goex web") from None
            time.sleep(0.02)
        self._handle = handle
        key = secrets.token_bytes(KEY_BYTES)
        os.ftruncate(handle, 0)
        os.pwrite(handle, key + origin.encode(), 0)
        return key

    def of_running(self) -> tuple[bytes, str] | None:
        """Return the key and the origin of the page that runs; None when none does, whoever may listen there."""
        if not (origin := page_origin(self._path)):
            return None
        key = read_regular(self._path, KEY_BYTES)
        return (key, origin) if len(key) == KEY_BYTES else None


def link_code(key: bytes, now: float, origin: str) -> str:
    """Return a one-time code that a link carries in its fragment, which no server log and no Referer holds."""
    said = f"{secrets.token_urlsafe(16)}.{int(now) + LINK_SECONDS}"
    return f"{said}.{_sign(key, said, origin)}"


def _sign(key: bytes, said: str, origin: str) -> str:
    return hmac.new(key, f"goex web link {origin} {said}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Session:
    """One tab's. `page_session`: the daemon's id of it, at the public page; "" on this machine.

    `over` is set when somebody ended it.
    """

    origin: str
    until: float
    page_session: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event, compare=False)


class Strangers:
    """How often whoever has no session may ask, all of them together, where nothing tells one from another."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = float(AT_ONCE), clock()

    def may(self) -> bool:
        """Whether one more request is answered, which counts."""
        now = self._clock()
        self._left, self._at = min(AT_ONCE, self._left + (now - self._at) * A_SECOND), now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Access:
    """Links that were used, and sessions that are open. Times are of `clock`, in seconds."""

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock
        self._used: dict[str, float] = {}  # code -> when it would have ended
        self._sessions: dict[str, Session] = {}  # by the hash of the token

    def enter(self, code: str, origin: str) -> bool:
        """Whether a code opens the page at this origin, which it does once."""
        said, _, signature = code.rpartition(".")
        if not code.isascii() or not hmac.compare_digest(signature.encode(), _sign(self._key, said, origin).encode()):
            return False
        now, ends = self._clock(), float(said.rpartition(".")[2])
        self._used = {old: until for old, until in self._used.items() if until > now}
        if now >= ends or said in self._used:
            return False
        self._used[said] = ends
        return True

    def begin(self, origin: str, page_session: str = "") -> str:
        """Return the token of a new session, for somebody who has proven to be the person."""
        while len(self._sessions) >= MOST_SESSIONS:
            self._end(next(iter(self._sessions)))
        token = secrets.token_urlsafe(32)
        self._sessions[_hash(token)] = Session(origin, self._clock() + SESSION_SECONDS, page_session)
        return token

    def of(self, token: str, origin: str) -> Session | None:
        """The open session that this token is of, at this origin."""
        found = self._sessions.get(_hash(token))
        return found if found and found.origin == origin and self._clock() < found.until else None

    def leave(self, token: str) -> None:
        """End a session. Idempotent."""
        self._end(_hash(token))

    async def lasting(self, session: Session) -> None:
        """Return when it has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(session.until - self._clock()):
                await session.over.wait()

    def _end(self, hashed: str) -> None:
        if (session := self._sessions.pop(hashed, None)) is not None:
            session.over.set()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
