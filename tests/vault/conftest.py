from __future__ import annotations

from pathlib import Path

import pytest

from policies.accounts import Origin
from tests.vault.support import HandClock, account, ca_pem, create
from vault.secret import Secret
from vault.store import Vault


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder / "vault.db"


@pytest.fixture
def vault(path: Path, clock: HandClock) -> Vault:
    return create(path, clock)


@pytest.fixture
def filled(vault: Vault, path: Path, clock: HandClock) -> Path:
    """Two records of one service that differ in every other column."""
    vault.put(account(), Secret("secret of work"))
    clock.forward(1)
    own = Origin.parse("http://10.0.0.7")
    home = account(
        name="home", private=True, format="file", origins=(own,), base_url="http://10.0.0.7/api", ca_pem=ca_pem()
    )
    vault.put(home, Secret("not yet"))
    vault.put(home, Secret("secret of home"), replace=True)
    vault.seal()
    return path
