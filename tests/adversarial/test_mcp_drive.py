"""What an MCP server says beside its answers, to the program in its container that asks it. The control is what a
client would have that takes whatever comes first."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[2] / "sandbox-images" / "mcp" / "goex" / "drive.py"
RIGHT = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "right"}]}}
WRONG: dict[str, Any] = {"content": [{"type": "text", "text": "wrong"}]}
BEFORE: dict[str, list[Any]] = {
    "answer_to_another": [{"jsonrpc": "2.0", "id": 7, "result": WRONG}],
    "answer_by_a_text": [{"jsonrpc": "2.0", "id": "1", "result": WRONG}],
    "answer_without_an_id": [{"jsonrpc": "2.0", "result": WRONG}],
    "several_at_once": [[{"jsonrpc": "2.0", "id": 1, "result": WRONG}]],
    "asks_a_model": [{"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}, "result": WRONG}],
    "asks_the_person": [{"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}, "result": WRONG}],
    "other_tools_now": [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "id": 1, "result": WRONG}],
}


def drive() -> ModuleType:
    found = importlib.util.spec_from_file_location("mcp_drive", FILE)
    assert found is not None and found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


class Transport:
    """A server that says these things, whatever it is asked."""

    def __init__(self, said: list[Any]) -> None:
        self.left = [json.dumps(one).encode() for one in said]
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def receive(self) -> bytes:
        return self.left.pop(0)


def called(transport: Transport) -> Any:
    return drive().Client(transport).request("tools/call", {"name": "echo", "arguments": {}})


@pytest.mark.promise(90)
@pytest.mark.parametrize("name", BEFORE)
def test_its_own_answer_counts(name: str) -> None:
    transport = Transport([*BEFORE[name], RIGHT])
    assert called(transport) == RIGHT
    granted = [one for one in transport.sent[1:] if "error" not in one]
    assert not granted  # what it asks for in between is refused


@pytest.mark.parametrize("name", BEFORE)
def test_control(name: str) -> None:
    first = json.loads(Transport([*BEFORE[name], RIGHT]).receive())
    assert WRONG in (first[0] if isinstance(first, list) else first).values()
