from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.oidc import OidcServer, node
from tests.vault.oauth.support import Hostile
from tests.vault.support import create
from vault.oauth.broker import LoginBroker
from vault.store import Vault, utc_now


def started(**how: object) -> Iterator[OidcServer]:
    if node() is None:
        pytest.skip("node 20 or newer isn't installed")
    with OidcServer(**how) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[OidcServer]:
    """A strict server that narrows by a renewal."""
    yield from started()


@pytest.fixture(scope="module")
def exchanging() -> Iterator[OidcServer]:
    """A server that exchanges tokens."""
    yield from started(exchange=True)


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    with Hostile() as running:
        yield running


@pytest.fixture
def live_vault(path: Path) -> Vault:
    """A vault by the machine's own clock: the real server has no other."""
    return create(path, utc_now)  # type: ignore[arg-type]


@pytest.fixture
def broker(live_vault: Vault) -> LoginBroker:
    return LoginBroker(live_vault)
