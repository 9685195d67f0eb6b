"""A service whose account an action's code may use by a few rules, another server, and a network between them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Account, Origin
from runtimes.gateway import upstream
from runtimes.gateway.plan import GatewayPlan, MethodRule, Slot
from runtimes.gateway.server import ActionServer
from runtimes.gateway.upstream import Upstream
from tests.runtimes.gateway.support import Got, Server, TestCA, Watch, lease, serving

WORK, HOME = ("chat", "work"), ("chat", "home")
MARKS = {account: f"xoxb-goex-{'-'.join(account)}-abcdefghijklmnopqrstuv" for account in (WORK, HOME)}
SECRETS = {account: f"goexcanary-{account[1]}-7Qf3+Zr/9xW-2kLmP0aa" for account in (WORK, HOME)}
CA, STRANGER = TestCA(), TestCA()
NAME = Origin("https", "localhost", 443)  # its port is the server's, later
# What the network of these tests leads to this machine.
NETWORK = {"169.254.169.254": "127.0.0.1", "93.184.216.34": "127.0.0.1", "10.0.0.7": "127.0.0.2"}


def rule(number: int, method: str, *path: str | Slot, **more: Any) -> MethodRule:
    made: dict[str, Any] = {
        "id": f"rule-{number}",
        "method_id": f"chat.method{number}",
        "account": WORK,
        "origin": NAME,
        "base_path": ("api",),
    }
    return MethodRule(method=method, path=path, **{**made, **more})


RULES = (
    rule(0, "POST", "messages", fields={"channel": ("C1",)}, must=("channel",), body_format="json"),
    rule(1, "GET", "users", Slot("id"), query={"limit": ()}, others=(("users", "me"),)),
    rule(2, "PUT", "files", Slot("path", many=True), request_bytes=100_000),
)


@dataclass
class CodeScene:
    """`good` is the service; `other` another server, which no rule has; `inside` one on the private network."""

    good: Server
    other: Server
    inside: Server
    run_dir: Path
    rules: tuple[MethodRule, ...]
    private: bool = True
    lead: list[str] = field(default_factory=list)  # what the service's name leads to, look-up after look-up
    resolved: list[str] = field(default_factory=list)
    got: Got | None = None
    watch: Watch = field(default_factory=Watch)
    forgetful: bool = False

    @property
    def origin(self) -> Origin:
        return Origin("https", "localhost", self.good.port)

    @property
    def elsewhere(self) -> Origin:
        return Origin("https", "localhost", self.other.port)

    @property
    def plan(self) -> GatewayPlan:
        rules = tuple(replace(one, origin=self.origin) for one in self.rules)
        # The second account may do something else, so that its placeholder is one.
        home = rule(20, "GET", "home", account=HOME, origin=self.origin)
        marks = {placeholder: account for account, placeholder in MARKS.items()}
        return GatewayPlan(action_id="a1", rules=(*rules, home), placeholders=marks, seconds=200.0)

    @property
    def leases(self) -> list[Any]:
        return [
            lease(
                Account(
                    service=service, name=name, origins=(self.origin, self.elsewhere), base_url=str(self.origin),
                    private=self.private, ca_pem=CA.pem,
                ),
                secret=SECRETS[service, name],
            )
            for service, name in (WORK, HOME)
        ]  # fmt: skip

    def change(self, **changes: Any) -> None:
        """Take something away from each of the rules."""
        self.rules = tuple(replace(one, **changes) for one in self.rules)

    def lose(self, part: str) -> None:
        """Take something away from each slot."""
        self.rules = tuple(
            replace(
                one, path=tuple(replace(each, **{part: ""}) if isinstance(each, Slot) else each for each in one.path)
            )
            for one in self.rules
        )

    def forget(self) -> None:
        """Look a name up anew each time, and connect anew."""
        self.forgetful = True

    def trust_anybody(self, patch: pytest.MonkeyPatch) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        patch.setattr(upstream, "client_context", lambda *_, **__: context)

    async def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        if not self.lead:
            return ["127.0.0.1"]
        return [self.lead.pop(0) if len(self.lead) > 1 else self.lead[0]]

    @property
    def server_type(self) -> type[ActionServer]:
        scene = self

        class Forgetful(Upstream):
            async def addresses(self, origin: Origin, account: Account) -> list[str]:
                if scene.forgetful:
                    self._pinned.clear()
                return await super().addresses(origin, account)

        class Networked(ActionServer):
            def make_upstream(self) -> Upstream:
                return Forgetful(scene.resolve)

        return Networked


@cache
def _context(stranger: bool) -> ssl.SSLContext:
    return (STRANGER if stranger else CA).context("localhost", "127.0.0.1")


@asynccontextmanager
async def code_scene(run_dir: Path, patch: pytest.MonkeyPatch, *, stranger: bool = False) -> AsyncIterator[CodeScene]:
    real = upstream.Upstream._open

    async def through(made: Upstream, address: str, origin: Origin, account: Account) -> upstream.Connection:
        return await real(made, NETWORK.get(address, address), origin, account)

    patch.setattr("runtimes.gateway.server.forget_patterns", lambda: None)  # the same secrets again and again
    patch.setattr(Upstream, "_open", through)
    patch.setattr(upstream, "_KEEP_SECONDS", -1.0)  # each request connects
    async with (
        serving(_context(stranger)) as good,
        serving(_context(False)) as other,
        serving(_context(False), host="127.0.0.2", port=good.port) as inside,
    ):
        yield CodeScene(good, other, inside, run_dir, RULES)
        await asyncio.sleep(0)
