"""Which catalogued calls a program makes, as far as reading it can tell.

Rules: the program is read, never run or imported; sizes, depth and work are bounded, and what lies beyond a bound is
said in a note. What isn't certain is no call: an address that could be two things, a name made while the program runs,
code within text are `unknown` or a note. A call that is missing here is refused while the program runs, so a miss
costs the person a question; a call that is here and not in the program would cost them a permission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mapper.catalog import Catalog
from mapper.code import method_match
from mapper.code.found_calls import Finding
from mapper.code.python import TOO_MUCH
from mapper.code.sent_requests import Seen
from policies.actions import Language

MAX_PROGRAM = 200_000  # characters


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
    try:
        seen = languages.read(language, program)
    except RecursionError:
        return Finding(notes=(TOO_MUCH,))
    return matched(seen, catalog, services, bases)


def matched(
    seen: Seen, catalog: Catalog, services: Sequence[str], bases: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Finding:
    """The same, of a program that was read already. Raises StoreUnreadable."""
    try:
        return method_match.Matching(catalog, services, bases).finding(seen)
    except RecursionError:
        return Finding(notes=(*seen.notes, TOO_MUCH))
