"""Tools for LangChain and LangGraph: `pip install 'goex-client[langchain]'`.

With `interrupts` a call that waits for the person interrupts the graph. Whatever the graph is resumed with is thrown
away: the tool looks at the action again, by the key of its call, and interrupts again while nobody has answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import grpc
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from goex_client import goex_pb2 as pb
from goex_client import tools as made
from goex_client.client import Began, Client
from goex_client.errors import GoexError
from goex_client.requests import Request

_CALL = "goex_tool_call_id"


class GoexTool(BaseTool):
    """One tool. `metadata` holds its risk and undo."""

    goex: Any
    tool: Any
    interrupts: bool = False

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return super().invoke(_with_id(input), config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await super().ainvoke(_with_id(input), config, **kwargs)

    async def _arun(self, config: RunnableConfig, **arguments: Any) -> str:
        """In a thread of its own. A task that is cancelled withdraws what nobody has answered."""
        left = _Left()
        try:
            return await asyncio.to_thread(self._answer, config, left.began, arguments)
        except asyncio.CancelledError:
            left.now()
            raise

    def _run(self, config: RunnableConfig, **arguments: Any) -> str:
        return self._answer(config, None, arguments)

    def _answer(self, config: RunnableConfig, began: Began | None, arguments: dict[str, Any]) -> str:
        call = arguments.pop(_CALL, "")
        if not self.interrupts or self.tool.name in made.LOOKS:
            return made.answer(self.goex, self.tool, arguments, began)
        thread = config.get("configurable", {}).get("thread_id")
        if not thread or not call:
            return made.of_error(GoexError("A tool that interrupts is called by a graph with a checkpointer alone."))
        try:
            request = self.tool.request(arguments)
            request.key = hashlib.sha256(json.dumps(["langgraph", str(thread), call]).encode()).hexdigest()
            request.detach = True
            return self._resumed(request)
        except GoexError as error:
            return made.of_error(error)

    def _resumed(self, request: Request) -> str:
        """The end of the action that has this key: begun by the first run, and found again by those that follow."""
        with closing(self.goex.start(request)) as events:
            event = next(each for each in events if each.WhichOneof("what") in ("asking", "finished"))
        id = event.action_id
        try:
            return self._ended(id)
        except GoexError as error:  # of a look, but the action is begun
            error.action, error.changed = id, "unknown"
            raise

    def _ended(self, id: str) -> str:
        """What the model reads when it has ended; it is interrupted while it waits for the person."""
        from langgraph.types import interrupt

        while (result := self.goex.get(id, max_bytes=made.MAX_BYTES)).status == "waiting":
            asked = {"goex": "waiting for the person", "action": id, "summary": result.summary}
            interrupt({**asked, "deadline": result.deadline, "next": "Resume when they have answered, where they do."})
        if result.status == "running":
            result = self.goex.wait(pb.ActionId(id=id), max_bytes=made.MAX_BYTES)
        return made.of_result(result)


class _Left:
    """Cancels a call of another thread, whichever comes first: the call or its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: grpc.Call | None = None
        self._left = False

    def began(self, call: grpc.Call) -> None:
        with self._lock:
            self._call = call
            if self._left:
                call.cancel()

    def now(self) -> None:
        with self._lock:
            self._left = True
            if self._call is not None:
                self._call.cancel()


def tools(goex: Client, services: Iterable[str] = (), *, interrupts: bool = False) -> list[BaseTool]:
    """The tools for everything, and one for each method of `services`. `interrupts`: the graph has a checkpointer."""
    return [
        GoexTool(
            name=each.name,
            description=each.description,
            args_schema=each.schema,
            metadata=each.facts,
            goex=goex,
            tool=each,
            interrupts=interrupts,
        )
        for each in made.of_services(goex, services)
    ]


def _with_id(input: Any) -> Any:
    """A model's call with its id among the arguments, where `_run` finds it."""
    if isinstance(input, dict) and input.get("type") == "tool_call":
        return {**input, "args": {**input["args"], _CALL: input["id"]}}
    return input
