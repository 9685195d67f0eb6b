"""LangGraph: a graph that is interrupted while the person is asked, and goes on when they have answered.

pip install 'goex-client[langchain]' langchain-openai
OPENAI_API_KEY=… GOEX_AGENT_TOKEN=goex_… python langgraph_agent.py "Remove old.txt in /home/me/work"
"""

from __future__ import annotations

import os
import sys
from typing import Any
from uuid import uuid4

from goex_client import Client
from goex_client.langchain import tools
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command


def main(words: str) -> None:
    with Client() as goex:
        offered = tools(goex, interrupts=True)
        model = ChatOpenAI(model=os.environ.get("MODEL", "gpt-5")).bind_tools(offered)

        def ask(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", ask)
        graph.add_node("tools", ToolNode(offered))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        agent = graph.compile(checkpointer=InMemorySaver())

        config: Any = {"configurable": {"thread_id": uuid4().hex}}
        state = agent.invoke({"messages": [("user", words)]}, config)
        while waiting := state.get("__interrupt__"):
            # What is typed here decides nothing: the tool looks at the action again.
            print(f"GoEx asks you about {waiting[0].value['action']}. Press Enter when you have answered.", flush=True)
            state = agent.invoke(Command(resume=sys.stdin.readline()), config)
        print(state["messages"][-1].content)


if __name__ == "__main__":
    main(sys.argv[1])
