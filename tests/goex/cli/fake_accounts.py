"""The accounts part of the scripted daemon."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc

from goex.rpc import accounts_pb2 as ab
from goex.rpc import accounts_pb2_grpc as accounts_rpc
from tests.goex.cli.fake import PASSPHRASE, refuse

URL = "https://login.example.org/authorize?client_id=goex&state=s"


def connected(**changes: Any) -> ab.ConnectedAccount:
    facts: dict[str, Any] = {
        "service": "notes",
        "account": "default",
        "kind": "login",
        "scopes": ["notes.read"],
        "expires": "2026-01-02T04:04:05+00:00",
        "renews": True,
        "last_used": "2026-01-02T03:04:05+00:00",
        "narrowed": "token",
        "issuer": "https://login.example.org",
        "origins": ["https://notes.example.org"],
    }
    return ab.ConnectedAccount(**{**facts, **changes})


def offer(**changes: Any) -> ab.OfferReply:
    facts: dict[str, Any] = {
        "service": "notes",
        "account": "default",
        "server": ab.AuthorizationServer(
            issuer="https://login.example.org", token_endpoint="https://login.example.org/token"
        ),
        "said_by": "goex",
        "client_id": "goex",
        "scopes": [
            ab.ScopeOffer(name="notes.read", description="Read notes.", risk="read", granted=True),
            ab.ScopeOffer(name="notes.write", description="Write \x1b[2Jnotes.", risk="write", wanted_by=["a-1 of h"]),
        ],
    }
    return ab.OfferReply(**{**facts, **changes})


class FakeAccounts(accounts_rpc.AccountsServicer):
    """Scripts, and what came in. `events` is what a login sends; without `done` at its end it waits to be left."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.presence = False
        self.offers: list[ab.OfferReply] = [offer()]
        self.events: list[Any] = [
            ab.LoginEvent(progress="Logging in at https://login.example.org as the client goex."),
            ab.LoginEvent(open=ab.OpenBrowser(login_id="l-1", url=URL, scopes=["notes.read"])),
            ab.LoginEvent(done=ab.LoginDone(account=connected())),
        ]
        self.left = False
        self.pasted: list[str] = []
        self.logout = ab.LogoutReply(service="notes", account="default", revoked=True)
        self.list = [
            connected(),
            connected(account="old", refused=["notes.write"], renews=False, trouble="it was taken back. Log in again."),
            connected(service="slack", account="work", kind="token", scopes=[], renews=False, expires="", issuer="",
                      narrowed="gateway", last_used=""),
        ]  # fmt: skip
        self.consents = [ab.Consent(service="notes", account="default", scopes=["notes.write"])]

    def Offer(self, request: Any, context: Any) -> ab.OfferReply:
        self.requests.append(request)
        return self.offers.pop(0) if len(self.offers) > 1 else self.offers[0]

    def Login(self, request: Any, context: Any) -> Iterator[ab.LoginEvent]:
        self._present(request.passphrase, context)
        self.requests.append(request)
        said = list[ab.LoginEvent]()
        # gRPC asks for no further event of a call that was left before it took note that the last one was sent.
        context.add_callback(lambda: setattr(self, "left", said[-1:] != self.events[-1:]))
        for event in self.events:
            if isinstance(event, grpc.StatusCode):
                context.abort(event, "because")
            if event == "wait":
                while context.is_active() and not self.pasted:
                    time.sleep(0.02)
                continue
            said.append(event)
            yield event

    def FinishLogin(self, request: Any, context: Any) -> ab.FinishLoginReply:
        if "state=s" not in request.redirect_url:
            return refuse(context, "invalid", "That isn't the address that this login ends on.", "Copy all of it.", 2)
        self.pasted.append(request.redirect_url)
        return ab.FinishLoginReply()

    def PutCredential(self, request: Any, context: Any) -> ab.ConnectedAccount:
        if not request.secret:
            return refuse(context, "secret", "The credential is empty.", "Type it.", 2, ["https://notes.example.org"])
        self._present(request.passphrase, context)
        self.requests.append(request)
        return connected(service=request.service, account=request.account, kind="token")

    def Logout(self, request: Any, context: Any) -> ab.LogoutReply:
        self._present(request.passphrase, context)
        self.requests.append(request)
        return self.logout

    def ListAccounts(self, request: Any, context: Any) -> ab.ListAccountsReply:
        found = [one for one in self.list if request.service in ("", one.service)]
        return ab.ListAccountsReply(accounts=found)

    def Consents(self, request: Any, context: Any) -> ab.ConsentsReply:
        self.requests.append(request)
        return ab.ConsentsReply(consents=self.consents)

    def _present(self, passphrase: str, context: Any) -> None:
        if self.presence and passphrase != PASSPHRASE:
            refuse(context, "presence", "Show yourself.")
