"""Times as a person writes them, on this machine's own clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from goex.cli.times import moment
from policies.errors import InvalidInput

NOW = datetime(2026, 3, 30, 9, 0, tzinfo=UTC)  # the day after Berlin's clocks went forward


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "end", "meant"),
    [
        ("2h", False, "2026-03-30T07:00:00+00:00"),
        ("90s", False, "2026-03-30T08:58:30+00:00"),
        ("1w", True, "2026-03-23T09:00:00+00:00"),
        ("now", False, "2026-03-30T09:00:00+00:00"),
        ("today", False, "2026-03-29T22:00:00+00:00"),
        ("today", True, "2026-03-30T22:00:00+00:00"),
        ("yesterday", False, "2026-03-28T23:00:00+00:00"),  # still winter time
        ("Yesterday", True, "2026-03-29T22:00:00+00:00"),  # a day of 23 hours
        ("2026-03-29", False, "2026-03-28T23:00:00+00:00"),
        ("2026-03-29", True, "2026-03-29T22:00:00+00:00"),
        ("2026-03-30 09:30", False, "2026-03-30T07:30:00+00:00"),
        ("2026-03-30T09:30:00Z", True, "2026-03-30T09:30:00+00:00"),
    ],
)
def test_what_is_meant(text: str, end: bool, meant: str) -> None:
    assert moment(text, NOW, end=end).isoformat() == meant


@pytest.mark.parametrize(
    "text", ["", "tomorrowish", "2", "h", "-2h", "2026-13-01", "2026-02-30", "999999w", "٢h", "2h\n2h"]
)
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(InvalidInput, match="isn't a time"):
        moment(text, NOW)
