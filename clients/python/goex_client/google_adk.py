"""Tools for Google's Agent Development Kit: `pip install 'goex-client[google-adk]'`.

A confirmation of the kit's own is no answer of the person's: GoEx asks for that itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from goex_client import tools as made
from goex_client.aio import AsyncClient


class GoexTool(BaseTool):
    """One tool. `custom_metadata` holds its risk and undo."""

    def __init__(self, goex: AsyncClient, tool: made.Tool) -> None:
        super().__init__(name=tool.name, description=tool.description, custom_metadata=tool.facts)
        self._goex, self._tool = goex, tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"result": await made.answer_async(self._goex, self._tool, args)}


async def tools(goex: AsyncClient, services: Iterable[str] = ()) -> list[BaseTool]:
    """The tools for everything, and one for each method of `services`."""
    return [GoexTool(goex, each) for each in await made.of_services_async(goex, services)]
