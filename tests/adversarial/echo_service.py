"""A service shaped as Slack that says back whatever credential it got, in every encoding that is in common use.

It speaks HTTPS on loopback with a certificate of the tests' own authority. A request whose text begins with "hold" is
answered only after `release`. It can compress what it says, and lead elsewhere with the credential in the address.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.adversarial.hunting import written
from tests.runtimes.gateway.authority import TestCA

CA = TestCA()


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class EchoService:
    """What it got, and how it is to answer. `more` is merged into each answer."""

    port: int = 0
    got: list[Request] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    coding: str = "identity"
    elsewhere: str = ""  # where every request is led to, with the credential in the query
    held: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def hold(self) -> None:
        """From now on requests that ask for it are held, until `release`."""
        self.held.clear()
        self.released.clear()

    def wait_until_held(self) -> None:
        assert self.held.wait(300), "no request came that was to be held"

    def release(self) -> None:
        self.released.set()

    def echo(self, request: Request) -> dict[str, Any]:
        """The answer: all of the request's headers, and the credential in every form."""
        secret = request.headers.get("authorization", "").removeprefix("Bearer ")
        # Backwards is a cipher of its own, and those aren't recognised: SECURITY.md says so.
        encoded = {form: text for form, text in written(secret).items() if form != "backwards"}
        given = request.body if isinstance(request.body, dict) else {}
        return {
            "ok": True,
            "channel": "C0OPS",
            "ts": f"17000000{len(self.got):02}.000100",
            "message": {"text": given.get("text", "")},
            "echo": {"headers": request.headers, "forms": encoded, secret: "as a key", "list": [secret] * 3},
            "pieces": f"token={secret}&x", "wrapped": json.dumps({"a": json.dumps({"b": secret})}),
            **self.more,
        }  # fmt: skip


@contextmanager
def echoing() -> Iterator[EchoService]:
    """Serve until the block ends."""
    service = EchoService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = (
                json.loads(data) if "json" in self.headers.get("content-type", "") else dict(parse_qsl(data.decode()))
            )
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, urlsplit(self.path).path, headers, body)
            service.got.append(request)
            if str(request.body.get("text", "")).startswith("hold"):
                service.held.set()
                service.released.wait(300)
            self._answer(json.dumps(service.echo(request)).encode(), headers.get("authorization", ""))

        def _answer(self, payload: bytes, secret: str) -> None:
            compress: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
            sent = compress[service.coding](payload) if service.coding in compress else payload
            try:
                self.send_response(302 if service.elsewhere else 200)
                if service.elsewhere:
                    found = written(secret.removeprefix("Bearer "))
                    query = "&".join(f"{form}={found[form]}" for form in ("url", "hex", "base64url"))
                    self.send_header("Location", f"{service.elsewhere}?{query}")
                self.send_header("Content-Type", "application/json")
                if service.coding in compress:
                    self.send_header("Content-Encoding", service.coding)
                self.send_header("X-Echo", secret)
                self.send_header("Set-Cookie", f"session={secret.removeprefix('Bearer ')}")
                self.send_header("Link", f'<https://x/?t={written(secret)["url"]}>; rel="next"')
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)
            except OSError:
                self.close_connection = True  # whoever asked is gone

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = reply

        def log_message(self, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            return  # connections that were killed are part of the tests

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = CA.context("127.0.0.1", "localhost").wrap_socket(server.socket, server_side=True)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.release()
        server.shutdown()
        server.server_close()
        thread.join()
