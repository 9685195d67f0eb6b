"""The real gateway process and a TLS server for it, for tests that look at the process itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Origin
from runtimes.gateway.client import GatewayClient
from tests.runtimes.gateway.support import (
    CANARY,
    Box,
    Container,
    Server,
    TestCA,
    Watch,
    account,
    lease,
    plan,
    planned,
    serving,
)

HI = {"text": "hi"}


@pytest.fixture(name="client")
async def client_fixture(tmp_path: Path) -> AsyncIterator[GatewayClient]:
    made = GatewayClient(tmp_path / "run")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(name="upstream")
async def upstream_fixture() -> AsyncIterator[tuple[Server, Origin, str]]:
    ca = TestCA()
    async with serving(ca.context("localhost")) as server:
        yield server, Origin("https", "localhost", server.port), ca.pem


Up = tuple[Server, Origin, str]


async def begin(client: GatewayClient, up: Up, watch: Watch, action_id: str = "a1", **changes: Any) -> tuple[Box, str]:
    _, origin, ca_pem = up
    secret = changes.pop("secret", CANARY)
    what = plan(planned(origin, **changes), action_id=action_id)
    folder = await client.open(what, [lease(account(origin, ca_pem=ca_pem), action_id, secret)], watch.observer())
    return Box(Container(folder, client.ca_pem)), folder
