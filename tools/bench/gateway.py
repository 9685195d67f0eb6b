"""`gateway.added.p50_ms`: what the gateway adds to one small request on a connection that is already there.

The same client sends the same request to the same TLS service, through the gateway's process (its own TLS, the plan,
the credential, redaction) and directly; the value is the difference of the two medians, the floor is the direct one.
Nothing is journaled here: `journal.append` says what that adds.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from policies.accounts import Account, Origin
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.plan import GatewayPlan, PlannedRequest
from tests.runtimes.gateway.support import Container, Watch
from tools.bench.measure import Row, in_turn
from tools.bench.upstream import Upstream, upstream
from vault.lease import Lease
from vault.secret import Secret

NAME = "gateway.added.p50_ms"
_ACCOUNT = ("demo", "me")
_REQUESTS = 190  # a plan may hold 200, each once
_TEXT = {"text": "hi"}


class _Direct(Container):
    """The same client without a gateway between."""

    def tunnel(self, host: str, port: int, *, sni: str | None = None, extra: str = "") -> ssl.SSLSocket:
        sock = socket.create_connection((host, port), timeout=20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._trust.wrap_socket(sock, server_hostname=host)


async def measure() -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-b-") as folder, upstream() as service:
        gateway = GatewayClient(Path(folder) / "gw")
        await gateway.start()
        try:
            return (await _measure(gateway, service),)
        finally:
            await gateway.stop()


async def _measure(gateway: GatewayClient, service: Upstream) -> Row:
    place = await gateway.open(_plan(service), [_lease(service)], Watch().observer())
    through, direct = Container(place, gateway.ca_pem), _Direct(place, service.ca_pem)
    # A caller's header doesn't pass the gateway; the direct client sends the credential itself.
    headers = {"Authorization": f"Bearer {secrets.token_hex(16)}"}

    def ask(client: Container, with_headers: dict[str, str]) -> None:
        got = client.request("POST", f"{service.url}/messages", _TEXT, with_headers, keep=True)
        assert got.status == 200, got

    async def value() -> None:
        await asyncio.to_thread(ask, through, {})

    async def floor() -> None:
        await asyncio.to_thread(ask, direct, headers)

    warm = 5
    values, floors = await in_turn(value, floor, rounds=_REQUESTS - warm, seconds=15, warm=warm)
    await gateway.close("a-1")
    return Row(
        name=NAME,
        value=values.p50 - floors.p50,
        floor_name="the same request directly",
        floor=floors.p50,
        p95=values.p95 - floors.p95,
        floor_p95=floors.p95,
        rounds=len(values.each),
    )


def _plan(service: Upstream) -> GatewayPlan:
    requests = tuple(
        PlannedRequest(
            id=f"call-{number}",
            account=_ACCOUNT,
            origin=Origin.parse(service.url),
            base_path=("api",),
            method="POST",
            path=("messages",),
            body=_TEXT,
            body_format="json",
        )
        for number in range(_REQUESTS)
    )
    return GatewayPlan(action_id="a-1", requests=requests, seconds=300.0)


def _lease(service: Upstream) -> Lease:
    account = Account(
        service=_ACCOUNT[0],
        name=_ACCOUNT[1],
        origins=(Origin.parse(service.url),),
        base_url=service.url,
        private=True,
        ca_pem=service.ca_pem,
    )
    expires = datetime.now(UTC) + timedelta(minutes=10)
    return Lease(action_id="a-1", account=account, secret=Secret(secrets.token_hex(16).encode()), expires=expires)
