"""The calls of the daemon that the page may make: JSON from the browser, messages to user.sock, and back.

Rules: a call that isn't in the table isn't made. The page decides nothing: presence, digests, rules are the daemon's. A
call says that it is for somebody at the page, and for which session at the public one; the daemon refuses it when that
has ended. What the page only shows is escaped here (`shown_replies`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message

from goex.client import CHANNEL, translate
from goex.rpc import accounts_pb2, audit_pb2, databases_pb2, passkeys_pb2, rules_pb2
from goex.rpc import goex_pb2 as pb
from goex.web.shown_replies import SHOWN, shown
from policies.errors import InvalidInput, Unavailable

_SECONDS = 60.0
AWAY_KEY = "goex-away"  # as goex.daemon.rpc_context reads it

UNARY: dict[str, tuple[type[Message], type[Message]]] = {
    "Person/Status": (pb.StatusRequest, pb.StatusReply),
    "Person/Approvals": (pb.ApprovalsRequest, pb.ApprovalsReply),
    "Person/Decide": (pb.DecideRequest, pb.DecideReply),
    "Person/Present": (pb.PresentRequest, pb.PresentReply),
    "Person/DenyAll": (pb.DenyAllRequest, pb.DenyAllReply),
    "Person/Grants": (pb.GrantsRequest, pb.GrantsReply),
    "Person/Revoke": (pb.RevokeRequest, pb.RevokeReply),
    "Person/ListAgents": (pb.ListAgentsRequest, pb.ListAgentsReply),
    "Person/RemoveAgent": (pb.RemoveAgentRequest, pb.RemoveAgentReply),
    "Person/VaultUnlock": (pb.VaultUnlockRequest, pb.VaultStatus),
    "Person/VaultSeal": (pb.VaultSealRequest, pb.VaultStatus),
    "Accounts/ListAccounts": (accounts_pb2.ListAccountsRequest, accounts_pb2.ListAccountsReply),
    "Databases/ListDatabases": (databases_pb2.ListDatabasesRequest, databases_pb2.ListDatabasesReply),
    "Rules/InForce": (rules_pb2.InForceRequest, rules_pb2.InForceReply),
    "Rules/SuggestRules": (rules_pb2.SuggestRulesRequest, rules_pb2.SuggestRulesReply),
    "Rules/ApplySuggestedRules": (rules_pb2.ApplySuggestedRulesRequest, rules_pb2.InForceReply),
    "Passkeys/Begin": (passkeys_pb2.BeginPasskeyRequest, passkeys_pb2.BeginPasskeyReply),
    "Passkeys/Add": (passkeys_pb2.AddPasskeyRequest, passkeys_pb2.PasskeyView),
    "Passkeys/List": (passkeys_pb2.ListPasskeysRequest, passkeys_pb2.ListPasskeysReply),
    "Passkeys/Remove": (passkeys_pb2.RemovePasskeyRequest, passkeys_pb2.RemovePasskeyReply),
    "Passkeys/Reset": (passkeys_pb2.ResetPasskeysRequest, passkeys_pb2.ResetPasskeysReply),
    "Passkeys/Challenge": (passkeys_pb2.ChallengeRequest, passkeys_pb2.ChallengeReply),
    "Passkeys/EndSession": (passkeys_pb2.EndSessionRequest, passkeys_pb2.EndSessionReply),
    "Audit/Actions": (audit_pb2.Wanted, audit_pb2.ActionsPage),
    "Audit/Story": (pb.ActionId, audit_pb2.StoryReply),
    "Audit/Scopes": (audit_pb2.ScopesRequest, audit_pb2.ScopesReply),
    "Actions/WayBack": (pb.WayBackRequest, pb.WayBackReply),
    "Actions/Cancel": (pb.ActionId, pb.ActionView),
}
STREAMED: dict[str, tuple[type[Message], type[Message]]] = {
    "Person/WatchApprovals": (pb.ApprovalsRequest, pb.Approval),
    "Person/DryRun": (pb.DryRunRequest, pb.DryRunEvent),
    "Actions/Revert": (pb.RevertRequest, pb.Event),
}


Begun = tuple[str, Callable[[], Coroutine[Any, Any, None]]]
"""The id of a session at the public page, and what waits until it has ended."""


class DaemonCalls:
    """One channel to user.sock, for all sessions of the page."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.aio.insecure_channel("unix:" + quote(str(socket)), options=CHANNEL)

    async def close(self) -> None:
        await self._channel.close()

    async def call(self, method: str, body: bytes, away: str = "") -> bytes:
        """Make one unary call. `away`: the session at the public page that it is for. Raises GoexError."""
        request, reply = UNARY[method]
        made = self._channel.unary_unary(
            f"/goex.v1.{method}", request_serializer=_to_bytes, response_deserializer=reply.FromString
        )
        try:
            return _json(method, await made(_message(request, body), timeout=_SECONDS, metadata=_metadata(away)))
        except grpc.RpcError as error:
            raise translate(error) from error

    async def sign_in(self, assertion: str) -> Begun:
        """Begin a session at the public page with a passkey. Raises GoexError."""
        return await self._begin(passkeys_pb2.SignInRequest(assertion_json=assertion))

    async def begin_by_link(self) -> Begun:
        """Begin a session at the public page for whoever has a link, which was looked at. Raises GoexError."""
        return await self._begin(passkeys_pb2.SignInRequest(by_link=True))

    async def _begin(self, request: passkeys_pb2.SignInRequest) -> Begun:
        made = self._channel.unary_stream(
            "/goex.v1.Passkeys/SignIn",
            request_serializer=_to_bytes,
            response_deserializer=passkeys_pb2.PageSession.FromString,
        )
        call: Any = made(request)
        try:
            session = await call.read()
        except grpc.RpcError as error:
            raise translate(error) from error
        if session is grpc.aio.EOF:
            raise Unavailable("The session ended at once.", next_step="Try again.")

        async def ended() -> None:
            try:
                with suppress(grpc.RpcError):
                    await call.read()
            finally:
                call.cancel()

        return session.id, ended

    async def stream(self, method: str, body: bytes, away: str = "") -> AsyncGenerator[bytes]:
        """Yield what a call streams, a line of JSON each. `away` as for `call`. Raises GoexError."""
        request, reply = STREAMED[method]
        made = self._channel.unary_stream(
            f"/goex.v1.{method}", request_serializer=_to_bytes, response_deserializer=reply.FromString
        )
        call: Any = made(_message(request, body), metadata=_metadata(away))
        try:
            async for message in call:
                yield _json(method, message) + b"\n"
        except grpc.RpcError as error:
            raise translate(error) from error
        finally:
            call.cancel()


def _metadata(away: str) -> tuple[tuple[str, str], ...]:
    return ((AWAY_KEY, away),)


def _message(kind: type[Message], body: bytes) -> Message:
    try:
        found = json.loads(body or b"{}")
        if not isinstance(found, dict):
            raise InvalidInput("The request isn't an object.")
        return json_format.ParseDict(found, kind())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise InvalidInput("The request isn't what this call takes.") from error


def _json(method: str, message: Message) -> bytes:
    found = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    if method in SHOWN:
        found = shown(found)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
