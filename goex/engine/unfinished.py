"""What an asker may go on with: choices that were shown, and answers that were read. In memory, and bounded.

Rules: of each asker the newest few are kept. Where agents have too many together, the oldest of whoever has most goes;
those without a name count as one, since a connection costs nothing. The person's own make room for no agent's.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

from policies.grants import ANONYMOUS, PERSON

K = TypeVar("K")
V = TypeVar("V")
PrincipalKey = tuple[str, str]


def principal_key(agent: str, session: str) -> PrincipalKey:
    """Whose something is: an agent's, or, of one without a name, its session's."""
    return agent, session if agent == ANONYMOUS else ""


class Unfinished(Generic[K, V]):
    """At most `of_one` of each asker, and `of_agents` of all agents."""

    def __init__(self, *, of_one: int, of_agents: int) -> None:
        self._of_one, self._of_agents = of_one, of_agents
        self._kept: dict[tuple[PrincipalKey, K], V] = {}  # oldest first

    def get(self, whose: PrincipalKey, key: K) -> V | None:
        return self._kept.get((whose, key))

    def drop(self, whose: PrincipalKey, key: K) -> None:
        """Idempotent."""
        self._kept.pop((whose, key), None)

    def keep(self, whose: PrincipalKey, key: K, value: V) -> None:
        """As the newest of this asker."""
        self.drop(whose, key)
        own = [each for each in self._kept if each[0] == whose]
        agents = Counter(agent for (agent, _), _ in self._kept if agent != PERSON)
        if len(own) >= self._of_one:
            del self._kept[own[0]]
        elif whose[0] != PERSON and agents.total() >= self._of_agents:
            most = max(agents, key=lambda agent: agents[agent])
            del self._kept[next(each for each in self._kept if each[0][0] == most)]
        self._kept[whose, key] = value

    def forget(self, agent: str) -> None:
        """Drop all of an agent's."""
        self._kept = {key: value for key, value in self._kept.items() if key[0][0] != agent}
