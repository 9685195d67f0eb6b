"""A screen to look at and to type on, before a daemon with scripted answers (`tests.goex.cli.fake`)."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from goex.cli.screen.app import ApproveScreen
from goex.cli.screen.board import MOMENT
from goex.client import Client
from goex.rpc import goex_pb2 as pb
from tests.goex.cli.fake import PASSPHRASE, Fake, approval, refuse

LIMIT = 6.0  # seconds that anything may take


class Daemon(Fake):
    """Questions that come and go, decisions that are remembered, dry runs as told."""

    def __init__(self) -> None:
        super().__init__()
        self.watching: list[queue.Queue[pb.Approval | None]] = []
        self.dry: list[pb.DryRunEvent] = [
            pb.DryRunEvent(progress="Running the program on the copy…"),
            pb.DryRunEvent(
                done=pb.DryRunReply(ok=True, summary="1 changed.", lines=[pb.DryLine(kind="added", text="x")])
            ),
        ]
        self.dry_asked: list[pb.DryRunRequest] = []
        self.dry_goes = threading.Event()
        self.dry_goes.set()
        self.dry_ended = threading.Event()
        self.taken: list[bool] = []

    def Approvals(self, request: Any, context: Any) -> pb.ApprovalsReply:
        found = [each for each in self.pending if request.approval_id in ("", each.id)]
        return pb.ApprovalsReply(approvals=[brief(each) if request.brief else each for each in found])

    def WatchApprovals(self, request: Any, context: Any) -> Iterator[pb.Approval]:
        told: queue.Queue[pb.Approval | None] = queue.Queue()
        self.watching.append(told)
        context.add_callback(lambda: told.put(None))
        for each in list(self.pending):
            yield brief(each)
        while (found := told.get()) is not None:
            yield brief(found)

    def Decide(self, request: Any, context: Any) -> pb.DecideReply:
        reply = super().Decide(request, context)
        found = next((each for each in self.pending if each.id == request.approval_id), None)
        if found is None:
            return refuse(
                context, "settled", f"Request {request.approval_id} was settled already.", "goex log shows how."
            )
        self.settle(found.id, "approved" if request.approve else "denied", "you")
        return reply

    def DryRun(self, request: Any, context: Any) -> Iterator[pb.DryRunEvent]:
        self.dry_asked.append(request)
        context.add_callback(self.dry_ended.set)
        for event in self.dry:
            if event.HasField("done"):
                while not self.dry_goes.wait(0.05) and context.is_active():
                    pass
            yield event

    # ---- what a test makes happen

    def ask(self, **changes: Any) -> pb.Approval:
        made = approval(**changes)
        self.pending.append(made)
        self._tell(made)
        return made

    def settle(self, id: str, state: str = "denied", by: str = "someone else") -> None:
        found = next(each for each in self.pending if each.id == id)
        self.pending.remove(found)
        self._tell(pb.Approval(id=id, state=state, settled_by=by))

    def hang_up(self) -> None:
        for told in self.watching:
            told.put(None)
        self.watching.clear()

    def _tell(self, found: pb.Approval) -> None:
        for told in self.watching:
            told.put(found)


def brief(found: pb.Approval) -> pb.Approval:
    """As the daemon cuts it for lists."""
    made = pb.Approval()
    made.CopyFrom(found)
    made.brief, made.digest = True, ""
    del made.needs[:]
    return made


class Screen:
    """The screen under a pilot."""

    def __init__(self, app: ApproveScreen, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def text(self) -> str:
        """What is on it, line by line."""
        return "\n".join(
            "".join(segment.text for segment in strip).rstrip() for strip in self.app.screen._compositor.render_strips()
        )

    async def until(self, wanted: str | Callable[[], bool]) -> None:
        """Wait until a text stands on it, or something is so."""

        def so() -> bool:
            return wanted in self.text if isinstance(wanted, str) else wanted()

        for _ in range(int(LIMIT / 0.02)):
            await self.pilot.pause()
            if so():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{wanted!r} never came:\n{self.text}")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def moment(self) -> None:
        """As long as a question must stand before a key counts."""
        await asyncio.sleep(MOMENT + 0.05)
        await self.pilot.pause()


@asynccontextmanager
async def screen(
    socket: Path, *, size: tuple[int, int] = (100, 40), back: Callable[[], bool] = lambda: True
) -> AsyncIterator[Screen]:
    """The screen, connected. The passphrase is given as a terminal would."""
    with Client(socket) as client:
        app = ApproveScreen(client, present=lambda call, what: call(PASSPHRASE), back=back)
        async with app.run_test(size=size) as pilot:
            made = Screen(app, pilot)
            await made.until(lambda: app.board.connected)
            await made.pilot.pause()
            yield made
