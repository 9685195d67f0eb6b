"""What the runtime writes down about one action beside its images, and reads back: `db.state` says how far it came, as
far as GoEx knows.

    prepared   nothing was done
    writing    one by one (a server without transactions): `step` is the operation that is under way
    done       as the action left it
    moving     an undo or redo has begun, one by one; `was` is where it began
    undone     as it was before the action
    nothing    it was rolled back, or never ran
    forgotten  committed: what undo needs is gone
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse
from runtimes.base import Records

At = Literal["prepared", "writing", "done", "moving", "undone", "nothing", "forgotten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`whole` False: it ended part of the way; `doubts` documents were being written then. `counts` are (collection,
    what, documents)."""

    at: At
    step: int = 0
    was: At = "prepared"
    whole: bool = True
    doubts: int = 0
    counts: tuple[tuple[str, str, int], ...] = ()


def read_state(records: Records) -> State:
    """The state as it was last written; `prepared` when none was."""
    data = records.get("db.state")
    if data is None:
        return State(at="prepared")
    try:
        found = parse(data)
        return State(
            at=found["at"],
            step=found["step"],
            was=found["was"],
            whole=found["whole"],
            doubts=found["doubts"],
            counts=tuple((name, how, number) for name, how, number in found["counts"]),
        )
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise Conflict("What GoEx noted of this action can't be read.", next_step="goex log --verify") from error


def write_state(records: Records, state: State) -> None:
    noted = {"at": state.at, "step": state.step, "was": state.was, "whole": state.whole, "doubts": state.doubts}
    records.put("db.state", canonical({**noted, "counts": [list(one) for one in state.counts]}))
