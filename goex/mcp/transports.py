"""How the MCP server is reached: on standard input and output, or over HTTP on this machine alone.

Rules: over HTTP each request names its agent by a token, which the daemon knows or doesn't; where it doesn't say, that
is what is answered, never that the token isn't known. The address is a loopback one, and a request for another host, or
from a page of one, is refused; no page of another origin is let by a browser to send a token. Over standard input the
whole process is one agent, by the token that it was started with; a line that is no message is answered with an error,
and ends nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import AnyHttpUrl, ValidationError
from starlette.authentication import AuthenticationError
from starlette.requests import HTTPConnection
from starlette.responses import Response

from goex.loopback import IPV4, listening
from goex.mcp.daemon_link import Caller, DaemonLink
from goex.mcp.listings import methods_of
from goex.mcp.person_page import Context
from goex.mcp.request_ids import RequestIds
from goex.mcp.results import EXHAUSTED, UNNAMED
from goex.mcp.server import Door, server
from goex.rpc import goex_pb2 as pb
from policies.errors import Denied, GoexError
from policies.grants import ANONYMOUS

_NOBODY = "No agent is known now: GoEx's daemon is away or busy, or its vault wasn't opened since it began. Try later."


class _Untold(AuthenticationError):
    """The daemon doesn't say now whose a token is."""

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


class Tokens:
    """Asks the daemon whose a token is. `verify_token` raises where it doesn't say, which isn't a no."""

    def __init__(self, link: DaemonLink) -> None:
        self._link = link

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            who = await self._link.call("Whoami", pb.WhoamiRequest(), pb.WhoamiReply, Caller(token))
        except GoexError as error:
            if error.code == EXHAUSTED:
                raise _Untold(error.message, 429) from error
            if error.code in (UNNAMED, Denied.code):
                return None
            raise _Untold(_NOBODY, 503) from error  # why is none of a stranger's business
        if who.agent == ANONYMOUS:
            return None
        return AccessToken(token=token, client_id=who.agent, scopes=[])


async def stdio(socket_path: Path, token: str, services: list[str]) -> None:
    """Serve one agent until its client closes standard input."""
    from mcp.server.stdio import stdio_server

    link = DaemonLink(socket_path)
    try:
        caller = Caller(token)
        made = server(Door(link, lambda _: caller, await methods_of(link, services, caller)))
        async with stdio_server() as (incoming, outgoing):
            passed, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            ids = RequestIds()
            reading = asyncio.create_task(_read(incoming, passed, outgoing, ids))
            try:
                await made.run(messages, _Answers(outgoing, ids), made.create_initialization_options())
            finally:
                reading.cancel()
    except* ConnectionError:  # its pipe broke, or its socket was reset
        with suppress(OSError):  # which that may have been for both
            sys.stderr.write("The client went away before it read every answer.\n")
            sys.stderr.flush()
    except* anyio.BrokenResourceError:  # of what was to be written after that
        pass
    finally:
        await link.close()


async def _read(incoming: Any, passed: Any, outgoing: Any, ids: RequestIds) -> None:
    """Pass on what is a message, and answer what isn't one: nobody knows its id."""
    async with passed, incoming:  # so that whoever reads standard input ends with this
        async for read in incoming:
            message = _unread(read) if isinstance(read, Exception) else ids.read(read.message)
            if isinstance(message, types.ErrorData):
                await outgoing.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=message)))
            else:
                await passed.send(replace(read, message=message))


def _unread(error: Exception) -> types.ErrorData:
    wrong = error.errors(include_url=False, include_input=False) if isinstance(error, ValidationError) else []
    if any(each["type"] == "json_invalid" for each in wrong):
        return types.ErrorData(code=types.PARSE_ERROR, message=f"This line isn't JSON: {wrong[0]['msg'][:200]}.")
    return types.ErrorData(code=types.INVALID_REQUEST, message="This line is JSON, but no message of JSON-RPC 2.0.")


class _Answers:
    """Standard output for the server's messages, each with the id that its client knows."""

    def __init__(self, outgoing: Any, ids: RequestIds) -> None:
        self._outgoing = outgoing
        self._ids = ids

    async def send(self, item: SessionMessage, /) -> None:
        message = self._ids.written(item.message)
        if message is not None:
            await self._outgoing.send(replace(item, message=message))

    async def aclose(self) -> None:
        await self._outgoing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def http(socket_path: Path, port: int, token: str, services: list[str], say: Callable[[str], None]) -> None:
    """Serve agents until the process is ended. `token` is for looking up the methods of `services` alone."""
    link = DaemonLink(socket_path)
    try:
        made = server(Door(link, bearer, await methods_of(link, services, Caller(token))))
        with listening(port) as listener:
            await serve(made, link, listener, say)
    finally:
        await link.close()


async def serve(made: Server[Any], link: DaemonLink, listener: socket.socket, say: Callable[[str], None]) -> None:
    """Serve a server object on a bound socket."""
    import uvicorn
    from starlette.middleware import Middleware

    from goex.http_connections import BACKLOG, Connection  # standard input and output need none of it
    from goex.mcp.answerable import Answerable
    from goex.mcp.shares import Shares

    address = f"http://{IPV4}:{listener.getsockname()[1]}"
    app = made.streamable_http_app(
        host=IPV4,
        auth=AuthSettings(issuer_url=AnyHttpUrl(address), resource_server_url=None),
        token_verifier=Tokens(link),
    )
    asks = next(one for one in app.user_middleware if "backend" in one.kwargs)  # the SDK's, which asks `Tokens`
    asks.kwargs["on_error"] = _untold
    app.user_middleware.append(Middleware(Shares))  # it knows whose a request is
    app.user_middleware.append(Middleware(Answerable))
    config = uvicorn.Config(
        app,
        http=Connection,
        backlog=BACKLOG,
        log_config=None,  # what uvicorn says goes the way of all that libraries say
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,  # a client that stays connected doesn't keep the process from ending
    )
    say(f"{address}/mcp")
    await uvicorn.Server(config).serve(sockets=[listener])


def _untold(_: HTTPConnection, error: AuthenticationError) -> Response:
    from goex.mcp.shares import refused

    assert isinstance(error, _Untold)
    return refused(str(error), error.status)


def bearer(context: Context) -> Caller:
    """Whose the request is that a call came with: its token, and the client's session. A client without one (the
    revision of 2026-07-28 has none) is told from others of its agent by what it calls itself alone."""
    if context.request is None:  # the transport attaches it to each
        raise GoexError("This call came without its request.")
    scheme, _, token = str(context.request.headers.get("authorization", "")).partition(" ")
    client = context.session.client_params
    itself = f"{client.client_info.name} {client.client_info.version}"[:100] if client is not None else ""
    named = str(context.request.headers.get("mcp-session-id", ""))[:100]
    session = f"mcp {named}" if named else f"mcp stateless {itself}"
    return Caller(token if scheme.lower() == "bearer" else "", hashlib.sha256(session.encode()).hexdigest())


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
