"""Answers everything that waits, as a process of its own on the person's socket.

`python -m tests.support.approver SOCKET PASSPHRASE SIDE OUT` says yes, once, to what runs a program and no to the
rest, from the front of the list or (`SIDE` "back") from its end, to every question that was there at the start,
whoever else answers. A daemon that goes away is waited for. Writes to OUT, as JSON, how each answer was taken.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import grpc

from goex.rpc import goex_pb2 as pb
from tests.support.journey import problem

_SECONDS = 200.0
_AGAIN = ("sealed", "none")  # no problem of GoEx's own: the connection broke


class Approver:
    """One person at one socket."""

    def __init__(self, socket: str, passphrase: str) -> None:
        self._socket, self._passphrase = socket, passphrase
        self._until = time.monotonic() + _SECONDS
        self._channel: grpc.Channel | None = None

    def call(self, method: str, request: Any) -> Any:
        """One call, also over a restart. Raises grpc.RpcError for what the daemon refused."""
        reply = pb.DESCRIPTOR.services_by_name["Person"].methods_by_name[method].output_type
        while True:
            if self._channel is None:
                options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
                self._channel = grpc.insecure_channel(f"unix:{self._socket}", options=options)
            try:
                return self._channel.unary_unary(
                    f"/goex.v1.Person/{method}",
                    request_serializer=type(request).SerializeToString,
                    response_deserializer=getattr(pb, reply.name).FromString,
                )(request, timeout=300)
            except grpc.RpcError as error:
                if problem(error).code not in _AGAIN or time.monotonic() > self._until:
                    raise
                self._channel.close()
                self._channel = None
                time.sleep(0.1)

    def answer(self, brief: pb.Approval) -> str:
        """Decide on one. Returns "yes" or "no" when the answer was taken, else why it wasn't."""
        try:
            shown = self.call("Approvals", pb.ApprovalsRequest(approval_id=brief.id)).approvals[0]
            yes = shown.kind == "files"
            request = pb.DecideRequest(approval_id=shown.id, digest=shown.digest, approve=yes, width="once")
            request.passphrase = self._passphrase if yes else ""
            self.call("Decide", request)
            return "yes" if yes else "no"
        except grpc.RpcError as error:
            return problem(error).code


def main(socket: str, passphrase: str, side: str, out: str) -> None:
    approver = Approver(socket, passphrase)
    waiting = list(approver.call("Approvals", pb.ApprovalsRequest(brief=True, duplicates=True)).approvals)
    Path(f"{out}.ready").touch()
    answers = {each.id: approver.answer(each) for each in (waiting if side == "front" else reversed(waiting))}
    Path(out).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
