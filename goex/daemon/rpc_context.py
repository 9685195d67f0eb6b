"""What every call has in common: who is calling, and how an error travels.

An error goes out as a gRPC status with its message, and whole (with next step and exit status) in the trailing metadata
`goex-problem-bin` as a `goex.v1.Problem`. An exception that nobody expected is logged here and says nothing of itself.
"""

from __future__ import annotations

import contextvars
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError, Message

from goex.daemon.acceptor import Registry
from goex.daemon.action_views import problem_view
from goex.daemon.ending import guided
from goex.daemon.page_sessions import PageSessions
from goex.engine.agent_threads import work_for
from goex.engine.core import Principal
from goex.engine.events import Problem
from goex.engine.grant_store import GrantStore
from goex.engine.peers import Peer, Sessions
from goex.engine.quota import Exhausted
from goex.rpc import goex_pb2 as pb
from policies.display_text import counted, shorten
from policies.errors import Denied, ExitStatus, GoexError, InvalidInput
from policies.grants import ANONYMOUS, PERSON

log = logging.getLogger("goex.daemon")

PROBLEM_KEY = "goex-problem-bin"
AWAY_KEY = "goex-away"  # the page's process speaks: for this session at the public page, or ("") for one of its own
# All metadata together may have 8 KiB before a client drops the call, and with it the reason. In characters, of which
# one may take 4 bytes.
_LONGEST_TEXT = 500
_LONGEST_DETAILS = 700
_LONGEST_SESSION = 200

_CODES = {
    ExitStatus.FAILED: grpc.StatusCode.ABORTED,
    ExitStatus.USAGE: grpc.StatusCode.INVALID_ARGUMENT,
    ExitStatus.DENIED: grpc.StatusCode.PERMISSION_DENIED,
    ExitStatus.TIMED_OUT: grpc.StatusCode.PERMISSION_DENIED,
    ExitStatus.AMBIGUOUS: grpc.StatusCode.INVALID_ARGUMENT,
    ExitStatus.CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    ExitStatus.SEALED: grpc.StatusCode.FAILED_PRECONDITION,
    ExitStatus.UNAVAILABLE: grpc.StatusCode.ABORTED,  # UNAVAILABLE is the transport's own word, and clients retry it
    ExitStatus.UNKNOWN: grpc.StatusCode.ABORTED,
    ExitStatus.UNSUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
}


Behind = tuple[str, str, str]  # what `Callers.behind` finds


class Unauthenticated(Denied):
    """The caller isn't who it says, or came past the sockets."""

    code = "unauthenticated"


@dataclass(frozen=True, slots=True)
class Callers:
    """Finds out who is calling."""

    registry: Registry
    sessions: Sessions
    grant_store: GrantStore
    page_sessions: PageSessions

    def peer(self, context: Any) -> Peer:
        """Raises Unauthenticated for a call that no acceptor let in, NoPageSession for a session that has ended. Who is
        at the page isn't at the terminal in which its process was started: each program of the user can be there."""
        found = self.registry.peer(context.peer())
        if found is None:
            raise Unauthenticated("This connection came past GoEx's sockets.", next_step="Use agent.sock or user.sock.")
        for key, value in context.invocation_metadata() or ():
            if key == AWAY_KEY and found.socket == "user":
                found = replace(found, terminal=None)
                if value:
                    session = self.page_sessions.get(str(value))
                    return replace(found, away=session.how, page_session=session.id)
        return found

    def principal(self, context: Any) -> Principal:
        """Who asks. A token that isn't known is an error, never `anonymous`."""
        peer = self.peer(context)
        agent = PERSON if peer.socket == "user" else self._agent(context)
        session = self.sessions.of(peer, agent, _session(context))
        work_for(agent, peer.describe(), session)
        return Principal(
            agent=agent,
            session=session,
            source=peer.describe(),
            process=peer.process,
            since=self.grant_store.named_since(agent),
            connection=peer.connection,
        )

    def behind(self, context: Any) -> Behind:
        """Who is behind a call that begins, widest first: the agent, or the user of one without a name; the process;
        the connection, on which the call counts until it ends. Raises what `principal` does."""
        agent, address = self.principal(context).agent, context.peer()
        connection = self.registry.connection(address)
        assert connection is not None  # else it had no peer
        connection.asked = True
        connection.calls += 1
        connection.agent = "" if agent == ANONYMOUS else agent
        context.add_done_callback(lambda _: connection.answered())
        return *connection.who, address

    def _agent(self, context: Any) -> str:
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                text = value if isinstance(value, str) else ""
                scheme, _, token = text.partition(" ")
                name = self.grant_store.agent_of(token.strip()) if scheme.lower() == "bearer" else None
                if name is None:
                    raise Unauthenticated(
                        "This agent token isn't known.", next_step="The person makes one with: goex agents add NAME"
                    )
                return name
        return ANONYMOUS


