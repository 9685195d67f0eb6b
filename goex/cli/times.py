"""Times as a person writes them: how long ago, a day, or a moment.

90s  30m  2h  3d  2w        so long ago
today  yesterday  2026-11-01                    a day, of this machine's own time
2026-11-01 09:30  2026-11-01T09:30:00Z          a moment; without a zone, of this machine's own time
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from policies.errors import InvalidInput

_AGO = re.compile(r"([0-9]{1,6}) ?(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def moment(text: str, now: datetime, *, end: bool = False) -> datetime:
    """The moment that `text` means, in UTC; of a day its beginning, or with `end` its end. Raises InvalidInput."""
    wanted = text.strip().lower()
    try:
        if (ago := _AGO.fullmatch(wanted)) is not None:
            return (now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).astimezone(UTC)
        if wanted == "now":
            return now.astimezone(UTC)
        today = now.astimezone().date()
        day = {"today": today, "yesterday": today - timedelta(days=1)}.get(wanted)
        if day is None and _DAY.fullmatch(wanted):
            day = datetime.fromisoformat(wanted).date()
        if day is not None:
            day = day + timedelta(days=1) if end else day
            # A day's beginning is asked of the zone for that day: it may be another offset than today's.
            return datetime(day.year, day.month, day.day).astimezone(UTC)
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{text[:60]!r} isn't a time.",
            next_step="Write it like 2h, 3d, today, yesterday, 2026-11-01 or '2026-11-01 09:30'.",
        ) from None
