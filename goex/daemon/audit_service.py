"""`goex.v1.Audit`, on user.sock alone: what happened, whether it was altered, what grants were used for, and export.

Reading a long journal is done in threads and in portions: nobody else waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from goex.daemon.action_views import action_view, log_row, problem_view, verified
from goex.daemon.approval_views import grant_view
from goex.daemon.audit_views import logged, story_view
from goex.daemon.person_context import PersonContext
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import streaming, unary
from goex.journal.actions import ActionRow
from goex.journal.export import export
from goex.journal.search import Wanted, find_actions, find_rows
from goex.journal.states import State
from goex.journal.story import decisions, story
from goex.journal.usage import usage
from goex.rpc import audit_pb2 as audit
from goex.rpc import audit_pb2_grpc as rpc
from goex.rpc import goex_pb2 as pb
from mapper.least_scopes import opened
from policies.errors import GoexError, InvalidInput
from policies.grants import Grant, Width
from policies.services import Risk

MOST_ACTIONS = 1000  # on a page
MOST_ROWS = 10_000
ROWS_OF_A_STORY = 1000
METHODS_NAMED = 50
_TOLD_EVERY = 0.25  # seconds
_KINDS = ("calls", "files", "sql", "mongo", "code", "task", "revert", "intent")


class AuditService(rpc.AuditServicer):
    """Reads; changes nothing."""

    def __init__(self, person: PersonContext) -> None:
        self._person = person
        self._journal = person.engine.core.journal

    @unary
    async def Actions(self, request: audit.Wanted, context: Any) -> audit.ActionsPage:
        self._person.callers.peer(context)
        wanted = _wanted(request, MOST_ACTIONS)
        if wanted.kind and wanted.kind not in _KINDS:
            raise InvalidInput(
                f"{wanted.kind[:40]!r} isn't a kind of action.",
                next_step=f"It is one of: {', '.join(_KINDS)}. With --rows it is a row's kind.",
            )
        if request.task:
            grants = self._person.engine.core.grant_store.of_task(request.task)
            wanted = replace(wanted, grants=grants)
        return await in_thread(self._page, wanted)

    @unary
    async def Rows(self, request: audit.Wanted, context: Any) -> pb.LogReply:
        self._person.callers.peer(context)
        rows = await in_thread(find_rows, self._journal, _of_rows(request))
        return pb.LogReply(rows=[log_row(row) for row in rows])

    @unary
    async def Story(self, request: pb.ActionId, context: Any) -> audit.StoryReply:
        self._person.callers.peer(context)
        return await in_thread(self._story, request.id)

    def _story(self, id: str) -> audit.StoryReply:
        row = self._person.engine.core.actions.get(id)
        rows = find_rows(self._journal, Wanted(action_id=row.id, limit=MOST_ROWS))
        told = story(self._journal, reversed(rows))
        reverts = self._person.engine.core.actions.reverts_of(row.id)
        reply = story_view(
            action_view(row),
            logged(row, told.decided, reverts),
            row.source,
            told,
            list(rows[:ROWS_OF_A_STORY]),
            max(len(rows) - ROWS_OF_A_STORY, 0),
        )
        reply.reverts.extend(self._logged(reverts))
        if (problem := self._person.engine.problem(row)) is not None:
            reply.problem.CopyFrom(problem_view(problem))
        return reply

    @streaming
    async def Verify(self, request: pb.VerifyLogRequest, context: Any) -> AsyncIterator[audit.VerifyProgress]:
        self._person.callers.peer(context)
        rows, checked = self._journal.count, 0

        def progress(count: int) -> None:
            nonlocal checked
            checked = count

        opener = self._person.vault_state.open_payload if self._journal.unlocked else None
        task = asyncio.create_task(in_thread(self._journal.verify, progress, opener))
        try:
            while not (await asyncio.wait({task}, timeout=_TOLD_EVERY))[0]:
                yield audit.VerifyProgress(checked=checked, rows=rows)
        finally:
            await asyncio.wait({task})  # a thread can't be stopped; it ends by itself
        found = task.result()
        yield audit.VerifyProgress(checked=found.rows, rows=found.rows, result=verified(found))

    @streaming
    async def Export(self, request: audit.Wanted, context: Any) -> AsyncIterator[audit.ExportChunk]:
        self._person.callers.peer(context)
        portions = export(self._journal, _of_rows(request))
        total = self._journal.count
        while (portion := await in_thread(next, portions, None)) is not None:
            lines, rows = portion
            yield audit.ExportChunk(lines=lines, rows=rows, of=total)

    @unary
    async def Scopes(self, request: audit.ScopesRequest, context: Any) -> audit.ScopesReply:
        self._person.callers.peer(context)
        standing = [
            grant
            for grant in self._person.engine.core.grant_store.grants()
            if grant.width is not Width.ONCE and request.agent in ("", grant.agent)
        ]
        used = await in_thread(usage, self._journal, standing)
        found = [
            audit.UsedScope(
                grant=grant_view(self._person.engine.core, grant),
                uses=used[grant.id].uses,
                last_used=used[grant.id].last,
                methods=sorted(used[grant.id].methods),
                **self._open(grant, used[grant.id].methods),
            )
            for grant in standing
        ]
        found.sort(key=lambda each: (each.uses > 0, each.last_used, each.grant.created))
        return audit.ScopesReply(scopes=found)

    def _page(self, wanted: Wanted) -> audit.ActionsPage:
        rows = find_actions(self._journal, wanted)
        more = len(rows) == wanted.limit
        return audit.ActionsPage(actions=self._logged(rows), before=rows[-1].number if more and rows else 0)

    def _logged(self, rows: tuple[ActionRow, ...]) -> list[audit.LoggedAction]:
        decided = decisions(self._journal, [row.id for row in rows])
        core = self._person.engine.core
        undone = {row.id for row in rows if row.state is State.UNDONE}
        reverts = {id: core.actions.reverts_of(id) for id in undone}
        return [logged(row, decided[row.id], reverts.get(row.id, ())) for row in rows]

    def _open(self, grant: Grant, called: set[str]) -> dict[str, Any]:
        """What else the grant's scope would let its agent call."""
        try:
            names = [name for name, _, _ in opened(self._person.engine.core.catalog, grant.service, grant.scope)]
        except GoexError:  # a folder, or a service that isn't in the catalog any more
            return {}
        unused = sorted(name for name in names if name not in called)
        return {"methods_open": len(names), "methods_unused": unused[:METHODS_NAMED]}


