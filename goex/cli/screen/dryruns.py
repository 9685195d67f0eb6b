"""The dry runs that were asked for on the screen: one at a time, each kept until its question ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from goex.cli.dryrun import Going
from goex.rpc import goex_pb2 as pb
from policies.display_text import escape
from policies.errors import GoexError

if TYPE_CHECKING:
    from goex.client import Client


class DryRuns:
    """By question: what a dry run found, or in words how far it is. `tell` has work done by the screen's own thread,
    and `changed` is called there."""

    def __init__(self, client: Client, tell: Callable[[Callable[[], None]], None], changed: Callable[[], None]) -> None:
        self._client = client
        self._tell = tell
        self._changed = changed
        self._going: Going | None = None
        self._known: dict[str, pb.DryRunReply | str] = {}

    def of(self, id: str) -> pb.DryRunReply | str:
        return self._known.get(id, "")

    def ask(self, question: pb.Approval) -> None:
        """Make one, unless there is one. Another one that is under way is ended."""
        if question.id in self._known:
            return
        self.cancel()
        self._known[question.id] = "Asking for a dry run…"
        wanted = pb.DryRunQuestion(approval_id=question.id, digest=question.digest)
        going = self._going = Going(self._client, pb.DryRunRequest(question=wanted))
        threading.Thread(target=self._follow, args=(question.id, going), name="goex-dry", daemon=True).start()

    def forget(self, id: str) -> None:
        self._known.pop(id, None)

    def cancel(self) -> None:
        """End the one that is under way. Idempotent."""
        if self._going is not None:
            self._going.cancel()

    def _follow(self, id: str, going: Going) -> None:
        try:
            for event in going:
                self._take(id, event.done if event.HasField("done") else escape(event.progress))
                if event.HasField("done"):
                    return
            self._take(id, None)  # it was ended: when it is asked for again, it begins anew
        except GoexError as error:
            details: tuple[str, ...] = tuple(getattr(error, "details", ()))
            lines = [pb.DryLine(kind="warning", text=text) for text in (error.next_step, *details) if text]
            self._take(id, pb.DryRunReply(summary=f"There is no dry run: {error.message}", lines=lines))

    def _take(self, id: str, found: pb.DryRunReply | str | None) -> None:
        def take() -> None:
            if found is None:
                self._known.pop(id, None)
            elif id in self._known:
                self._known[id] = found
            self._changed()

        self._tell(take)
