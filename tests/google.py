"""Google's catalog, whole, for the tests that need it at its size: imported once a run, whichever tests ask for it.

It takes half a minute of two busy cores, so it isn't a fixture: one that several modules import is made once for each.
Whoever changes a file copies it first.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mapper.catalog import Catalog
from mapper.evaluation.alone import Alone, of_package
from mapper.importing.install import import_google
from mapper.importing.model import Report
from mapper.ranking import tables
from mapper.store.reading import Store


@cache
def imported() -> tuple[Path, Report]:
    """The file that an import of the installed package makes, without the search index, and its report."""
    path = _folder() / "catalog.db"
    return path, import_google(path, index=False)


@cache
def indexed() -> Path:
    """The same with what comes with GoEx and the search index. Don't change it."""
    path = Path(shutil.copy(imported()[0], _folder() / "catalog.db"))
    tables.rebuild(path)
    return path


@cache
def cached() -> Path:
    """A folder of caches with the catalog in it that the evaluation of scopes maps over."""
    folder = _folder() / "goex"
    folder.mkdir(mode=0o700)
    of_package(folder).__exit__()
    return folder


@pytest.fixture(scope="session")
def google_catalog() -> Iterator[Catalog]:
    """All documents of the installed package and nothing else, without the search index; the services of the same names
    that come with GoEx keep those names. Skips where the package isn't installed."""
    pytest.importorskip("googleapiclient")
    store = Store(imported()[0])
    yield Catalog({}, store)
    store.close()


@pytest.fixture
def alone() -> Iterator[Alone]:
    """What the evaluation of scopes maps over. Skips where google-api-python-client isn't installed."""
    pytest.importorskip("googleapiclient")
    with of_package(cached()) as opened:
        yield opened


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="goex-google-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
