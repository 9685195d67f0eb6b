"""The daemon as the MCP server reaches it: agent.sock alone, asynchronous, each call with the token of the agent that
it is for, and in its session.

Rules: an action that was begun is followed until it ends, whether or not anybody waits, so that no answer is lost
because a client gave up; when this process ends, its streams do, and the daemon withdraws what nobody has answered yet.
An action is looked up by its agent's token alone: whose it is, the daemon says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import anyio.lowlevel
import grpc
from google.protobuf.message import Message

from goex.client import CHANNEL, Refused, translate
from goex.mcp.results import CROWDED, UNNAMED
from goex.rpc import goex_pb2 as pb
from policies.errors import Denied, ExitStatus, GoexError, Unavailable

Reply = TypeVar("Reply", bound=Message)
Told = Callable[[str], None]
_UNARY_SECONDS = 60.0
_ASSESSED_SECONDS = 10.0  # most clients give up after 60
_UNASSESSED = frozenset({"received", "mapped", "assessed"})
# gRPC's words for a connection that never was, and for a request that was too large to be taken.
_UNREACHED, _TOO_LARGE = "failed to connect", "SERVER: Received message larger"
# Of problems that may come before a request was read: none says whether its key was used before.
_UNREAD = (CROWDED, "sealed", UNNAMED)
_METHODS = {pb.ExecuteRequest: "Execute", pb.RevertRequest: "Revert", pb.ActionId: "Watch"}


class Caller(NamedTuple):
    """Whose call one is: the agent's token, and what its session is called; "": it is the connection."""

    token: str
    session: str = ""


class _Followed(NamedTuple):
    """An action's events, read until its end. `assessed`: the person is asked for it, or it needs nobody."""

    reading: asyncio.Task[None]
    assessed: asyncio.Event


class DaemonLink:
    """One channel to the daemon, and the actions that are followed on it."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel: grpc.aio.Channel | None = None
        self._followed: dict[tuple[str, str], _Followed] = {}

    async def close(self) -> None:
        for followed in [*self._followed.values()]:
            followed.reading.cancel()
        if self._channel is not None:
            await self._channel.close()

    async def call(self, method: str, request: Message, reply: type[Reply], caller: Caller) -> Reply:
        """One unary call of the Actions service. Raises GoexError."""
        call = self._open().unary_unary(
            f"/goex.v1.Actions/{method}",
            request_serializer=_to_bytes,
            response_deserializer=reply.FromString,
        )
        try:
            answer: Reply = await call(request, timeout=_UNARY_SECONDS, metadata=_metadata(caller))
        except grpc.RpcError as error:
            raise translate(error) from error
        except asyncio.CancelledError:
            # gRPC raises one of its own, which isn't known to the scope of the call that a client cancelled: it would
            # leave that, and end the server.
            await anyio.lowlevel.checkpoint_if_cancelled()
            raise
        return answer

    async def begin(self, request: pb.ExecuteRequest | pb.RevertRequest, caller: Caller) -> str:
        """Ask for an action and follow it from now on; returns its id. Raises GoexError when it isn't taken, with
        ExitStatus.UNKNOWN when it may have been."""
        stream = self._stream(request, caller)
        try:
            first = await stream.read()
        except grpc.aio.AioRpcError as error:
            made = translate(error)
            keyed, said = bool(request.key), error.details() or ""  # with a key it may have been sent before
            if isinstance(made, Refused):
                taken = keyed and made.code in _UNREAD
            else:
                unread = error.code() is grpc.StatusCode.UNIMPLEMENTED or _UNREACHED in said
                taken = _TOO_LARGE not in said and (keyed or not unread)
            if taken and made.exit_status is not ExitStatus.UNKNOWN:
                if made.code == CROWDED or made.exit_status is ExitStatus.USAGE:
                    made.next_step = ""  # it is for what wasn't taken
                made.exit_status = ExitStatus.UNKNOWN
            raise made from error
        except asyncio.CancelledError:
            stream.cancel()
            raise
        if first is grpc.aio.EOF:
            untold = Unavailable("The daemon said nothing of this request.")
            untold.exit_status = ExitStatus.UNKNOWN
            raise untold
        self._follow(first.action_id, caller, stream, first)
        return str(first.action_id)

    async def wait(self, id: str, caller: Caller, seconds: float, told: Told) -> pb.ActionView:
        """The action when it has ended, or as it stands after `seconds`. One that has just begun is assessed first, so
        that whoever doesn't wait hears whether the person is asked. `told` hears each state. Raises GoexError."""
        ends = asyncio.get_running_loop().time() + seconds
        view = await self.get(id, caller)
        if view.ending.status not in ("running", "waiting"):
            return view
        key = (caller.token, id)
        if key not in self._followed:
            self._follow(id, caller, self._stream(pb.ActionId(id=id), caller))
        told(view.ending.status)
        followed = self._followed[key]
        if view.state in _UNASSESSED:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASSESSED_SECONDS):
                    await followed.assessed.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends):
                await asyncio.shield(followed.reading)
        return await self.get(id, caller)

    async def get(self, id: str, caller: Caller) -> pb.ActionView:
        return await self.call("Get", pb.ActionId(id=id), pb.ActionView, caller)

    def _follow(self, id: str, caller: Caller, stream: Any, first: pb.Event | None = None) -> None:
        key, assessed = (caller.token, id), asyncio.Event()
        followed = _Followed(asyncio.create_task(_read(stream, assessed, first)), assessed)
        self._followed[key] = followed
        followed.reading.add_done_callback(
            lambda _: self._followed.pop(key) if self._followed.get(key) is followed else None
        )

    def _stream(self, request: pb.ExecuteRequest | pb.RevertRequest | pb.ActionId, caller: Caller) -> Any:
        call = self._open().unary_stream(
            f"/goex.v1.Actions/{_METHODS[type(request)]}",
            request_serializer=_to_bytes,
            response_deserializer=pb.Event.FromString,
        )
        return call(request, metadata=_metadata(caller))

    def _open(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel("unix:" + quote(str(self._socket)), options=CHANNEL)
        return self._channel


async def _read(stream: Any, assessed: asyncio.Event, event: Any) -> None:
    """Read a stream to its end, of which `event` was read; what it was about is then asked for."""
    try:
        while event is not grpc.aio.EOF:
            if event is not None and _past_assessing(event):
                assessed.set()
            event = await stream.read()
    except (grpc.RpcError, GoexError):
        pass  # the daemon went away: `get` says how the action stands when it is back
    finally:
        assessed.set()
        stream.cancel()


def _past_assessing(event: pb.Event) -> bool:
    if event.HasField("state"):
        return event.state.to not in _UNASSESSED
    return event.WhichOneof("what") in ("asking", "output", "finished")


def _metadata(caller: Caller) -> tuple[tuple[str, str], ...]:
    if not caller.token:
        return ()
    if not (caller.token.isascii() and caller.token.isprintable()):  # gRPC takes no such metadata
        raise Denied("This isn't an agent's token.", next_step="See that it was copied whole.")
    named = (("goex-session", caller.session),) if caller.session else ()
    return (("authorization", f"Bearer {caller.token}"), *named)


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
