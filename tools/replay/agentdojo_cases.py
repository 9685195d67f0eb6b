"""Prints AgentDojo's suites as JSON: tools with their schemas, user tasks and injection tasks with their ground truth,
and what AgentDojo's own tools answer to it.

Run by the interpreter of .cache/replay, where `agentdojo` is installed; nothing of GoEx is loaded.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

VERSION = "v1.2.1"


def calls(task: Any, tools: Any, environment: Any) -> list[dict[str, Any]]:
    """The task's calls, each made in its environment: what is answered is what an agent then knows."""
    runtime, made = FunctionsRuntime(tools), []
    for call in task.ground_truth(environment):
        answer, error = runtime.run_function(environment, call.function, dict(call.args))
        text = error or tool_result_to_str(answer)
        made.append({"tool": call.function, "arguments": dict(call.args), "answer": text})
    return made


def main() -> None:
    found = {}
    for name, suite in get_suites(VERSION).items():
        environment = suite.load_and_inject_default_environment({})
        found[name] = {
            "tools": [
                {"name": tool.name, "description": tool.description, "schema": tool.parameters.model_json_schema()}
                for tool in suite.tools
            ],
            "user": [
                {"id": id, "prompt": task.PROMPT, "calls": calls(task, suite.tools, environment.model_copy(deep=True))}
                for id, task in suite.user_tasks.items()
            ],
            "injection": [
                {"id": id, "goal": task.GOAL, "calls": calls(task, suite.tools, environment.model_copy(deep=True))}
                for id, task in suite.injection_tasks.items()
            ],
        }
    json.dump(found, sys.stdout, default=str)


if __name__ == "__main__":
    main()
