"""Conversations measured in rounds: the next prompts as a file, the answers as a file, until all have ended.

A folder holds one recording: `round-N.prompts.jsonl` with what each open conversation asks in its turn N, and
`round-N.answers.jsonl`, written by whoever answers (any model, or a person), with `{"id", "sample", "completion"}` a
line. Each run plays all recorded answers from the beginning, as `mapper.model` would with a server's, and writes the
prompts of the first turn that lacks an answer; when none does, every request is decided and judged. So a finished
folder is a recording that any later GoEx can be measured with. Answers are untrusted.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from mapper.catalog import Catalog
from mapper.context import NOTHING_TOLD, Context
from mapper.conversation import Conversation, Find
from mapper.evaluation import recorded
from mapper.evaluation.alone import Alone
from mapper.evaluation.recorded import CHARACTERS, Completion, Progress
from mapper.evaluation.request_sets import Request
from mapper.evaluation.scope_table import Answer, Candidate, Decision, Judge, Row
from mapper.mapper import Mapper
from mapper.prompts import Mode
from mapper.readings import Reading
from mapper.techniques import TURNS, Technique
from policies.actions import Intent, IntentMapping
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import canonical
from policies.services import Method

_Told = dict[tuple[str, int, int], Completion]  # by request, sample and turn


class Unanswered(Exception):
    """A conversation waits for an answer; its prompt is in `Rounds.open`."""


class Rounds:
    """Proposes what a folder says, and notes what it would ask next."""

    def __init__(self, technique: Technique, told: _Told, mode: Mode) -> None:
        self.name = "recorded"
        self.technique = technique
        self.request: Request | None = None
        self.open: dict[int, list[dict[str, Any]]] = {}  # by turn
        self.prompt_tokens = self.completion_tokens = self.turns = 0
        self._told = told
        self._mode = mode

    async def propose(
        self,
        intent: str,
        methods: Sequence[Method],
        catalog: Catalog,
        more: Callable[[Sequence[Reading]], int] | None = None,
        context: Context = NOTHING_TOLD,
        find: Find | None = None,
    ) -> tuple[Reading, ...]:
        """As many conversations as are wanted. Raises Unanswered when one of them isn't at its end."""
        made: list[Reading] = []
        while (wanted := self._wanted(made, more)) > 0:
            numbers = range(len(made), len(made) + wanted)
            look = find or (lambda words: ())
            ended = [self._play(Conversation(catalog, look, intent, methods, context, number)) for number in numbers]
            if any(one is None for one in ended):
                raise Unanswered
            made += [one for one in ended if one is not None]
        return tuple(made)

    def _wanted(self, made: Sequence[Reading], more: Callable[[Sequence[Reading]], int] | None) -> int:
        left = self.technique.samples - len(made)
        return min(left, more(made)) if more is not None else left

    def _play(self, talk: Conversation) -> Reading | None:
        assert self.request is not None
        turn = 0
        while talk.reading is None:
            prompt = talk.prompt(self._mode).to_json()
            told = self._told.get((self.request.id, talk.number, turn))
            if told is None:
                asked = {"id": self.request.id, "sample": talk.number, "turn": turn, **prompt}
                self.open.setdefault(turn, []).append(asked)
                return None
            size = len(canonical(prompt).decode("utf-8"))
            self.prompt_tokens += told.prompt_tokens if told.prompt_tokens is not None else ceil(size / CHARACTERS)
            self.completion_tokens += recorded.completion_tokens(told)
            self.turns += 1
            talk.hear(told.value)
            turn += 1
        return talk.reading

    async def answer(self, intent: str, outcome_json: str) -> str:
        """Raises Unsupported: a folder has no answers in words."""
        raise Unsupported("Recorded completions answer nothing.")


def read(folder: Path, ids: Collection[str]) -> _Told:
    """Every answer in a folder. Raises InvalidInput."""
    found: _Told = {}
    for turn in range(TURNS):
        file = folder / f"round-{turn}.answers.jsonl"
        if not file.exists():
            continue
        for name, samples in recorded.numbered(file, ids).items():
            for number, completion in samples.items():
                found[name, number, turn] = completion
    return found


def rows(
    alone: Alone,
    requests: Sequence[Request],
    technique: Technique,
    folder: Path,
    mode: Mode = "tools",
    context: Context = NOTHING_TOLD,
    progress: Progress = lambda _: None,
) -> tuple[list[Row], Path | None]:
    """Each request that is decided, judged; and the file with the next prompts, None when all are."""
    model = Rounds(technique, read(folder, {one.id for one in requests}), mode)
    mapper, judge = Mapper(alone.catalog, alone.proposer(), model), Judge(alone.catalog)
    made = []
    for done, request in enumerate(requests, 1):
        model.request, model.prompt_tokens, model.completion_tokens, model.turns = request, 0, 0, 0
        began = time.perf_counter()
        try:
            mapping = asyncio.run(mapper.map(Intent(text=request.text), context=context))
        except Unanswered:
            continue
        finally:
            progress(done)
        made.append(judge.row(request, _answer(alone.catalog, mapping, model, 1000 * (time.perf_counter() - began))))
    return made, _write(folder, model.open)


def _write(folder: Path, open_: dict[int, list[dict[str, Any]]]) -> Path | None:
    """The prompts of the earliest turn that waits; of one that was answered in part, the rest."""
    if not open_:
        return None
    turn = min(open_)
    file = folder / f"round-{turn}.prompts.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(one) + "\n" for one in open_[turn]), encoding="ascii")
    except OSError as error:
        raise InvalidInput(f"{file} can't be written: {error.strerror}.", next_step="Check the path.") from error
    return file


def _answer(catalog: Catalog, mapping: IntentMapping, model: Rounds, milliseconds: float) -> Answer:
    return Answer(
        decision=_decision(mapping),
        candidates=_candidates(catalog, mapping),
        confidence=mapping.agreement if mapping.alternatives and mapping.clarification is None else None,
        samples=mapping.samples,
        milliseconds=milliseconds,
        prompt_tokens=model.prompt_tokens,
        completion_tokens=model.completion_tokens,
        estimated=True,
        notes=(*mapping.notes, f"{model.turns} turns"),
    )


def _decision(mapping: IntentMapping) -> Decision:
    return "asked" if mapping.clarification is not None else recorded.decision(mapping)


def _candidates(catalog: Catalog, mapping: IntentMapping) -> tuple[Candidate, ...]:
    """What the person is shown: the question's meanings first, then calls that other samples proposed."""
    calls = [Candidate(tuple(catalog.method(call.id) for call in one.calls), one.calls) for one in mapping.alternatives]
    asked = mapping.clarification
    if asked is None:
        return tuple(calls)
    meant = [option.methods for option in asked.options] or [asked.methods]
    named = [Candidate(tuple(catalog.method(name) for name in names)) for names in dict.fromkeys(meant) if names]
    return (*named, *calls)


__all__ = ("Rounds", "Unanswered", "read", "rows")
