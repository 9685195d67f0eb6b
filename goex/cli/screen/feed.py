"""The daemon's side of the screen: threads that listen and ask, so that the screen never waits.

Rules: what arrives is handed over as it is, for the screen's own thread to take in; a daemon that went away is waited
for, never started; after each connection the whole list is asked for, since what was missed isn't told again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import grpc

from goex.client import NotRunning, translate
from goex.rpc import goex_pb2 as pb
from policies.errors import GoexError

if TYPE_CHECKING:
    from goex.client import Client

_AGAIN = 0.5  # seconds between two looks whether the daemon is back


class Hears(Protocol):
    """What the feed tells. Called from its threads."""

    def listed(self, pending: list[pb.Approval], left_out: int) -> None: ...

    def arrived(self, approval: pb.Approval) -> None: ...

    def away(self, why: str) -> None: ...


class Feed:
    """Listens for questions until it is stopped. `back` says whether the daemon can be reached again."""

    def __init__(self, client: Client, hears: Hears, back: Callable[[], bool]) -> None:
        self._client = client
        self._hears = hears
        self._back = back
        self._stopped = threading.Event()
        self._stream: Any = None
        self._thread = threading.Thread(target=self._run, name="goex-feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Idempotent; doesn't wait."""
        self._stopped.set()
        if self._stream is not None:
            self._stream.cancel()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._listen()
            except GoexError as error:
                if self._stopped.is_set():
                    return
                self._hears.away(error.message)
            while not self._stopped.wait(_AGAIN):
                try:
                    if self._back():
                        self._client.ready(2.0)
                        break
                except GoexError as error:
                    self._hears.away(error.message)

    def _listen(self) -> None:
        request = pb.ApprovalsRequest(brief=True)
        # Listening begins before the list is asked for, so that nothing falls between the two.
        self._stream = self._client.stream("Person/WatchApprovals", request, pb.Approval)
        if self._stopped.is_set():
            self._stream.cancel()
        reply = self._client.call("Person/Approvals", request, pb.ApprovalsReply)
        self._hears.listed(list(reply.approvals), reply.left_out)
        try:
            for approval in self._stream:
                self._hears.arrived(approval)
        except grpc.RpcError as error:
            raise translate(error) from error
        raise NotRunning("The daemon ended the connection.")


def whole(client: Client, id: str) -> pb.Approval | None:
    """A question with nothing cut; None when it isn't there. Raises GoexError."""
    reply = client.call("Person/Approvals", pb.ApprovalsRequest(approval_id=id), pb.ApprovalsReply)
    return next((approval for approval in reply.approvals if approval.id == id and not approval.brief), None)
