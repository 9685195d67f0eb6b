"""What reading a program gives, before the catalog is asked: the requests that it sends, as far as they are known."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from mapper.code.abstract_values import Fields, Listed, Lit, Value, choices

Kind = Literal["none", "json", "form", "any"]
MAX_WORK = 300_000  # how much is looked at of one program, with all programs that it holds
MAX_SENT = 2_000  # places of a program that send something
MAX_HEADERS = 64

# Headers by which a request may mean something else, as a program or its client's arguments spell them.
_MEANING = re.compile(
    r"prefer|accept|content[_\-]?type|[\w\-]{1,60}version|revision|[\w\-]{0,60}betas?", re.IGNORECASE | re.ASCII
)


class Enough(Exception):
    """A bound was reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request. `url` is without what `query` holds beside it; `body` are the names at its top level, where it
    has such (`kind`)."""

    line: int
    verb: Value
    url: Value
    query: Fields = field(default_factory=Fields)
    body: Fields = field(default_factory=Fields)
    kind: Kind = "none"
    signed: str = ""  # how it is signed with a secret, in words
    sdk: bool = False  # it is a library's, by the name of a function


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A call by a library's own name for a method.

    `sdk` says whose naming: "slack" (`name` is the API's; `given` is the query where it has no body), "google" (`api`
    is like `gmail:v1`, `name` like `users.messages.send`; `given` are its arguments, `upload` whether it sends media).
    """

    line: int
    sdk: Literal["slack", "google"]
    name: str
    given: Fields
    api: str = ""
    kind: Kind = "none"
    upload: bool = False
    verb: Value = field(default_factory=lambda: Lit(""))
    base: Value | None = None  # another base URL than the service's, where the program gives one


@dataclass(slots=True, kw_only=True)
class Seen:
    """All that was read in a program."""

    requests: list[Request] = field(default_factory=list)
    spoken: list[Spoken] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)  # what sends something that isn't known: line, text
    notes: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)  # texts that begin like an address
    headers: list[tuple[str, str]] = field(default_factory=list)  # what may say what a request means, and its value
    budget: int = MAX_WORK
    spent: int = 0

    def spend(self, work: int) -> None:
        """So much was looked at. Raises Enough where it is more than is done for one program."""
        self.spent += work
        if self.spent > self.budget or len(self.requests) + len(self.spoken) > MAX_SENT:
            raise Enough

    def header(self, name: object, value: Value) -> None:
        """`value` is given under `name`, which may be a header's."""
        if not isinstance(name, str) or not _MEANING.fullmatch(name):
            return
        for one in choices(value):
            items = one.items if isinstance(one, Listed) else (one,)
            self.spend(len(items))
            for item in items:
                said = (name, item.value) if isinstance(item, Lit) and isinstance(item.value, str) else None
                if said is not None and said not in self.headers and len(self.headers) < MAX_HEADERS:
                    self.headers.append(said)

    def note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < 40:
            self.notes.append(text)
