"""Google's catalog alone, built once a run: what the evaluation of scopes maps over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mapper.evaluation.alone import Alone, of_package


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of caches with the catalog in it. Skips where google-api-python-client isn't installed."""
    pytest.importorskip("googleapiclient")
    folder = tmp_path_factory.mktemp("cache") / "goex"
    folder.mkdir(mode=0o700)
    of_package(folder).__exit__()
    return folder


@pytest.fixture
def alone(cache: Path) -> Iterator[Alone]:
    with of_package(cache) as opened:
        yield opened
