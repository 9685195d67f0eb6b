"""`goex.v1.Passkeys`, on user.sock alone: register, list and remove passkeys, and what they are asked.

Rules: the first passkey needs the approval passphrase, each further one and each removal an assertion over exactly
that: the strongest presence that there is. Presence that was remembered before a change counts no more after it. What
a passkey signed to begin a session approves nothing, and what it signed for an approval begins none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from goex.daemon.page_sessions import PageSession
from goex.daemon.passkey_statements import SIGN_IN, Statement, adding, approving, described, encoded, removing
from goex.daemon.person_context import PersonCalls
from goex.daemon.rpc_context import current_call, streaming, unary
from goex.daemon.waiting_calls import PasskeyDue
from goex.engine.peers import Peer
from goex.journal.chain import stamp
from goex.rpc import passkeys_pb2 as pb
from goex.rpc import passkeys_pb2_grpc as rpc
from policies.errors import InvalidInput
from vault.passkeys import Passkey

_ADDING, _REMOVING, _RESETTING = "Adding a passkey", "Removing a passkey", "Removing all passkeys"


class PasskeysService(PersonCalls, rpc.PasskeysServicer):
    """Everything about passkeys."""

    @unary
    async def Begin(self, request: pb.BeginPasskeyRequest, context: Any) -> pb.BeginPasskeyReply:
        self._opened(context)
        return pb.BeginPasskeyReply(options_json=self._person.passkeys.begin(request.name, request.origin))

    @unary
    async def Add(self, request: pb.AddPasskeyRequest, context: Any) -> pb.PasskeyView:
        peer, passkeys = self._opened(context), self._person.passkeys
        proof: Mapping[str, str] = {}
        first = not passkeys.known.all
        if not first and not (request.assertion_json or request.passphrase):  # of another host than those
            what = f"{_ADDING} for {passkeys.host_asked(request.credential_json)}"
            instead = {"credential_json": described(request)}
            self._person.waiting.require(peer, what, *current_call(), instead)
            await self._person.confirm(peer, what)
        elif not first:
            statement = adding(request)
            _, shown = await self._person.shown(context, request.assertion_json, _ADDING, statement)
            proof = shown.facts
        else:
            await self._prove(peer, request.passphrase, _ADDING)
        made, rp_id = await passkeys.registered(request.credential_json)
        added = await passkeys.add(request.name, made, rp_id, by=peer.describe(), proof=proof, first=first)
        self._forget_presence()
        return _view(added)

    @unary
    async def List(self, request: pb.ListPasskeysRequest, context: Any) -> pb.ListPasskeysReply:
        self._opened(context)
        passkeys = self._person.passkeys
        known = passkeys.known
        return pb.ListPasskeysReply(
            passkeys=[_view(one) for one in known.all],
            presence="passkey" if passkeys.required else "passphrase",
            reset_at=stamp(known.reset_at) if known.reset_at else "",
            waiting=self._person.waiting.open(),
            sessions=[_session_view(one) for one in self._person.page_sessions.all()],
        )

    @unary
    async def Remove(self, request: pb.RemovePasskeyRequest, context: Any) -> pb.RemovePasskeyReply:
        peer, passkeys = self._opened(context), self._person.passkeys
        passkeys.check_id(request.id)
        proof: Mapping[str, str] = {}
        if request.assertion_json:
            _, shown = await self._person.shown(context, request.assertion_json, _REMOVING, removing(request))
            proof = shown.facts
        else:
            self._person.waiting.require(peer, _REMOVING, *current_call())
            await self._person.confirm(peer, _REMOVING)
        await passkeys.remove(request.id, by=peer.describe(), proof=proof)
        self._forget_presence()
        return pb.RemovePasskeyReply()

    @unary
    async def Challenge(self, request: pb.ChallengeRequest, context: Any) -> pb.ChallengeReply:
        peer = self._opened(context)
        if request.WhichOneof("what") == "sign_in":
            options, text = self._person.passkeys.sign_in(request.origin)
        else:
            options, text = self._person.passkeys.challenge(self._statement(request, peer), request.origin)
        return pb.ChallengeReply(options_json=options, statement_json=text)

    @unary
    async def Reset(self, request: pb.ResetPasskeysRequest, context: Any) -> pb.ResetPasskeysReply:
        peer, passkeys = self._opened(context), self._person.passkeys
        if request.cancel:
            await passkeys.cancel_reset(by=peer.describe())
            return pb.ResetPasskeysReply()
        await self._prove(peer, request.passphrase, _RESETTING)
        at, done = await passkeys.reset(by=peer.describe())
        self._forget_presence()
        return pb.ResetPasskeysReply(reset_at=stamp(at), done=done)

    @streaming
    async def SignIn(self, request: pb.SignInRequest, context: Any) -> AsyncIterator[pb.PageSession]:
        peer, sessions = self._opened(context), self._person.page_sessions
        link = request.by_link and not request.assertion_json
        shown = None if link else await self._person.passkeys.shown(request.assertion_json, kind=SIGN_IN)
        with sessions.opened(shown.passkey if shown else None) as session:
            if shown is not None:
                facts = {"session": session.id, "origin": shown.statement["origin"], "by": peer.describe()}
                facts["assertion"] = dict(shown.facts)
                self._person.engine.core.journal.append("page-session", facts=facts)
            await self.before_reply()
            sessions.get(session.id)  # nothing has ended it meanwhile
            yield _session_view(session)
            await sessions.lasting(session)

    @unary
    async def EndSession(self, request: pb.EndSessionRequest, context: Any) -> pb.EndSessionReply:
        self._person.callers.peer(context)
        self._person.page_sessions.end(request.id)
        return pb.EndSessionReply()

    # ---- inside

    def _opened(self, context: Any) -> Peer:
        peer = self._person.callers.peer(context)
        self._person.vault_state.require_open()
        return peer

    async def _prove(self, peer: Peer, passphrase: str, what: str) -> None:
        """The passphrase itself, whatever is remembered or polkit would say in its stead."""
        if peer.away and self._person.passkeys.known.all:
            raise PasskeyDue(what)
        await self._person.require_passphrase(passphrase, what)
        await self._person.confirm(peer, what)

    def _forget_presence(self) -> None:
        self._person.page_sessions.sweep()
        self._person.presence.forget()
        self._person.waiting.forget()

    def _statement(self, request: pb.ChallengeRequest, peer: Peer) -> Statement:
        """What would be approved. Raises InvalidInput, or Conflict where something else was shown."""
        match request.WhichOneof("what"):
            case "decide":
                approval = self._person.engine.core.approvals.get(request.decide.approval_id)
                if not request.decide.approve:
                    raise InvalidInput("A no needs no passkey.", next_step="Send it as it is.")
                self._person.engine.asking.check_shown(approval.id, request.decide.digest)
                return approving(request.decide, approval.action_id)
            case "remove":
                self._person.passkeys.check_id(request.remove.id)
                return removing(request.remove)
            case "add":
                return adding(request.add)
            case "presence":
                if request.presence:
                    return self._person.waiting.statement(request.presence)
                return {"kind": "presence", "terminal": peer.place, "by": peer.describe()}
        raise InvalidInput("What shall be approved?", next_step="Fill in one of ChallengeRequest.what.")


def _view(passkey: Passkey) -> pb.PasskeyView:
    return pb.PasskeyView(
        id=passkey.id,
        name=passkey.name,
        created=stamp(passkey.created),
        used=stamp(passkey.used) if passkey.used else "",
        public_key=passkey.public_key,
        credential_id=encoded(passkey.credential_id),
        rp_id=passkey.rp_id,
    )


def _session_view(session: PageSession) -> pb.PageSession:
    return pb.PageSession(
        id=session.id,
        passkey=session.passkey.id if session.passkey else "",
        name=session.passkey.name if session.passkey else "",
        begun=stamp(session.begun),
        ends=stamp(session.ends),
    )
