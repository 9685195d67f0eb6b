"""OpenAI Agents SDK: a tool's call takes as long as the person does.

pip install 'goex-client[openai-agents]'
OPENAI_API_KEY=… GOEX_AGENT_TOKEN=goex_… python openai_agents_agent.py "Remove old.txt in /home/me/work"
"""

from __future__ import annotations

import asyncio
import os
import sys

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from goex_client import AsyncClient
from goex_client.openai_agents import tools


async def main(words: str) -> None:
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    async with AsyncClient() as goex:
        agent = Agent(name="assistant", model=os.environ.get("MODEL", "gpt-5"), tools=await tools(goex))
        print((await Runner.run(agent, words)).final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
