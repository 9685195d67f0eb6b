"""A Slack of the tests that keeps state, for each file that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtimes.rest.support import FakeSlack, serving


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeSlack]:
    service = FakeSlack()
    with serving(service, tmp_path_factory.mktemp("slack")):
        yield service
