"""What can be asked for, as messages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from goex_client import goex_pb2 as pb
from goex_client.results import Result

Request = pb.ExecuteRequest | pb.RevertRequest | pb.ActionId  # an id: what is under way is followed
METHODS = {"ExecuteRequest": "Execute", "RevertRequest": "Revert", "ActionId": "Watch"}
MAX_BYTES = 6400  # of an answer: with what stands around it, below 2,000 tokens
# A daemon that comes back is found at once.
OPTIONS = (
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_receive_message_length", 64 * 2**20),
    ("grpc.default_authority", "localhost"),
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True)
class Call:
    """One call of a method. A value may be `{"$from": N, "path": "$.a.b"}`: from the answer to call N, from 0."""

    method: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    account: str = ""


@dataclass(frozen=True)
class Allowance:
    """One line of a task: a method, the bounds of its arguments by name ({"is": …}, {"in": […]}, {"least": …, "most":
    …}, {"any": True}; None: any, for reads alone), and how many calls (0: any number, for reads alone)."""

    method: str
    arguments: Mapping[str, Mapping[str, Any]] | None = None
    times: int = 0
    account: str = ""


def target(socket: str) -> str:
    """Where the daemon is: as named, or by GOEX_AGENT_SOCKET, or where it lies for this user."""
    found = socket or os.environ.get("GOEX_AGENT_SOCKET", "")
    if not found:
        run = os.environ.get("XDG_RUNTIME_DIR", "")
        state = os.environ.get("XDG_STATE_HOME", "") or Path.home() / ".local" / "state"
        found = str(Path(run, "goex", "agent.sock") if run else Path(state, "goex", "run", "agent.sock"))
    return "unix:" + quote(found)


def metadata(token: str, session: str = "") -> tuple[tuple[str, str], ...]:
    token = token or os.environ.get("GOEX_AGENT_TOKEN", "")
    named = (("goex-session", session),) if session else ()
    return (("authorization", f"Bearer {token}"), *named) if token else ()


def calls(wanted: Iterable[Call], key: str = "") -> pb.ExecuteRequest:
    made = []
    for call in wanted:
        service, _, method = call.method.partition(".")
        arguments = json.dumps(dict(call.arguments))
        made.append(pb.Call(service=service, method=method, arguments_json=arguments, account=call.account))
    return pb.ExecuteRequest(calls=pb.Calls(calls=made), key=key)


def ask(words: str, key: str = "") -> pb.ExecuteRequest:
    return pb.ExecuteRequest(intent=words, key=key)


def run(
    program: str,
    language: str = "shell",
    folders: Iterable[str | os.PathLike[str]] = (),
    services: Iterable[str] = (),
    methods: Iterable[str] = (),
    key: str = "",
    read_only: bool = False,
) -> pb.ExecuteRequest:
    first, *more = [os.fspath(each) for each in folders] or [""]
    if first:
        files = pb.FilesProgram(folder=first, language=language, program=program, more=more)
        return pb.ExecuteRequest(files=files, key=key, reads_only=read_only)
    code = pb.CodeProgram(language=language, program=program, services=list(services), methods=list(methods))
    return pb.ExecuteRequest(code=code, key=key, reads_only=read_only)


def sql(database: str, statements: str, policy: str = "", key: str = "") -> pb.ExecuteRequest:
    return pb.ExecuteRequest(sql=pb.SqlProgram(database=database, statements=statements, policy=policy), key=key)


def task(title: str, allows: Iterable[Allowance], minutes: int = 30, key: str = "") -> pb.ExecuteRequest:
    lines = []
    for one in allows:
        service, _, method = one.method.partition(".")
        bounds = "" if one.arguments is None else json.dumps(dict(one.arguments))
        line = pb.Allowance(service=service, method=method, account=one.account, arguments_json=bounds)
        line.times = one.times
        lines.append(line)
    return pb.ExecuteRequest(task=pb.Task(title=title, allows=lines, seconds=minutes * 60), key=key)


def revert(action: Result | str, verb: str, key: str = "") -> pb.RevertRequest:
    return pb.RevertRequest(action_id=id_of(action), verb=verb, key=key)


def answer_of(
    action: Result | str,
    path: str = "",
    fields: Iterable[str] = (),
    offset: int = 0,
    limit: int = 0,
    max_bytes: int = MAX_BYTES,
) -> pb.ResultRequest:
    asked = pb.ResultRequest(id=id_of(action), path=path, fields=fields, offset=offset, limit=limit)
    asked.max_bytes = max_bytes
    return asked


def preview(wanted: Iterable[Call] | Result | str | pb.PreviewRequest, verb: str = "") -> pb.PreviewRequest:
    if isinstance(wanted, pb.PreviewRequest):
        return wanted
    if not isinstance(wanted, str | Result):
        return pb.PreviewRequest(request=calls(wanted))
    return pb.PreviewRequest(revert=revert(wanted, verb)) if verb else pb.PreviewRequest(action_id=id_of(wanted))


def id_of(action: Result | str) -> str:
    return action if isinstance(action, str) else action.action
