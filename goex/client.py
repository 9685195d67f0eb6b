"""The Python client of GoEx's daemon, synchronous, over a Unix socket.

Rules: before it connects to the person's socket it checks that socket and folder are private and ours, so that
nobody else can pose as the daemon. Errors of gRPC end here: what the daemon said becomes a `Refused` with its own
code and exit status, what the transport said becomes `Unavailable` or its like. A stream of events survives a
restart of the daemon: it attaches again by `Watch`, and says so with a progress event. Agents use
`Client(path, token=…)`, which reaches only what the agent's socket offers.
"""

from __future__ import annotations

import os
import socket as sockets
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import grpc
from google.protobuf.message import DecodeError, Message

from goex.paths import Paths, UnsafePlace, check_socket
from goex.rpc import goex_pb2 as pb
from policies.errors import Denied, ExitStatus, GoexError, InvalidInput, Unavailable, Unsupported
from policies.regular_file import open_regular

PROBLEM_KEY = "goex-problem-bin"
_MAX_MESSAGE = 64 * 2**20
# A daemon that comes back is found at once, and one socket path may stand for another daemon later.
CHANNEL = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE),
    ("grpc.max_send_message_length", _MAX_MESSAGE),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.default_authority", "localhost"),
)
START_SECONDS = 30.0
_REATTACH = 5
# Isolated, so that neither the current folder nor PYTHON* variables can put another module in the daemon's place.
DAEMON = ("-I", "-m", "goex.daemon")

Reply = TypeVar("Reply", bound=Message)
Progress = Callable[[str], None]


class Refused(GoexError):
    """The daemon said no, in its own words. `code` and `exit_status` are the daemon's, as are `retry` (whether asking
    again helps) and `who` (can do the next step); `details` may hold a difference or evidence."""

    def __init__(self, problem: pb.Problem) -> None:
        super().__init__(problem.message or "The daemon refused without a word.", next_step=problem.next_step)
        self.code = problem.code or "error"
        self.exit_status = exit_status(problem)
        self.retry, self.who = problem.retry, problem.who
        self.details = tuple(problem.details)


