"""An MCP server at an address, made with the official SDK: TLS on loopback, and tokens of an authorization server that
are for it alone. It keeps notes, says back the credential that it got, and does something else on demand."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import uvicorn
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.runtimes.rest.support import certificates
from tests.services.oidc import OidcServer

METADATA = "/.well-known/oauth-protected-resource/mcp"


@dataclass
class RemoteServer:
    """`instead` may answer a request in the place of the server; `metadata` replaces what it says of itself."""

    url: str
    ca_pem: str
    oidc: OidcServer
    open: bool = False  # to everybody, without a login
    notes: dict[str, str] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)  # that it got, good or not
    asked: list[tuple[str, str]] = field(default_factory=list)  # method, path
    instead: Callable[[str, str, bytes], Response | None] = lambda method, path, body: None
    after_list: Callable[[], None] = lambda: None
    made: int = 0
    mcp: MCPServer[Any] = field(init=False)

    def __post_init__(self) -> None:
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(self.oidc.issuer),
            resource_server_url=AnyHttpUrl(self.url),
            required_scopes=["notes.write"],
            validate_token_resource=True,
        )
        self.mcp = MCPServer("jotter") if self.open else MCPServer("jotter", auth=auth, token_verifier=self)
        self.mcp.add_tool(self.add_note, description="Keep a note.")
        self.mcp.add_tool(self.remove_note, description="Forget a note.")
        self.mcp.add_tool(self.credential, description="Say the credential back.")

    def add_note(self, text: str) -> dict[str, str]:
        self.made += 1
        self.notes[str(self.made)] = text
        return {"id": str(self.made)}

    def remove_note(self, id: str) -> dict[str, bool]:
        return {"gone": self.notes.pop(id, None) is not None}

    @cached_property
    def _keys(self) -> KeySet:  # of which each takes a while to be read
        return KeySet.import_key_set(self.oidc.keys)

    def credential(self) -> dict[str, str]:
        return {"credential": self.tokens[-1]}

    async def verify_token(self, token: str) -> AccessToken | None:
        """What the SDK asks: whether a token is good, and what it is for."""
        self.tokens.append(token)
        try:
            claims = jwt.decode(token, self._keys).claims
        except (JoseError, ValueError):
            return None
        if claims.get("aud") != self.url or claims.get("iss") != self.oidc.issuer:
            return None
        scopes = str(claims.get("scope", "")).split()
        return AccessToken(token=token, client_id=str(claims["client_id"]), scopes=scopes, resource=self.url)


class _Front:
    """Notes each request, and lets a test answer it."""

    def __init__(self, server: RemoteServer, app: ASGIApp) -> None:
        self.server, self.app = server, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.server.asked.append((scope["method"], scope["path"]))
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        answer = self.server.instead(scope["method"], scope["path"], body)
        if answer is not None:
            await answer(scope, receive, send)
            return
        given = False

        async def again() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)
        if b'"tools/list"' in body:
            self.server.after_list()


@contextmanager
def remote_server(oidc_of: Callable[[str], OidcServer], folder: Path, *, open: bool = False) -> Iterator[RemoteServer]:
    """Serve until the block ends. `oidc_of`: the running authorization server of a resource."""
    folder.mkdir(exist_ok=True)
    ca_pem, chain = certificates(folder)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/mcp"
    made = RemoteServer(url, ca_pem, oidc_of(url), open)
    app = _Front(made, made.mcp.streamable_http_app(json_response=open))
    config = uvicorn.Config(app, ssl_keyfile=str(chain), ssl_certfile=str(chain), log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(20)
        listener.close()


def said(facts: Any, status: int = 200, **headers: str) -> Response:
    """A JSON answer."""
    return Response(
        json.dumps(facts),
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        "application/json",
    )
