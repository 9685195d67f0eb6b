"""A real HTTP server that speaks the chat-completions protocol, as well or as badly as a test wants.

    with FakeOpenAI(Reply(content='{"calls": []}')) as server:
        ModelProposer(server.url, "fake", lambda: "key")

Replies are given in turn, one a choice, the last one for ever; a function of the request body may stand in their place.
`requests` holds what came, with headers. Runs in a thread on a loopback port of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from uuid import uuid4


@dataclass(frozen=True)
class Reply:
    """One choice: words, or tool calls as (name, arguments as JSON text)."""

    content: str | None = None
    tool_calls: tuple[tuple[str, str], ...] = ()

    def message(self) -> dict[str, Any]:
        made: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            made["tool_calls"] = [
                {"id": f"call_{uuid4().hex}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for name, arguments in self.tool_calls
            ]
        return made


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    path: str
    headers: dict[str, str]  # names in lower case
    text: str
    body: dict[str, Any]


class FakeOpenAI:
    """The server and its manners.

    `ignore_n`: one choice whatever was asked. `refuses`: keys of a request that are answered with status 400.
    `statuses`: statuses of the first requests (anything but 200 is an error). `delay`: seconds before an answer.
    `raw`: this body instead of an answer. `huge`: an answer of that many bytes, without a length. `redirect`: a URL to
    send every request to. `cut`: breaks off in the middle of an answer. `echo_key`: errors repeat the key.
    """

    def __init__(self, *replies: Reply, by: Callable[[dict[str, Any]], Reply] | None = None, **manners: Any) -> None:
        self.replies: tuple[Reply, ...] | Callable[[dict[str, Any]], Reply] = by or replies or (Reply(content=""),)
        self.ignore_n = manners.pop("ignore_n", False)
        self.refuses = frozenset(manners.pop("refuses", ()))
        self.statuses = list(manners.pop("statuses", ()))
        self.delay = manners.pop("delay", 0.0)
        self.raw = manners.pop("raw", None)
        self.huge = manners.pop("huge", 0)
        self.cut = manners.pop("cut", False)
        self.redirect = manners.pop("redirect", "")
        self.echo_key = manners.pop("echo_key", False)
        if manners:
            raise TypeError(f"unknown manners: {sorted(manners)}")
        self.requests: list[Request] = []
        self._given = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeOpenAI:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, body: dict[str, Any]) -> Reply:
        if callable(self.replies):
            return self.replies(body)
        with self._lock:
            reply = self.replies[min(self._given, len(self.replies) - 1)]
            self._given += 1
        return reply

    def _answer(self, body: dict[str, Any]) -> bytes:
        count = 1 if self.ignore_n else int(body.get("n") or 1)
        messages = [self._next(body).message() for _ in range(count)]
        reasons = ["tool_calls" if "tool_calls" in message else "stop" for message in messages]
        choices = [{"index": i, "finish_reason": reasons[i], "message": each} for i, each in enumerate(messages)]
        return json.dumps(
            {"id": "x", "object": "chat.completion", "created": 0, "model": body.get("model"), "choices": choices}
        ).encode()

    def _handler(outer) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                body = json.loads(text)
                headers = {name.lower(): value for name, value in self.headers.items()}
                with outer._lock:
                    outer.requests.append(Request(self.path, headers, text, body))
                    status = outer.statuses.pop(0) if outer.statuses else 200
                time.sleep(outer.delay)
                refused = next((key for key in sorted(outer.refuses) if key in body), None)
                if outer.redirect:
                    self._send(307, b"", {"Location": outer.redirect})
                elif status != 200:
                    said = self.headers.get("Authorization", "") if outer.echo_key else "no"
                    self._send(status, json.dumps({"error": {"message": f"said: {said}"}}).encode())
                elif refused is not None:
                    message = f"'{refused}' isn't supported by this server"
                    self._send(400, json.dumps({"error": {"message": message, "param": refused}}).encode())
                elif outer.cut:
                    self._send(200, b"{", {"Content-Length": "5000"})
                    self.close_connection = True
                elif outer.huge:
                    self._stream(outer.huge)
                else:
                    self._send(200, outer.raw if outer.raw is not None else outer._answer(body))

            def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                if "Content-Length" not in (headers or {}):
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, size: int) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for _ in range(size // 65536 + 1):
                        self.wfile.write(b" " * 65536)
                except OSError:
                    pass  # the client has had enough, which is what the test wants
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
