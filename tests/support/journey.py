"""One action as a client follows it: what it was asked, how it ended, and everything in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon


class Journey:
    """A stream of events, read as far as a test wants. `token` names an agent; `person` uses the person's socket. It
    is given up after `seconds`."""

    def __init__(
        self, daemon: Daemon, request: Any, *, token: str = "", person: bool = False, seconds: float = 300.0
    ) -> None:
        self._daemon = daemon
        methods = {pb.ExecuteRequest: "Execute", pb.RevertRequest: "Revert", pb.ActionId: "Watch"}
        self._call = daemon.actions(
            methods[type(request)],
            request,
            token=token,
            socket=daemon.user_socket if person else None,
            seconds=seconds,
        )
        self._events: Iterator[pb.Event] = iter(self._call)
        self.seen: list[pb.Event] = []
        self.action_id = ""

    def until(self, kind: str) -> Any:
        """Read events up to the first of that kind, and return what it holds."""
        for event in self._events:
            self.seen.append(event)
            self.action_id = event.action_id or self.action_id
            if event.WhichOneof("what") == kind:
                return getattr(event, kind)
            if event.WhichOneof("what") == "finished":
                raise AssertionError(f"It ended before it was {kind}: {event.finished}")
        raise AssertionError(f"The stream ended before it was {kind}.")

    def asked(self) -> pb.Approval:
        found: pb.Approval = self.until("asking")
        return found

    def finished(self) -> pb.Finished:
        found: pb.Finished = self.until("finished")
        return found

    def approve(self, width: str = "once", **more: Any) -> pb.Finished:
        """Read the question, say yes as the person, and follow to the end."""
        decide(self._daemon, self.asked(), width=width, **more)
        return self.finished()

    def leave(self) -> None:
        self._call.cancel()

    def states(self) -> list[str]:
        return [event.state.to for event in self.seen if event.WhichOneof("what") == "state"]


def decide(daemon: Daemon, approval: pb.Approval, *, approve: bool = True, width: str = "once", **more: Any) -> Any:
    """Decide as the person, with the passphrase unless `passphrase` says otherwise."""
    shown = approval if approval.digest else as_the_person_sees(daemon, approval)
    more = {"passphrase": APPROVAL_PASSPHRASE, "digest": shown.digest, **more}
    request = pb.DecideRequest(approval_id=approval.id, approve=approve, width=width if approve else "", **more)
    return daemon.person("Decide", request)


def answer_next(daemon: Daemon, *, approve: bool = True) -> pb.Approval:
    """Wait for the question that comes next, and answer it as the person."""
    for question in daemon.person("WatchApprovals", pb.ApprovalsRequest(), seconds=300):
        if question.state == "pending":
            decide(daemon, question, approve=approve)
            found: pb.Approval = question
            return found
    raise AssertionError("Nothing was asked.")


def as_the_person_sees(daemon: Daemon, approval: pb.Approval) -> pb.Approval:
    """The whole question: an agent is told of it without its plan where a folder or a database is looked at."""
    found: pb.Approval = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=approval.id)).approvals[0]
    return found


def shell(folder: Path, program: str, **more: Any) -> pb.ExecuteRequest:
    """A shell program on a folder."""
    return pb.ExecuteRequest(files=pb.FilesProgram(folder=str(folder), language="shell", program=program), **more)


def undo(action_id: str, verb: str = "undo", **more: Any) -> pb.RevertRequest:
    return pb.RevertRequest(action_id=action_id, verb=verb, **more)


def problem(error: Any) -> pb.Problem:
    """The problem that a failed call carries."""
    for key, value in error.trailing_metadata() or ():
        if key == "goex-problem-bin":
            return pb.Problem.FromString(value)
    return pb.Problem(code="none", message=error.details() or "")
