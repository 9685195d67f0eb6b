"""The mapper: from a request in words to calls, their least scopes, and how sure that is.

With a model it retrieves the methods that may be meant, asks for samples and votes; without one the embedded proposer
answers, and says so. Whatever they propose is validated against the catalog, and least scopes come from the catalog
alone: scopes that a model claims are recorded, not followed. A mapping that isn't sure is a question to the person,
never a guess.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from mapper.ambiguity import twin
from mapper.catalog import Catalog
from mapper.context import NOTHING_TOLD, Context
from mapper.conversation import Find
from mapper.embedded import EmbeddedProposer
from mapper.least_scopes import ScopeId
from mapper.method_search import made_of, readable
from mapper.prompts import symbolic_scopes
from mapper.proposals import parse_proposal
from mapper.readings import MAX_CLAIMS, Reading
from mapper.service_position import not_served
from mapper.stopping_rule import DEFAULT_CONFIDENCE, Experience, Plan
from mapper.tally import Tally, scopes_of
from mapper.techniques import Technique
from mapper.vote import DEFAULT_THRESHOLD, MAX_ALTERNATIVES, REJECTIONS, Vote
from policies.actions import Alternative, Call, Intent, IntentMapping, Rejected
from policies.errors import InvalidInput, Unsupported
from policies.services import Method

MAX_INTENT = 10_000  # characters
RETRIEVED = 16  # methods that a model chooses among
NAMED = 3  # methods whose names a model's search may spell
_ASKERS = 200  # whose samples are remembered


class InvalidProposal(InvalidInput):
    """An agent's proposal can't be taken; `rejected` says why, with its class."""

    code = "proposal"

    def __init__(self, message: str, *, next_step: str = "", rejected: tuple[Rejected, ...] = ()) -> None:
        super().__init__(message, next_step=next_step)
        self.rejected = rejected


class Proposer(Protocol):
    """Where samples come from: a model (`mapper.model`), or completions that one gave earlier."""

    name: str
    technique: Technique

    async def propose(
        self,
        intent: str,
        methods: Sequence[Method],
        catalog: Catalog,
        more: Callable[[Sequence[Reading]], int] | None = None,
        context: Context = NOTHING_TOLD,
        find: Find | None = None,
    ) -> tuple[Reading, ...]:
        """Samples over `methods`, as many as `more` wants after each round, and before the first. `find` looks for
        other methods by words, in a conversation."""

    async def answer(self, intent: str, outcome_json: str) -> str:
        """An answer in words over an outcome."""


class Mapper:
    """One catalog, one proposer or two. Remembers of requests only how much the model's samples agreed, which says how
    many to ask for; apart for each asker, so that nobody's requests settle another's vote. Safe to share."""

    def __init__(
        self,
        catalog: Catalog,
        embedded: EmbeddedProposer,
        model: Proposer | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        confidence: float = DEFAULT_CONFIDENCE,
    ) -> None:
        if not 0 < threshold <= 1:
            raise InvalidInput(f"The threshold must be above 0 and at most 1, not {threshold}.")
        self.catalog = catalog
        self.embedded = embedded
        self.model = model
        self.threshold = threshold
        self.plan = model.technique.plan(confidence, threshold) if model is not None else None
        self._experience: dict[str, Experience] = {}

    async def map(
        self,
        intent: Intent,
        *,
        connected: frozenset[str] = frozenset(),
        granted: frozenset[ScopeId] = frozenset(),
        agent: str = "",
        context: Context = NOTHING_TOLD,
    ) -> IntentMapping:
        """The calls that `intent` asks for. `connected`: services that have an account, preferred among equals, so that
        which methods a model is offered may depend on it; `granted`: what standing grants cover, preferred where it
        suffices (no model ever sees either); `asker`: the name of who asks; `context`: what a model is told beside it.

        Raises InvalidInput for a request that isn't one, ModelUnavailable when the configured model can't be used.
        """
        text = check_intent(intent.text)
        if self.model is None or self.plan is None:
            return self.at_once(intent, connected=connected, granted=granted)
        methods: list[Method] = []
        if self.model.technique.retrieval:
            methods = await asyncio.to_thread(
                self.embedded.candidates, text, connected=connected, limit=RETRIEVED
            )  # long words take a second
            if not methods and not self.model.technique.conversation:
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

        def find(words: str) -> Iterator[Method]:
            return self.found(words, connected)

        return await self._asked(
            self.model, self.plan, intent, text, methods, granted, self._experience_of(agent), context, find
        )

    def found(self, words: str, connected: frozenset[str] = frozenset()) -> Iterator[Method]:
        """The methods that a model's search finds: those whose names these words spell, then what they may mean."""
        named = readable(self.catalog, made_of(self.catalog, words)[:NAMED])
        seen = set()
        for method in chain(named, self.embedded.found(words, connected=connected, limit=RETRIEVED)):
            if method.id not in seen:
                seen.add(method.id)
                yield method

    def _experience_of(self, agent: str) -> Experience:
        """What was learned from this asker's requests; whoever asked least recently is forgotten."""
        found = self._experience.pop(agent, None) or Experience()
        while len(self._experience) >= _ASKERS:
            del self._experience[next(iter(self._experience))]
        self._experience[agent] = found
        return found

    async def _asked(
        self,
        model: Proposer,
        plan: Plan,
        intent: Intent,
        text: str,
        methods: Sequence[Method],
        granted: frozenset[ScopeId],
        experience: Experience,
        context: Context,
        find: Find,
    ) -> IntentMapping:
        """The vote over as many samples of the model as the plan wants."""
        habit = experience.habit
        tally = Tally(self.catalog, granted=granted, words=text, threshold=self.threshold)

        def tallied(made: Sequence[Reading]) -> Vote:
            return tally.vote([reading.sample for reading in made])

        def more(made: Sequence[Reading]) -> int:
            return plan.more(tallied(made).votes if made else 0, len(made), habit)

        made = await model.propose(text, methods, self.catalog, more, context, find)
        result = tallied(made)
        experience.observe(result.votes, result.ballots, REJECTIONS)
        claims = self._claims(made, result)
        notes, sure = list(result.notes), result.sure
        if sure and (name := self.embedded.unserved(text, result.alternatives[0].calls)):
            notes.append(not_served(name))
            sure = False
        elif sure and (other := twin(self.catalog, result.alternatives[0].calls, methods, text)):
            notes.append(f"{other.id} does the same to a thing of this name, and the request doesn't say which.")
            sure = False
        reason = next((reading.reason for reading in made if reading.reason), "")
        if reason and not result.alternatives and result.clarification is None:
            notes.append(f"The model says: {reason}")
        if claims:
            names = ", ".join(name for name, _ in claims[:5])
            notes.append(f"The model asks for more than these calls need, which isn't followed: {names}.")
        return IntentMapping(
            intent=intent,
            alternatives=result.alternatives,
            agreement=result.agreement,
            samples=result.samples,
            rejected=result.rejected,
            proposer=model.name,
            sure=sure,
            notes=tuple(notes),
            technique=model.technique.name,
            limit=plan.k,
            confidence=plan.probability(result.votes, result.samples, habit),
            stopped=plan.why(result.votes, result.samples, habit),
            ballots=result.ballots,
            claims=claims,
            clarification=result.clarification,
        )

    def _claims(self, made: Sequence[Reading], result: Vote) -> tuple[tuple[str, int], ...]:
        """Scopes that the model claims beyond those of the winner, by symbolic name, the most frequent first."""
        counted = Counter(name for reading in made for name in reading.claims)
        if not counted or not result.alternatives:
            return ()
        best = result.alternatives[0]
        methods = [self.catalog.method(call.id) for call in best.calls]
        needed = {
            symbol
            for symbol, scope in symbolic_scopes(self.catalog, methods).items()
            if f"{scope.service}:{scope.name}" in best.scopes
        }
        wider = [(name, count) for name, count in counted.items() if name not in needed | set(best.scopes)]
        return tuple(sorted(wider, key=lambda item: (-item[1], item[0]))[:MAX_CLAIMS])

    def explain(self, intent: Intent, *, connected: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Why the ranking reads a request as it does: the likeliest services, then the likeliest methods, each with
        the request's words that spoke for it. Raises InvalidInput for a request that isn't one."""
        return self.embedded.explain(check_intent(intent.text), connected=connected)

    def parse(self, text: str) -> tuple[Call, ...]:
        """The calls of a proposal that an agent sent: JSON, tool calls, Python by its syntax, or text.

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

    def at_once(
        self, intent: Intent, *, connected: frozenset[str] = frozenset(), granted: frozenset[ScopeId] = frozenset()
    ) -> IntentMapping:
        """What `map` returns without a model. Long words take a second; may run in a thread. Raises InvalidInput."""
        text = check_intent(intent.text)
        proposed = self.embedded.propose(text, connected=connected)
        alternatives: list[Alternative] = []
        near = proposed.readings
        notes = ["Mapped by the embedded proposer, without a model.", *proposed.notes]
        sure = proposed.sure
        for place, reading in enumerate(proposed.complete[:MAX_ALTERNATIVES]):
            try:
                scopes = scopes_of(self.catalog, reading.calls, granted, text)
            except InvalidInput as error:
                notes.append(error.message)
                sure = sure and place > 0
                continue
            alternatives.append(
                Alternative(
                    calls=reading.calls, scopes=scopes, votes=0 if alternatives else 1, score=reading.probability
                )
            )
        return IntentMapping(
            intent=intent,
            alternatives=tuple(alternatives),
            agreement=1.0 if alternatives else 0.0,
            samples=1,
            rejected=(),
            proposer=self.embedded.name,
            sure=sure,
            notes=tuple(notes),
            lacking=(near[0].method.id, near[0].missing) if near and near[0].missing else None,
        )


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
