"""The person's calls about what is asked and what was granted: see what waits, decide, see grants, take them back.

Rules: a yes that reads once needs no presence, except at the public page, where a passkey signs each yes. A no, and
taking a grant back, needs none anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

from goex.daemon.approval_views import LARGEST_REPLY, grant_view
from goex.daemon.passkey_statements import approving
from goex.daemon.person_context import PersonCalls
from goex.daemon.rpc_context import streaming, unary
from goex.engine.events import Approval
from goex.engine.grant_issue import Choice, Yes
from goex.engine.peers import Peer
from goex.rpc import goex_pb2 as pb
from policies.display_text import counted, escape, shorten
from policies.errors import InvalidInput

LONGEST_REASON = 500  # characters


class AskingCalls(PersonCalls):
    """Approvals, decisions and grants."""

    @unary
    async def Approvals(self, request: pb.ApprovalsRequest, context: Any) -> pb.ApprovalsReply:
        peer = self._person.callers.peer(context)
        approvals = self._person.engine.core.approvals
        if request.approval_id:
            found: tuple[Approval, ...] = (approvals.get(request.approval_id),)
        else:
            found = approvals.recent() if request.settled else approvals.pending(duplicates=request.duplicates)
        reply, size = pb.ApprovalsReply(), 0
        async for made in self._views(found, brief=request.brief):
            self._say_presence(made, peer)
            size += made.ByteSize()
            if reply.approvals and size > LARGEST_REPLY:
                break
            reply.approvals.append(made)
        reply.left_out = len(found) - len(reply.approvals)
        return reply

    @streaming
    async def WatchApprovals(self, request: pb.ApprovalsRequest, context: Any) -> AsyncIterator[pb.Approval]:
        """What waits, then each that comes or is settled. One that joins identical ones is told as the first of them,
        and when that one is settled the next of them is told as if it came."""
        peer = self._person.callers.peer(context)
        approvals = self._person.engine.core.approvals
        queue = approvals.watch()
        try:
            if request.news:
                yield pb.Approval()
            else:
                async for made in self._views(approvals.pending(duplicates=request.duplicates), brief=request.brief):
                    self._say_presence(made, peer, lasting=True)
                    yield made
            while True:
                id = await queue.get()
                duplicates = approvals.queue.duplicates(id)
                stands = duplicates[0] if duplicates and not request.duplicates else id
                made = self._warned(self._person.actions.approval(stands, brief=request.brief))
                self._say_presence(made, peer, lasting=True)
                yield made
                await asyncio.sleep(0)
        finally:
            approvals.unwatch(queue)

    @unary
    async def Decide(self, request: pb.DecideRequest, context: Any) -> pb.DecideReply:
        asking = self._person.engine.asking
        peer = self._person.callers.peer(context)
        approval = self._person.engine.core.approvals.get(request.approval_id)
        if not request.approve:
            reason = _reason(request.reason)
            done = asking.deny(approval.id, by=peer.describe(), reason=reason, same_as=request.same_as)
        else:
            choice, proof = _choice(request.width), None
            narrowed = {one.line: one.times for one in request.narrowed}
            if len(narrowed) != len(request.narrowed):
                raise InvalidInput("A line of the task is narrowed twice.")
            if request.assertion_json:
                asking.check_shown(approval.id, request.digest)
                statement = approving(request, approval.action_id)
                peer, shown = await self._person.shown(context, request.assertion_json, "Approving this", statement)
                proof = shown.facts
            elif peer.away or asking.presence_due(approval.id, request.digest, choice):
                peer = await self._person.present(context, request.passphrase, "Approving this", waits=False)
            lasts = timedelta(seconds=min(request.expires_seconds, _LONGEST_ASKED)) if request.expires_seconds else None
            yes = Yes(
                choice=choice,
                by=peer.describe(),
                lasts=lasts,
                bound=tuple(request.bind_arguments),
                narrowed=narrowed,
                proof=proof,
            )
            done = asking.approve(approval.id, shown=request.digest, yes=yes)
        return pb.DecideReply(approval=self._person.actions.approval(approval.id), settled=done.also)

    @unary
    async def DenyAll(self, request: pb.DenyAllRequest, context: Any) -> pb.DenyAllReply:
        peer = self._person.callers.peer(context)
        done = self._person.engine.asking.deny_all(
            agent=request.agent, session=request.session, by=peer.describe(), reason=_reason(request.reason)
        )
        return pb.DenyAllReply(approval_ids=done)

    @unary
    async def Grants(self, request: pb.GrantsRequest, context: Any) -> pb.GrantsReply:
        self._person.callers.peer(context)
        core = self._person.engine.core
        return pb.GrantsReply(
            grants=[grant_view(core, grant) for grant in core.grant_store.grants(everything=request.all)]
        )

    @unary
    async def Revoke(self, request: pb.RevokeRequest, context: Any) -> pb.RevokeReply:
        peer = self._person.callers.peer(context)
        core = self._person.engine.core
        ids = list(request.grant_ids)
        if request.task:
            live = (core.grant_store.live(id) for id in core.grant_store.of_task(request.task))
            ids += [grant.id for grant in live if grant is not None]
        if request.agent or request.service or request.session:
            ids += [
                grant.id
                for grant in core.grant_store.grants()
                if request.agent in ("", grant.agent)
                and request.service in ("", grant.service)
                and request.session in ("", grant.session)
            ]
        done = core.grant_store.revoke(ids, by=peer.describe())
        return pb.RevokeReply(grants=[grant_view(core, grant) for grant in done])

    def _say_presence(self, view: pb.Approval, peer: Peer, *, lasting: bool = False) -> None:
        """Say whether a yes needs presence of whoever looks, and by what: at the public page each one does; at a
        terminal where presence is remembered none, so that nobody types it where it isn't asked for. `lasting`: it is
        looked at later, when that may have ended."""
        held = not lasting and self._person.presence.holds(peer)
        view.presence = bool(peer.away) or (view.presence and not held)
        by_passkey = peer.away or self._person.passkeys.required
        view.presence_by = ("passkey" if by_passkey else "passphrase") if view.presence else ""

    def _warned(self, view: pb.Approval) -> pb.Approval:
        """A question that also says what the person should know now, wherever they look at it."""
        if view.HasField("question") and not view.brief:
            view.question.notes.extend(self._person.passkeys.warnings())
        return view

    async def _views(self, found: Sequence[Approval], *, brief: bool) -> AsyncIterator[pb.Approval]:
        """Made one at a time, since a reply may have no room for all, and others want to be answered meanwhile."""
        for start in range(0, len(found), _AT_ONCE):
            for made in self._person.actions.approvals(found[start : start + _AT_ONCE], brief=brief):
                yield self._warned(made)
                await asyncio.sleep(0)


_AT_ONCE = 50  # actions that are read together, each of which may be a megabyte
_LONGEST_ASKED = 10 * 366 * 86_400  # seconds; more is the same as the longest that a grant may last


def _reason(text: str) -> str:
    """A reason that the agent reads: escaped, and no longer than a reason is."""
    kept, cut = shorten(escape(text), LONGEST_REASON)
    return f"{kept}… ({counted(cut, 'more character')})" if cut else kept


def _choice(text: str) -> Choice:
    try:
        return Choice(text or "once")
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} isn't a width.", next_step="It is once, session, arguments or permanent."
        ) from None
