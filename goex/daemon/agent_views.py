"""What an agent is shown of actions: as the person is, but nothing that answers a question to a database or a folder
by itself.

Rules:

* How many rows a WHERE would reach, which row isn't as recorded, what lies in a folder, and whether a path is there is
  data; an agent learns it by an action that was allowed and ran, never from a plan, a question or a refusal.
* Whatever keeps GoEx from working on a folder, an agent is told the same: the path isn't there, can't be read, is a
  file, is the system's, is forbidden, or holds what can't be restored.
* Of other agents' actions none is told: neither which one, nor what it worked on.
* An undo's plan holds what was read before the action, and a difference what is there now, whether or not the agent
  may read it: it gets neither, also after the undo ran, nor the digest, which would confirm a guess. What would be sent
  is in the plan of the action itself, by the places that values come from.
* What a service or a database said of a failure is no sentence of GoEx's: it is in the result, as data.
"""

from __future__ import annotations

from goex.daemon.action_views import action_view, problem_view
from goex.daemon.ending import ending, guided
from goex.engine.core import Core, Principal
from goex.engine.events import Problem
from goex.journal.actions import ActionRow
from goex.journal.states import State
from goex.page_address import page_origin
from goex.rpc import goex_pb2 as pb
from policies.actions import Action, ApiCalls, Revert, refers
from policies.errors import Conflict, Denied, ExitStatus, GoexError, InvalidInput
from policies.jsonvalue import parse
from policies.typed_json import from_json

_DATABASES = frozenset({"sql", "mongo"})
_FOLDERS = frozenset({"files"})
_RAN = frozenset({State.DONE, State.PARTIAL, State.UNDONE, State.COMMITTED})
_OF_THE_PLAN = ("lines", "undo_text", "digest")
_OF_A_REVERT = ("lines", "digest")
_OF_THE_QUESTION = ("place", "waiting", "question")  # how others and what was allowed before stand
_ANSWERED = frozenset({"denied", "expired"})  # by the person, or by nobody
# What says nothing of a folder: it was withdrawn, the daemon is stopping, or the vault is sealed.
_OF_ITSELF = frozenset({"withdrawn", "stopping", "vault-sealed", "vault-absent"})
_OF_A_FOLDER = frozenset({"invalid", "denied", "conflict", "unavailable", "unsupported"})  # what a look at one raises
_LIMIT = 64 * 2**20  # our own texts are read whole
_LATER = "a later action stands on it"


def asks_data(core: Core, row: ActionRow) -> bool:
    """Whether an action, or what it takes back, is one on a database or a folder."""
    return _about(core, row, _DATABASES | _FOLDERS)


def asks_folder(core: Core, row: ActionRow) -> bool:
    """Whether an action, or what it takes back, is one on a folder."""
    return _about(core, row, _FOLDERS)


def _about(core: Core, row: ActionRow, kinds: frozenset[str]) -> bool:
    try:
        about = [core.actions.get(id) for id in row.reverts()[1]] or [row]
        if any(each.kind in kinds for each in about):
            return True
        return any(each.kind == "calls" and calls_on_folder(core, each.action()) for each in about)
    except GoexError:
        return True


def calls_on_folder(core: Core, action: Action | None) -> bool:
    """Whether calls are those of an MCP server that works on a folder."""
    from runtimes.servers.runtime import CallsRuntime  # loaded by the first action of this kind

    runtime = core.runtimes.get("calls")
    return isinstance(runtime, CallsRuntime) and runtime.on_folder(action)


def shown_action(core: Core, row: ActionRow, principal: Principal) -> pb.ActionView:
    """An action as `principal` may see it."""
    view = _covered(core, action_view(row), row, principal)
    if not principal.owns_all:
        problem = (
            _problem(core, problem_view(from_json(Problem, parse(row.problem), "The problem")), row)
            if row.problem
            else None
        )
        view.ending.CopyFrom(_ending(core, view, problem, row))
    return view


def shown_event(core: Core, event: pb.Event, row: ActionRow, principal: Principal) -> pb.Event | None:
    """An event as `principal` may see it; None for one that isn't told. An agent isn't told how many others wait."""
    if principal.owns_all:
        return event
    match event.WhichOneof("what"):
        case "asking":
            _clear(event.asking, _OF_THE_QUESTION)
            if row.kind == "revert":
                _clear(event.asking, (*_OF_A_REVERT, "choices"))
            if asks_data(core, row):
                _clear(event.asking, (*_OF_THE_PLAN, "choices", "arguments"))
            if asks_folder(core, row):
                _clear(event.asking, ("needs",))  # they name the folder as it was resolved
        case "finished":
            event.finished.action.CopyFrom(_covered(core, event.finished.action, row, principal))
            if event.finished.HasField("problem"):
                event.finished.problem.CopyFrom(guided(_problem(core, event.finished.problem, row)))
            problem = event.finished.problem if event.finished.HasField("problem") else None
            event.finished.action.ending.CopyFrom(_ending(core, event.finished.action, problem, row))
        case "state" if event.state.to == State.ASSESSED and asks_folder(core, row):
            return None  # that a folder could be looked at is told by the question alone
        case "progress" if row.state not in _RAN and row.state is not State.RUNNING and asks_folder(core, row):
            return None  # it counts files
        case "progress" if row.kind == "revert" and not asks_data(core, row):
            return None  # it names each request, and an address may hold what was read
    return event


