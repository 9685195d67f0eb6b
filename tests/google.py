"""The whole of Google's catalog, imported once a run, for the tests that need it at its size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mapper.catalog import Catalog


@pytest.fixture(scope="session")
def google_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """All documents of the installed package, without the search index. Skips where the package isn't installed."""
    pytest.importorskip("googleapiclient")
    from mapper.importing.install import import_google

    path: Path = tmp_path_factory.mktemp("google") / "catalog.db"
    import_google(path, index=False)
    catalog = Catalog.open(path)
    yield catalog
    if catalog.store is not None:
        catalog.store.close()
