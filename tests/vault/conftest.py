from __future__ import annotations

from pathlib import Path

import pytest

from tests.vault.support import HandClock, create
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
