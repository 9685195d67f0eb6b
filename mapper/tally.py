"""The vote over a catalog: which calls win, and their least scopes, which come from the catalog alone.

A sample that no scope allows (a provider may refuse some arguments under each) is a rejected one, like any other that
can't be made: one sample never spoils the vote.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapper.catalog import Catalog
from mapper.least_scopes import ScopeId, least_scopes
from mapper.proposals import Malformed, rejected
from mapper.vote import DEFAULT_THRESHOLD, Sample, Vote, vote
from policies.actions import Call
from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from policies.services import Risk


def tally(
    catalog: Catalog,
    samples: Sequence[Sample],
    *,
    granted: frozenset[ScopeId] = frozenset(),
    words: str = "",
    threshold: float = DEFAULT_THRESHOLD,
) -> Vote:
    """Vote over validated samples. `granted` is what standing grants cover, preferred where it suffices;
    `words` are the person's request, which `least_scopes` may look at."""

    def allowed(sample: Sample, number: int) -> Sample:
        if not sample or not isinstance(sample, tuple):
            return sample
        try:
            scopes_of(catalog, sample, granted, words)
        except InvalidInput as error:
            text = canonical([call.to_json() for call in sample]).decode("utf-8")
            return rejected(Malformed(error.message, "arguments"), number, text)
        return sample

    def check(calls: tuple[Call, ...]) -> tuple[Call, ...]:
        made = catalog.validate_all(calls)
        scopes_of(catalog, made, granted, words)
        return made

    return vote(
        [allowed(sample, number) for number, sample in enumerate(samples)],
        scopes_of=lambda calls: scopes_of(catalog, calls, granted, words),
        check=check,
        is_read=lambda call: catalog.method(call.id).risk is Risk.READ,
        threshold=threshold,
    )


def scopes_of(
    catalog: Catalog, calls: Sequence[Call], granted: frozenset[ScopeId] = frozenset(), words: str = ""
) -> tuple[str, ...]:
    """The least scopes of calls, as "service:scope"."""
    chosen = least_scopes(catalog, calls, granted, words=words)
    return tuple(dict.fromkeys(f"{service}:{scope}" for service, _, scope in chosen))
