"""A model that is a file: its completions stand in for it, so that any model can be scored without a connection.

A line of the file is `{"id", "sample", "completion"}`: a request's id, the sample's number (0 where it is left out),
and what the model wrote, as text or as an object with tool calls; perhaps `usage` with `prompt_tokens` and
`completion_tokens`, beside the completion or within it, and `milliseconds`. Everything else is as with a real model:
the same prompts, readings and vote (`mapper.mapper.Mapper`), requests in the order of the data. Completions are
untrusted; what is wrong with the file itself is an InvalidInput that names line or id.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from mapper import readings
from mapper.catalog import Catalog
from mapper.context import NOTHING_TOLD, Context
from mapper.conversation import Find
from mapper.evaluation import lines
from mapper.evaluation.alone import Alone
from mapper.evaluation.request_sets import Request
from mapper.evaluation.scope_table import Answer, Candidate, Decision, Judge, Row
from mapper.mapper import RETRIEVED, Mapper
from mapper.prompts import Mode, prompts_for
from mapper.readings import Reading
from mapper.techniques import Technique
from policies.actions import Call, Intent, IntentMapping
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonValue, canonical
from policies.services import Method

MAX_SAMPLE = 1000  # the largest number of a sample
CHARACTERS = 4  # of English or JSON in a token, about: for estimates

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Completion:
    """One sample as it was recorded. Tokens and milliseconds are None where the file doesn't say them."""

    value: JsonValue
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    milliseconds: float | None = None


def read(file: Path, ids: Collection[str]) -> dict[str, tuple[Completion, ...]]:
    """The completions of each request, by the samples' numbers. Raises InvalidInput."""
    found = numbered(file, ids)
    return {name: tuple(samples[number] for number in sorted(samples)) for name, samples in found.items()}


def numbered(file: Path, ids: Collection[str]) -> dict[str, dict[int, Completion]]:
    """The same, each with its number. Raises InvalidInput."""
    found: dict[str, dict[int, Completion]] = {}
    for line in lines.read(file):
        name = line.text("id")
        if name not in ids:
            raise line.wrong(f"no request of the data has the id {name[:80]!r}.")
        number = line.value.get("sample", 0)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_SAMPLE:
            raise line.wrong(f"'sample' must be a number from 0 to {MAX_SAMPLE}.")
        if "completion" not in line.value:
            raise line.wrong("'completion' must be there, as text or an object.")
        if number in found.setdefault(name, {}):
            raise line.wrong(f"sample {number} of {name[:80]!r} is there already.")
        found[name][number] = _completion(line.value)
    return found


