"""The record "db.state" of an action, which every engine writes before its first effect is durable: what ran, as JSON.

Rules: the rows that a statement gave back are not in it, since nobody may read them later. What can't be read is a
Conflict, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from runtimes.base import Records
from runtimes.sql.contract import Ran, Reached, RowChange

STATE = "db.state"
_BYTES = 64 * 2**20
T = TypeVar("T")


def put_state(records: Records, facts: JsonObject) -> None:
    """Write the record: on disk when this returns."""
    records.put(STATE, canonical(facts))


def read_state(records: Records, read: Callable[[Any], T]) -> T | None:
    """Return what `read` makes of the record; None where nothing was recorded. Raises Conflict for one that isn't as it
    was written."""
    data = records.get(STATE)
    return None if data is None else decoded(data, read)


def decoded(data: bytes, read: Callable[[Any], T]) -> T:
    """Return what `read` makes of a record's JSON. Raises Conflict for one that isn't as it was written."""
    try:
        return read(parse(data, limit=_BYTES))
    except (InvalidInput, KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged() from error


def damaged() -> Conflict:
    return Conflict("What undo needs isn't as it was written.", next_step="goex log --verify")


def reached_to_json(reached: Iterable[Reached]) -> list[JsonValue]:
    return [[one.table, one.verb, one.rows, one.why, list(one.columns)] for one in reached]


def reached_from_json(rows: Any) -> tuple[Reached, ...]:
    """Return what was written; PostgreSQL's records of older versions name no columns."""
    return tuple(
        Reached(
            table=str(table),
            verb=verb,
            rows=int(number),
            why=why,
            columns=tuple(map(str, columns[0] if columns else ())),
        )
        for table, verb, number, why, *columns in rows
    )


def ran_to_json(ran: Ran) -> JsonObject:
    return {
        "reached": reached_to_json(ran.reached),
        "sample": [[one.table, _row(one.before), _row(one.after)] for one in ran.sample],
        "counters": list(ran.counters),
        "notes": list(ran.notes),
    }


def ran_from_json(facts: JsonObject) -> Ran:
    return Ran(
        reached=reached_from_json(facts["reached"]),
        sample=tuple(RowChange(table=table, before=before, after=after) for table, before, after in facts["sample"]),
        counters=tuple(map(str, facts["counters"])),
        notes=tuple(map(str, facts["notes"])),
    )


def _row(row: Mapping[str, str | None] | None) -> JsonValue:
    return None if row is None else dict(row)
