"""`gateway.stream_mb_per_s`: a large body through the gateway, beside the same body directly from the same service.

One client reads (or writes) over a kept connection: through the gateway's process, with its TLS towards the
container, rules, redaction, and TLS towards the service; and directly, with the service's TLS alone. The value and its
floor are megabytes (10^6 bytes) a second, so more is better and the ratio should be high. `gateway.stream_rss_mb` is
by how many megabytes the gateway's process grew over a body of a gigabyte; its floor is what it took before.
`gateway.rules.added.p50_ms` is what rules add to one small request on a connection that is already there.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from policies.accounts import Account, Origin
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.plan import GatewayPlan, MethodRule, Slot
from tests.runtimes.gateway.support import Container, Watch
from tools.bench.blobs import blobs
from tools.bench.measure import Row, Timings, in_turn, row
from tools.bench.upstream import Upstream
from vault.lease import Lease
from vault.secret import Secret

NAME = "gateway.stream_mb_per_s"
_ACCOUNT = ("demo", "me")
MARK = "demo-goex-demo-me-0123456789abcdefghijkl"
_BODY = 128 * 2**20
_LARGE = 2**30
_BLOCK = 262_144


class Direct(Container):
    """The same client without a gateway between."""

    def tunnel(self, host: str, port: int, *, sni: str | None = None, extra: str = "") -> ssl.SSLSocket:
        sock = socket.create_connection((host, port), timeout=20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._trust.wrap_socket(sock, server_hostname=host)


class Reader:
    """One kept connection that reads or writes large bodies."""

    def __init__(self, container: Container, service: Upstream, token: str) -> None:
        self._tls = container.tunnel("127.0.0.1", service.port)
        self._common = f"Host: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {token}\r\n"
        self._buffer = bytearray(_BLOCK)
        self._blob = secrets.token_bytes(_BLOCK)

    def read(self, size: int) -> float:
        """Seconds for a body of `size` bytes."""
        began = time.perf_counter()
        self.ask(size)
        length, early = self._head()
        assert length == size, length
        left = size - early
        while left > 0:
            got = self._tls.recv_into(self._buffer, min(left, _BLOCK))
            assert got, "the body ended early"
            left -= got
        return time.perf_counter() - began

    def ask(self, size: int) -> None:
        """Ask for a body, and don't read it."""
        self._tls.sendall(f"GET /api/blob/{size} HTTP/1.1\r\n{self._common}\r\n".encode())

    def write(self, size: int) -> float:
        began = time.perf_counter()
        kind = "Content-Type: application/octet-stream\r\n"
        self._tls.sendall(f"POST /api/sink HTTP/1.1\r\n{self._common}{kind}Content-Length: {size}\r\n\r\n".encode())
        for _ in range(size // _BLOCK):
            self._tls.sendall(self._blob)
        length, early = self._head()
        while early < length:
            early += self._tls.recv_into(self._buffer, length - early)
        return time.perf_counter() - began

    def _head(self) -> tuple[int, int]:
        head = b""
        while b"\r\n\r\n" not in head:
            data = self._tls.recv(4096)
            assert data, head
            head += data
        head, _, rest = head.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head + rest
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return int(lengths[0][15:]), len(rest)


async def measure(body: int = _BODY, large: int = _LARGE, rounds: int = 5) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-b-") as folder, blobs() as service:
        gateway = GatewayClient(Path(folder) / "gw")
        await gateway.start()
        try:
            place = await gateway.open(plan(service), [lease(service)], Watch().observer())
            return await _measure(gateway, place, service, body, large, rounds)
        finally:
            await gateway.stop()


async def _measure(
    gateway: GatewayClient, place: str, service: Upstream, body: int, large: int, rounds: int
) -> tuple[Row, ...]:
    through = await asyncio.to_thread(Reader, Container(place, gateway.ca_pem), service, MARK)
    direct = await asyncio.to_thread(Reader, Direct(place, service.ca_pem), service, secrets.token_hex(16))
    rows = [await _rates(NAME, through.read, direct.read, body, rounds)]
    rows.append(await _rates("gateway.upload_mb_per_s", through.write, direct.write, body, rounds))
    rows.append(await _small(through, direct))
    assert gateway.pid is not None
    before = peak_mb(gateway.pid)
    await asyncio.to_thread(through.read, large)
    grown = peak_mb(gateway.pid) - before
    each = Timings((grown,))
    rows.append(row("gateway.stream_rss_mb", each, "the process before", Timings((before,)), unit="MB"))
    return tuple(rows)


async def _rates(
    name: str, value: Callable[[int], float], floor: Callable[[int], float], body: int, rounds: int
) -> Row:
    """In turn, and the first round of both thrown away. The 95th percentile is of the slow end."""
    values: list[float] = []
    floors: list[float] = []
    for number in range(rounds + 1):
        for into, once in ((values, value), (floors, floor)):
            seconds = await asyncio.to_thread(once, body)
            if number:
                into.append(body / 1e6 / seconds)
    through, direct = Timings(tuple(values)), Timings(tuple(floors))
    return Row(
        name=name, value=through.p50, floor_name="the same body directly", floor=direct.p50, unit="MB/s",
        p95=through.percentile(0.05), floor_p95=direct.percentile(0.05), rounds=rounds,
    )  # fmt: skip


async def _small(through: Reader, direct: Reader) -> Row:
    async def value() -> None:
        await asyncio.to_thread(through.read, 100)

    async def floor() -> None:
        await asyncio.to_thread(direct.read, 100)

    values, floors = await in_turn(value, floor, rounds=150, seconds=10, warm=5)
    return Row(
        name="gateway.rules.added.p50_ms", value=values.p50 - floors.p50, floor_name="the same request directly",
        floor=floors.p50, p95=values.p95 - floors.p95, floor_p95=floors.p95, rounds=len(values.each),
    )  # fmt: skip


def peak_mb(pid: int) -> float:
    """The most memory that a process has had at once."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


def plan(service: Upstream) -> GatewayPlan:
    origin = Origin.parse(service.url)
    common = {"account": _ACCOUNT, "origin": origin, "base_path": ("api",), "calls": 10_000, "request_bytes": 2**31}
    return GatewayPlan(
        action_id="a-1",
        rules=(
            MethodRule(id="rule-0", method_id="demo.blob", method="GET", path=("blob", Slot("size")), **common),  # type: ignore[arg-type]
            MethodRule(id="rule-1", method_id="demo.sink", method="POST", path=("sink",), **common),  # type: ignore[arg-type]
        ),
        placeholders={MARK: _ACCOUNT},
        seconds=600.0,
    )


def lease(service: Upstream) -> Lease:
    account = Account(
        service=_ACCOUNT[0], name=_ACCOUNT[1], origins=(Origin.parse(service.url),), base_url=service.url,
        private=True, ca_pem=service.ca_pem,
    )  # fmt: skip
    expires = datetime.now(UTC) + timedelta(minutes=20)
    return Lease(action_id="a-1", account=account, secret=Secret(secrets.token_hex(16).encode()), expires=expires)
