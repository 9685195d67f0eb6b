"""A chat-completions server whose model follows a script. A step is a function of what the last tool answered, and
returns what the model does next: a tool's name and arguments, or words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.fakes.openai_server import FakeOpenAI, Reply

Turn = tuple[str, dict[str, Any]] | str
Step = Callable[[str], Turn]


class Script:
    """The steps, and what went wrong in one. `told` is what the tools answered, in order."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self._failures: list[BaseException] = []
        self.told: list[str] = []
        self.server = FakeOpenAI(by=self._next)

    def _next(self, body: dict[str, Any]) -> Reply:
        answers = [each for each in body["messages"] if each["role"] == "tool"]
        self.told = [_text(each["content"]) for each in answers]
        if not self._steps or self._failures:
            return Reply(content="Ended.")
        try:
            turn = self._steps.pop(0)(self.told[-1] if self.told else "")
        except BaseException as error:
            self._failures.append(error)
            return Reply(content="Failed.")
        if isinstance(turn, str):
            return Reply(content=turn)
        return Reply(tool_calls=((turn[0], json.dumps(turn[1])),))

    def check(self) -> None:
        """Raise what a step raised; each must have been reached."""
        for failure in self._failures:
            raise failure
        assert not self._steps, f"{len(self._steps)} steps weren't reached"


def _text(content: Any) -> str:
    """A tool's answer as the framework sent it: plain, in parts, or as an object with one result."""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    try:
        held = json.loads(content)
    except ValueError:
        return str(content)
    return str(held["result"]) if isinstance(held, dict) and set(held) == {"result"} else str(content)