def _of_rows(request: audit.Wanted) -> Wanted:
    """The message, for rows. Raises InvalidInput."""
    if request.task:
        raise InvalidInput("Only actions are found by their task, not rows.", next_step="List them: goex log --task ID")
    return _wanted(request, MOST_ROWS)


def _wanted(request: audit.Wanted, most: int) -> Wanted:
    """The message, checked. Raises InvalidInput."""
    risk = None
    if request.risk:
        if request.risk.upper() not in Risk.__members__:
            raise InvalidInput(
                f"{request.risk[:40]!r} isn't a risk.",
                next_step="It is read, write, delete or admin, and means at least.",
            )
        risk = Risk[request.risk.upper()]
    if request.state and request.state not in set(State):
        raise InvalidInput(f"{request.state[:40]!r} isn't a state.", next_step=f"It is one of: {', '.join(State)}.")
    return Wanted(
        since=_moment(request.since),
        until=_moment(request.until),
        agent=request.agent,
        service=request.service,
        risk=risk,
        session=request.session,
        state=request.state,
        kind=request.kind,
        action_id=request.action_id,
        text=request.text,
        before=min(request.before, 2**63 - 1),
        limit=min(request.limit or 50, most),
    )


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidInput(f"{text[:60]!r} isn't a time.", next_step="Write it as RFC 3339: 2026-11-01T09:00:00Z.")
    return found
