"""The MCP server object: lists the tools, checks a call's arguments, hands it to the daemon, and waits for a while.

Rules: nothing is decided here, and no form that a client fills is a person's answer: a client is led to the person's
page, or told to wait. A call that is still under way when its time is over answers with the action's id, as a task
where the client declared tasks, and goes on; `goex_wait` looks again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from goex import __version__
from goex.mcp import listings, mcp_tasks, person_page, requests, resources, results
from goex.mcp.daemon_link import Caller, DaemonLink
from goex.mcp.person_page import Context
from goex.mcp.tools import MAX_TOKENS, TOOLS, WAIT_SECONDS, of_method, tool_name
from goex.rpc import goex_pb2 as pb
from policies.display_text import shorten
from policies.errors import ExitStatus, GoexError, InvalidInput
from policies.jsonvalue import JsonObject

SOON = 1.0  # seconds in which what needs nobody has ended
MOST_LED = 1000  # actions whose client was led to the page
_LONGEST_WRONG = 300  # characters of what is wrong with an argument, before its end
BEAT = 10.0  # seconds between two notes of progress
INSTRUCTIONS = (
    "GoEx runs calls, programs and SQL for you; a person decides what runs, elsewhere than here. Begin with goex_find. "
    "Status waiting: do other work or goex_wait, don't send it again. Never try to approve, and never reach by another "
    "way what was denied."
)
_ACTING = frozenset({"goex_read", "goex_call", "goex_program", "goex_sql", "goex_task"})
_UNDER_WAY = frozenset({"running", "waiting"})
Answer = types.CallToolResult | types.InputRequiredResult | dict[str, Any]
CallerOf = Callable[[Context], Caller]


class Door:
    """Answers the tools. `caller_of` finds whose call one is."""

    def __init__(self, link: DaemonLink, caller_of: CallerOf, methods: Mapping[str, pb.FoundMethod]) -> None:
        self.link = link
        self.caller_of = caller_of
        alone = {id: found for id, found in methods.items() if tool_name(id) not in shared_names(methods)}
        self._methods = {tool_name(id): found for id, found in alone.items()}
        self.tools = (*TOOLS, *(of_method(found) for found in alone.values()))
        # A method's arguments are judged by the daemon, which bounds what a stranger's schema costs.
        self._checkers = {tool.name: Draft202012Validator(tool.input_schema) for tool in TOOLS}
        self._states = person_page.States()
        self._led: dict[tuple[str, str], None] = {}  # token and action, of tasks whose client was led to the page

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(self.tools))

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Answer:
        if params.name not in self._checkers and params.name not in self._methods:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:80]}")
        if params.input_responses is not None and params.request_state is None:
            raise person_page.refused_state()  # it goes on with a call; without its state it would begin another
        arguments, caller = params.arguments or {}, Caller("")
        own = arguments if params.name in self._checkers else {}  # a method's say nothing of waiting or what is shown
        try:
            if params.name in self._checkers:
                self._check(params.name, own)
            caller = self.caller_of(context)
            if params.request_state is not None:
                action = self._states.take(caller.token, params.request_state)
                return await self._looked(action, own, caller, context)
            return await self._answer(params.name, arguments, caller, context)
        except GoexError as error:
            return results.of_error(error, token=bool(caller.token))

    def _check(self, name: str, arguments: JsonObject) -> None:
        try:
            wrong = next(self._checkers[name].iter_errors(arguments), None)
        except RecursionError as error:
            raise InvalidInput(f"The arguments of {name} can't be checked.") from error
        if wrong is not None:
            kept, cut = shorten(wrong.message, _LONGEST_WRONG)  # what is wrong stands at its end
            raise InvalidInput(
                f"{wrong.json_path[:200]}: {f'{kept}… {wrong.message[-60:]}' if cut else kept}",
                next_step="See the tool's input schema.",
            )

    async def _answer(self, name: str, arguments: JsonObject, caller: Caller, context: Context) -> Answer:
        match name:
            case "goex_find":
                return await listings.find(self.link, arguments, caller)
            case "goex_actions":
                return await listings.actions(self.link, arguments, caller)
            case "goex_preview":
                reply = await self.link.call("Preview", requests.preview(arguments), pb.DryRunReply, caller)
                return results.of_preview(reply, results.bytes_of(MAX_TOKENS))
            case "goex_cancel":
                id = pb.ActionId(id=arguments["action"])
                return results.of_action(await self.link.call("Cancel", id, pb.ActionView, caller))
            case "goex_result":
                view = await self.link.get(arguments["action"], caller)
                return results.of_action(view, await self._page(view.id, arguments, caller))
            case "goex_wait":
                return await self._looked(arguments["action"], arguments, caller, context)
        request: pb.ExecuteRequest | pb.RevertRequest
        if name == "goex_undo":
            request = requests.revert(arguments)
        elif name in _ACTING:
            request = requests.execute(name, arguments)
        else:
            method = self._methods[name]
            request = requests.of_method(method.id, arguments, reads=method.risk == "read")
            arguments = {}
        begun = await self.link.begin(request, caller)
        try:
            return await self._followed(begun, arguments, caller, context)
        except GoexError as error:  # it is begun, whatever a look at it was refused for
            return results.of_lost(begun, error)

    async def _followed(self, id: str, arguments: JsonObject, caller: Caller, context: Context) -> Answer:
        """What a call answers that has begun an action: its end when it comes soon enough; else a task, the person's
        page, or how it stands, as the client can have it."""
        as_task = mcp_tasks.declared(context)
        seconds = arguments.get("wait_seconds", SOON if as_task else WAIT_SECONDS)
        view = await self._wait(id, min(seconds, SOON), caller, context)
        leads = seconds > 0 and not as_task and person_page.opens_addresses(context)
        asked = person_page.asked(view) if leads else {}
        if asked and person_page.modern(context):
            return types.InputRequiredResult(input_requests=asked, request_state=self._states.issue(caller.token, id))
        if view.ending.status in _UNDER_WAY and seconds > SOON:
            leading = asyncio.create_task(person_page.led(context, view)) if asked else None
            view = await self._wait(id, seconds - SOON, caller, context)
            if leading is not None:
                leading.cancel()
                if view.ending.status != "waiting":
                    await person_page.led_no_more(context, view)
        if view.ending.status in _UNDER_WAY and as_task:
            return mcp_tasks.created(mcp_tasks.of_action(view))
        return await self._ended(view, arguments, caller)

    async def _looked(self, id: str, arguments: JsonObject, caller: Caller, context: Context) -> types.CallToolResult:
        try:
            return await self._when_done(id, arguments, caller, context)
        except GoexError as error:
            if error.exit_status is ExitStatus.USAGE:
                raise  # there is no such action
            return results.of_lost(id, error)

    async def _when_done(
        self, id: str, arguments: JsonObject, caller: Caller, context: Context
    ) -> types.CallToolResult:
        """How an action stands when it has ended, or when the time to wait is over."""
        seconds = arguments.get("seconds", arguments.get("wait_seconds", WAIT_SECONDS))
        return await self._ended(await self._wait(id, seconds, caller, context), arguments, caller)

    async def _wait(self, id: str, seconds: float, caller: Caller, context: Context) -> pb.ActionView:
        steps = asyncio.Queue[str]()
        beating = asyncio.create_task(_progress(context, id, steps))
        try:
            return await self.link.wait(id, caller, seconds, steps.put_nowait)
        finally:
            beating.cancel()

    async def _ended(self, view: pb.ActionView, arguments: JsonObject, caller: Caller) -> types.CallToolResult:
        if not view.outcome_json:
            return results.of_action(view)
        try:
            page = await self._page(view.id, arguments, caller)
        except GoexError as error:  # it has ended, whether or not its answer can be read now
            return results.of_action(view, unread=error.message)
        return results.of_action(view, page)

    async def task(self, context: Context, id: str) -> dict[str, Any]:
        """An action as a task, with its result once it has ended."""
        caller = self.caller_of(context)
        view = await self._owned(id, caller)
        task = self._task_of(view, caller, context)
        if view.ending.status in _UNDER_WAY:
            return task
        self._led.pop((caller.token, id), None)
        if view.ending.status == "withdrawn":
            return {**task, "status": "cancelled"}
        return {**task, "status": "completed", "result": mcp_tasks.wire(await self._ended(view, {}, caller))}

    async def cancel_task(self, context: Context, id: str) -> None:
        caller = self.caller_of(context)
        view = await self._owned(id, caller)
        if view.ending.status in _UNDER_WAY:
            await self.link.call("Cancel", pb.ActionId(id=id), pb.ActionView, caller)

    async def answer_task(self, context: Context, id: str, responses: dict[str, Any]) -> None:
        """Remember that the client was led to the page. What it says of it is dropped."""
        caller = self.caller_of(context)
        await self._owned(id, caller)
        if person_page.KEY in responses:
            self._led[caller.token, id] = None
            while len(self._led) > MOST_LED:
                self._led.pop(next(iter(self._led)))

    def _task_of(self, view: pb.ActionView, caller: Caller, context: Context) -> dict[str, Any]:
        made = mcp_tasks.of_action(view)
        asked = person_page.asked(view) if person_page.opens_addresses(context) else {}
        if not asked or (caller.token, view.id) in self._led:
            return made
        requests = {key: each.model_dump(by_alias=True, mode="json", exclude_none=True) for key, each in asked.items()}
        return {**made, "status": "input_required", "inputRequests": requests}

    async def _owned(self, id: str, caller: Caller) -> pb.ActionView:
        try:
            return await self.link.get(id, caller)
        except GoexError as error:
            if error.exit_status is ExitStatus.USAGE:
                raise mcp_tasks.unknown_task() from error
            raise results.as_fault(error) from error

    async def _page(self, id: str, arguments: JsonObject, caller: Caller) -> pb.ResultReply:
        request = pb.ResultRequest(
            id=id,
            path=arguments.get("path", ""),
            fields=arguments.get("fields", ()),
            offset=arguments.get("offset", 0),
            limit=arguments.get("limit", 0),
            max_bytes=results.page_bytes(arguments.get("max_tokens", MAX_TOKENS)),
        )
        return await self.link.call("Result", request, pb.ResultReply, caller)


def shared_names(methods: Iterable[str]) -> frozenset[str]:
    """The names that more than one tool would have: they lead to none of them, or what a client shows of one would be
    said of a call of another. `goex_call` calls all of these."""
    count = Counter((*(tool.name for tool in TOOLS), *map(tool_name, methods)))
    return frozenset(name for name, times in count.items() if times > 1)


async def _progress(context: Context, id: str, steps: asyncio.Queue[str]) -> None:
    """Tell a client that wants to know that an action is still under way."""
    said, count = "running", 0
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT):
                said = await steps.get()
        count += 1
        await context.session.report_progress(count, message=f"{id} is {said}")


def server(door: Door) -> Server[Any]:
    """The server object, for any transport."""
    made: Server[Any] = Server(
        "goex", version=__version__, title="GoEx", instructions=INSTRUCTIONS, on_list_tools=door.list_tools
    )
    made.add_request_handler("tools/call", types.CallToolRequestParams, door.call_tool)
    made.middleware.append(person_page.boundary(door.caller_of))
    mcp_tasks.offer(made, door)
    resources.offer(made, resources.ActionResources(door.link, door.caller_of))
    return made
