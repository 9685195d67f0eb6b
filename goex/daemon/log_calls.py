"""The person's calls about the journal: read it, and verify it."""

from __future__ import annotations

from typing import Any

from goex.daemon.action_views import log_row, verified
from goex.daemon.person_context import PersonCalls
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import unary
from goex.rpc import goex_pb2 as pb

MOST_ROWS = 10_000


class LogCalls(PersonCalls):
    """The journal."""

    @unary
    async def Log(self, request: pb.LogRequest, context: Any) -> pb.LogReply:
        self._person.callers.peer(context)
        rows = self._person.engine.core.journal.rows(
            action_id=request.action_id,
            agent=request.agent,
            before=request.before,
            limit=min(request.limit or 50, MOST_ROWS),
        )
        return pb.LogReply(rows=[log_row(row) for row in rows])

    @unary
    async def VerifyLog(self, request: pb.VerifyLogRequest, context: Any) -> pb.VerifyLogReply:
        self._person.callers.peer(context)
        found = await in_thread(self._person.engine.core.journal.verify)
        return verified(found)
