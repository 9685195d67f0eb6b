"""Tools for PydanticAI: `pip install 'goex-client[pydantic-ai]'`.

A deferred tool's approval is no answer of the person's: GoEx asks for that itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai import Tool

from goex_client import tools as made
from goex_client.aio import AsyncClient


async def tools(goex: AsyncClient, services: Iterable[str] = ()) -> list[Tool[Any]]:
    """The tools for everything, and one for each method of `services`. `metadata` holds risk and undo."""
    return [_tool(goex, each) for each in await made.of_services_async(goex, services)]


def _tool(goex: AsyncClient, tool: made.Tool) -> Tool[Any]:
    async def call(**arguments: Any) -> str:
        return await made.answer_async(goex, tool, arguments)

    made_tool: Tool[Any] = Tool.from_schema(call, tool.name, tool.description, tool.schema)
    made_tool.metadata = tool.facts
    return made_tool
