"""What the tests of imports share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mapper.importing import files
from mapper.importing.reader_process import Apart


@pytest.fixture(scope="module")
def _reader() -> Iterator[Apart]:
    with Apart() as apart:
        yield apart


@pytest.fixture
def one_reader(_reader: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAPI documents and sets of functions are read by one process of a test module, for tests that import hundreds;
    otherwise each import starts its own. What ends it doesn't end the next document: another is started."""

    @contextmanager
    def shared() -> Iterator[Apart]:
        yield _reader

    monkeypatch.setattr(files, "Apart", shared)
