"""How many actions were let through and denied lately, and which agents rest because too many were.

Rules: counts are of what was decided, never of what was asked; what can't be assessed is decided, too. A restart reads
them back from the journal. The person is counted and never rests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from goex.engine.peers import LONGEST
from goex.journal.chain import Journal, moment, stamp
from policies.errors import Denied
from policies.grants import ANONYMOUS, PERSON
from policies.jsonvalue import parse
from policies.limits import Breaker
from policies.rules.facts import Situation

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
READ_AT_ONCE, MOST_READ_BACK = 5000, 100_000  # rows; where the clock was set back, all are of the last hour
_SESSIONS = 2000
_TOGETHER = 4  # times as many denials of agents without a name make all of them rest


class Resting(Denied):
    """Too many requests of an agent were denied lately."""

    code = "resting"


@dataclass(slots=True)
class Counts:
    """What happened lately, by agent and session."""

    journal: Journal
    clock: Callable[[], datetime]
    breaker: Breaker
    _allowed: dict[str, deque[datetime]] = field(default_factory=dict)
    _denied: dict[str, deque[datetime]] = field(default_factory=dict)
    _sessions: dict[str, int] = field(default_factory=dict)
    _most: int = _SESSIONS  # sessions, from which on old ones are looked for
    _resting: dict[str, datetime] = field(default_factory=dict)

    def load(self) -> None:
        """Read back what the last hour was like."""
        since, before, left = self.clock() - HOUR, 0, MOST_READ_BACK
        while left and (rows := self.journal.rows(kind="allow", before=before, limit=min(left, READ_AT_ONCE))):
            left -= len(rows)
            for row in rows:
                if (at := moment(row.at)) > since:
                    self._allowed.setdefault(row.agent, deque()).appendleft(at)
            before = rows[-1].number
            if moment(rows[-1].at) <= since:
                break
        for row in reversed(self.journal.rows(kind="breaker", limit=200)):
            facts = parse(row.facts)
            if facts.get("until"):
                self._resting[row.agent] = moment(str(facts["until"]))
            else:
                self._resting.pop(row.agent, None)

    def situation(self, agent: str, session: str) -> Situation:
        """How things stand for an action of this agent in this session."""
        now = self.clock()
        lately = self._recent(self._allowed, agent, now - HOUR)
        return Situation(
            session_seconds=max(0, int((now - began(session)).total_seconds())) if session else 0,
            session_actions=self._sessions.get(session, 0),
            last_minute=sum(1 for at in reversed(lately) if at > now - MINUTE),
            last_hour=len(lately),
        )

    def allowed(self, agent: str, session: str) -> None:
        """One more action was let through."""
        self._allowed.setdefault(agent, deque()).append(self.clock())
        self._sessions[session] = self._sessions.get(session, 0) + 1
        if len(self._sessions) > self._most:
            old = self.clock() - LONGEST
            self._sessions = {name: count for name, count in self._sessions.items() if began(name) > old}
            self._most = max(_SESSIONS, 2 * len(self._sessions))  # else each action would look through all

    def denied(self, agent: str, session: str = "") -> None:
        """One more was denied, by the person or a rule, or couldn't be assessed. Too many, and the agent rests: of
        those without a name the one whose session it is, and all of them where that comes of several."""
        if agent == ANONYMOUS and session:
            self._denied_of(session, self.breaker.denials)
            self._denied_of(agent, _TOGETHER * self.breaker.denials)
        else:
            self._denied_of(agent, self.breaker.denials)

    def _denied_of(self, agent: str, most: int) -> None:
        if agent == PERSON or not most or self.until(agent) is not None:
            return
        now = self.clock()
        lately = self._recent(self._denied, agent, now - timedelta(seconds=self.breaker.seconds))
        lately.append(now)
        if len(lately) < most:
            return
        until = now + timedelta(seconds=self.breaker.rest_seconds)
        facts = {"denials": len(lately), "seconds": self.breaker.seconds, "until": stamp(until), "by": "goex"}
        self.journal.append("breaker", agent=agent, facts=facts)
        self._resting[agent] = until
        lately.clear()

    def until(self, agent: str, session: str = "") -> datetime | None:
        """Until when an agent rests; None when it doesn't. `session`: of one without a name, which may rest alone."""
        if agent == ANONYMOUS and session and (alone := self.until(session)) is not None:
            return alone
        found = self._resting.get(agent)
        if found is not None and self.clock() >= found:
            del self._resting[agent]
            return None
        return found if agent != PERSON else None

    def resting(self) -> dict[str, datetime]:
        """The agents that rest now."""
        return {agent: until for agent in sorted(self._resting) if (until := self.until(agent)) is not None}

    def wake(self, agent: str, *, by: str) -> bool:
        """Let an agent go on before its time. Returns whether it rested."""
        if self.until(agent) is None:
            return False
        self.journal.append("breaker", agent=agent, facts={"until": "", "by": by})
        del self._resting[agent]
        return True

    def refuse_resting(self, agent: str, session: str = "") -> None:
        """Raise Resting where that agent rests."""
        if (until := self.until(agent, session)) is not None:
            raise Resting(resting_text(agent, until), next_step="Only the person can end that: goex rules wake AGENT")

    @staticmethod
    def _recent(of: dict[str, deque[datetime]], agent: str, since: datetime) -> deque[datetime]:
        found = of.setdefault(agent, deque())
        while found and found[0] <= since:
            found.popleft()
        return found


def resting_text(agent: str, until: datetime) -> str:
    """What a resting agent reads."""
    return f"Too many requests of {agent} were denied lately, so all of them are until {stamp(until)[:19]} UTC."


def began(session: str) -> datetime:
    """When a session began: its name ends in that second."""
    text = session.rsplit("-", 1)[-1]
    return datetime.fromtimestamp(int(text) if text.isdecimal() and len(text) < 12 else 0, UTC)
