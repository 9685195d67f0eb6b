"""The person's calls about what is asked: see what waits, and decide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from goex.daemon.calls import streaming, unary
from goex.daemon.desk import DeskCalls
from goex.rpc import goex_pb2 as pb
from policies.errors import InvalidInput
from policies.grants import Width
from policies.text import escape


class AskingCalls(DeskCalls):
    """Approvals and decisions."""

    @unary
    async def Approvals(self, request: pb.ApprovalsRequest, context: Any) -> pb.ApprovalsReply:
        self._desk.callers.peer(context)
        approvals = self._desk.engine.core.approvals
        found = approvals.recent() if request.settled else approvals.pending()
        return pb.ApprovalsReply(approvals=[self._desk.actions.approval(approval.id) for approval in found])

    @streaming
    async def WatchApprovals(self, request: pb.ApprovalsRequest, context: Any) -> AsyncIterator[pb.Approval]:
        self._desk.callers.peer(context)
        approvals = self._desk.engine.core.approvals
        queue = approvals.watch()
        try:
            for approval in approvals.pending():
                yield self._desk.actions.approval(approval.id)
            while True:
                yield self._desk.actions.approval(await queue.get())
        finally:
            approvals.unwatch(queue)

    @unary
    async def Decide(self, request: pb.DecideRequest, context: Any) -> pb.DecideReply:
        approval = self._desk.engine.core.approvals.get(request.approval_id)
        width = _width(request.width) if request.approve else Width.ONCE
        peer = self._desk.callers.peer(context)
        if request.approve and self._desk.engine.asking.presence_due(approval.id, request.digest, width):
            peer = await self._desk.present(context, request.passphrase, "Approving this")
        expires = timedelta(seconds=request.expires_seconds) if request.expires_seconds else None
        reason = escape(request.reason[:500])
        self._desk.engine.asking.answer(
            approval.id,
            approve=request.approve,
            shown=request.digest,
            width=width,
            by=peer.describe(),
            reason=reason,
            expires=expires,
            bound=tuple(request.bind_arguments),
        )
        return pb.DecideReply(approval=self._desk.actions.approval(approval.id))


def _width(text: str) -> Width:
    try:
        return Width(text or "once")
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} isn't a width.", next_step="It is once, session or permanent.") from None
