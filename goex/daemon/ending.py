"""How an action stands, for an agent: what became of it, whether anything is changed, whether asking again helps, and
who can do what comes next. Pure.

Rules: it says no more than the view and the problem that the agent is shown; what only the person can do is said to be
the person's, so that no agent takes a command line for its own. Each text is GoEx's own: what a service, a database or
a program wrote is data, which Result gives.
"""

from __future__ import annotations

from goex.rpc import goex_pb2 as pb
from policies.errors import ExitStatus

_STATUS = {
    "received": "running",
    "mapped": "running",
    "assessed": "running",
    "allowed": "running",
    "prepared": "running",
    "asking": "waiting",
    "timed-out": "timed-out",
}
_ENDED = frozenset({"done", "partial", "unknown", "undone", "committed", "failed", "withdrawn"})
_LATER = frozenset({ExitStatus.TIMED_OUT, ExitStatus.SEALED, ExitStatus.UNAVAILABLE})
_CHANGED = frozenset({ExitStatus.USAGE, ExitStatus.AMBIGUOUS, ExitStatus.CONFLICT, ExitStatus.UNSUPPORTED})
_STANDS = frozenset({ExitStatus.CONFLICT, ExitStatus.UNSUPPORTED})  # against a revert
_PATIENCE = frozenset({"crowded", "exhausted"})  # what ends by itself when whoever asks is slower
_RESTING = _PATIENCE | {"resting", "busy"}


def guided(problem: pb.Problem) -> pb.Problem:
    """The problem with whether asking again helps, and who can do its next step."""
    status = problem.exit_status
    later = status in _LATER or problem.code in _RESTING
    changed = status in _CHANGED and problem.who != "person"
    problem.retry = "later" if later else "changed" if changed else "no"
    if problem.next_step and not problem.who:
        problem.who = "agent" if status in _CHANGED or problem.code in _PATIENCE else "person"
    return problem


def ending(
    view: pb.ActionView, problem: pb.Problem | None, *, answered: str, deadline: str, touched: bool, unsure: bool
) -> pb.Ending:
    """`view` and `problem` as the agent is shown them. `answered`: how its last question was settled; "" for none.
    `touched`: False when it ran, and is known to have changed nothing. `unsure`: whether all that it may have changed
    is what can't be known."""
    status = _STATUS.get(view.state, view.state)
    if status == "partial" and unsure:
        status = "unknown"
    if status == "denied":
        by_nobody = {"denied": "denied", "expired": "timed-out"}
        status = by_nobody.get(answered, "forbidden")
        if problem is not None and problem.code not in ("denied", "timed-out"):
            status = "failed"
    made = pb.Ending(status=status, changed=_changed(status, view, touched), undo="none", retry="no")
    if view.can_undo and not unsure:
        made.undo = view.undo_class
    made.deadline = deadline
    made.summary = problem.message if problem is not None else ""
    reason = made.summary.startswith("The person denied it: ")
    _guide(made, view, problem, reason)
    return made


def _changed(status: str, view: pb.ActionView, touched: bool) -> str:
    if status in ("unknown", "running"):
        return "unknown" if status == "unknown" or view.state == "running" else "no"
    if status in ("done", "committed", "partial"):
        return "yes" if touched and view.risk != "read" else "no"
    return "no"


def _guide(made: pb.Ending, view: pb.ActionView, problem: pb.Problem | None, reason: bool) -> None:
    match made.status:
        case "waiting":
            made.who = "person"
            made.next = (
                f"Nothing has run. The person has until {_second(made.deadline)}. Do other work or wait for {view.id}; "
                "don't send it again."
            )
        case "running":
            made.who, made.next = "agent", f"Wait for {view.id}."
        case "denied":
            made.retry, made.who = ("changed", "agent") if reason else ("no", "person")
            made.next = (
                "Nothing ran. Don't repeat it or reach the same by another way; a proposal that follows this reason "
                "may be made."
                if reason
                else "Nothing ran. Ask the user before proposing it again."
            )
        case "forbidden":
            made.next = "Nobody was asked, and nothing ran. Don't repeat it; tell the user what stands against it."
        case "timed-out":
            made.retry, made.who = "later", "person"
            made.next = (
                "Nobody answered in time. Nothing ran. This isn't an opinion; tell the user, and retry when they are "
                "there."
            )
        case "withdrawn":
            made.next = "It was withdrawn. Nothing ran."
        case "unknown":
            made.who = "person"
            made.next = "It can't be known whether it was done. Don't repeat it; the person decides."
        case "partial" if made.undo != "none":
            made.who, made.next = "agent", f"Undo {view.id} ({made.undo}), or go on from here."
        case "partial":
            made.who = "person"
            made.next = f"It can't be undone: {view.undo_text} Tell the user; don't imitate an undo."
        case "failed" if view.kind == "revert" and problem is not None and problem.exit_status in _STANDS:
            # What it takes to take it back another way is the person's to say.
            made.who = "person"
            made.next = "Nothing was touched. Tell the user; don't imitate an undo."
        case "failed" if problem is not None:
            guided(problem)
            made.retry, made.who = problem.retry, problem.who
            said = problem.next_step
            if problem.who == "person":
                said = f"Only the person can mend this; tell them, and stop: {said}"
            made.next = " ".join(("Nothing was changed.", said)).strip()
        case "done" if made.changed == "yes" and made.undo == "none" and view.kind != "revert":
            made.next = f"It can't be undone: {view.undo_text} Tell the user; don't imitate an undo."


def _second(moment: str) -> str:
    """A moment without what is below a second."""
    return moment.partition(".")[0].removesuffix("Z") + "Z"
