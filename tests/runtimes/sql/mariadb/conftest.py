"""One server for each module, and a fresh database for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtimes.sql.mariadb.support import PASSWORD, Base
from tests.services.mariadb import MariaDb, find_server


@pytest.fixture(scope="package")
def mariadb() -> Iterator[MariaDb]:
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with MariaDb() as server:
        yield server


@pytest.fixture
def base(mariadb: MariaDb) -> Iterator[Base]:
    with mariadb.database(user="goex", password=PASSWORD) as name:
        yield Base(mariadb, name, "goex")
