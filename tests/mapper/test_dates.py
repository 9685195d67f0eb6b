"""Dates and times in a request's words: the day that is meant, or none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from mapper import dates


def found(text: str, now: datetime) -> list[str]:
    return [each.rfc3339() for each in dates.find(text, now)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("30 november", "2026-11-30T00:00:00Z"),  # today
        ("at 9am", "2026-12-01T09:00:00Z"),  # past, on a month's last day
        ("midnight", "2026-12-01T00:00:00Z"),
        ("the day after tomorrow at noon", "2026-12-02T12:00:00Z"),
        ("the day before yesterday", "2026-11-28T00:00:00Z"),
        ("29 february", "2028-02-29T00:00:00Z"),
        ("in 90 minutes", "2026-11-30T13:30:00Z"),
        ("in 365 days", "2027-11-30T00:00:00Z"),
        ("730 days ago", "2024-11-30T00:00:00Z"),
        ("2026-13-01", None),
        ("2027-02-29", None),
        ("31 april", None),
        ("9999-12-31", None),
    ],
)
def test_the_day_that_is_meant(text: str, wanted: str | None) -> None:
    assert found(text, datetime(2026, 11, 30, 12, tzinfo=UTC)) == ([wanted] if wanted else [])


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_each_day_has_its_own_offset_in_the_machines_zone() -> None:
    now = datetime(2027, 3, 27, 12, tzinfo=dates.LOCAL)  # the clocks change in the night
    assert found("tomorrow at 3pm", now) == ["2027-03-28T15:00:00+02:00"]
    assert found("5 november at 3pm", now) == ["2027-11-05T15:00:00+01:00"]
    assert found("in 24 hours", now) == ["2027-03-28T13:00:00+02:00"]
    (day,) = dates.find("tomorrow", now)
    assert [each.isoformat() for each in dates.whole(day)] == ["2027-03-28T00:00:00+01:00", "2027-03-29T00:00:00+02:00"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("events of next week", "next week"),
        ("events in march", "in march"),
        ("events before Friday", "before Friday"),
        ("Friday of next week", "next week"),
        ("events on Friday at 3pm", ""),
        ("events on March 1st", ""),
    ],
)
def test_a_time_that_is_not_read(text: str, wanted: str) -> None:
    assert dates.unread(text) == wanted
