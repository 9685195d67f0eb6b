"""Dates and times as people say them: "tomorrow at 3pm", "5 May 2026". Found by form, read by dateparser.

What is found is always text of the request; what it means depends on the clock and time zone that the caller gives.
English. An ambiguous order of day and month ("03/04/2026") isn't read at all, since a guess would be a wrong day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta

MOST_CHARACTERS = 2000  # of a request are searched
MOST = 6  # dates of one request

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_CLOCK = r"(?:\d{1,2}:\d{2}(?::\d{2})?\s?(?:am|pm)?|\d{1,2}\s?(?:am|pm)|\d{1,2}\s?o'clock|noon|midnight)"
_DAY = (
    r"(?:\d{4}-\d{2}-\d{2}(?:t\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:z|[+-]\d{2}:?\d{2})?)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}(?:,?\s+\d{{4}})?"
    rf"|{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?(?!\d)"
    rf"|(?:next|this|last|coming)\s+{_WEEKDAY}|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|today|tomorrow|yesterday|tonight|in\s+\d{1,3}\s+(?:minutes?|hours?|days?|weeks?)|\d{1,3}\s+days?\s+ago)"
)
_FOUND = re.compile(
    rf"(?<![\w./-])(?:{_DAY}(?:,?\s+(?:at\s+)?{_CLOCK})?|{_CLOCK}(?:\s+(?:on\s+)?{_DAY})?)(?![\w/-])", re.IGNORECASE
)
_HAS_CLOCK = re.compile(rf"{_CLOCK}|t\d{{2}}:\d{{2}}|\bin\s+\d+\s+(?:minute|hour)", re.IGNORECASE)
_HAS_DAY = re.compile(_DAY, re.IGNORECASE)
_WORD = re.compile(rf"{MONTH}|{_WEEKDAY}|noon|midnight|today|tomorrow|yesterday|tonight", re.IGNORECASE)


def is_word(text: str) -> bool:
    """Whether a word names a month, a day or an hour."""
    return _WORD.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that was named. `whole_day`: no hour was; `words` as they stand in the request, from `start` to `end`."""

    words: str
    at: datetime
    whole_day: bool
    start: int
    end: int

    def rfc3339(self) -> str:
        """As most APIs want it, with the time zone's offset."""
        return self.at.isoformat(timespec="seconds").replace("+00:00", "Z")

    def day(self) -> str:
        """The day alone: 2026-05-01."""
        return self.at.date().isoformat()


def find(text: str, now: datetime) -> tuple[Moment, ...]:
    """The moments that `text` names, in order. `now` must know its time zone.

    A clock time without a day takes the day of the one before it in the request, else the next such time from now.
    """
    found: list[Moment] = []
    for match in list(_FOUND.finditer(text[:MOST_CHARACTERS]))[:MOST]:
        words = match[0]
        bare_clock = _HAS_DAY.search(words) is None
        near = found[-1].at if found and bare_clock else now
        at = _read(words, near)
        if at is None:
            continue
        if bare_clock and not found and at < now:
            at += timedelta(days=1)
        found.append(Moment(words, at, _HAS_CLOCK.search(words) is None, match.start(), match.end()))
    return tuple(found)


def whole(moment: Moment) -> tuple[datetime, datetime]:
    """The beginning of the moment's day, and of the day after it."""
    start = datetime.combine(moment.at.date(), time(), moment.at.tzinfo)
    return start, start + timedelta(days=1)


def _read(words: str, now: datetime) -> datetime | None:
    try:
        exact = datetime.fromisoformat(words.upper())
        return exact if exact.tzinfo is not None else exact.replace(tzinfo=now.tzinfo)
    except ValueError:
        pass
    import dateparser  # costs start-up time, and most requests name no date

    plain = re.sub(r"\b(?:next|this|coming)\s+", "", words, flags=re.IGNORECASE)
    prefer = "past" if re.match(r"last\b", words, re.IGNORECASE) else "future"
    plain = re.sub(r"^last\s+", "", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\btonight\b", "today", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\bnoon\b", "12:00", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\bmidnight\b", "00:00", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\s?o'clock\b", ":00", plain, flags=re.IGNORECASE)
    made = dateparser.parse(
        plain,
        languages=["en"],
        settings={
            "RELATIVE_BASE": now.replace(tzinfo=None),
            "PREFER_DATES_FROM": prefer,
            "RETURN_AS_TIMEZONE_AWARE": False,
        },
    )
    if made is None:
        return None
    if _HAS_CLOCK.search(words) is None:
        made = made.replace(hour=0, minute=0, second=0, microsecond=0)
    return made.replace(microsecond=0, tzinfo=made.tzinfo or now.tzinfo)
