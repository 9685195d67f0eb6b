"""The real process behind the real client, end to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from policies.accounts import Origin
from runtimes.gateway.client import GatewayClient
from tests.runtimes.gateway.support import (
    CANARY,
    Container,
    TestCA,
    Watch,
    account,
    lease,
    plan,
    planned,
    serving,
)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[GatewayClient]:
    made = GatewayClient(tmp_path / "run")
    await made.start()
    yield made
    await made.stop()


async def test_a_planned_request_reaches_the_server_with_the_secret(client: GatewayClient) -> None:
    ca = TestCA()
    async with serving(ca.context("localhost")) as server:
        origin = Origin("https", "localhost", server.port)
        watch = Watch()
        folder = await client.open(plan(planned(origin)), [lease(account(origin, ca_pem=ca.pem))], watch.observer())
        box = Container(folder, client.ca_pem)
        got = await asyncio.to_thread(box.request, "POST", f"{origin}/api/messages", {"text": "hi"})
        assert (got.status, got.json) == (200, {"ok": True, "id": "m-1"}), got
        assert got.headers["x-goex-well"] == "1"
        assert server.seen[0].headers["authorization"] == f"Bearer {CANARY}"
        assert [kind for kind, _ in watch.events] == ["sending", "answered"]
        await client.close("a1")
        assert not Path(folder).exists()
