"""A daemon with a database and an agent, the page beside it, and one browser for each file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.conftest import daemon
from tests.support.daemon import Daemon
from tests.support.page import WebPage, add_shop, chromium, page_of
from tests.support.waiting import SECONDS

__all__ = ["daemon"]


@pytest.fixture(scope="module")
def shop(daemon: Daemon) -> Path:
    return add_shop(daemon)


@pytest.fixture(scope="module")
def token(daemon: Daemon, shop: Path) -> str:
    return daemon.add_agent("bot")


@pytest.fixture(scope="module")
def web(daemon: Daemon) -> Iterator[WebPage]:
    with page_of(daemon) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture
def tab(daemon: Daemon, browser: Any, web: WebPage) -> Iterator[Any]:
    """A tab that came by a link. What its console says is an error of the test. No question is left for the next."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    made = context.new_page()
    made.set_default_timeout(SECONDS * 1000)
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text) if _is_wrong(message) else None)
    made.on("pageerror", lambda error: said.append(str(error)))
    made.goto(web.link())
    made.wait_for_selector("nav a")
    yield made
    context.close()
    daemon.person("DenyAll", pb.DenyAllRequest(agent="bot"))
    assert not said


def _is_wrong(message: Any) -> bool:
    """Whether the console tells of a mistake of the page's; that a call was refused is told there, too."""
    return message.type == "error" and "Failed to load resource" not in message.text
