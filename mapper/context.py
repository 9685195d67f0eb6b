"""What a model is told about the moment and the person, beside the request: facts to read dates and names by.

Rules: it is a value that is passed in, made once for a mapping, so that all its samples have the same words; it travels
as JSON inside the user message, like the request; nothing in it is a secret, and what isn't configured to be told isn't
there. Accounts and defaults are for requests of the person alone: what a model answers to an agent's words, the agent
gets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

FACTS = ("time", "locale", "accounts", "about_me")  # what can be told, as [model] context names it
MAX_ACCOUNTS = 40
MAX_ABOUT = 2_000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The facts. `now` has a zone, `zone` is its name ("Europe/Berlin", "" where it isn't known); `accounts` are
    "service/name"; `about_me` is what the person wrote down, like "my boss is ann@example.org"; `asked`: what a model
    asked about this request before, and the answer."""

    now: datetime | None = None
    zone: str = ""
    locale: str = ""
    accounts: tuple[str, ...] = ()
    about_me: str = ""
    asked: tuple[str, str] | None = None

    def told(self, facts: Collection[str], *, to_the_person: bool) -> Context:
        """Only what is to be told: of these `facts`, and what is the person's own only for their own requests."""
        private = to_the_person
        return Context(
            now=self.now if "time" in facts else None,
            zone=self.zone if "time" in facts else "",
            locale=self.locale if "locale" in facts else "",
            accounts=self.accounts[:MAX_ACCOUNTS] if "accounts" in facts and private else (),
            about_me=self.about_me[:MAX_ABOUT] if "about_me" in facts and private else "",
        )

    def at(self, now: datetime, zone: tzinfo | None = None) -> Context:
        """The same at that moment, in `zone` (None: the machine's)."""
        return replace(self, now=now.astimezone(zone))

    def to_json(self) -> dict[str, Any]:
        """Only what there is to say; the time to the minute, with its weekday."""
        made: dict[str, Any] = {}
        if self.now is not None:
            made["now"] = f"{self.now:%A} {self.now.isoformat(timespec='minutes')}"
        for name in ("zone", "locale", "about_me"):
            if getattr(self, name):
                made[name] = getattr(self, name)
        if self.accounts:
            made["accounts"] = list(self.accounts)
        if self.asked is not None:
            made["asked"] = dict(zip(("question", "answer"), self.asked, strict=True))
        return made


NOTHING_TOLD = Context()
