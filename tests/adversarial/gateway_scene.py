"""What every attack on the gateway needs: a server that the plan names, another, and a way to try."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Account, Origin
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.server import ActionServer
from tests.runtimes.gateway.support import (
    Box,
    Server,
    TestCA,
    Watch,
    account,
    lease,
    opened,
    plan,
    planned,
    serving,
)

HI = {"text": "hi"}
CA = TestCA()


@dataclass
class Scene:
    """A server that the plan names (`good`), and another of the same account that it doesn't (`other`)."""

    good: Server
    other: Server
    run_dir: Path
    origin: Origin
    elsewhere: Origin
    account: Account

    def plan(self, **changes: Any) -> GatewayPlan:
        return plan(planned(self.origin, **changes))

    async def attack(
        self,
        do: Callable[[Box], Awaitable[Any]],
        server_type: type[ActionServer] = ActionServer,
        what: GatewayPlan | None = None,
        using: Account | None = None,
    ) -> Result:
        result = Result()
        async with opened(what or self.plan(), [lease(using or self.account)], self.run_dir, server_type) as (
            box,
            watch,
        ):
            try:
                result.got = await do(box)
            except (ConnectionError, ssl.SSLError) as error:
                result.error = str(error) or type(error).__name__
            result.watch = watch
        return result


@dataclass
class Result:
    got: Any = None
    error: str = ""
    watch: Watch = field(default_factory=Watch)

    @property
    def reasons(self) -> str:
        return " | ".join(refusal.reason for refusal in self.watch.refusals)


@pytest.fixture(name="scene")
async def scene_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("runtimes.gateway.server.forget_patterns", lambda: None)  # the same secret again and again
    context = CA.context("localhost", "127.0.0.1", "api.example")
    async with serving(context) as good, serving(context) as other:
        origin, elsewhere = Origin("https", "localhost", good.port), Origin("https", "localhost", other.port)
        raw = Origin("https", "127.0.0.1", good.port)
        yield Scene(good, other, tmp_path, origin, elsewhere, account(origin, elsewhere, raw, ca_pem=CA.pem))


def post(url: str, body: Any = HI, **headers: str) -> Callable[[Box], Awaitable[Any]]:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda box: box.request("POST", url, body, fields)
