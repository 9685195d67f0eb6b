"""One root for what can go wrong; each says who can do what next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from goex_client import goex_pb2 as pb

if TYPE_CHECKING:
    from goex_client.results import Result

PROBLEM_KEY = "goex-problem-bin"


class GoexError(Exception):
    """`retry`: "no", "changed" (another request may do) or "later"; `who` can do `next`: "agent" or "person". `changed`
    is "unknown" where a request may have been taken, and its end wasn't told; `action` is its id then, if one came."""

    code = "error"
    changed = "no"
    action = ""

    def __init__(self, message: str, *, next: str = "", retry: str = "no", who: str = "") -> None:
        super().__init__(f"{message} {next}".rstrip())
        self.message, self.next, self.retry, self.who = message, next, retry, who


class NotRunning(GoexError):
    """The daemon can't be reached."""

    code = "daemon"


class TimedOut(GoexError):
    """The time to wait is over: what nobody had answered was withdrawn. What runs already goes on."""

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
        self.changed, self.action = result.changed, result.action


def translated(error: Any) -> GoexError:
    """A failed call of a look as one of these."""
    code, said = _status(error)
    if (problem := _problem(error)) is not None:
        return Refused(problem)
    if code is grpc.StatusCode.UNAVAILABLE:
        return NotRunning(
            "The daemon can't be reached.", next="Start it with: goex daemon start", retry="later", who="person"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut("The daemon took too long to answer.", next="Ask again.", retry="later", who="agent")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        said = f"The request or its answer is too large: {said}."
        return GoexError(said, next="Ask for less at once.", retry="changed", who="agent")
    return GoexError(f"The daemon failed ({code}): {said}")


def left(error: Any, action: str, key: str, *, token: bool) -> GoexError:
    """A request whose stream failed; `action`: what it had become, "" where nothing was heard of it; `key`: its own,
    with which it may have been sent before; `token`: it was sent with one."""
    code, said = _status(error)
    problem = _problem(error)
    if problem is not None:
        taken = problem.exit_status == _UNKNOWN or (bool(key) and problem.code in _UNREAD)
    else:
        unread = code is grpc.StatusCode.UNIMPLEMENTED or _UNREACHED in said
        taken = _TOO_LARGE not in said and (bool(key) or not unread)
    if not action and not taken:
        return translated(error)
    # A key is its agent's: of one without a name, or that was removed since, it would begin another action.
    named = token and not (problem is not None and problem.code == _UNNAMED)
    look = _look(action, named)
    made: GoexError
    if problem is not None and problem.code == _CROWDED and not (action or named):
        # The connection is there, and a key of one without a name lasts as long.
        made = GoexError(problem.message, next=_AGAIN, who="agent")
        made.code = problem.code
    elif problem is not None:
        who = problem.who or ("agent" if action or named else "person")
        made = GoexError(problem.message, next=f"{look}. {problem.next_step}".rstrip(), who=who)
        made.code = problem.code
    elif code is grpc.StatusCode.UNAVAILABLE:
        next = f"{look} when the daemon is back; don't send it anew."
        away = "The daemon can't be reached." if _UNREACHED in said else "The connection to the daemon ended meanwhile."
        made = NotRunning(away, next=next, who="person")
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
        made = TimedOut(
            "The time to wait is over; what nobody had answered was withdrawn.",
            next=f"{look} before you ask again.",
            retry="later",
            who="agent",
        )
    elif code is grpc.StatusCode.CANCELLED:
        made = GoexError("The request was left; what nobody had answered was withdrawn.", next=f"{look}.", who="agent")
    else:
        made = translated(error)
    made.changed, made.action = "unknown", action
    return made


def untold(action: str, *, token: bool) -> GoexError:
    """A request whose stream ended without its end."""
    made = GoexError("The daemon ended the request without saying how.", next=f"{_look(action, token)}.", who="agent")
    made.changed, made.action = "unknown", action
    return made


def _look(action: str, named: bool) -> str:
    if action:
        return f"See how {action} stands"
    return "Look at the latest actions, or send it with the same key" if named else "Ask the person what was begun"


# gRPC's words for a connection that never was, and for a request that was too large to be taken.
_UNREACHED, _TOO_LARGE = "failed to connect", "SERVER: Received message larger"
# The codes of problems that may come before a request was read: none says whether its key was used before.
_UNNAMED, _CROWDED = "unauthenticated", "crowded"
_UNREAD = (_CROWDED, "sealed", _UNNAMED)
_AGAIN = "Send it again on this connection, with the same key."
_UNKNOWN = 9  # the exit status of a problem that says itself that it can't be known


def _problem(error: Any) -> pb.Problem | None:
    found = (error.trailing_metadata() or ()) if hasattr(error, "trailing_metadata") else ()
    return next((pb.Problem.FromString(value) for key, value in found if key == PROBLEM_KEY), None)


def _status(error: Any) -> tuple[Any, str]:
    code = error.code() if hasattr(error, "code") else None
    return code, str(error.details() or "") if hasattr(error, "details") else str(error)
