"""Which tests are unit tests (the files of unit.txt, without what is marked as slow), and that they stay so.

Rules: a unit test speaks to no Docker engine, binds no socket to listen on, and starts no program but git. An audit
hook refuses these while one runs, its fixtures included, in `make test` as in `make unit`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).resolve().parent
FILES = frozenset(_HERE.parent / line for line in (_HERE / "unit.txt").read_text().split())
_OTHERS = ("docker", "synapse", "slow", "thorough")
_EVENTS = ("socket.bind", "socket.connect", "subprocess.Popen")
_watched = False


class NotAUnitTest(Exception):
    """A unit test did what only other tests may do."""


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        _watched
        and event in ("socket.bind", "socket.connect", "subprocess.Popen")
        and (why := refused(event, arguments))
    ):
        raise NotAUnitTest(f"{why}: take its file out of tests/unit.txt, or do without.")


def refused(event: str, arguments: tuple[Any, ...]) -> str:
    """What a unit test may not do about this event of `sys.audit`; "" when it may."""
    if event == "socket.bind":
        return f"a unit test listens on {arguments[1]!r}"
    if event == "socket.connect":
        return "a unit test speaks to Docker" if "docker" in str(arguments[1]) else ""
    return "" if Path(str(arguments[0])).name == "git" else f"a unit test starts {arguments[0]!r}"


sys.addaudithook(_hook)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path in FILES and not any(item.get_closest_marker(name) for name in _OTHERS):
            item.add_marker("unit")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _watched
    _watched = item.get_closest_marker("unit") is not None
    try:
        return (yield)
    finally:
        _watched = False
