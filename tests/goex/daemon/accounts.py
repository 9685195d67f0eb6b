"""What tests of connected accounts stand on: a real authorization server with a notes API, imported into a real
daemon's catalog, and a person who logs in there with a browser of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from goex.rpc import accounts_pb2 as ab
from goex.rpc import goex_pb2 as pb
from tests.services.oidc import Browser, OidcServer
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, problem

SERVICE = "notes"


def document(server: OidcServer, *, issuer: bool = True) -> dict[str, Any]:
    """The API of the test server as its provider would describe it."""

    def operation(name: str, *scopes: str, **more: Any) -> dict[str, Any]:
        security = [{"login": [scope]} for scope in scopes]
        return {"operationId": name, "security": security, "responses": {"200": {"description": "."}}, **more}

    note = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    body = {"required": True, "content": {"application/json": {"schema": note}}}
    place = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    scheme: dict[str, Any] = {
        "type": "openIdConnect",
        "openIdConnectUrl": f"{server.issuer}/.well-known/openid-configuration",
    }
    if not issuer:
        flow = {
            "authorizationUrl": f"{server.issuer}/auth",
            "tokenUrl": f"{server.issuer}/token",
            "scopes": {"notes.read": "Read notes.", "notes.write": "Write notes.", "notes.delete": "Delete notes."},
        }
        scheme = {"type": "oauth2", "flows": {"authorizationCode": flow}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Notes", "version": "1"},
        "servers": [{"url": f"{server.issuer}/api"}],
        "paths": {
            "/me": {"get": operation("me", "notes.read")},
            "/notes": {
                "get": operation("list", "notes.read"),
                "post": operation("add", "notes.write", requestBody=body),
            },
            "/notes/{id}": {"delete": operation("remove", "notes.delete", parameters=[place])},
        },
        "components": {"securitySchemes": {"login": scheme}},
    }


@dataclass
class Person:
    """A person with a daemon, a browser, and accounts at one server."""

    daemon: Daemon
    server: OidcServer
    browser: Browser = field(init=False)

    def __post_init__(self) -> None:
        self.browser = Browser(self.server)

    def catalogue(self, **how: Any) -> None:
        """Import the API's document."""
        file = self.daemon.home / "notes.json"
        file.write_text(json.dumps(document(self.server, **how)))
        done = self.daemon.goex("catalog", "import", "openapi", str(file), "--name", SERVICE)
        assert done.returncode == 0, done.stderr

    # ---- the wire

    def call(self, method: str, request: Any, *, socket: Any = None) -> Any:
        """One unary call of the Accounts service. Raises grpc.RpcError."""
        reply = getattr(ab, ab.DESCRIPTOR.services_by_name["Accounts"].methods_by_name[method].output_type.name)
        call = self.daemon.channel(socket or self.daemon.user_socket).unary_unary(
            f"/goex.v1.Accounts/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        return call(request, timeout=300)

    def stream(self, request: ab.LoginRequest, *, socket: Any = None) -> Any:
        call = self.daemon.channel(socket or self.daemon.user_socket).unary_stream(
            "/goex.v1.Accounts/Login",
            request_serializer=ab.LoginRequest.SerializeToString,
            response_deserializer=ab.LoginEvent.FromString,
        )
        return call(request, timeout=300)

    def request(self, *scopes: str, account: str = "default", **more: Any) -> ab.LoginRequest:
        """A login that the person would be let into: the import's issuer is confirmed, presence is shown."""
        facts: dict[str, Any] = {
            "service": SERVICE,
            "account": account,
            "place": ab.AccountPlace(private=True),
            "confirmed": ab.AuthorizationServer(issuer=self.server.issuer),
            "client_id": "goex",
            "scopes": scopes,
            "passphrase": APPROVAL_PASSPHRASE,
        }
        return ab.LoginRequest(**{**facts, **more})

    def login(
        self, *scopes: str, browse: Callable[[str], Any] | None = None, browser: Browser | None = None, **more: Any
    ) -> ab.LoginDone:
        """Log in, in the browser. `browse` does otherwise what a person does with the address."""
        for event in self.stream(self.request(*scopes, **more)):
            match event.WhichOneof("what"):
                case "open":
                    (browse or (browser or self.browser).visit)(event.open.url)
                case "code":
                    self.browser.enter_code(event.code.verification_url, event.code.user_code)
                case "done":
                    done: ab.LoginDone = event.done
                    return done
        raise AssertionError("The login ended without a word.")

    def accounts(self) -> dict[str, ab.ConnectedAccount]:
        reply = self.call("ListAccounts", ab.ListAccountsRequest())
        return {one.account: one for one in reply.accounts}

    def logout(self, account: str = "") -> ab.LogoutReply:
        request = ab.LogoutRequest(service=SERVICE, account=account, passphrase=APPROVAL_PASSPHRASE)
        reply: ab.LogoutReply = self.call("Logout", request)
        return reply

    # ---- actions

    def journey(self, method: str, account: str = "", *, token: str = "", **arguments: Any) -> Journey:
        call = pb.Call(service=SERVICE, method=method, arguments_json=json.dumps(arguments), account=account)
        request = pb.ExecuteRequest(calls=pb.Calls(calls=[call]))
        return Journey(self.daemon, request, token=token, person=not token)

    def run(self, method: str, account: str = "", **arguments: Any) -> pb.Finished:
        """Ask for it, say yes, and follow it to its end."""
        return self.journey(method, account, **arguments).approve()

    def me(self, account: str = "") -> dict[str, Any]:
        """What the service says of the token that an action came with (`scope`: what opens something there)."""
        finished = self.run("me", account)
        assert not finished.HasField("problem"), finished.problem
        (result,) = json.loads(finished.action.outcome_json)["results"]
        found: dict[str, Any] = result["body"]
        return {**found, "scope": found["scope"].replace("offline_access", "").strip()}

    def refused(self, method: str, account: str = "", **arguments: Any) -> pb.Problem:
        """The problem of an action that isn't even asked about."""
        finished = None
        for event in self.journey(method, account, **arguments)._events:
            assert event.WhichOneof("what") != "asking", "It was asked about."
            if event.WhichOneof("what") == "finished":
                finished = event.finished
        assert finished is not None
        return finished.problem


@contextmanager
def refuses(code: str) -> Iterator[list[pb.Problem]]:
    """Within it a call must be refused with this code; what is yielded then holds the problem."""
    found: list[pb.Problem] = []
    try:
        yield found
    except grpc.RpcError as error:
        found.append(problem(error))
        assert found[0].code == code, found[0]
        return
    raise AssertionError("It wasn't refused.")
