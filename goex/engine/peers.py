"""Who is at the other end of a socket, as the kernel says; sessions; presence.

Rules: SO_PEERCRED is read once, when the connection is accepted. A terminal is known by its device, its session leader
and when that leader started, so that a reused process id isn't taken for it. Presence is remembered for one terminal,
for a few minutes, and never without a terminal.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from policies.display_text import escape
from policies.grants import ANONYMOUS

IDLE = timedelta(minutes=30)
LONGEST = timedelta(hours=8)
MOST_NAMED = 64  # sessions of one agent


@dataclass(frozen=True, slots=True)
class Terminal:
    """A controlling terminal: device number, session leader, and the leader's start (clock ticks since boot)."""

    device: int
    leader: int
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One connection's other end."""

    socket: Literal["agent", "user"]
    uid: int
    gid: int
    pid: int
    connection: str
    terminal: Terminal | None
    program: str
    started: int = 0  # clock ticks since boot; with the id it names a process once and for all
    away: str = ""  # how somebody at `[web] public_url`, for whom the page's process speaks, came there
    page_session: str = ""  # theirs: the page's process has one connection for all of them and for this machine

    def describe(self) -> str:
        """For the journal and the prompt: never what the peer says of itself but its program's name."""
        where = f"the {self.socket} socket"
        away = f", for the public page ({self.away})" if self.away else ""
        return f"user {self.uid}, process {self.pid} ({escape(self.program) or 'gone'}), on {where}{away}"

    @property
    def place(self) -> str:
        """What names its terminal; "" without one."""
        return f"{self.terminal.device}-{self.terminal.leader}-{self.terminal.started}" if self.terminal else ""

    @property
    def process(self) -> str:
        """What names the process beyond this daemon's life (see `ended`); "" for one that /proc said nothing of."""
        return f"{self.pid} {self.started} {_boot()}" if self.started else ""


def look_up(socket: Literal["agent", "user"], pid: int, uid: int, gid: int, connection: str) -> Peer:
    """What /proc says about a peer. A process that is gone, or lives in another namespace, has no terminal."""
    terminal, program, started = None, "", 0
    stat = _stat(pid) if pid > 0 else None
    if stat is not None:
        program, fields = stat
        started = int(fields[19])
        leader, device = int(fields[3]), int(fields[4])
        led = _stat(leader) if device else None
        if led is not None:
            terminal = Terminal(device, leader, int(led[1][19]))
    return Peer(
        socket=socket,
        uid=uid,
        gid=gid,
        pid=pid,
        connection=connection,
        terminal=terminal,
        program=program,
        started=started,
    )


def ended(process: str) -> bool:
    """Whether the process that `Peer.process` named is certainly gone; never for ""."""
    if not process:
        return False
    pid, started, boot = process.split(" ")
    stat = _stat(int(pid)) if boot == _boot() else None
    return stat is None or stat[1][0] in ("Z", "X") or stat[1][19] != started


def sees_our_files(peer: Peer) -> bool:
    """Whether a peer is of this process's user and finds at each path what this process finds there. Not for a process
    that is gone, or that /proc doesn't show."""
    if peer.uid != os.geteuid() or not peer.process or ended(peer.process):
        return False
    own, theirs = Path("/proc/self"), Path(f"/proc/{peer.pid}")
    try:
        return all((own / name).stat()[1:3] == (theirs / name).stat()[1:3] for name in ("root", "ns/mnt"))
    except OSError:
        return False


def _boot() -> str:
    """Which boot this is: ids and clock ticks begin anew with each."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or "-"
    except OSError:
        return "-"


def _stat(pid: int) -> tuple[str, list[str]] | None:
    """Name and the fields after it (state is number 0) of /proc/PID/stat; a name may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    match = re.fullmatch(r"\d+ \((.*)\) (\S .*)", text.rstrip("\n"), re.DOTALL)
    return (match[1], match[2].split()) if match else None


class Presence:
    """At which terminals the person showed themselves lately."""

    def __init__(self, seconds: int, clock: Callable[[], datetime]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: dict[tuple[int, Terminal], datetime] = {}

    def remember(self, peer: Peer) -> int:
        """Returns for how many seconds it is remembered here: 0 without a terminal, or where it is switched off."""
        if peer.terminal is None or self._seconds == 0:
            return 0
        self._until[peer.uid, peer.terminal] = self._clock() + timedelta(seconds=self._seconds)
        return self._seconds

    def holds(self, peer: Peer) -> bool:
        if peer.socket != "user" or peer.terminal is None:
            return False
        until = self._until.get((peer.uid, peer.terminal))
        return until is not None and self._clock() < until

    def forget(self) -> None:
        self._until.clear()


@dataclass(slots=True)
class _Session:
    id: str
    agent: str
    began: datetime
    active: datetime


class Sessions:
    """One agent's conversation: ends at disconnect, after 30 idle minutes, or after 8 hours.

    An agent's session is its connection, or, of an agent with a name, what it calls it: that one isn't over when it
    disconnects, but when it begins more than `MOST_NAMED`. The person's is the terminal, or the public page's session.
    `ended` is told each id that has ended, `seen` that the person did something at a terminal.
    """

    def __init__(
        self, clock: Callable[[], datetime], ended: Callable[[str], None], seen: Callable[[], None] = lambda: None
    ) -> None:
        self._clock = clock
        self._ended = ended
        self._seen = seen
        self._open: dict[str, _Session] = {}

    def of(self, peer: Peer, agent: str, named: str = "") -> str:
        """The id of the session that this peer is in, which is active now. `named`: by an agent that has a name."""
        self.sweep()
        if peer.socket == "user" and peer.terminal is not None:
            self._seen()
            base = f"tty-{peer.uid}-{peer.place}"
        elif named and peer.socket == "agent" and agent != ANONYMOUS:
            base = f"id-{hashlib.sha256(named.encode()).hexdigest()[:32]}-{agent}"
        else:
            base = f"conn-{peer.connection}-{f'{peer.page_session}-' if peer.page_session else ''}{agent}"
        now = self._clock()
        session = self._open.get(base)
        if session is None:
            if base.startswith("id-"):
                self._make_room(agent)
            session = self._open[base] = _Session(f"{base}-{now.timestamp():.0f}", agent, now, now)
        session.active = now
        return session.id

    def disconnected(self, connection: str) -> None:
        for base in [base for base in self._open if base.startswith(f"conn-{connection}-")]:
            self._end(base)

    def sweep(self) -> None:
        now = self._clock()
        for base, session in list(self._open.items()):
            if now - session.active > IDLE or now - session.began > LONGEST:
                self._end(base)

    def _make_room(self, agent: str) -> None:
        """End the named session of this agent that was idle longest, where it has as many as it may."""
        own = [base for base, each in self._open.items() if each.agent == agent and base.startswith("id-")]
        if len(own) >= MOST_NAMED:
            self._end(min(own, key=lambda base: self._open[base].active))

    def _end(self, base: str) -> None:
        self._ended(self._open.pop(base).id)
