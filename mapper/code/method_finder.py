"""Which catalogued calls a program makes, as far as reading it can tell.

Rules: the program is read, never run or imported; sizes, depth and work are bounded, and what lies beyond a bound is
said in a note. What isn't certain is no call: an address that could be two things, a name made while the program runs,
code within text are `unknown` or a note. A call that is missing here is refused while the program runs, so a miss
costs the person a question; a call that is here and not in the program would cost them a permission.

Arguments are what the request will hold on the wire: `path`, `query` and `fields` (of the body, top level) hold what is
written in the program; names whose value is only known later are in `open`, and `ANY` there says that names may come
with it which aren't known either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from mapper.catalog import Catalog
from mapper.code.sent_requests import Seen
from policies.jsonvalue import JsonObject

Language = Literal["python", "shell"]
How = Literal["sdk", "url"]  # by a library's name for the method, or by the address that is written there
Body = Literal["json", "form", "any", "none"]

ANY = "*"
MAX_PROGRAM = 200_000  # characters


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
    """

    calls: tuple[FoundCall, ...] = ()
    others: tuple[FoundCall, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    hosts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find(
    language: Language,
    program: str,
    catalog: Catalog,
    services: Sequence[str],
    bases: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Finding:
    """The calls in `program`. `services` are as in `Code` ("slack", "slack/work"); `bases` are the base URLs of their
    accounts, by the service's name, where they aren't the catalog's own.

    Never raises for what the program holds. Raises StoreUnreadable.
    """
    from mapper.code import languages

    if len(program) > MAX_PROGRAM:
        return Finding(notes=(f"The program is {len(program)} characters long; at most {MAX_PROGRAM} are read.",))
    return matched(languages.read(language, program), catalog, services, bases)


def matched(
    seen: Seen, catalog: Catalog, services: Sequence[str], bases: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Finding:
    """The same, of a program that was read already. Raises StoreUnreadable."""
    from mapper.code import method_match

    return method_match.Matching(catalog, services, bases).finding(seen)
