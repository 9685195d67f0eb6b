"""What the daemon says, brought from gRPC's threads to the event loop; and the two answers that a click can give.

Rules: of the person's socket this uses `WatchApprovals` and `Decide`, nothing else. An approval from here is always
for once and never carries a passphrase. The daemon isn't started from here: it is waited for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import grpc

from goex.client import Client, NotRunning, connect, translate
from goex.rpc import goex_pb2 as pb
from policies.errors import GoexError

if TYPE_CHECKING:
    from goex.paths import Paths

_AGAIN_SECONDS = 1.0


class Feed:
    """A thread that follows the approvals, again and again until `stop`.

    In the event loop: `heard(approval)` for each that comes or changes, `there(True)` when the daemon was found and
    `there(False)` when it went away, `failed(error)` for what waiting doesn't mend.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        heard: Callable[[pb.Approval], None],
        there: Callable[[bool], None],
        failed: Callable[[GoexError], None],
    ) -> None:
        self._paths = paths
        self._heard, self._there, self._failed = heard, there, failed
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._client: Client | None = None
        self._call: Any = None
        self._thread = threading.Thread(target=self._run, name="approvals", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._call is not None:
            self._call.cancel()

    async def allow_once(self, approval: pb.Approval) -> pb.Approval:
        """Raises GoexError when the daemon refuses."""
        return await self._decide(
            pb.DecideRequest(approval_id=approval.id, digest=approval.digest, approve=True, width="once")
        )

    async def deny(self, approval: pb.Approval) -> pb.Approval:
        """Raises GoexError when the daemon refuses."""
        return await self._decide(pb.DecideRequest(approval_id=approval.id, digest=approval.digest, approve=False))

    async def _decide(self, request: pb.DecideRequest) -> pb.Approval:
        client = self._client
        if client is None:
            raise NotRunning("The daemon isn't running, so nothing was decided.", next_step="goex daemon start")
        return await asyncio.to_thread(client.decide, request)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with connect(self._paths, start=False) as client:
                    self._follow(client)
            except NotRunning:
                pass
            except GoexError as error:
                self._post(self._failed, error)
                return
            self._stop.wait(_AGAIN_SECONDS)

    def _follow(self, client: Client) -> None:
        self._call = client.stream("Person/WatchApprovals", pb.ApprovalsRequest(duplicates=True), pb.Approval)
        self._client = client
        self._post(self._there, True)
        try:
            for approval in self._call:
                self._post(self._heard, approval)
        except grpc.RpcError as error:
            if self._stop.is_set():
                return
            if getattr(error, "code", lambda: None)() is not grpc.StatusCode.UNAVAILABLE:
                raise translate(error) from error
        finally:
            self._client = None
            self._post(self._there, False)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)
