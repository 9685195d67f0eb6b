"""Stand-ins for the services that `programs` uses: one TLS server for all their hosts, which answers as each API does
as far as the programs go, and only to the account's own secret.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BASIC = {"jira": "ada@example.org", "twilio": "AC1"}  # services that take a user and a password
HOSTS = {
    "slack": "slack.com",
    "github": "api.github.com",
    "discord": "discord.com",
    "google_calendar": "www.googleapis.com",
    "openai": "api.openai.com",
    "notion": "api.notion.com",
    "stripe": "api.stripe.com",
    "gitlab": "gitlab.com",
    "jira": "acme.atlassian.net",
    "sendgrid": "api.sendgrid.com",
    "twilio": "api.twilio.com",
}
_ISSUES = [
    {"id": n, "number": n, "title": title, "state": "open", "body_html": '<p>See <a href="https://example.org/log">',
     "url": f"https://api.github.com/repos/octo/hello/issues/{n}"}
    for n, title in ((7, "Broken"), (8, "Slow"))
]  # fmt: skip
_HELLO = {"id": 1, "name": "hello", "full_name": "octo/hello", "url": "https://api.github.com/repos/octo/hello"}
_POSTED = {"ok": True, "channel": "C024BE91L", "ts": "1700000000.000100", "message": {"text": "hi"}}
_COMPLETION = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "forty-two"}}]}  # fmt: skip
_EVENT = {"id": "ev1", "summary": "Standup", "start": {"date": "2026-01-05"}}

# (service, method, path as a pattern) -> status and answer
ANSWERS: tuple[tuple[str, str, str, int, Any], ...] = (
    ("slack", "POST", r"/api/chat\.postMessage", 200, _POSTED),
    ("slack", "GET", r"/api/conversations\.history", 200,
     {"ok": True, "messages": [{"text": "hello"}, {"text": "world"}]}),
    ("github", "GET", r"/repos/octo/hello", 200, _HELLO),
    ("github", "GET", r"/repos/octo/hello/issues", 200, _ISSUES),
    ("github", "POST", r"/repos/octo/hello/issues", 201, {**_ISSUES[0], "number": 9}),
    ("github", "GET", r"/repos/octo/hello/issues/7", 200, _ISSUES[0]),
    ("github", "GET", r"/repos/octo/hello/issues/8", 200, _ISSUES[1]),
    ("github", "PATCH", r"/repos/octo/hello/issues/8", 200, {**_ISSUES[1], "state": "closed"}),
    ("github", "POST", r"/repos/octo/hello/issues/7/comments", 201, {"id": 1, "body": "Looking into it"}),
    ("github", "POST", r"/graphql", 200,
     {"data": {"repository": {"issues": {"nodes": _ISSUES}}}}),
    ("discord", "POST", r"/api/v10/channels/\d+/messages", 200, {"id": "334385199974967042"}),
    ("google_calendar", "GET", r"/calendar/v3/calendars/primary/events", 200, {"items": [_EVENT]}),
    ("google_calendar", "POST", r"/calendar/v3/calendars/primary/events", 200, {**_EVENT, "id": "ev2"}),
    ("openai", "POST", r"/v1/chat/completions", 200, _COMPLETION),
    ("notion", "GET", r"/v1/pages/\w+", 200, {"object": "page", "id": "b55c9c91384d452b81dbd1ef79372b75"}),
    ("stripe", "POST", r"/v1/customers", 200, {"id": "cus_1", "object": "customer"}),
    ("stripe", "GET", r"/v1/invoices", 200,
     {"object": "list", "data": [{"id": "in_1", "object": "invoice"}], "has_more": False, "url": "/v1/invoices"}),
    ("gitlab", "GET", r"/api/v4/projects/13083", 200, {"id": 13083, "name": "gitlab-ce"}),
    ("gitlab", "GET", r"/api/v4/projects/13083/repository/branches", 200, [{"name": "main"}]),
    ("jira", "GET", r"/rest/api/2/serverInfo", 200, {"versionNumbers": [1001, 0, 0], "deploymentType": "Cloud"}),
    ("jira", "GET", r"/rest/api/2/field", 200, []),
    ("jira", "GET", r"/rest/api/2/issue/OPS-12", 200,
     {"id": "1", "key": "OPS-12", "fields": {"summary": "Rotate the keys"}}),
    ("jira", "POST", r"/rest/api/2/issue/OPS-12/comment", 201, {"id": "2", "body": "Done in v1.2.3"}),
    ("sendgrid", "POST", r"/v3/mail/send", 202, None),
    ("twilio", "POST", r"/2010-04-01/Accounts/AC1/Messages\.json", 201, {"sid": "SM1", "status": "queued"}),
)  # fmt: skip


def secret_of(service: str) -> str:
    """The secret of the service's account, made up."""
    return f"real-{service}-5f0c1e9b7a3d4482"


def credential_of(service: str) -> str:
    """What is sealed in the vault for the account."""
    return f"{BASIC[service]}:{secret_of(service)}" if service in BASIC else secret_of(service)


@dataclass
class Services:
    """The server. `sent` are the requests that it answered, as `METHOD host/path`, since it was last emptied; `strange`
    says where a secret or a placeholder was that has no place there."""

    sent: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    def start(self, context: ssl.SSLContext, port: int = 443) -> None:
        """Serve on loopback."""
        services = self

        class Handler(_Handler):
            def answer(self) -> None:
                services._answer(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Serve no longer."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _answer(self, request: _Handler) -> None:
        host, path = request.headers.get("host", ""), request.path.partition("?")[0]
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        service = next((name for name, at in HOSTS.items() if at == host), "")
        what = f"{request.command} {host}{path}"
        status, said = 404, {"message": "Not Found"}
        for name, method, pattern, good, answer in ANSWERS:
            if (name, method) == (service, request.command) and re.fullmatch(pattern, path):
                status, said = good, answer
        if secret_of(service) not in _credentials(request) or secret_of(service).encode() in body:
            status, said = 401, {"message": "Bad credentials"}
        (self.sent if status < 400 else self.refused).append(what)
        request.reply(status, b"" if said is None else json.dumps(said).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _credentials(request: _Handler) -> str:
    """Every header's value; that of Basic also decoded."""
    found = list(request.headers.values())
    for value in request.headers.get_all("authorization", []):
        kind, _, coded = value.partition(" ")
        if kind.lower() == "basic":
            with contextlib.suppress(ValueError):
                found.append(base64.b64decode(coded).decode("utf-8", "replace"))
    return "\n".join(found)
