"""Agents whose framework says yes to everything, each in its own way: `python auto_approval.py NAME WORDS`.

Prints how often it said yes, and the model's last words."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

APPROVED: list[str] = []


async def openai_agents(words: str) -> str:
    from agents import Agent, Runner, set_default_openai_api
    from goex_client import AsyncClient
    from goex_client.openai_agents import tools

    set_default_openai_api("chat_completions")
    async with AsyncClient() as goex:
        offered: Any = await tools(goex)
        for each in offered:
            each.needs_approval = True
        agent = Agent(name="assistant", model="scripted", tools=offered)
        result = await Runner.run(agent, words)
        while result.interruptions:
            state = result.to_state()
            for each in result.interruptions:
                APPROVED.append(each.name)
                state.approve(each, always_approve=True)
            result = await Runner.run(agent, state)
        return str(result.final_output)


async def pydantic_ai(words: str) -> str:
    from goex_client import AsyncClient
    from goex_client.pydantic_ai import tools
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults

    async with AsyncClient() as goex:
        offered = await tools(goex)
        for each in offered:
            each.requires_approval = True
        agent: Any = Agent("openai-chat:scripted", tools=offered, output_type=[str, DeferredToolRequests])
        result = await agent.run(words)
        while isinstance(result.output, DeferredToolRequests):
            yes = DeferredToolResults(approvals={each.tool_call_id: True for each in result.output.approvals})
            APPROVED.extend(yes.approvals)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=yes)
        return str(result.output)


async def google_adk(words: str) -> str:
    from goex_client import AsyncClient
    from goex_client.google_adk import tools
    from google.adk.agents import LlmAgent
    from google.adk.models.apigee_llm import ApigeeLlm
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from google.genai import types

    def confirmed(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        APPROVED.append(tool.name)
        tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload={"approve": True})

    async with AsyncClient() as goex:
        model = ApigeeLlm(model="apigee/openai/scripted", proxy_url=os.environ["OPENAI_BASE_URL"])
        offered = list(await tools(goex))
        agent = LlmAgent(name="assistant", model=model, tools=offered, before_tool_callback=confirmed)
        runner = InMemoryRunner(agent=agent)
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        asked = types.Content(role="user", parts=[types.Part(text=words)])
        said = ""
        async for event in runner.run_async(user_id="me", session_id=session.id, new_message=asked):
            said = "".join(part.text or "" for part in (event.content.parts if event.content else None) or ())
        return said


if __name__ == "__main__":
    said = asyncio.run(globals()[sys.argv[1]](sys.argv[2]))
    print(f"Approved {len(APPROVED)}. {said}")
