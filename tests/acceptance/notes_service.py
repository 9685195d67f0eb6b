"""A small real API for imports: notes kept in memory behind HTTPS, and the OpenAPI document that describes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.runtimes.gateway.authority import TestCA

CA = TestCA()


@dataclass
class NotesService:
    """What is kept, and every request as (method, target, headers in lower case)."""

    port: int = 0
    notes: list[dict[str, Any]] = field(default_factory=list)
    got: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/v1"

    def document(self, url: str = "") -> str:
        """Its OpenAPI 3.1 document, in YAML."""
        return f"""\
openapi: 3.1.0
info: {{title: Team Notes API, version: 2.1.0, description: Short notes of a team.}}
servers: [{{url: "{url or self.url}"}}]
security: [{{signed: [notes.read]}}]
paths:
  /teams/{{team}}/notes:
    parameters:
      - {{name: team, in: path, required: true, schema: {{type: string}}}}
      - {{name: X-Trace, in: header, schema: {{type: integer}}}}
    get:
      operationId: notes/list
      summary: List the notes of a team
      parameters:
        - {{name: tag, in: query, schema: {{type: array, items: {{type: string}}}}}}
        - {{name: ids, in: query, explode: false, schema: {{type: array, items: {{type: integer}}}}}}
    post:
      operationId: notes/create
      summary: Write a note
      security: [{{signed: [notes.read, notes.write]}}]
      requestBody:
        required: true
        content: {{application/json: {{schema: {{$ref: "#/components/schemas/Note"}}}}}}
components:
  securitySchemes:
    signed:
      type: oauth2
      flows: {{clientCredentials: {{tokenUrl: "https://auth.example.com/token", scopes:
        {{notes.read: See notes, notes.write: Write notes}}}}}}
  schemas:
    Note:
      allOf: [{{$ref: "#/components/schemas/Named"}}]
      required: [text]
      properties:
        text: {{type: string, minLength: 1}}
        answers: {{type: array, items: {{$ref: "#/components/schemas/Note"}}}}
    Named: {{type: object, properties: {{id: {{type: integer, readOnly: true}}, title: {{type: string}}}}}}
"""


@contextmanager
def serving() -> Iterator[NotesService]:
    """Serve until the block ends."""
    service = NotesService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._note_request()
            wanted = parse_qs(urlsplit(self.path).query)
            self._answer({"notes": service.notes, "asked": wanted})

        def do_POST(self) -> None:
            self._note_request()
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.notes.append({**body, "id": len(service.notes) + 1})
            self._answer(service.notes[-1])

        def _note_request(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.got.append((self.command, self.path, headers))

        def _answer(self, body: Any) -> None:
            payload = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = CA.context("127.0.0.1", "localhost").wrap_socket(server.socket, server_side=True)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