class NotRunning(Unavailable):
    """The daemon isn't there. `details` holds the end of its log, when it couldn't be started."""

    code = "daemon"

    def __init__(self, message: str, *, next_step: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(message, next_step=next_step)
        self.details = details


def exit_status(problem: pb.Problem) -> ExitStatus:
    """The exit status of a problem; one that the daemon left out or that we don't know is FAILED."""
    try:
        return ExitStatus(problem.exit_status) if problem.exit_status else ExitStatus.FAILED
    except ValueError:
        return ExitStatus.FAILED


def translate(error: grpc.RpcError) -> GoexError:
    """What a failed call means to a person."""
    trailing = getattr(error, "trailing_metadata", lambda: None)() or ()
    for key, value in trailing:
        if key == PROBLEM_KEY:
            try:
                return Refused(pb.Problem.FromString(value))
            except DecodeError:
                break
    code = getattr(error, "code", lambda: None)()
    said = (getattr(error, "details", lambda: "")() or "").strip().rstrip(".")
    match code:
        case grpc.StatusCode.UNAVAILABLE:
            return NotRunning("The daemon can't be reached, or went away.", next_step="See: goex daemon status")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return Unavailable("The daemon took too long to answer.", next_step="See: goex daemon status")
        case grpc.StatusCode.UNIMPLEMENTED:
            return Unsupported(
                "The running daemon doesn't offer this on this socket.",
                next_step="If GoEx was updated, restart it with: goex daemon stop",
            )
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
            return Denied(f"{said or 'The daemon refused'}.", next_step="See who you are to it with: goex doctor")
        case grpc.StatusCode.INVALID_ARGUMENT | grpc.StatusCode.NOT_FOUND | grpc.StatusCode.OUT_OF_RANGE:
            return InvalidInput(f"{said or 'The daemon could not read the request'}.")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return InvalidInput(
                f"The request or its answer is too large: {said}.", next_step="Ask for less at once, then try again."
            )
    name = code.name if code is not None else type(error).__name__
    return GoexError(f"The daemon failed ({name}): {said}.", next_step="Its log says more: goex doctor names the file.")


class Events:
    """The events of one action, to be iterated once. `cancel` ends it from another thread."""

    def __init__(self, client: Client, method: str, request: Message) -> None:
        self._client = client
        self._call = client.stream(method, request, pb.Event)
        self._cancelled = False
        self.action_id = ""

    def cancel(self) -> None:
        """Leave the stream. For an action that is being asked for, this is a denial, unless it is detached."""
        self._cancelled = True
        self._call.cancel()

    def __iter__(self) -> Iterator[pb.Event]:
        left = _REATTACH
        while True:
            try:
                for event in self._call:
                    self.action_id = event.action_id or self.action_id
                    yield event
                    if event.WhichOneof("what") == "finished":
                        return
            except grpc.RpcError as error:
                if self._cancelled:
                    return
                if getattr(error, "code", lambda: None)() is not grpc.StatusCode.UNAVAILABLE:
                    raise translate(error) from error
            if not self.action_id:
                raise NotRunning(
                    "The daemon went away before it said whether it took the request.",
                    next_step="Look with: goex log",
                )
            if left == 0 or self._client.reconnect is None:
                raise NotRunning(
                    "The daemon went away while the action was under way.",
                    next_step=f"See what became of it with: goex show {self.action_id}",
                )
            left -= 1
            yield pb.Event(action_id=self.action_id, progress="The daemon went away; attaching again.")
            self._client.reconnect()
            # The channel may still hold back after its last failure; this waits for it.
            self._client.ready(15.0)
            self._call = self._client.stream("Actions/Watch", pb.ActionId(id=self.action_id), pb.Event)


class Client:
    """One connection. `token` names an agent. `reconnect`, when set, makes the daemon be there again."""

    def __init__(self, socket: Path, *, token: str = "", reconnect: Callable[[], None] | None = None) -> None:
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self.reconnect = reconnect
        self._channel = grpc.insecure_channel(
            "unix:" + quote(str(socket)),
            options=(
                *CHANNEL,
                # A Unix socket has no bandwidth to find out: the pings for that would be as many as the messages.
                ("grpc.http2.bdp_probe", 0),
                ("grpc.http2.lookahead_bytes", 2**20),
                ("grpc.initial_reconnect_backoff_ms", 100),
                # Whoever reads a stream reads it itself: no thread is woken for each event. (The name stands in
                # grpc.experimental, which takes longer to load than this file.)
                ("SingleThreadedUnaryStream", 1),
            ),
        )

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, request: Message, reply: type[Reply], *, seconds: float | None = 60.0) -> Reply:
        """One unary call (`"Actions/Get"`). Raises GoexError."""
        call = self._channel.unary_unary(
            f"/goex.v1.{method}", request_serializer=_to_bytes, response_deserializer=reply.FromString
        )
        try:
            answer: Reply = call(request, timeout=seconds, metadata=self._metadata, wait_for_ready=False)
        except grpc.RpcError as error:
            raise translate(error) from error
        return answer

    def stream(self, method: str, request: Message, reply: type[Message]) -> Any:
        """The raw gRPC stream of a call; iterate it, or `cancel()` it."""
        call = self._channel.unary_stream(
            f"/goex.v1.{method}", request_serializer=_to_bytes, response_deserializer=reply.FromString
        )
        return call(request, metadata=self._metadata)

    def streamed(self, method: str, request: Message, reply: type[Reply]) -> Generator[Reply, None, None]:
        """What a call streams, one by one. Leaving the iteration ends the call. Raises GoexError."""
        call = self.stream(method, request, reply)
        try:
            yield from call
        except grpc.RpcError as error:
            raise translate(error) from error
        finally:
            call.cancel()

    def ready(self, seconds: float) -> None:
        """Wait until the daemon answers. Raises NotRunning."""
        # A call, since watching the channel's state polls five times a second, and would add that to each command.
        call = self._channel.unary_unary(
            "/goex.v1.Actions/Whoami", request_serializer=_to_bytes, response_deserializer=pb.WhoamiReply.FromString
        )
        deadline = time.monotonic() + seconds
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                call(pb.WhoamiRequest(), timeout=left, metadata=self._metadata, wait_for_ready=True)
                return
            except grpc.RpcError as error:
                code = getattr(error, "code", lambda: None)()
                # A daemon that is just starting, or ending, may take a connection and drop it.
                if code is grpc.StatusCode.UNAVAILABLE and left > 0.1:
                    time.sleep(0.05)
                    continue
                if code not in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE):
                    raise translate(error) from error
            raise NotRunning(
                "The daemon's socket is there, but it doesn't answer.",
                next_step="Look at its log, whose place goex doctor names; then: goex daemon start",
            )

    # What agents may do.

    def map(self, intent: str, *, explain: bool = False, seconds: float = 300.0) -> pb.MapReply:
        return self.call("Actions/Map", pb.MapRequest(intent=intent, explain=explain), pb.MapReply, seconds=seconds)

    def execute(self, request: pb.ExecuteRequest) -> Events:
        return Events(self, "Actions/Execute", request)

    def revert(self, request: pb.RevertRequest) -> Events:
        return Events(self, "Actions/Revert", request)

    def way_back(self, request: pb.WayBackRequest) -> tuple[pb.WayStep, ...]:
        """What going back to a point would take, in order."""
        return tuple(self.call("Actions/WayBack", request, pb.WayBackReply).steps)

    def watch(self, action_id: str) -> Events:
        return Events(self, "Actions/Watch", pb.ActionId(id=action_id))

    def get(self, action_id: str) -> pb.ActionView:
        return self.call("Actions/Get", pb.ActionId(id=action_id), pb.ActionView)

    def actions(self, limit: int = 0, before: str = "") -> tuple[pb.ActionView, ...]:
        reply = self.call("Actions/List", pb.ListRequest(limit=limit, before=before), pb.ListReply)
        return tuple(reply.actions)

    def cancel(self, action_id: str) -> pb.ActionView:
        return self.call("Actions/Cancel", pb.ActionId(id=action_id), pb.ActionView)

    # What only the person may do.

    def status(self, *, seconds: float = 20.0) -> pb.StatusReply:
        return self.call("Person/Status", pb.StatusRequest(), pb.StatusReply, seconds=seconds)

    def approvals(
        self, *, settled: bool = False, brief: bool = False, approval_id: str = ""
    ) -> tuple[pb.Approval, ...]:
        """What waits, in the order in which it is to be answered."""
        request = pb.ApprovalsRequest(settled=settled, brief=brief, approval_id=approval_id)
        reply = self.call("Person/Approvals", request, pb.ApprovalsReply)
        if not reply.left_out or brief:
            return tuple(reply.approvals)
        listed = self.approvals(settled=settled, brief=True)
        known = {approval.id: approval for approval in reply.approvals}
        return tuple(known.get(one.id) or self.approvals(approval_id=one.id)[0] for one in listed)

    def decide(self, request: pb.DecideRequest) -> pb.Approval:
        return self.settle(request).approval

    def settle(self, request: pb.DecideRequest) -> pb.DecideReply:
        """Decide, and hear what else that settled."""
        return self.call("Person/Decide", request, pb.DecideReply)


