"""The way back to a point, as it is asked for over the wire: whose actions, since when, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from goex.daemon.action_views import without_texts
from goex.daemon.agent_views import shown_action, why_not
from goex.daemon.audit_views import what
from goex.daemon.request_parser import owned
from goex.engine.core import Principal
from goex.engine.engine import Engine
from goex.engine.quota import Exhausted
from goex.engine.timeline import Step
from goex.journal.actions import ActionRow
from goex.journal.chain import stamp
from goex.journal.search import Wanted, find_ids
from goex.rpc import goex_pb2 as pb
from policies.display_text import counted, shorten
from policies.errors import InvalidInput
from policies.services import Risk
from policies.tasks import MOST_LINES, MOST_TIMES

_MOST_LOOKED_AT = 5000
_MOST_CHANGES = MOST_LINES * MOST_TIMES  # of one task, which counts each, unlike its reads
_LONGEST = 200  # characters of what an action did
_UNREAD = "Your quota of looks has ended: neither this one nor what came before it was looked at. Ask again later."


async def way_back(engine: Engine, principal: Principal, request: pb.WayBackRequest) -> pb.WayBackReply:
    """What going back to a point takes; as much of it as an agent's quota is for. Raises InvalidInput, Exhausted."""
    if request.verb not in ("undo", "redo", "commit"):
        raise InvalidInput(f"Unknown verb {request.verb[:40]!r}.", next_step="Use undo, redo or commit.")
    if bool(request.action_id) + bool(request.moment) + bool(request.task) != 1:
        raise InvalidInput("A point is an action or a moment.", next_step="Name one of them.")
    reader = _Reader(engine, principal)
    chosen = reader.rows(
        _of_task(engine, principal, request.task) if request.task else _mine(engine, principal, request)
    )
    if request.verb == "undo":
        steps = await engine.timeline.back(chosen)
    elif request.verb == "redo":
        steps = await engine.timeline.again(chosen)
    else:
        steps = await engine.timeline.kept(chosen)
    shown = pb.WayBackReply()
    own = {step.row.id: step for step in steps if principal.owns(step.row)}
    for row in reader.rows(own):
        await asyncio.sleep(0)  # each may be long, and the person's calls come in between
        shown.steps.append(_view(engine, own[row.id], row, principal))
    if reader.ended is not None:
        if request.verb == "redo":  # what is brought back may stand on what wasn't looked at
            raise reader.ended
        shown.steps.append(pb.WayStep(action=pb.ActionView(id=reader.unread), why=_UNREAD))
    return shown


@dataclass(slots=True)
class _Reader:
    """Reads the principal's own actions, each when it is taken. An agent's are counted by their size, once, until its
    quota ends: `unread` is then the first that it wasn't enough for."""

    engine: Engine
    principal: Principal
    unread: str = ""
    ended: Exhausted | None = None
    _counted: set[str] = field(default_factory=set)

    def rows(self, ids: Iterable[str]) -> Iterator[ActionRow]:
        """Those of these that are the principal's. Raises Exhausted where the quota has ended before the first."""
        for id in ids:
            try:
                row = self._row(id)
            except Exhausted as error:
                if not self._counted:
                    raise
                self.unread, self.ended = id, error
                return
            if row is not None:
                yield row

    def _row(self, id: str) -> ActionRow | None:
        quotas, principal = self.engine.core.quotas, self.principal
        if id not in self._counted:
            quotas.look(principal.agent, principal.session, 0)
        row = self.engine.core.actions.find(id, principal.own)
        if row is not None and id not in self._counted:
            quotas.read(principal.agent, principal.session, row.size)
            self._counted.add(id)
        return row


def _of_task(engine: Engine, principal: Principal, id: str) -> Iterable[str]:
    """What was changed in a task, of whoever asks."""
    task = engine.core.actions.find(id, principal.own)
    if task is None or task.kind != "task":
        raise InvalidInput(f"There is no task {id[:60]!r}.", next_step="goex log --kind task lists them.")
    wanted = Wanted(grants=engine.core.grant_store.of_task(id), risk=Risk.WRITE, limit=_MOST_CHANGES)
    return find_ids(engine.core.journal, wanted)


def _mine(engine: Engine, principal: Principal, request: pb.WayBackRequest) -> Iterable[str]:
    """The actions on the asked side of the point, of whom it was asked for."""
    whose, point = principal.own, None
    if request.action_id:
        point = engine.core.reverted(owned(engine, request.action_id, principal).id)
        if not request.everyone:
            whose = replace(whose, session=point.session)
    if request.agent:
        if request.agent != (whose.agent or request.agent):
            return ()
        whose = replace(whose, agent=request.agent)
    if request.verb != "commit":
        timeline = engine.timeline
        return timeline.since(point, whose) if point else timeline.after(_moment(request.moment), whose)
    before, until = (point.number + 1, "") if point else (0, _moment(request.moment))
    return engine.core.actions.newest_ids(
        whose, before=before, until=until, risk=Risk.WRITE, limit=_MOST_LOOKED_AT
    )  # no number of reads hides what came before them


def _moment(text: str) -> str:
    try:
        return stamp(datetime.fromisoformat(text).astimezone(UTC))
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} isn't a time.", next_step="Write it as RFC 3339, in UTC.") from error


def _view(engine: Engine, step: Step, row: ActionRow, principal: Principal) -> pb.WayStep:
    said, cut = shorten(what(row), _LONGEST)
    said = f"{said}… ({counted(cut, 'more character')})" if cut else said
    shown = shown_action(engine.core, row, principal)
    if not principal.owns_all:
        without_texts(shown)
    return pb.WayStep(action=shown, can=step.can, why=why_not(step.why, principal), what=said)