def _completion(value: dict[str, Any]) -> Completion:
    completion = value["completion"]
    usage = value.get("usage")
    if isinstance(completion, dict):
        usage = usage or completion.get("usage")
        choices = completion.get("choices")
        if isinstance(choices, list) and choices:
            completion = choices[0]
    usage = usage if isinstance(usage, dict) else {}
    took = value.get("milliseconds")
    return Completion(
        value=completion,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        milliseconds=float(took) if isinstance(took, int | float) and not isinstance(took, bool) else None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


class Recorded:
    """Proposes what a file says for the request whose turn it is."""

    def __init__(self, technique: Technique, completions: dict[str, tuple[Completion, ...]], mode: Mode) -> None:
        self.name = "recorded"
        self.technique = technique
        self.request: Request | None = None
        self.used: list[Completion] = []
        self.prompt_characters = 0
        self._completions = completions
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
        """As many samples as are wanted. Raises InvalidInput where the file has fewer."""
        assert self.request is not None
        held = self._completions.get(self.request.id, ())
        prompt = prompts_for(self.technique, intent, methods, catalog, self._mode, context)
        self.prompt_characters = len(canonical(prompt.to_json()).decode("utf-8"))
        self.used = []
        made: list[Reading] = []
        while (wanted := self._wanted(made, more)) > 0:
            for number in range(len(made), len(made) + wanted):
                if number >= len(held):
                    raise InvalidInput(
                        f"The request {self.request.id!r} needs sample {number + 1}; the responses have {len(held)}.",
                        next_step=f"The method {self.technique.name} reads up to {self.technique.samples}.",
                    )
                self.used.append(held[number])
                made.append(readings.read(held[number].value, self.technique, catalog, number))
        return tuple(made)

    async def answer(self, intent: str, outcome_json: str) -> str:
        """Raises Unsupported: a file has no answers."""
        raise Unsupported("Recorded completions answer nothing.")

    def _wanted(self, made: Sequence[Reading], more: Callable[[Sequence[Reading]], int] | None) -> int:
        left = self.technique.samples - len(made)
        return min(left, more(made)) if more is not None else left


def rows(
    alone: Alone,
    requests: Sequence[Request],
    technique: Technique,
    completions: dict[str, tuple[Completion, ...]],
    mode: Mode = "tools",
    progress: Progress = lambda _: None,
) -> list[Row]:
    """Each request decided by the vote over its completions, and judged. Raises InvalidInput for a missing sample."""
    model, judge = Recorded(technique, completions, mode), Judge(alone.catalog)
    mapper = Mapper(alone.catalog, alone.proposer(), model)
    made = []
    for done, request in enumerate(requests, 1):
        model.request, model.used, model.prompt_characters = request, [], 0
        began = time.perf_counter()
        mapping = asyncio.run(mapper.map(Intent(text=request.text)))
        milliseconds = 1000 * (time.perf_counter() - began)
        made.append(judge.row(request, _answer(alone.catalog, mapping, model, milliseconds)))
        progress(done)
    return made


def _answer(catalog: Catalog, mapping: IntentMapping, model: Recorded, milliseconds: float) -> Answer:
    used = model.used
    waited = [one.milliseconds for one in used if one.milliseconds is not None]
    told = [one for one in used if one.prompt_tokens is not None and one.completion_tokens is not None]
    estimated = len(told) < len(used)
    prompt = ceil(model.prompt_characters / CHARACTERS)
    return Answer(
        decision=decision(mapping),
        candidates=tuple(_candidate(catalog, one.calls) for one in mapping.alternatives),
        confidence=mapping.agreement if mapping.alternatives else None,
        samples=mapping.samples,
        milliseconds=milliseconds + max(waited, default=0.0),
        prompt_tokens=sum(one.prompt_tokens if one.prompt_tokens is not None else prompt for one in used),
        completion_tokens=sum(completion_tokens(one) for one in used),
        estimated=estimated,
        notes=mapping.notes,
    )


def decision(mapping: IntentMapping) -> Decision:
    """What became of a request."""
    if mapping.alternatives:
        return "executed" if mapping.sure else "asked"
    # Without a sample the ranking found nothing; else the samples said so, unless none of them could be taken.
    return "failed" if mapping.samples and len(mapping.rejected) == mapping.samples else "declined"


def _candidate(catalog: Catalog, calls: tuple[Call, ...]) -> Candidate:
    return Candidate(tuple(catalog.method(call.id) for call in calls), calls)


def completion_tokens(one: Completion) -> int:
    """As the file says, or about."""
    if one.completion_tokens is not None:
        return one.completion_tokens
    text = one.value if isinstance(one.value, str) else canonical(one.value).decode("utf-8")
    return ceil(len(text) / CHARACTERS)


def prompts(
    alone: Alone, requests: Sequence[Request], technique: Technique, mode: Mode = "tools"
) -> Iterator[dict[str, Any]]:
    """Every prompt that a model would get: one a request, since all of its `samples` are asked for in the same words.
    Without a prompt where retrieval finds nothing: then no model is asked."""
    proposer = alone.proposer()
    for request in requests:
        methods = proposer.candidates(request.text, limit=RETRIEVED) if technique.retrieval else []
        if technique.retrieval and not methods:
            continue
        made = prompts_for(technique, request.text, methods, alone.catalog, mode)
        yield {"id": request.id, "method": technique.name, "samples": technique.samples, **made.to_json()}


__all__ = ("MAX_SAMPLE", "Completion", "Recorded", "prompts", "read", "rows")
