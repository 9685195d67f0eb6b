"""One root for what can go wrong; each says who can do what next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from goex_client import goex_pb2 as pb

if TYPE_CHECKING:
    from goex_client.results import Result

PROBLEM_KEY = "goex-problem-bin"


class GoexError(Exception):
    """`retry`: "no", "changed" (another request may do) or "later"; `who` can do `next`: "agent" or "person"."""

    code = "error"

    def __init__(self, message: str, *, next: str = "", retry: str = "no", who: str = "") -> None:
        super().__init__(f"{message} {next}".rstrip())
        self.message, self.next, self.retry, self.who = message, next, retry, who


class NotRunning(GoexError):
    """The daemon can't be reached."""

    code = "daemon"


class TimedOut(GoexError):
    """The time to wait is over: what nobody had answered was withdrawn."""

    code = "timed-out"


class Refused(GoexError):
    """The request wasn't taken: nothing was begun."""

    def __init__(self, problem: pb.Problem) -> None:
        super().__init__(problem.message, next=problem.next_step, retry=problem.retry, who=problem.who)
        self.code = problem.code
        self.details = tuple(problem.details)


class NotDone(GoexError):
    """The action didn't end well; `result` says how it did."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.status}: {result.summary}", next=result.next, retry=result.retry, who=result.who)
        self.code = result.status
        self.result = result


def translated(error: Any) -> GoexError:
    """A failed call as one of these."""
    for key, value in (error.trailing_metadata() or ()) if hasattr(error, "trailing_metadata") else ():
        if key == PROBLEM_KEY:
            return Refused(pb.Problem.FromString(value))
    code = error.code() if hasattr(error, "code") else None
    if code is grpc.StatusCode.UNAVAILABLE:
        return NotRunning(
            "The daemon can't be reached.", next="Start it with: goex daemon start", retry="later", who="person"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(
            "The time to wait is over; what nobody had answered was withdrawn.",
            next="Look at the latest actions before you ask again.",
            retry="later",
            who="agent",
        )
    return GoexError(f"The daemon failed ({code}): {error.details() if hasattr(error, 'details') else error}")
