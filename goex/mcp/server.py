"""The MCP server object: lists the tools, checks a call's arguments, hands it to the daemon, and waits for a while.

Rules: nothing is decided here, and nothing is asked of the client: no form that a client fills is a person's answer. A
call that is still under way when its time is over answers with the action's id and goes on; `goex_wait` looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from goex import __version__
from goex.mcp import requests, results
from goex.mcp.daemon_link import Caller, DaemonLink
from goex.mcp.tools import MAX_TOKENS, TOOLS, WAIT_SECONDS, of_method, tool_name
from goex.rpc import goex_pb2 as pb
from policies.errors import GoexError, InvalidInput
from policies.jsonvalue import JsonObject, parse

BEAT = 10.0  # seconds between two notes of progress
MOST_METHODS = 128  # that are tools of their own
INSTRUCTIONS = (
    "GoEx runs calls, programs and SQL for you; a person decides what runs, elsewhere than here. Begin with goex_find. "
    "Status waiting: do other work or goex_wait, don't send it again. Never try to approve, and never reach by another "
    "way what was denied."
)
_ACTING = frozenset({"goex_read", "goex_call", "goex_program", "goex_sql", "goex_task"})
Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]


class Door:
    """Answers the tools. `caller_of` finds whose call one is."""

    def __init__(self, link: DaemonLink, caller_of: CallerOf, methods: Mapping[str, pb.FoundMethod]) -> None:
        self._link = link
        self._caller_of = caller_of
        self._methods = {tool_name(id): found for id, found in methods.items()}
        self.tools = (*TOOLS, *(of_method(found) for found in methods.values()))
        self._checkers = {tool.name: Draft202012Validator(tool.input_schema) for tool in self.tools}

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(self.tools))

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in self._checkers:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:80]}")
        arguments = params.arguments or {}
        try:
            self._check(params.name, arguments)
            return await self._answer(params.name, arguments, self._caller_of(context), context)
        except GoexError as error:
            return results.of_error(error)

    def _check(self, name: str, arguments: JsonObject) -> None:
        try:
            wrong = next(self._checkers[name].iter_errors(arguments), None)
        except (SchemaError, RecursionError) as error:
            raise InvalidInput(f"The arguments of {name} can't be checked.") from error
        if wrong is not None:
            raise InvalidInput(
                f"{wrong.json_path[:200]}: {wrong.message[:300]}", next_step="See the tool's input schema."
            )

    async def _answer(self, name: str, arguments: JsonObject, caller: Caller, context: Context) -> types.CallToolResult:
        match name:
            case "goex_find":
                return await self._find(arguments, caller)
            case "goex_actions":
                return await self._actions(arguments, caller)
            case "goex_cancel":
                id = pb.ActionId(id=arguments["action"])
                return results.of_action(await self._link.call("Cancel", id, pb.ActionView, caller))
            case "goex_result":
                view = await self._link.get(arguments["action"], caller)
                return results.of_action(view, await self._page(view.id, arguments, caller))
            case "goex_wait":
                return await self._waited(arguments["action"], arguments, caller, context)
        request: pb.ExecuteRequest | pb.RevertRequest
        if name == "goex_undo":
            request = requests.revert(arguments)
        elif name in _ACTING:
            request = requests.execute(name, arguments)
        else:
            method = self._methods[name]
            request = requests.of_method(method.id, arguments, reads=method.risk == "read")
            arguments = {}
        return await self._waited(await self._link.begin(request, caller), arguments, caller, context)

    async def _waited(self, id: str, arguments: JsonObject, caller: Caller, context: Context) -> types.CallToolResult:
        """How an action stands when it has ended, or when the time to wait is over."""
        seconds = arguments.get("seconds", arguments.get("wait_seconds", WAIT_SECONDS))
        steps = asyncio.Queue[str]()
        beating = asyncio.create_task(_progress(context, id, steps))
        try:
            view = await self._link.wait(id, caller, seconds, steps.put_nowait)
        finally:
            beating.cancel()
        return results.of_action(view, await self._page(id, arguments, caller) if view.outcome_json else None)

    async def _page(self, id: str, arguments: JsonObject, caller: Caller) -> pb.ResultReply:
        request = pb.ResultRequest(
            id=id,
            path=arguments.get("path", ""),
            fields=arguments.get("fields", ()),
            offset=arguments.get("offset", 0),
            limit=arguments.get("limit", 0),
            max_bytes=results.bytes_of(arguments.get("max_tokens", MAX_TOKENS)),
        )
        return await self._link.call("Result", request, pb.ResultReply, caller)

    async def _find(self, arguments: JsonObject, caller: Caller) -> types.CallToolResult:
        found = await self._link.call("Find", pb.FindRequest(**arguments), pb.FindReply, caller)
        methods = [_method(each) for each in found.methods]
        facts: dict[str, Any] = {"methods": methods} if methods else {}
        if found.services:
            facts["services"] = [
                {"name": each.name, "accounts": list(each.accounts), "methods": each.methods} for each in found.services
            ]
        if found.next_offset:
            facts["next_offset"] = found.next_offset
        if not arguments:
            facts |= {
                "databases": list(found.databases),
                "folders": list(found.folders) or "any that the person allows",
                "more_services_known": found.unconnected,
            }
        if found.vault != "unsealed":
            facts["next"] = f"The vault is {found.vault}; only the person can open it. Tell them, and stop."
        room = results.bytes_of(MAX_TOKENS)
        return results.of_facts(results.fitted(facts, room, arguments.get("offset", 0)))

    async def _actions(self, arguments: JsonObject, caller: Caller) -> types.CallToolResult:
        request = pb.ListRequest(limit=50 if "state" in arguments else arguments.get("limit", 10), brief=True)
        reply = await self._link.call("List", request, pb.ListReply, caller)
        wanted = arguments.get("state", "")
        shown = [each for each in reply.actions if not wanted or each.ending.status == wanted]
        listed = [
            {
                "action": each.id,
                "kind": each.kind,
                "status": each.ending.status,
                "changed": each.ending.changed,
                "undo": each.ending.undo,
                "created": each.created,
                "summary": each.ending.summary[:120],
            }
            for each in shown[: arguments.get("limit", 10)]
        ]
        return results.of_facts({"actions": listed})


def _method(found: pb.FoundMethod) -> dict[str, Any]:
    made: dict[str, Any] = {"method": found.id, "description": found.description, "risk": found.risk}
    made |= {"undo": found.undo, "accounts": list(found.accounts)}
    if found.lacks:
        made["lacks"] = found.lacks
    if found.parameters_json:
        made["arguments"] = parse(found.parameters_json)
    return made


async def _progress(context: Context, id: str, steps: asyncio.Queue[str]) -> None:
    """Tell a client that wants to know that an action is still under way."""
    said, count = "running", 0
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT):
                said = await steps.get()
        count += 1
        await context.session.report_progress(count, message=f"{id} is {said}")


async def methods_of(link: DaemonLink, services: list[str], caller: Caller) -> dict[str, pb.FoundMethod]:
    """The methods of these services that can be called, whole, by name. Raises GoexError."""
    names: list[str] = []
    for service in services:
        offset = 0
        while True:
            request = pb.FindRequest(service=service, offset=offset, limit=200)
            reply = await link.call("Find", request, pb.FindReply, caller)
            names += [each.id for each in reply.methods if not each.lacks]
            if not (offset := reply.next_offset) or len(names) > MOST_METHODS:
                break
    if len(names) > MOST_METHODS:
        raise InvalidInput(
            f"These services have more than {MOST_METHODS} methods.",
            next_step="Name fewer; goex_call calls all of them.",
        )
    made = {}
    for name in names:
        found = await link.call("Find", pb.FindRequest(method=name), pb.FindReply, caller)
        made[name] = found.methods[0]
    return made


def server(door: Door) -> Server[Any]:
    """The server object, for any transport."""
    return Server(
        "goex",
        version=__version__,
        title="GoEx",
        instructions=INSTRUCTIONS,
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
    )
