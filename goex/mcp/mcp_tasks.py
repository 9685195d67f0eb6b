"""The tasks extension of MCP (SEP-2663): an action that is under way is the task that its client follows.

Rules: a task's id is the action's, so nothing is kept here that could be lost, and whose it is, the daemon says each
time. A client that didn't declare the extension never meets it. What comes by `tasks/update` settles nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from goex.mcp.person_page import Context, modern
from goex.rpc import goex_pb2 as pb

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2000
Facts = dict[str, Any]


class TaskParams(types.RequestParams):
    """Of tasks/get and tasks/cancel."""

    task_id: str


class UpdateParams(TaskParams):
    """Of tasks/update."""

    input_responses: dict[str, Any]


class Tasks(Protocol):
    """Who has the tasks. Each raises MCPError for one that isn't the caller's."""

    async def task(self, context: Context, id: str) -> Facts: ...
    async def cancel_task(self, context: Context, id: str) -> None: ...
    async def answer_task(self, context: Context, id: str, responses: Facts) -> None: ...


def declared(context: Context) -> bool:
    """Whether this request's client declared the extension."""
    capabilities = context.session.client_capabilities
    return modern(context) and capabilities is not None and EXTENSION in (capabilities.extensions or {})


def of_action(view: pb.ActionView) -> Facts:
    """An action as a task that is under way."""
    return facts(view.id, view.created, view.updated, message=view.ending.next or view.ending.summary)


def facts(id: str, created: str, updated: str, status: str = "working", message: str = "") -> Facts:
    """A task's own fields. It has no end of life: the journal keeps its action."""
    made = {"taskId": id, "status": status, "createdAt": created, "lastUpdatedAt": updated}
    return {**made, "ttlMs": None, "pollIntervalMs": POLL_MS, **({"statusMessage": message} if message else {})}


def created(task: Facts) -> Facts:
    """What a call answers that has become a task."""
    return {"resultType": "task", **task}


def wire(result: types.CallToolResult) -> Facts:
    """A call's result as it stands in its task."""
    return {**result.model_dump(by_alias=True, mode="json", exclude_none=True), "resultType": "complete"}


def missing_capability() -> MCPError:
    capabilities: Facts = {"extensions": {EXTENSION: {}}}
    return MCPError(
        code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        message=f"This needs the extension {EXTENSION}.",
        data={"requiredCapabilities": capabilities},
    )


def unknown_task() -> MCPError:
    """The same for another agent's and for none."""
    return MCPError(code=types.INVALID_PARAMS, message="There is no such task.")


def offer(server: Server[Any], tasks: Tasks) -> None:
    """Serve the extension's methods, and say so."""

    async def get(context: Context, params: TaskParams) -> Facts:
        return await tasks.task(context, params.task_id)

    async def cancel(context: Context, params: TaskParams) -> Facts:
        await tasks.cancel_task(context, params.task_id)
        return {}

    async def update(context: Context, params: UpdateParams) -> Facts:
        await tasks.answer_task(context, params.task_id, params.input_responses)
        return {}

    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, _gated(get))
    server.add_request_handler("tasks/cancel", TaskParams, _gated(cancel))
    server.add_request_handler("tasks/update", UpdateParams, _gated(update))


Handler = Callable[[Context, Any], Awaitable[Facts]]


def _gated(handler: Handler) -> Handler:
    async def checked(context: Context, params: TaskParams) -> Facts:
        if not modern(context):
            raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data=context.method)
        if not declared(context):
            raise missing_capability()
        if context.request is not None:
            named = context.request.headers.get(MCP_NAME_HEADER)
            if named is None or decode_header_value(named) != params.task_id:
                said = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
                raise MCPError(code=types.HEADER_MISMATCH, message=said)
        return await handler(context, params)

    return checked
