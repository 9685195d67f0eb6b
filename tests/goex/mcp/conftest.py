"""One daemon for each file of these tests, with a service of notes that is connected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import daemon, folder
from tests.support import mcp
from tests.support.daemon import Daemon

__all__ = ["daemon", "folder"]


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    """An agent's, with an account of Slack's that nothing is ever sent with."""
    mcp.connect_slack(daemon)
    return daemon.add_agent("bot")


@pytest.fixture(scope="module")
def address(daemon: Daemon) -> Iterator[str]:
    """Of `goex mcp --http`."""
    with mcp.serving(daemon) as served:
        yield served
