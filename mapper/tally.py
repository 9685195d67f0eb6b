"""The vote over a catalog: which calls win, and their least scopes, which come from the catalog alone.

A sample that no scope allows (a provider may refuse some arguments under each) is a rejected one, like any other that
can't be made: one sample never spoils the vote.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapper.catalog import Catalog
from mapper.least_scopes import ScopeId, least_scopes
from mapper.proposals import Malformed, rejected
from mapper.vote import DEFAULT_THRESHOLD, Sample, Vote, key_of, vote
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Risk


class Tally:
    """Votes over the samples of one request, as more of them come in.

    `granted` is what standing grants cover, preferred where it suffices; `words` are the person's request, which
    `least_scopes` may look at. Samples are mostly alike, and each is voted over again with those that come after it:
    the least scopes of equal calls are searched for once.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        granted: frozenset[ScopeId] = frozenset(),
        words: str = "",
        threshold: float = DEFAULT_THRESHOLD,
    ) -> None:
        self._catalog = catalog
        self._granted = granted
        self._words = words
        self._threshold = threshold
        self._scopes: dict[tuple[int, bytes], tuple[str, ...] | InvalidInput] = {}

    def vote(self, samples: Sequence[Sample]) -> Vote:
        """The vote over validated samples."""
        return vote(
            [self._allowed(sample, number) for number, sample in enumerate(samples)],
            scopes_of=self.scopes_of,
            check=self._check,
            is_read=lambda call: self._catalog.method(call.id).risk is Risk.READ,
            threshold=self._threshold,
        )

    def scopes_of(self, calls: tuple[Call, ...]) -> tuple[str, ...]:
        """The least scopes of calls, as "service:scope". Raises InvalidInput where no scope allows one of them."""
        key = self._catalog.generation, key_of(calls)  # a conversation may outlast an import
        if key not in self._scopes:
            try:
                self._scopes[key] = scopes_of(self._catalog, calls, self._granted, self._words)
            except InvalidInput as error:
                self._scopes[key] = error
        found = self._scopes[key]
        if isinstance(found, InvalidInput):
            raise found.with_traceback(None)
        return found

    def _allowed(self, sample: Sample, number: int) -> Sample:
        if not sample or not isinstance(sample, tuple):
            return sample
        try:
            self.scopes_of(sample)
        except InvalidInput as error:
            return rejected(Malformed(error.message, "arguments"), number, key_of(sample).decode("utf-8"))
        return sample

    def _check(self, calls: tuple[Call, ...]) -> tuple[Call, ...]:
        made = self._catalog.validate_all(calls)
        self.scopes_of(made)
        return made


def scopes_of(
    catalog: Catalog, calls: Sequence[Call], granted: frozenset[ScopeId] = frozenset(), words: str = ""
) -> tuple[str, ...]:
    """The least scopes of calls, as "service:scope"."""
    chosen = least_scopes(catalog, calls, granted, words=words)
    return tuple(dict.fromkeys(f"{service}:{scope}" for service, _, scope in chosen))
