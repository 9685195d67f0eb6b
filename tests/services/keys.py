"""A small service behind a key or a password: it notes what it got, and gives all of it back as a hostile one would."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import quote


class KeyService:
    """A context manager. `seen` holds (kind, user, secret) of each request that had a credential."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                found = service._credential(self.headers)
                status = 200 if found else 401
                said: dict[str, Any] = {"well": found is not None}
                if found:
                    service.seen.append(found)
                    _, user, secret = found
                    raw = secret.encode()
                    said["echo"] = {
                        "plain": secret,
                        "pair": f"{user}:{secret}",
                        "base64": base64.b64encode(raw).decode(),
                        "hex": raw.hex(),
                        "url": quote(secret, safe=""),
                        "header": str(self.headers.get("Authorization") or self.headers.get("X-Notes-Key")),
                    }
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def document(self, kind: str) -> dict[str, Any]:
        """Its OpenAPI document, behind a password ("basic") or a key ("key")."""
        schemes = {
            "basic": {"type": "http", "scheme": "basic"},
            "key": {"type": "apiKey", "in": "header", "name": "X-Notes-Key"},
        }
        return {
            "openapi": "3.0.3",
            "info": {"title": f"Behind a {kind}", "version": "1"},
            "servers": [{"url": f"{self.url}/{kind}"}],
            "security": [{"it": []}],
            "paths": {"/echo": {"get": {"operationId": "echo", "responses": {"200": {"description": "."}}}}},
            "components": {"securitySchemes": {"it": schemes[kind]}},
        }

    def __enter__(self) -> KeyService:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @staticmethod
    def _credential(headers: Any) -> tuple[str, str, str] | None:
        key = headers.get("X-Notes-Key")
        if key:
            return "key", "", key
        scheme, _, rest = str(headers.get("Authorization", "")).partition(" ")
        if scheme != "Basic":
            return None
        user, _, password = base64.b64decode(rest).decode().partition(":")
        return "basic", user, password
