"""The mapper: from a request in words to calls, their least scopes, and how sure that is.

With a model it retrieves the methods that may be meant, asks for samples and votes; without one the embedded proposer
answers, and says so. Whatever they propose is validated against the catalog, and least scopes come from the catalog
alone. A mapping that isn't sure is a question to the person, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.proposals import parse_proposal
from mapper.scopes import ScopeId, least_scopes
from mapper.vote import DEFAULT_THRESHOLD, MAX_ALTERNATIVES, vote
from policies.actions import Alternative, Call, Intent, IntentMapping, Rejected
from policies.catalog import Risk
from policies.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from mapper.model import ModelProposer

MAX_INTENT = 10_000  # characters
RETRIEVED = 16  # methods that a model chooses among


class InvalidProposal(InvalidInput):
    """An agent's proposal can't be taken; `rejected` says why, with its class."""

    code = "proposal"

    def __init__(self, message: str, *, next_step: str = "", rejected: tuple[Rejected, ...] = ()) -> None:
        super().__init__(message, next_step=next_step)
        self.rejected = rejected


class Mapper:
    """One catalog, one proposer or two. Holds no state of a request; safe to share."""

    def __init__(
        self,
        catalog: Catalog,
        embedded: EmbeddedProposer,
        model: ModelProposer | None = None,
        threshold: float = DEFAULT_THRESHOLD,
    ) -> None:
        if not 0 < threshold <= 1:
            raise InvalidInput(f"The threshold must be above 0 and at most 1, not {threshold}.")
        self.catalog = catalog
        self.embedded = embedded
        self.model = model
        self.threshold = threshold

    async def map(
        self,
        intent: Intent,
        *,
        connected: frozenset[str] = frozenset(),
        granted: frozenset[ScopeId] = frozenset(),
    ) -> IntentMapping:
        """The calls that `intent` asks for. `connected`: services that have an account, preferred among equals;
        `granted`: what standing grants cover, preferred where it suffices (no model ever sees either).

        Raises InvalidInput for a request that isn't one, ModelUnavailable when the configured model can't be used.
        """
        text = check_intent(intent.text)
        if self.model is None:
            return self._embedded(intent, text, connected, granted)
        methods = [hit.method for hit in self.embedded.search(text, connected=connected, limit=RETRIEVED)]
        if not methods:
            return IntentMapping(
                intent=intent,
                alternatives=(),
                agreement=0.0,
                samples=0,
                rejected=(),
                proposer=self.model.name,
                sure=False,
                notes=("Nothing in the catalog fits these words, so the model wasn't asked.",),
            )
        samples = await self.model.propose(text, methods, self.catalog)
        result = vote(
            samples,
            scopes_of=lambda calls: self._scopes(calls, granted),
            check=self.catalog.validate_all,
            is_read=lambda call: self.catalog.method(call.id).risk is Risk.READ,
            threshold=self.threshold,
        )
        return IntentMapping(
            intent=intent,
            alternatives=result.alternatives,
            agreement=result.agreement,
            samples=result.samples,
            rejected=result.rejected,
            proposer=self.model.name,
            sure=result.sure,
            notes=result.notes,
        )

    def parse(self, text: str) -> tuple[Call, ...]:
        """The calls of a proposal that an agent sent: JSON, tool calls, or Python calls by their syntax.

        Raises InvalidProposal naming everything that is wrong with it.
        """
        made = parse_proposal(text, self.catalog)
        if isinstance(made, Rejected):
            raise InvalidProposal(
                f"The proposal can't be taken ({made.klass}): {made.reason}",
                next_step="Send JSON calls, tool calls, or Python calls of catalogued methods.",
                rejected=(made,),
            )
        if not made:
            raise InvalidProposal("The proposal holds no call.", next_step="Send at least one call.")
        return made

    async def answer(self, intent: Intent, outcome_json: str) -> str:
        """Words over a redacted outcome, by the model: untrusted text. Raises Unsupported without a model."""
        if self.model is None:
            raise Unsupported("Without a model there is no answer in words.", next_step="Configure a model.")
        return await self.model.answer(check_intent(intent.text), outcome_json)

    def _embedded(
        self, intent: Intent, text: str, connected: frozenset[str], granted: frozenset[ScopeId]
    ) -> IntentMapping:
        proposed = self.embedded.propose(text, connected=connected)
        best = max((reading.score for reading in proposed.readings), default=1.0) or 1.0
        alternatives = tuple(
            Alternative(
                calls=reading.calls,
                scopes=self._scopes(reading.calls, granted),
                votes=1 if place == 0 else 0,
                score=max(0.0, min(1.0, reading.score / best)),
            )
            for place, reading in enumerate(proposed.readings[:MAX_ALTERNATIVES])
        )
        return IntentMapping(
            intent=intent,
            alternatives=alternatives,
            agreement=1.0 if alternatives else 0.0,
            samples=1,
            rejected=(),
            proposer=self.embedded.name,
            sure=proposed.sure,
            notes=("Mapped by the embedded proposer, without a model.", *proposed.notes),
        )

    def _scopes(self, calls: tuple[Call, ...], granted: frozenset[ScopeId]) -> tuple[str, ...]:
        chosen = least_scopes(self.catalog, calls, granted)
        return tuple(dict.fromkeys(f"{service}:{scope}" for service, _, scope in chosen))


def check_intent(text: str) -> str:
    """The request, stripped. Raises InvalidInput when it is empty, too long, or not text that a person wrote."""
    if len(text) > MAX_INTENT:
        raise InvalidInput(
            f"The request is {len(text)} characters long; at most {MAX_INTENT} are taken.",
            next_step="Put long content into a file or a call's argument.",
        )
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput("The request holds characters that aren't text (NUL or broken Unicode).")
    if not any(char.isalnum() for char in text):
        raise InvalidInput(
            "The request is empty.", next_step='Say what to do, like: send "hello" to #general on slack.'
        )
    return text.strip()
