"""One database for each file of tests, and what a test makes in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtimes.sql.postgres.support import Shop, again, session
from tests.services.postgres import Made, Postgres


@pytest.fixture(scope="module")
def made(postgres: Postgres) -> Made:
    """One database for this file: making one takes longer than a test."""
    return postgres.make()


@pytest.fixture
def shop(made: Made, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """What the test's `tables(...)` make, with a session on it."""
    again(made, *request.param)
    with session(made) as on:
        yield Shop(made, on)
