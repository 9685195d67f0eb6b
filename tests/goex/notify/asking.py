"""Requests that an agent makes, and what became of them."""

from __future__ import annotations

import json
from typing import Any

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon

STILL = 1.2  # seconds: longer than notifications must have stood still before a click allows
READ = ["Allow once", "For the session…", "Deny"]
IRREVERSIBLE = ["Allow once…", "Deny"]
CUT = ["Show it whole…", "Deny"]


def read(**arguments: Any) -> pb.ExecuteRequest:
    return call("team_notes", "notes.list", {"team": "core", **arguments})


def write(text: str) -> pb.ExecuteRequest:
    """It can't be taken back, so it is asked for each time."""
    return call("team_notes", "notes.create", {"team": "core", "body": {"text": text}})


def message(text: str) -> pb.ExecuteRequest:
    """A write with a way back, and with more to say than there is room for."""
    lines = "\n".join(f"line {number}" for number in range(20))
    return call("slack", "chat.postMessage", {"channel": "C0123456789", "text": f"{text}\n{lines}"})


def call(service: str, method: str, arguments: dict[str, Any]) -> pb.ExecuteRequest:
    made = pb.Call(service=service, method=method, arguments_json=json.dumps(arguments))
    return pb.ExecuteRequest(calls=pb.Calls(calls=[made]))


def pending(daemon: Daemon) -> list[str]:
    """The ids of all that waits."""
    return [found.id for found in daemon.person("Approvals", pb.ApprovalsRequest(duplicates=True)).approvals]
