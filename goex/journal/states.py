"""The life of an action, as one table.

`LEGAL[state][event]` is the next state; what isn't in it can't happen. Every step through it is a journal row that
is on disk before the step's effect begins. Undo and redo are actions of their own; the last three events are what
their success does to the action that they took back.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    RECEIVED = "received"  # recorded, nothing looked at yet
    MAPPED = "mapped"  # an intent became calls
    ASSESSED = "assessed"  # plan and digest are fixed
    ASKING = "asking"  # the person is being asked
    ALLOWED = "allowed"  # granted; the once-grant is consumed
    PREPARED = "prepared"  # the inverse is durable
    RUNNING = "running"  # the effect may have begun
    DONE = "done"
    PARTIAL = "partial"  # ended badly and something was changed: undo takes that back
    FAILED = "failed"  # nothing was changed
    DENIED = "denied"
    WITHDRAWN = "withdrawn"  # by who asked, or because they left
    UNKNOWN = "unknown"  # it can't be known what happened: the person must look
    UNDONE = "undone"
    COMMITTED = "committed"  # what undo would need is gone


class Event(StrEnum):
    MAP = "map"
    ASSESS = "assess"
    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"
    REJECT = "reject"
    PREPARE = "prepare"
    RUN = "run"
    FINISH = "finish"
    PART = "part"
    FAIL = "fail"
    LOSE = "lose"
    UNDO = "undo"
    REDO = "redo"
    COMMIT = "commit"


_S, _E = State, Event

LEGAL: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        _S.RECEIVED: {
            _E.MAP: _S.MAPPED,
            _E.ASSESS: _S.ASSESSED,
            _E.REJECT: _S.FAILED,
            _E.WITHDRAW: _S.WITHDRAWN,
        },
        _S.MAPPED: {_E.ASSESS: _S.ASSESSED, _E.REJECT: _S.FAILED, _E.WITHDRAW: _S.WITHDRAWN},
        _S.ASSESSED: {
            _E.ASK: _S.ASKING,
            _E.ALLOW: _S.ALLOWED,
            _E.DENY: _S.DENIED,
            _E.WITHDRAW: _S.WITHDRAWN,
        },
        _S.ASKING: {
            _E.ALLOW: _S.ALLOWED,
            _E.DENY: _S.DENIED,
            _E.EXPIRE: _S.DENIED,
            _E.WITHDRAW: _S.WITHDRAWN,
        },
        _S.ALLOWED: {_E.PREPARE: _S.PREPARED, _E.FAIL: _S.FAILED},
        _S.PREPARED: {_E.RUN: _S.RUNNING, _E.FAIL: _S.FAILED},
        _S.RUNNING: {
            _E.FINISH: _S.DONE,
            _E.PART: _S.PARTIAL,
            _E.FAIL: _S.FAILED,
            _E.LOSE: _S.UNKNOWN,
        },
        _S.UNKNOWN: {
            _E.FINISH: _S.DONE,
            _E.PART: _S.PARTIAL,
            _E.FAIL: _S.FAILED,
            _E.UNDO: _S.UNDONE,
            _E.COMMIT: _S.COMMITTED,
        },
        _S.DONE: {_E.UNDO: _S.UNDONE, _E.COMMIT: _S.COMMITTED, _E.LOSE: _S.UNKNOWN},
        _S.PARTIAL: {_E.UNDO: _S.UNDONE, _E.COMMIT: _S.COMMITTED, _E.LOSE: _S.UNKNOWN},
        _S.UNDONE: {_E.REDO: _S.DONE, _E.COMMIT: _S.COMMITTED, _E.LOSE: _S.UNKNOWN},
        _S.FAILED: {},
        _S.DENIED: {},
        _S.WITHDRAWN: {},
        _S.COMMITTED: {},
    }
)

BEFORE_DECISION = frozenset({_S.RECEIVED, _S.MAPPED, _S.ASSESSED})
UNDER_WAY = frozenset({*BEFORE_DECISION, _S.ASKING, _S.ALLOWED, _S.PREPARED, _S.RUNNING})


class IllegalStep(AssertionError):
    """A step that the table doesn't hold: a defect of ours, never of the input."""


def step(state: State, event: Event) -> State:
    """The state after `event`. Raises IllegalStep when the table has no such step."""
    try:
        return LEGAL[state][event]
    except KeyError:
        raise IllegalStep(f"{event} isn't possible in state {state}") from None


def render_table() -> str:
    """The table as Markdown, for ARCHITECTURE.md."""
    lines = ["| state | event | next state |", "|---|---|---|"]
    for state, events in LEGAL.items():
        if not events:
            lines.append(f"| {state} | | *final* |")
        lines += [f"| {state} | {event} | {after} |" for event, after in events.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(render_table())
