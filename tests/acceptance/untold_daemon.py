"""A daemon that ends a request in words of its own choice: for what clients make of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from policies.errors import ExitStatus

LARGEST = 10_000  # bytes of a request
# One that begins with "keyed" is sent with a key.
WAYS = (
    "refused",
    "silent",
    "begun",
    "key",
    "crowded",
    "keyed crowded",
    "sealed",
    "keyed sealed",
    "unauthenticated",
    "keyed unauthenticated",
    "large" * LARGEST,
    "keyed large" * LARGEST,
    "unimplemented",
    "keyed unimplemented",
    "exhausted",
)
# Of each, sent with a token: the class, "changed", the action, and the end of what comes next.
SAID = [
    ["Refused", "no", "", ""],
    ["GoexError", "unknown", "", "Look at the latest actions, or send it with the same key."],
    ["GoexError", "unknown", "a-1", "See how a-1 stands. Take them first."],
    ["GoexError", "unknown", "", "Look at the latest actions, or send it with the same key. Open it."],
    ["Refused", "no", "", "End some."],
    ["GoexError", "unknown", "", "Look at the latest actions, or send it with the same key. End some."],
    ["Refused", "no", "", "Open it."],
    ["GoexError", "unknown", "", "Look at the latest actions, or send it with the same key. Open it."],
    ["Refused", "no", "", "Add it."],
    ["GoexError", "unknown", "", "Ask the person what was begun. Add it."],  # a new agent has keys of its own
    ["GoexError", "no", "", "Ask for less at once."],
    ["GoexError", "no", "", "Ask for less at once."],
    ["GoexError", "no", "", ""],
    ["GoexError", "unknown", "", ""],
    ["GoexError", "unknown", "", "Ask for less at once."],
]
# And where no daemon is: of one without a key and one with it.
AWAY = [
    ["NotRunning", "no", "", "Start it with: goex daemon start"],
    [
        "NotRunning",
        "unknown",
        "",
        "Look at the latest actions, or send it with the same key when the daemon is back; don't send it anew.",
    ],
]


def unnamed(said: list[list[str]]) -> list[list[str]]:
    """What is said to an agent without a token, whose key lasts no longer than its connection."""
    look = "Look at the latest actions, or send it with the same key"
    again = "Send it again on this connection, with the same key."  # it wasn't taken, and the connection is there
    made = [[*facts, again if next == f"{look}. End some." else next] for *facts, next in said]
    return [[*facts, next.replace(look, "Ask the person what was begun")] for *facts, next in made]


class _Actions(rpc.ActionsServicer):
    def Execute(self, request: Any, context: Any) -> Iterator[pb.Event]:
        problem = pb.Problem(code="unavailable", message="No.", exit_status=ExitStatus.UNAVAILABLE, retry="later")
        if request.intent == "begun":
            problem.next_step = "Take them first."
            yield pb.Event(action_id="a-1")
        if request.intent == "key":
            problem.exit_status, problem.next_step = ExitStatus.UNKNOWN, "Open it."
        if request.intent.endswith("crowded"):
            problem.code, problem.next_step = "crowded", "End some."
        if request.intent.endswith("sealed"):
            problem.code, problem.next_step = "sealed", "Open it."
        if request.intent.endswith("unauthenticated"):
            problem.code, problem.exit_status, problem.next_step = "unauthenticated", ExitStatus.DENIED, "Add it."
        if request.intent.endswith("unimplemented"):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        if request.intent == "exhausted":  # as a client says it of an answer that it doesn't take
            said = "Stream removed (CLIENT: Received message larger than max (2 vs. 1))"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, said)
        if request.intent != "silent":
            context.set_trailing_metadata((("goex-problem-bin", problem.SerializeToString()),))
            context.abort(grpc.StatusCode.ABORTED, "No.")


@contextmanager
def ending(folder: Path) -> Iterator[Path]:
    """Its socket."""
    options = [("grpc.max_receive_message_length", LARGEST)]
    server, socket = grpc.server(ThreadPoolExecutor(2), options=options), folder / "agent.sock"
    rpc.add_ActionsServicer_to_server(_Actions(), server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    yield socket
    server.stop(None)
