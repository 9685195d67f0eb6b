"""Calls that take values of answers: the reads run first, as an action of their own; the rest is made of what they
brought, and is asked for with these values.

Rules: the reads are decided on as any action is, and the rest is another decision; what an answer filled is covered by
no grant that was there before (`Need.unseen`). Where a filter fits none or several, the action ends in a question with
what may be chosen; its answer goes on from the answers that were read, and approves nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from goex.engine.core import Core, Request
from goex.engine.events import Mapped, Problem
from goex.engine.intents import Ambiguous
from goex.engine.unfinished import PrincipalKey, Unfinished, principal_key
from goex.journal.actions import ActionRow, request_hashes
from goex.journal.states import State
from policies.actions import ApiCalls, Clarification, Intent, IntentMapping, Option
from policies.display_text import escape, shorten
from policies.errors import ExitStatus, GoexError, InvalidInput
from policies.jsonvalue import JsonValue, canonical, parse
from policies.stages import Unclear, first_stage, with_values
from policies.typed_json import from_json

MOST_WAITING = 16  # questions of all agents that may be answered, each with the answers that were read
MOST_OF_ONE = 4
MOST_READ = 4_000_000  # bytes of all answers together
MOST_QUESTIONS = 5  # about one request
PROPOSER = "goex"  # who asks, where it isn't a model

Read = Callable[[ActionRow, ApiCalls, dict[str, JsonValue]], Awaitable[ActionRow]]


class ReadsFailed(GoexError):
    """What was to be read first didn't go well; the error is that action's own."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message, next_step=problem.next_step)
        self.code, self.exit_status = problem.code, ExitStatus(problem.exit_status)


@dataclass(frozen=True, slots=True)
class Staged:
    """The second stage, and what the first one gave: results for the outcome, the action's id for the journal."""

    action: ApiCalls
    results: tuple[JsonValue, ...]
    reads: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An action that ended in a question about a filter."""

    action: ApiCalls
    lead: int
    answers: tuple[JsonValue, ...]
    results: tuple[JsonValue, ...]
    reads: str
    picks: Mapping[tuple[int, str], str]
    asked: int
    open: tuple[int, str]
    places: Mapping[str, str]  # by the answer that chooses it


@dataclass(slots=True)
class Stages:
    """Runs first stages, and remembers the questions that came of them."""

    core: Core
    read: Read
    _waiting: Unfinished[tuple[str, str], _Waiting] = field(
        default_factory=lambda: Unfinished(of_one=MOST_OF_ONE, of_agents=MOST_WAITING)
    )

    def lead(self, action: ApiCalls) -> int:
        """How many of its calls are read first; 0: none."""
        return first_stage(action.calls, self.core.catalog.is_read)

    def forget(self, agent: str) -> None:
        """Drop an agent's questions, and what was read for them."""
        self._waiting.forget(agent)

    def answered(self, row: ActionRow, request: Request) -> Staged | None:
        """The second stage that the answer to an earlier question makes; None where it answers no such question.
        Raises Ambiguous for the next question."""
        if not request.answer:
            return None
        waiting = self._waiting.get(*_key(row))
        if waiting is None:
            return None
        place = waiting.places.get(request.answer)
        if place is None:
            raise InvalidInput("That isn't one of the choices.", next_step="Answer with one of them, as it stands.")
        self._waiting.drop(*_key(row))
        self.core.journal.append(
            "chosen", action_id=row.id, agent=row.agent, facts={"reads": waiting.reads, "place": place}
        )
        return self._second(row, replace(waiting, picks={**waiting.picks, waiting.open: place}))

    async def run(self, row: ActionRow, action: ApiCalls, lead: int) -> Staged:
        """Run the first `lead` calls, and make the others of what they gave. Raises ReadsFailed, Ambiguous."""
        bodies: dict[str, JsonValue] = {}
        ended = await self.read(row, ApiCalls(calls=action.calls[:lead]), bodies)
        if ended.state is not State.DONE:
            raise ReadsFailed(_problem(ended))
        answers = tuple(bodies[f"call-{place}"] for place in range(lead))
        size = sum(len(canonical(answer)) for answer in answers)
        if size > MOST_READ:
            raise InvalidInput(f"What was read is {size} bytes long, which is too much.", next_step="Read less of it.")
        results = tuple(_outcome(ended).get("results", ()))
        fresh = _Waiting(action, lead, answers, results, ended.id, {}, 0, (0, ""), {})
        return self._second(row, fresh)

    def _second(self, row: ActionRow, waiting: _Waiting) -> Staged:
        try:
            calls = with_values(waiting.action.calls, waiting.lead, waiting.answers, waiting.picks)
        except Unclear as unclear:
            raise self._ask(row, waiting, unclear) from unclear
        return Staged(ApiCalls(calls=calls), waiting.results, waiting.reads)

    def _ask(self, row: ActionRow, waiting: _Waiting, unclear: Unclear) -> GoexError:
        """The question about a filter, told to whoever follows; the error is its end where nothing can be chosen."""
        choices = unclear.choices
        if not choices or waiting.asked >= MOST_QUESTIONS:
            return unclear.error
        places: dict[str, str] = {}
        for choice in choices:
            text = choice.text if choice.text and choice.text not in places else f"{choice.text} ({choice.place})"
            places[text] = choice.place
        said, _ = shorten(escape(unclear.error.message), 600)
        text = f"Which one is meant, of what {unclear.method} found? {said}"
        options = tuple(Option(answer=answer) for answer in places)
        asked = replace(waiting, asked=waiting.asked + 1, open=(unclear.source, unclear.head), places=places)
        self._waiting.keep(*_key(row), asked)
        mapping = IntentMapping(
            intent=Intent(text=row.intent),
            alternatives=(),
            agreement=0.0,
            samples=0,
            rejected=(),
            proposer=PROPOSER,
            sure=False,
            clarification=Clarification(text=text, options=options),
        )
        self.core.hub.publish(row.id, Mapped(mapping))
        facts = {"reads": waiting.reads, "path": unclear.head, "choices": len(options)}
        self.core.journal.append("choose", action_id=row.id, agent=row.agent, facts=facts)
        return Ambiguous(text, next_step="Answer with one of the choices, or ask for it more exactly.")


def _key(row: ActionRow) -> tuple[PrincipalKey, tuple[str, str]]:
    return principal_key(row.agent, row.session), request_hashes(row.intent, row.action())


def _outcome(row: ActionRow) -> Mapping[str, JsonValue]:
    return parse(row.outcome, limit=64 * 2**20) if row.outcome else {}


def _problem(row: ActionRow) -> Problem:
    if row.problem:
        return from_json(Problem, parse(row.problem), "The problem")
    return Problem(code="failed", message=f"What was to be read first ({row.id}) ended as {row.state}.")