def _session(context: Any) -> str:
    """What an agent calls its session; "" where it doesn't. Raises InvalidInput."""
    for key, value in context.invocation_metadata() or ():
        if key == "goex-session":
            if not isinstance(value, str) or len(value) > _LONGEST_SESSION:
                raise InvalidInput(
                    f"A session's name has at most {_LONGEST_SESSION} characters.", next_step="Use a random one of 32."
                )
            return value
    return ""


async def abort(context: Any, error: GoexError) -> NoReturn:
    """End a call with an error."""
    code = _CODES.get(error.exit_status, grpc.StatusCode.ABORTED)
    if isinstance(error, Unauthenticated):
        code = grpc.StatusCode.UNAUTHENTICATED
    elif isinstance(error, Exhausted):
        code = grpc.StatusCode.RESOURCE_EXHAUSTED
    view = guided(_fitting(problem_view(Problem.of(error))))
    # The status line must be printable ASCII on the wire; the whole text is in the metadata.
    said = error.message.encode("ascii", "backslashreplace").decode("ascii")[:500]
    await context.abort(code, said, trailing_metadata=((PROBLEM_KEY, view.SerializeToString()),))
    raise AssertionError("abort returns never")


def _fitting(view: pb.Problem) -> pb.Problem:
    """The problem, cut to what metadata can carry; what was left out is said."""
    for name in ("message", "next_step"):
        kept, cut = shorten(getattr(view, name), _LONGEST_TEXT)
        setattr(view, name, f"{kept}… ({counted(cut, 'more character')})" if cut else kept)
    left, details = _LONGEST_DETAILS, list(view.details)
    while details and sum(len(line) for line in details) > left:
        details.pop()
    if len(details) < len(view.details):
        details.append(f"… ({counted(len(view.details) - len(details), 'more line')})")
    del view.details[:]
    view.details.extend(details)
    return view


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands where a request would, when its bytes aren't one."""

    why: str


class Readable(grpc.aio.ServerInterceptor):
    """Makes bytes that are no message reach our methods as `Unreadable`, so that they are answered as any bad input."""

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or not details.method.startswith("/goex.v1.") or handler.request_deserializer is None:
            return handler
        read = handler.request_deserializer

        def tolerant(data: bytes) -> Any:
            try:
                return read(data)
            except DecodeError as error:
                return Unreadable(str(error))

        return handler._replace(request_deserializer=tolerant)


def _read(request: Any) -> None:
    if isinstance(request, Unreadable):
        raise InvalidInput(
            f"These bytes aren't a request of goex.v1: {request.why}.",
            next_step="Make the client from goex.proto of the running daemon's version.",
        )


_CALL: contextvars.ContextVar[tuple[str, Message]] = contextvars.ContextVar("goex call")


def current_call() -> tuple[str, Message]:
    """The name and the request of the call that is being answered here."""
    return _CALL.get()


async def _before_reply(service: Any) -> None:
    if (last := getattr(service, "before_reply", None)) is not None:
        await last()


def unary(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A unary call whose errors travel. A service with `before_reply` has it awaited before it answers."""

    @functools.wraps(function)
    async def wrapped(self: Any, request: Any, context: Any) -> Any:
        try:
            _read(request)
            _CALL.set((function.__name__, request))
            reply = await function(self, request, context)
            await _before_reply(self)
            return reply
        except GoexError as error:
            await abort(context, error)
        except Exception:
            log.exception("%s met a defect", function.__name__)
            await abort(
                context, GoexError("Internal error.", next_step="See daemon.log; goex doctor names its folder.")
            )

    return wrapped


def streaming(function: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    """A streaming call whose errors travel. A service with `before_reply` has it awaited before the stream ends."""

    @functools.wraps(function)
    async def wrapped(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            _read(request)
            _CALL.set((function.__name__, request))
            async for item in function(self, request, context):
                yield item
            await _before_reply(self)
        except GoexError as error:
            await abort(context, error)
        except Exception:
            log.exception("%s met a defect", function.__name__)
            await abort(
                context, GoexError("Internal error.", next_step="See daemon.log; goex doctor names its folder.")
            )

    return wrapped
