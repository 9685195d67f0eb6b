"""The small notes of an action in its records: how far it got, and what it did.

`at`: "running" (its transaction isn't prepared, as far as we know), "committing" (prepared, and told to commit: if it
isn't listed any more it is committed), "ending" (prepared, and told to roll back), "committed" (known).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from policies.jsonvalue import JsonObject
from runtimes.base import Records
from runtimes.sql.contract import Ran, Reached
from runtimes.sql.records import put_state, reached_from_json, reached_to_json, read_state

At = Literal["running", "committing", "ending", "committed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """`connection`, `started`: which connection ran it, or its last revert, and when (seconds since 1970) that server
    had started."""

    at: At
    connection: int
    started: int
    exact: bool  # whether there is an image
    reverting: Literal["", "undo", "redo"] = ""  # the last one that was begun
    ended: bool = False  # and whether it is known to have been committed
    reached: tuple[Reached, ...] = ()
    counters: tuple[str, ...] = ()
    definition: JsonObject = field(default_factory=dict)  # of a statement that defines: see `definitions`

    def put(self, records: Records) -> None:
        put_state(
            records,
            {
                "at": self.at,
                "connection": self.connection,
                "started": self.started,
                "exact": self.exact,
                "reverting": self.reverting,
                "ended": self.ended,
                "counters": list(self.counters),
                "reached": reached_to_json(self.reached),
                **({"definition": self.definition} if self.definition else {}),
            },
        )

    def now(self, at: At, records: Records) -> Note:
        made = replace(self, at=at)
        made.put(records)
        return made

    def begin(self, verb: Literal["undo", "redo"], records: Records, *, connection: int, started: int) -> Note:
        """Note who reverts it, before that takes effect: whoever looks later ends that connection first."""
        made = replace(self, reverting=verb, ended=False, connection=connection, started=started)
        made.put(records)
        return made

    @property
    def ran(self) -> Ran:
        return Ran(reached=self.reached, counters=self.counters)


def get(records: Records) -> Note | None:
    """Raises Conflict for a note that can't be read."""
    return read_state(
        records,
        lambda found: Note(
            at=found["at"],
            connection=int(found["connection"]),
            started=int(found["started"]),
            exact=bool(found["exact"]),
            reverting=found["reverting"],
            ended=bool(found.get("ended", False)),
            counters=tuple(found["counters"]),
            reached=reached_from_json(found["reached"]),
            definition=dict(found.get("definition", {})),
        ),
    )
