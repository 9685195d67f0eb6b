"""A task as it is written (JSON), as the daemon's message; for the command line and the MCP server alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goex.rpc import goex_pb2 as pb
from policies.errors import InvalidInput
from policies.jsonvalue import canonical

_SECONDS = 60  # a minute's


def proposal(written: Mapping[str, Any], *, agent: str = "", key: str = "") -> pb.ExecuteRequest:
    """`{"title": …, "minutes": …, "allows": [{"method": "slack.chat.postMessage", "account": …, "arguments": …,
    "times": …}]}` as a request. Raises InvalidInput."""
    try:
        minutes = written.get("minutes", 0)
        lines = [_line(each) for each in written["allows"]]
        task = pb.Task(title=written.get("title", ""), allows=lines, seconds=int(minutes * _SECONDS), agent=agent)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            "This isn't a task.",
            next_step='Like {"title": "…", "minutes": 30, "allows": [{"method": "slack.conversations.list"}]}.',
        ) from error
    return pb.ExecuteRequest(task=task, key=key)


def _line(written: Mapping[str, Any]) -> pb.Allowance:
    service, _, method = written["method"].partition(".")
    unknown = written.keys() - {"method", "account", "arguments", "times"}
    if not method or unknown:
        raise InvalidInput(f"A task's line has no {sorted(unknown)[0][:40]!r}." if unknown else "Which method?")
    bounds = written.get("arguments")
    return pb.Allowance(
        service=service,
        method=method,
        account=written.get("account", ""),
        arguments_json="" if bounds is None else canonical(bounds).decode("utf-8"),
        times=written.get("times", 0),
    )
