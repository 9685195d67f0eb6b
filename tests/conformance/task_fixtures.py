"""The suite's tools that become tasks. What serves the extension's methods is shipped; these hold the state."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime
from typing import Any

import mcp_types as types

from goex.mcp import mcp_tasks
from goex.mcp.person_page import Context
from tests.conformance.asking_fixtures import form, text

_CONFIRM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}
_NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_ASKS = {
    "confirm_delete": {"confirm": form("Delete it?", _CONFIRM)},
    "multi_input": {"first": form("Your name?", _NAME), "second": form("The other's?", _NAME)},
}
NEEDED = frozenset({"failing_job", "protocol_error_job", "test_tool_with_task"})  # tools that are tasks or nothing
TOOLS: dict[str, dict[str, Any]] = {
    "greet": {"name": {"type": "string"}},
    "slow_compute": {"seconds": {"type": "number"}, "label": {"type": "string"}},
    "failing_job": {},
    "protocol_error_job": {},
    "confirm_delete": {"filename": {"type": "string"}},
    "multi_input": {},
    "test_tool_with_task": {},
}


class _Job:
    def __init__(self, id: str, asks: dict[str, types.ElicitRequest]) -> None:
        self.asks = dict(asks)
        self.ends: dict[str, Any] = {}
        self.task = mcp_tasks.facts(id, _now(), _now())

    def facts(self) -> dict[str, Any]:
        if self.ends or not self.asks:
            return {**self.task, **self.ends}
        asked = {key: one.model_dump(by_alias=True, mode="json", exclude_none=True) for key, one in self.asks.items()}
        return {**self.task, "status": "input_required", "inputRequests": asked}

    def end(self, status: str, **more: Any) -> None:
        if not self.ends:
            self.ends = {"status": status, **more}

    def complete(self, result: types.CallToolResult) -> None:
        self.end("completed", result=mcp_tasks.wire(result))


class Jobs:
    """The tasks that there are."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._numbers = itertools.count(1)

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Any:
        """Call one of TOOLS."""
        arguments = params.arguments or {}
        if params.name == "greet":
            return text(f"Hello, {arguments.get('name', 'World')}!")
        if not mcp_tasks.declared(context):
            if params.name in NEEDED:
                raise mcp_tasks.missing_capability()
            return text("computed")
        name = ""
        if params.name == "test_tool_with_task":
            given: Any = (params.input_responses or {}).get("user_name")
            if given is None:
                asked = form("Your name?", _NAME)
                return types.InputRequiredResult(input_requests={"user_name": asked}, request_state="asked")
            name = (given.content or {}).get("name", "")
        job = _Job(f"job-{next(self._numbers)}", _ASKS.get(params.name, {}))
        self._jobs[job.task["taskId"]] = job
        loop = asyncio.get_running_loop()
        match params.name:
            case "slow_compute":
                loop.call_later(arguments.get("seconds", 0), job.complete, text("computed"))
            case "failing_job":
                failed = text("It failed.").model_copy(update={"is_error": True})
                loop.call_later(0.2, job.complete, failed)
            case "protocol_error_job":
                loop.call_later(
                    0.2, lambda: job.end("failed", error={"code": types.INTERNAL_ERROR, "message": "It broke."})
                )
            case "test_tool_with_task":
                loop.call_later(0.2, job.complete, text(f"Hello, {name}!"))
        return mcp_tasks.created(dict(job.task))

    async def task(self, context: Context, id: str) -> dict[str, Any]:
        return self._of(id).facts()

    async def cancel_task(self, context: Context, id: str) -> None:
        self._of(id).end("cancelled")

    async def answer_task(self, context: Context, id: str, responses: dict[str, Any]) -> None:
        job = self._of(id)
        for key in responses:
            job.asks.pop(key, None)
        if not job.asks:
            job.complete(text("It was answered."))

    def _of(self, id: str) -> _Job:
        if id not in self._jobs:
            raise mcp_tasks.unknown_task()
        return self._jobs[id]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
