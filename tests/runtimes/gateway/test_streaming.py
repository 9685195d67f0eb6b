"""Large bodies through the real gateway process: what it takes of memory doesn't grow with them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from runtimes.gateway.client import GatewayClient
from tests.runtimes.gateway.running import client_fixture  # noqa: F401  a fixture
from tests.runtimes.gateway.support import Container, Watch
from tools.bench.blobs import blobs
from tools.bench.gateway_stream import MARK, Reader, lease, peak_mb, plan
from tools.bench.upstream import Upstream

_BODY = 64 * 2**20
_GROWS = 24  # megabytes that the process may grow by, whatever the length; the body whole would be 64


@pytest.fixture(name="service", scope="module")
def service_fixture() -> Iterator[Upstream]:
    with blobs() as service:
        yield service


@pytest.mark.promise(54)
@pytest.mark.parametrize("way", ["read", "write"])
async def test_memory_stays_while_a_large_body_flows(
    client: GatewayClient, service: Upstream, way: str, thorough: bool
) -> None:
    size = 32 * _BODY if thorough else _BODY
    watch = Watch()
    folder = await client.open(plan(service), [lease(service)], watch.observer())
    reader = await asyncio.to_thread(Reader, Container(folder, client.ca_pem), service, MARK)
    assert client.pid is not None
    await asyncio.to_thread(reader.read, 100_000)
    await asyncio.to_thread(reader.write, 262_144)
    before = peak_mb(client.pid)
    await asyncio.to_thread(getattr(reader, way), size)
    assert peak_mb(client.pid) - before < _GROWS
    assert [one.status for one in watch.exchanges] == [200] * 3
    if way == "read":
        assert watch.exchanges[-1].size == size


async def test_memory_stays_while_nobody_reads(client: GatewayClient, service: Upstream) -> None:
    watch = Watch()
    folder = await client.open(plan(service), [lease(service)], watch.observer())
    container = Container(folder, client.ca_pem)
    readers = [await asyncio.to_thread(Reader, container, service, MARK) for _ in range(4)]
    assert client.pid is not None
    before = peak_mb(client.pid)
    for reader in readers:
        await asyncio.to_thread(reader.ask, _BODY)
    await asyncio.sleep(1)
    assert peak_mb(client.pid) - before < _GROWS


def test_the_figure_would_show_a_body_that_is_kept() -> None:
    script = f"input(); kept = b'x' * {2 * _GROWS * 10**6}; print(len(kept), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        before = peak_mb(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert peak_mb(process.pid) - before > _GROWS
