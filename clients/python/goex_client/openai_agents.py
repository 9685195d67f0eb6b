"""Tools for the OpenAI Agents SDK: `pip install 'goex-client[openai-agents]'`.

A run that is cancelled withdraws what nobody has answered. `needs_approval` of the SDK may be set on them; the person's
answer is still asked for by GoEx.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool, RunContextWrapper
from agents import Tool as AgentsTool

from goex_client import tools as made
from goex_client.aio import AsyncClient
from goex_client.errors import GoexError


async def tools(goex: AsyncClient, services: Iterable[str] = ()) -> list[AgentsTool]:
    """The tools for everything, and one for each method of `services`."""
    return [_tool(goex, each) for each in await made.of_services_async(goex, services)]


def _tool(goex: AsyncClient, tool: made.Tool) -> FunctionTool:
    async def call(_: RunContextWrapper[Any], written: str) -> str:
        try:
            arguments = json.loads(written or "{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return made.of_error(GoexError("The arguments aren't a JSON object.", retry="changed", who="agent"))
        return await made.answer_async(goex, tool, arguments)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema,
        on_invoke_tool=call,
        strict_json_schema=False,
    )
