"""PydanticAI: a tool's call takes as long as the person does.

pip install 'goex-client[pydantic-ai]' openai
OPENAI_API_KEY=… GOEX_AGENT_TOKEN=goex_… python pydantic_ai_agent.py "Remove old.txt in /home/me/work"
"""

from __future__ import annotations

import asyncio
import os
import sys

from goex_client import AsyncClient
from goex_client.pydantic_ai import tools
from pydantic_ai import Agent


async def main(words: str) -> None:
    async with AsyncClient() as goex:
        agent = Agent(f"openai-chat:{os.environ.get('MODEL', 'gpt-5')}", tools=await tools(goex))
        print((await agent.run(words)).output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
