"""A model's server that answers by a script, on this machine: Anthropic's Messages, OpenAI's Responses and Gemini's
generateContent, streamed.

A step is a function of the whole request; it returns what the model does next: a tool's name and arguments, or words.
It runs while the client waits, so a step may look around, and do what a person would do meanwhile.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

Turn = tuple[str, dict[str, Any]] | str
Step = Callable[["Seen"], Turn]


@dataclass
class Seen:
    """What the model was told: the whole request, and what the last tool answered."""

    request: dict[str, Any]
    result: str


@dataclass
class Script:
    """The steps that are left, and what went wrong in one."""

    steps: list[Step]
    address: str = ""
    failures: list[BaseException] = field(default_factory=list)

    def next(self, request: dict[str, Any], result: str) -> Turn:
        if not self.steps or self.failures:
            return "done"
        try:
            return self.steps.pop(0)(Seen(request, result))
        except BaseException as error:
            self.failures.append(error)
            return "failed"

    def check(self) -> None:
        """Raise what a step raised; each must have been reached."""
        for failure in self.failures:
            raise failure
        assert not self.steps, f"{len(self.steps)} steps weren't reached"


@contextmanager
def serving(steps: list[Step]) -> Iterator[Script]:
    script = Script(steps)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if self.path.endswith("/responses"):
                self.events(_responses(script.next(request, _last_output(request))))
            elif "enerateContent" in self.path:
                made = _gemini(script.next(request, _last_response(request)) if request.get("tools") else "{}")
                whole = "stream" not in self.path
                self.reply(
                    made if whole else f"data: {json.dumps(made)}\r\n\r\n",
                    "application/json" if whole else "text/event-stream",
                )
            elif "count_tokens" in self.path or not request.get("tools"):
                self.reply({"input_tokens": 1, **_message([{"type": "text", "text": "ok"}])}, "application/json")
            else:
                self.events(_messages(script.next(request, _last_result(request))))

        def do_GET(self) -> None:
            self.reply({"data": [], "models": []}, "application/json")

        def do_HEAD(self) -> None:
            self.reply({}, "application/json")

        def events(self, events: list[dict[str, Any]]) -> None:
            self.reply("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events), "text/event-stream")

        def reply(self, body: Any, kind: str) -> None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    script.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _message(content: list[dict[str, Any]]) -> dict[str, Any]:
    reason = "tool_use" if any(each["type"] == "tool_use" for each in content) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage}
    return {**made, "stop_reason": reason, "stop_sequence": None}


def _messages(turn: Turn) -> list[dict[str, Any]]:
    block: dict[str, Any]
    if isinstance(turn, str):
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn}
    else:
        block = {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": turn[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn[1])}
    whole = _message([block])
    return [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def _last_result(request: dict[str, Any]) -> str:
    for message in reversed(request.get("messages", [])):
        content = message.get("content")
        for block in reversed(content if isinstance(content, list) else []):
            if block.get("type") == "tool_result":
                return json.dumps(block.get("content"))
    return ""


def _responses(turn: Turn) -> list[dict[str, Any]]:
    item: dict[str, Any]
    if isinstance(turn, str):
        item = {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": turn}]}
    else:
        space, _, name = turn[0].rpartition("/")
        item = {"type": "function_call", "id": "f", "call_id": f"call_{uuid4().hex}", "name": name}
        item |= {"arguments": json.dumps(turn[1]), **({"namespace": space} if space else {})}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": None, "output_tokens_details": None}  # type: ignore[dict-item]
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]


def _last_output(request: dict[str, Any]) -> str:
    found = [each for each in request.get("input", []) if each.get("type") == "function_call_output"]
    return json.dumps(found[-1].get("output")) if found else ""


def _gemini(turn: Turn) -> dict[str, Any]:
    part = {"text": turn} if isinstance(turn, str) else {"functionCall": {"name": turn[0], "args": turn[1]}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


def _last_response(request: dict[str, Any]) -> str:
    for content in reversed(request.get("contents", [])):
        for part in reversed(content.get("parts", [])):
            if "functionResponse" in part:
                return json.dumps(part["functionResponse"].get("response"))
    return ""
