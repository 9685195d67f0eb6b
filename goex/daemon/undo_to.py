"""The way back to a point, as it is asked for over the wire: whose actions, since when, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from goex.daemon.agent_views import shown_action, why_not
from goex.daemon.audit_views import what
from goex.engine.core import Principal
from goex.engine.engine import Engine
from goex.engine.timeline import Step
from goex.journal.actions import ActionRow
from goex.journal.chain import stamp
from goex.journal.search import Wanted, find_actions
from goex.rpc import goex_pb2 as pb
from policies.display_text import shorten
from policies.errors import InvalidInput

_MOST_LOOKED_AT = 5000
_LONGEST = 200  # characters of what an action did


async def way_back(engine: Engine, principal: Principal, request: pb.WayBackRequest) -> pb.WayBackReply:
    """What going back to a point takes. Raises InvalidInput."""
    if request.verb not in ("undo", "redo", "commit"):
        raise InvalidInput(f"Unknown verb {request.verb[:40]!r}.", next_step="Use undo, redo or commit.")
    if bool(request.action_id) + bool(request.moment) + bool(request.task) != 1:
        raise InvalidInput("A point is an action or a moment.", next_step="Name one of them.")
    chosen = _of_task(engine, principal, request.task) if request.task else _mine(engine, principal, request)
    if request.verb == "undo":
        steps = await engine.timeline.back(chosen)
    elif request.verb == "redo":
        steps = await engine.timeline.again(chosen)
    else:
        steps = engine.timeline.kept(chosen)
    return pb.WayBackReply(steps=[_view(engine, step, principal) for step in steps if principal.owns(step.row)])


def _of_task(engine: Engine, principal: Principal, id: str) -> list[ActionRow]:
    """What was done in a task, of whoever asks."""
    task = engine.core.actions.get(id)
    if not principal.owns(task) or task.kind != "task":
        raise InvalidInput(f"There is no task {id[:60]!r}.", next_step="goex log --kind task lists them.")
    wanted = Wanted(grants=engine.core.grant_store.of_task(id), limit=_MOST_LOOKED_AT)
    return [row for row in find_actions(engine.core.journal, wanted) if principal.owns(row)]


def _mine(engine: Engine, principal: Principal, request: pb.WayBackRequest) -> list[ActionRow]:
    """The actions on the asked side of the point, of whom it was asked for."""
    point: ActionRow | None = None
    if request.action_id:
        point = engine.core.reverted(request.action_id)
        if not principal.owns(point):
            raise InvalidInput(f"There is no action {request.action_id[:60]!r}.", next_step="goex log lists them.")
    rows = _side(engine, request, point)
    whole = request.everyone or point is None
    return [
        row
        for row in rows
        if principal.owns(row)
        and (not request.agent or row.agent == request.agent)
        and (whole or point is None or row.session == point.session)
    ]


def _side(engine: Engine, request: pb.WayBackRequest, point: ActionRow | None) -> Iterable[ActionRow]:
    if request.verb == "commit":
        rows = engine.core.actions.newest(limit=_MOST_LOOKED_AT)
        if point is not None:
            return [row for row in rows if row.number <= point.number]
        until = _moment(request.moment)
        return [row for row in rows if row.created <= until]
    return engine.timeline.since(point) if point is not None else engine.timeline.after(_moment(request.moment))


def _moment(text: str) -> str:
    try:
        return stamp(datetime.fromisoformat(text).astimezone(UTC))
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} isn't a time.", next_step="Write it as RFC 3339, in UTC.") from error


def _view(engine: Engine, step: Step, principal: Principal) -> pb.WayStep:
    said, cut = shorten(what(step.row), _LONGEST)
    said = f"{said}… ({cut} more characters)" if cut else said
    shown = shown_action(engine.core, step.row, principal)
    return pb.WayStep(action=shown, can=step.can, why=why_not(step.why, principal), what=said)