def why_not(why: str, principal: Principal) -> str:
    """Why a step on a way back can't be taken, or has to be, as `principal` may read it."""
    return why if principal.owns_all or not why else _LATER


def _covered(core: Core, view: pb.ActionView, row: ActionRow, principal: Principal) -> pb.ActionView:
    if principal.owns_all:
        return view
    if row.kind == "revert":
        _clear(view, _OF_A_REVERT)
    if row.state in _RAN or not asks_data(core, row):
        return view
    _clear(view, _OF_THE_PLAN)
    if asks_folder(core, row) and _refused(core, row):
        _clear(view, ("undo_class", "risk"))
        view.state = State.FAILED
    return view


def _refused(core: Core, row: ActionRow) -> bool:
    """Whether it has ended before anybody was asked, and not by what was asked for alone."""
    if row.state not in (State.FAILED, State.DENIED) or row.outcome or core.approvals.of_action(row.id):
        return False
    return not _denied_unseen(row)


def _denied_unseen(row: ActionRow) -> bool:
    """Whether it was denied by what was asked for alone. A commit looks at nothing that is there now."""
    plan = row.readable_plan() if row.state is State.DENIED else None
    if plan is None:
        return False
    return bool(plan.resolved.get("unseen")) or (isinstance(plan.action, Revert) and plan.action.verb == "commit")


def _problem(core: Core, problem: pb.Problem, row: ActionRow) -> pb.Problem:
    """Why an action didn't end well, as an agent may read it."""
    problem.ClearField("details")
    if row.kind != "revert" and not asks_data(core, row):
        return problem
    ran = row.state in _RAN or bool(row.outcome)
    answers = [one.state for one in core.approvals.of_action(row.id)]
    if ran or problem.code in _OF_ITSELF or (_denied_unseen(row) and "approved" not in answers):
        return problem
    if problem.code in ("denied", "timed-out") and answers and answers[-1] in _ANSWERED:
        return problem
    next_step = f"The person can see why, at {row.id}."
    if "approved" in answers and problem.code == "denied":
        return _said(Denied("It isn't what was approved any more, so it didn't run.", next_step=next_step))
    if not asks_folder(core, row):
        return problem
    if row.kind == "revert":
        said = (
            "This can't be taken back or brought back as things are: it was changed since, or a later action stands on "
            "it. Nothing was touched."
        )
        return _said(Conflict(said, next_step=next_step), who="person")
    if row.kind == "calls" and (problem.code not in _OF_A_FOLDER or _malformed(core, row)):
        return problem
    return _said(InvalidInput("GoEx doesn't do this in that folder.", next_step=next_step))


def _malformed(core: Core, row: ActionRow) -> bool:
    """Whether calls can't be made as they were written, which says nothing of the folder."""
    try:
        action = row.action()
    except GoexError:  # of another version of GoEx
        return False
    calls = action.calls if isinstance(action, ApiCalls) else ()
    try:
        core.catalog.validate_all(calls)
    except GoexError:
        return True
    return any(refers(value) for call in calls for value in call.arguments.values())


def _ending(core: Core, view: pb.ActionView, problem: pb.Problem | None, row: ActionRow) -> pb.Ending:
    last = core.approvals.of_action(row.id)[-1:] if view.state in ("asking", "denied") else ()
    deadline = last[0].deadline if last and last[0].state == "pending" else ""
    outcome = parse(row.outcome, limit=_LIMIT) if row.outcome else {}
    touched, unsure = bool(outcome.get("touched", True)), bool(outcome.get("unsure"))
    answered = last[0].state if last else ""
    made = ending(view, problem, answered=answered, deadline=deadline, touched=touched, unsure=unsure)
    if made.status == "waiting" and core.settings.page_key is not None:
        origin = page_origin(core.settings.page_key)
        made.page = f"{origin}/#waiting" if origin else ""
    if not made.summary:
        made.summary = outcome.get("summary", "")
    return made


def _said(error: GoexError, who: str = "") -> pb.Problem:
    status = ExitStatus(error.exit_status)
    return pb.Problem(code=error.code, message=error.message, next_step=error.next_step, exit_status=status, who=who)


def _clear(message: pb.Approval | pb.ActionView, names: tuple[str, ...]) -> None:
    for name in names:
        message.ClearField(name)
