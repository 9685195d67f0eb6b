"""What the records hold beside the images: what was run, and how far each step got. All of it survives a crash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from policies.jsonvalue import JsonValue, canonical
from runtimes.base import Records
from runtimes.sql.contract import Ran
from runtimes.sql.records import decoded, put_state, ran_from_json, ran_to_json
from runtimes.sql.records import read_state as read_record

STEPS = "db.steps"
IMAGE = "rows"
Did = Literal["run", "hold", "commit", "undo", "redo"]


@dataclass(frozen=True, slots=True)
class State:
    """Written before the first effect becomes durable. `tables` are numbered by their place; `shapes` are what their
    rows' text can be read back by; `made` is a table that was created, with the digests of its `definition` and of its
    `belongings` ("" in older records); `loose` are CHECKs (table, name, definition) that its rows may have broken."""

    tables: tuple[str, ...]
    shapes: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    image: bool
    ran: Ran
    why: str = ""  # why there is no image
    made: str = ""
    definition: str = ""
    belongings: str = ""
    loose: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction that was about to be committed (or prepared), by the number that the server gave it."""

    did: Did
    xid: int
    gid: str = ""
    server: str = ""  # when the server had been started: a number may be given anew after its crash


def keep_state(records: Records, state: State) -> None:
    put_state(
        records,
        {
            "tables": list(state.tables),
            "shapes": list(state.shapes),
            "keys": [list(key) for key in state.keys],
            "image": state.image,
            "ran": ran_to_json(state.ran),
            "why": state.why,
            "made": state.made,
            "definition": state.definition,
            "belongings": state.belongings,
            "loose": [list(each) for each in state.loose],
        },
    )


def read_state(records: Records) -> State | None:
    """None: nothing was recorded, so nothing was done. Raises Conflict for what isn't as it was written."""
    return read_record(
        records,
        lambda found: State(
            tables=tuple(map(str, found["tables"])),
            shapes=tuple(map(str, found["shapes"])),
            keys=tuple(tuple(map(str, key)) for key in found["keys"]),
            image=bool(found["image"]),
            ran=ran_from_json(found["ran"]),
            why=str(found["why"]),
            made=str(found["made"]),
            definition=str(found["definition"]),
            belongings=str(found.get("belongings", "")),
            loose=tuple((str(table), str(name), str(text)) for table, name, text in found.get("loose", ())),
        ),
    )


def steps(records: Records) -> tuple[Step, ...]:
    data = records.get(STEPS)
    if data is None:
        return ()
    return decoded(data, lambda rows: tuple(Step(_did(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows))


def keep_step(records: Records, step: Step) -> None:
    """Add one: on disk when this returns, so before its COMMIT."""
    rows: list[JsonValue] = [[each.did, each.xid, each.gid, each.server] for each in (*steps(records), step)]
    records.put(STEPS, canonical(rows))


def _did(value: object) -> Did:
    if value not in get_args(Did):
        raise ValueError(value)
    return cast(Did, value)
