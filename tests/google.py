"""Google's catalog, whole, for the tests that need it at its size: imported once a run, whichever tests ask for it.

It takes half a minute of two busy cores, so it isn't a fixture: one that several modules import is made once for each.
Processes that share a run's work (pytest-xdist) share it too. Whoever changes a file copies it first.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mapper.catalog import Catalog
from mapper.evaluation import alone as catalogs
from mapper.evaluation.alone import Alone, of_package
from mapper.importing.import_report import Report
from mapper.importing.install import import_google
from mapper.ranking import index_tables
from mapper.store.catalog_reader import Store
from mapper.store.catalog_writer import Writer
from tests.support.shared import once


@cache
def imported() -> tuple[Path, Report]:
    """The file that an import of the installed package makes, without the search index, and its report."""

    def make(folder: Path) -> None:
        report = import_google(folder / "catalog.db", index=False)
        (folder / "report").write_bytes(pickle.dumps(report))

    folder = once("imported", make)
    return folder / "catalog.db", pickle.loads((folder / "report").read_bytes())


@cache
def indexed() -> Path:
    """The same with what comes with GoEx and the search index. Don't change it."""

    def make(folder: Path) -> None:
        index_tables.rebuild(Path(shutil.copy(imported()[0], folder / "catalog.db")))

    return once("indexed", make) / "catalog.db"


@cache
def cached() -> Path:
    """A folder of caches with the catalog in it that the evaluation of scopes maps over."""

    def make(folder: Path) -> None:
        place = folder / "goex"
        place.mkdir(mode=0o700)
        twin = place / f"google-{catalogs._imported_stamp()}-twin.db"  # of which the catalog is made
        _name_alone(Path(shutil.copy(imported()[0], twin)))
        of_package(place).__exit__()
        for file in place.glob(f"{twin.name}*"):
            file.unlink()

    return once("cached", make) / "goex"


def _name_alone(path: Path) -> None:
    """Name an import's services as one does that is read without what comes with GoEx: their names are free."""
    with Writer(path) as writer:
        writer._db.execute("DELETE FROM owner")
        writer._touched.update(writer._db.execute("SELECT provider, provider_name FROM document"))
        writer.commit()


@pytest.fixture(scope="session")
def google_catalog() -> Iterator[Catalog]:
    """All documents of the installed package and nothing else, without the search index; the services of the same names
    that come with GoEx keep those names. Skips where the package isn't installed."""
    pytest.importorskip("googleapiclient")
    store = Store(imported()[0])
    yield Catalog({}, store)
    store.close()


@pytest.fixture(scope="module")
def alone() -> Iterator[Alone]:
    """What the evaluation of scopes maps over. Skips where google-api-python-client isn't installed."""
    pytest.importorskip("googleapiclient")
    with of_package(cached()) as opened:
        yield opened
