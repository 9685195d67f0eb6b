"""Dates and times as people say them: "tomorrow at 3pm", "5 May 2026". Found by form, read by dateparser.

What is found is always text of the request; what it means depends on the clock and time zone that the caller gives.
English. An ambiguous order of day and month ("03/04/2026") isn't read at all, since a guess would be a wrong day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

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
    r"|(?:the\s+)?day\s+(?:after\s+tomorrow|before\s+yesterday)"
    r"|today|tomorrow|yesterday|tonight|in\s+\d{1,3}\s+(?:minutes?|hours?|days?|weeks?)|\d{1,3}\s+days?\s+ago)"
)
_FOUND = re.compile(
    rf"(?<![\w./-])(?:{_DAY}(?:,?\s+(?:at\s+)?{_CLOCK})?|{_CLOCK}(?:\s+(?:on\s+)?{_DAY})?)(?![\w/-])", re.IGNORECASE
)
_HAS_CLOCK = re.compile(rf"{_CLOCK}|t\d{{2}}:\d{{2}}|\bin\s+\d+\s+(?:minute|hour)", re.IGNORECASE)
_HAS_DAY = re.compile(_DAY, re.IGNORECASE)
_HAS_MONTH = re.compile(rf"\b{MONTH}\b", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_UNREAD = re.compile(
    rf"\b(?:(?:next|this|last|past|coming|following)\s+(?:\w+\s+)?(?:day|week|month|quarter|year)s?"
    rf"|(?:week|fort)(?:end|night)s?|(?:in|since|until|till|during|of)\s+{MONTH}|\d{{1,2}}(?:st|nd|rd|th)"
    rf"|(?:before|after|since|until|till|by|not|except)\s+(?:on\s+|the\s+)?(?:{_DAY}|{_CLOCK}))(?![\w/-])",
    re.IGNORECASE,
)
_IN_HOURS = re.compile(r"in\s+(\d{1,3})\s+(minute|hour)s?", re.IGNORECASE)
_YEARS = range(1900, 2200)  # beyond, clocks and calendars give out
_WORD = re.compile(rf"{MONTH}|{_WEEKDAY}|noon|midnight|today|tomorrow|yesterday|tonight", re.IGNORECASE)


class _Local(tzinfo):
    """The machine's zone, with the offset that each day has there: not today's, once the clocks have changed."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> None:
        return None

    def fromutc(self, dt: datetime) -> datetime:
        return dt.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


LOCAL = _Local()


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


def unread(text: str) -> str:
    """The first time in `text` that `find` doesn't read, or reads as another: "next week", "after Friday"; or ""."""
    text = text[:MOST_CHARACTERS]
    spans = [each.span() for each in _FOUND.finditer(text)]
    for found in _UNREAD.finditer(text):
        if not any(start <= found.start() and found.end() <= end for start, end in spans):
            return found[0]
    return ""


def whole(moment: Moment) -> tuple[datetime, datetime]:
    """The beginning of the moment's day, and of the day after it."""
    start = datetime.combine(moment.at.date(), time(), moment.at.tzinfo)
    return start, start + timedelta(days=1)


def _read(words: str, now: datetime) -> datetime | None:
    try:
        exact = datetime.fromisoformat(words.upper())
        made: datetime | None = exact if exact.tzinfo is not None else exact.replace(tzinfo=now.tzinfo)
    except ValueError:
        made = _parsed(words, now)
    return made if made is not None and made.year in _YEARS else None


def _parsed(words: str, now: datetime) -> datetime | None:
    if iso := _ISO.match(words):
        try:
            date.fromisoformat(iso[0])
        except ValueError:
            return None  # dateparser would take the 13th month for a day
    if hours := _IN_HOURS.fullmatch(words):
        length = timedelta(**{f"{hours[2].lower()}s": int(hours[1])})
        return (now.astimezone(UTC) + length).astimezone(now.tzinfo).replace(microsecond=0)
    import dateparser  # costs start-up time, and most requests name no date

    plain = re.sub(r"\b(?:next|this|coming)\s+", "", words, flags=re.IGNORECASE)
    prefer = "past" if re.match(r"last\b", words, re.IGNORECASE) else "future"
    plain = re.sub(r"^last\s+", "", plain, flags=re.IGNORECASE)
    plain = re.sub(r"(?:the\s+)?day\s+after\s+tomorrow\b", "in 2 days", plain, flags=re.IGNORECASE)
    plain = re.sub(r"(?:the\s+)?day\s+before\s+yesterday\b", "2 days ago", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\btonight\b", "today", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\bnoon\b", "12:00", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\bmidnight\b", "00:00", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\s?o'clock\b", ":00", plain, flags=re.IGNORECASE)
    if _HAS_DAY.search(words) is None:
        prefer = "current_period"  # a day's end is also a month's, which dateparser doesn't see
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
    if _HAS_MONTH.search(words) and (made.month, made.day) == (now.month, now.day) and str(made.year) not in words:
        made = made.replace(year=now.year)  # today, which dateparser takes for past
    if _HAS_CLOCK.search(words) is None:
        made = made.replace(hour=0, minute=0, second=0, microsecond=0)
    return made.replace(microsecond=0, tzinfo=made.tzinfo or now.tzinfo)
