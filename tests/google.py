"""The whole of Google's catalog, imported once a run, for the tests that need it at its size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mapper.catalog import Catalog
from mapper.store.reading import Store


@pytest.fixture(scope="session")
def google_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """All documents of the installed package and nothing else, without the search index; the services of the same names
    that come with GoEx keep those names. Skips where the package isn't installed."""
    pytest.importorskip("googleapiclient")
    from mapper.importing.install import import_google

    path: Path = tmp_path_factory.mktemp("google") / "catalog.db"
    import_google(path, index=False)
    store = Store(path)
    yield Catalog({}, store)
    store.close()
