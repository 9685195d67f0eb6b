"""A real sandbox, a real gateway process, and services of the tests' own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from mapper.catalog import Catalog
from runtimes.gateway.client import GatewayClient
from runtimes.rest.runtime import RestRuntime
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.runtimes.rest.support import Bench, FakeGitHub, FakeSlack, account, serving

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a runtime share their file's loop, as they share the runtime's gateway process."""
    for item in items:
        shares = item.path.parent == HERE and pytest_asyncio.is_async_test(item)
        if shares and isinstance(item, pytest.Function) and "runtime" in item.fixturenames:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runtime(sandbox_image: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RestRuntime]:
    folder = tmp_path_factory.mktemp("runtime")
    sandbox = DockerSandbox(f"tests-rest-{os.getpid()}", scratch_dir=folder / "scratch")
    gateway = GatewayClient(folder / "gateway")
    try:
        yield RestRuntime(sandbox, gateway, Catalog.bundled(), Profile(limits=Limits(seconds=200)))
    finally:
        await gateway.stop()
        await sandbox.close()


@pytest.fixture
def slack(tmp_path: Path) -> Iterator[FakeSlack]:
    service = FakeSlack()
    with serving(service, tmp_path, base="/api"):
        yield service


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    service = FakeGitHub()
    with serving(service, tmp_path):
        yield service


@pytest.fixture
def slack_bench(slack: FakeSlack, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "records", (account("slack", slack.url, ca_pem=slack.ca_pem, private=True),))


@pytest.fixture
def github_bench(github: FakeGitHub, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "records", (account("github", github.url, ca_pem=github.ca_pem, private=True),))
