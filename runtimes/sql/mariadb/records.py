"""The small notes of an action in its records: how far it got, and what it did.

`at`: "running" (its transaction isn't prepared, as far as we know), "committing" (prepared, and told to commit: if it
isn't listed any more it is committed), "ending" (prepared, and told to roll back), "committed" (known).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse
from runtimes.base import Records
from runtimes.sql.contract import Ran, Reached

NAME = "db.state"
At = Literal["running", "committing", "ending", "committed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """`connection`, `started`: which connection prepared it, and when (seconds since 1970) that server had started."""

    at: At
    connection: int
    started: int
    exact: bool  # whether there is an image
    reverting: Literal["", "undo", "redo"] = ""  # the last one that was begun
    reached: tuple[Reached, ...] = ()
    counters: tuple[str, ...] = ()

    def put(self, records: Records) -> None:
        records.put(
            NAME,
            canonical(
                {
                    "at": self.at,
                    "connection": self.connection,
                    "started": self.started,
                    "exact": self.exact,
                    "reverting": self.reverting,
                    "counters": list(self.counters),
                    "reached": [[one.table, one.verb, one.rows, one.why, list(one.columns)] for one in self.reached],
                }
            ),
        )

    def now(self, at: At, records: Records) -> Note:
        made = replace(self, at=at)
        made.put(records)
        return made

    def begin(self, verb: Literal["undo", "redo"], records: Records) -> None:
        if self.reverting != verb:
            replace(self, reverting=verb).put(records)

    @property
    def ran(self) -> Ran:
        return Ran(reached=self.reached, counters=self.counters)


def get(records: Records) -> Note | None:
    """Raises Conflict for a note that can't be read."""
    kept = records.get(NAME)
    if kept is None:
        return None
    try:
        told = parse(kept)
        return Note(
            at=told["at"],
            connection=int(told["connection"]),
            started=int(told["started"]),
            exact=bool(told["exact"]),
            reverting=told["reverting"],
            counters=tuple(told["counters"]),
            reached=tuple(
                Reached(table=table, verb=verb, rows=int(rows), why=why, columns=tuple(columns))
                for table, verb, rows, why, columns in told["reached"]
            ),
        )
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise Conflict("What is recorded of this can't be read.", next_step="goex log --verify") from error
