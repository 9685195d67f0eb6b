"""Google's Agent Development Kit, with a model behind a chat-completions server.

pip install 'goex-client[google-adk]'
OPENAI_BASE_URL=… GOEX_AGENT_TOKEN=goex_… python google_adk_agent.py "Remove old.txt in /home/me/work"
"""

from __future__ import annotations

import asyncio
import os
import sys

from goex_client import AsyncClient
from goex_client.google_adk import tools
from google.adk.agents import LlmAgent
from google.adk.models.apigee_llm import ApigeeLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


async def main(words: str) -> None:
    key = os.environ.get("OPENAI_API_KEY", "")
    model = ApigeeLlm(
        model=f"apigee/openai/{os.environ.get('MODEL', 'gpt-5')}",
        proxy_url=os.environ["OPENAI_BASE_URL"],
        custom_headers={"Authorization": f"Bearer {key}"},
    )
    async with AsyncClient() as goex:
        agent = LlmAgent(name="assistant", model=model, tools=list(await tools(goex)))
        runner = InMemoryRunner(agent=agent)
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        asked = types.Content(role="user", parts=[types.Part(text=words)])
        async for event in runner.run_async(user_id="me", session_id=session.id, new_message=asked):
            if event.is_final_response() and event.content and event.content.parts:
                print("".join(part.text or "" for part in event.content.parts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
