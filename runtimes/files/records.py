"""What the files runtime writes down about one action, and how it reads that back.

`before`, `after` and `target` name a manifest in the snapshot repository; `state` says in which of the states the
folder is, as far as GoEx had a hand in it; `unrecorded` says why there is no `after` of a program that has ended:

    prepared   nothing was done, or all of it was taken back when a part of it had failed
    running    a program may be working on the folder, or on its copy
    between    a restore has begun; `name` is its staging folder
    after      as the action left it
    before     as it was before the action
    forgotten  committed: the snapshots are gone
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from policies.actions import Outcome
from policies.errors import Unavailable
from policies.jsonvalue import canonical, parse
from policies.typed_json import from_json, to_json
from runtimes.base import Records

Place = Literal["prepared", "running", "between", "after", "before", "forgotten"]
Label = Literal["before", "after", "target"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the folder stands; `was` is where it stood when the restore that is under way began."""

    at: Place
    name: str = ""
    was: Place = "prepared"


def read_state(records: Records) -> State:
    """The state as it was last written; `prepared` when none was."""
    found = _read(records, "state")
    if found is None:
        return State(at="prepared")
    return State(at=found["at"], name=found["name"], was=found["was"])


def write_state(records: Records, state: State) -> None:
    records.put("state", canonical({"at": state.at, "name": state.name, "was": state.was}))


def read_manifest(records: Records, label: Label) -> tuple[str, Outcome | None] | None:
    """The object id of that manifest and the outcome that was noted with it."""
    found = _read(records, label)
    if found is None:
        return None
    return str(found["manifest"]), from_json(Outcome, found["outcome"], "The outcome") if found["outcome"] else None


def write_manifest(records: Records, label: Label, oid: str, outcome: Outcome | None = None) -> None:
    noted = None if outcome is None else {**to_json(outcome), "stdout": "", "stderr": ""}
    records.put(label, canonical({"manifest": oid, "outcome": noted}))


def finish_noting(records: Records) -> Outcome | None:
    """The outcome that was noted of a run that is over, and note the state, where that was cut off. None: there is none
    yet, or it was taken back as a part of what failed."""
    noted = read_manifest(records, "after")
    state = read_state(records)
    if noted is None or noted[1] is None or state.at == "prepared":
        return None
    if state.at == "running" or (state.at == "between" and state.was == "running"):
        write_state(records, State(at="after"))
    return noted[1]


def write_unrecorded(records: Records, why: str) -> None:
    records.put("unrecorded", canonical({"why": why}))


def read_unrecorded(records: Records) -> str:
    """Why what the program left wasn't recorded when it had ended; "" where it was, or nobody came to it."""
    found = _read(records, "unrecorded")
    return "" if found is None else str(found["why"])


def _read(records: Records, name: str) -> Mapping[str, Any] | None:
    data = records.get(name)
    if data is None:
        return None
    found = parse(data, what=f"The record {name}")
    if not isinstance(found, dict):
        raise Unavailable(f"The record {name} isn't what GoEx wrote.")
    return found