def connect(paths: Paths, *, start: bool = True, progress: Progress | None = None) -> Client:
    """A client on the person's socket, ready to be used. Starts the daemon when it isn't running, if `start`.

    Raises UnsafePlace when the socket isn't private, NotRunning when there is no daemon, or it can't be started.
    """
    _ensure(paths, start=start, progress=progress)
    client = Client(paths.user_socket, reconnect=lambda: _ensure(paths, start=start, progress=progress))
    try:
        client.ready(10.0)
    except BaseException:
        client.close()
        raise
    return client


def running(socket: Path) -> bool:
    """Whether somebody accepts on `socket`. Checks first that it is private. Raises UnsafePlace."""
    try:
        socket.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        pass  # check_socket says what is wrong
    check_socket(socket)
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(str(socket))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError as error:
            raise UnsafePlace(
                f"{socket} doesn't take connections: {error.strerror or error}.",
                next_step="See what is wrong with: goex doctor",
            ) from error
    return True


def _ensure(paths: Paths, *, start: bool, progress: Progress | None) -> None:
    if running(paths.user_socket):
        return
    if not start:
        raise NotRunning("The daemon isn't running.", next_step="Start it with: goex daemon start")
    start_daemon(paths, progress=progress)


def start_daemon(paths: Paths, *, progress: Progress | None = None, seconds: float = START_SECONDS) -> int:
    """Start the daemon detached and wait until its socket is there. Returns its process id.

    A daemon that someone else started at the same moment is as good. Raises NotRunning with the end of the log.
    """
    paths.create()
    if progress is not None:
        progress("Starting the daemon.")
    try:
        log = open_regular(paths.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        raise Unavailable(
            f"The log {paths.log_file} can't be opened: {error.strerror}.", next_step="See: goex doctor"
        ) from error
    begin = os.fstat(log).st_size
    try:
        daemon = subprocess.Popen(
            [sys.executable, *DAEMON],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            umask=0o077,
            start_new_session=True,
        )
    except OSError as error:
        raise NotRunning(f"The daemon can't be started: {error.strerror}.", next_step="See: goex doctor") from error
    finally:
        os.close(log)
    began = time.monotonic()
    said = began
    deadline = began + seconds
    while True:
        if running(paths.user_socket):
            return daemon.pid
        now = time.monotonic()
        if daemon.poll() is not None:
            # It may have lost a race against another one, whose socket is there in a moment.
            deadline = min(deadline, now + 2.0)
        if now >= deadline:
            break
        if progress is not None and now - said >= 2.0:
            said = now
            progress(f"Waiting for the daemon ({now - began:.0f} s).")
        time.sleep(0.02)
    how = f"ended with exit status {daemon.returncode}" if daemon.poll() is not None else f"isn't up in {seconds:.0f} s"
    raise NotRunning(
        f"The daemon {how}.",
        next_step=f"Its log is {paths.log_file}, and ends as below; goex doctor says what is missing.",
        details=tuple(log_tail(paths.log_file, begin).splitlines()[-12:]),
    )


def log_tail(path: Path, begin: int = 0, most: int = 2000) -> str:
    """The last lines of the log after byte `begin`, at most `most` bytes of them. "" when it can't be read."""
    try:
        with os.fdopen(open_regular(path), "rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(begin, end - most))
            data = log.read(most)
    except OSError:
        return ""
    return data.decode("utf-8", "replace").strip()


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()


def watch_approvals(client: Client) -> Iterator[pb.Approval]:
    """Approvals as they come and change. Raises GoexError when the stream ends badly."""
    try:
        yield from client.stream("Person/WatchApprovals", pb.ApprovalsRequest(), pb.Approval)
    except grpc.RpcError as error:
        raise translate(error) from error
