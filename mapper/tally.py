"""The vote over a catalog: which calls win, and their least scopes, which come from the catalog alone."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.catalog import Catalog
from mapper.scopes import ScopeId, least_scopes
from mapper.vote import DEFAULT_THRESHOLD, Sample, Vote, vote
from policies.actions import Call
from policies.catalog import Risk


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
    return vote(
        samples,
        scopes_of=lambda calls: scopes_of(catalog, calls, granted, words),
        check=catalog.validate_all,
        is_read=lambda call: catalog.method(call.id).risk is Risk.READ,
        threshold=threshold,
    )


def scopes_of(
    catalog: Catalog, calls: Sequence[Call], granted: frozenset[ScopeId] = frozenset(), words: str = ""
) -> tuple[str, ...]:
    """The least scopes of calls, as "service:scope"."""
    chosen = least_scopes(catalog, calls, granted, words=words)
    return tuple(dict.fromkeys(f"{service}:{scope}" for service, _, scope in chosen))
