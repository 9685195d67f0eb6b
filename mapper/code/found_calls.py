"""What reading a program finds: calls of the catalog, requests that aren't known, hosts, notes.

Arguments are what the request will hold on the wire: `path`, `query` and `fields` (of the body, top level) hold what is
written in the program; names whose value is only known later are in `open`, and `ANY` there says that names may come
with it which aren't known either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.jsonvalue import JsonObject

How = Literal["sdk", "url"]  # by a library's name for the method, or by the address that is written there
Body = Literal["json", "form", "any", "none"]

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCall:
    """One place in the program that calls one method, with one set of values.

    A loop over written values, or a function called with several, gives one for each set. `http` and `body` say how it
    is sent, which needn't be as the catalog has it where an API takes several ways. `base` is "" for the service's own
    base URL, or account's, and else another of its addresses (`CodeFacts.bases`), as for uploads.
    """

    method_id: str
    line: int
    how: How
    http: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: JsonObject = field(default_factory=dict)
    fields: JsonObject = field(default_factory=dict)
    open: tuple[str, ...] = ()
    body: Body = "none"
    base: str = ""

    @property
    def service(self) -> str:
        return self.method_id.partition(".")[0]

    @property
    def arguments(self) -> JsonObject:
        """All that is written there, wherever it goes: for showing."""
        return {**self.path, **self.query, **self.fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A request that is there, and isn't known to be a call of the catalog. `text`: what is known of it."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`calls` are of the services that were named; `others` of services that the catalog knows and nobody named.

    `hosts` are all that addresses in the program name. `notes` say, a sentence each, what wasn't read and why.
    `headers` are values that it gives to what may be a header by which a request means something else.
    """

    calls: tuple[FoundCall, ...] = ()
    others: tuple[FoundCall, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    hosts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
