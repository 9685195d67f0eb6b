"""A noisy model over a catalog: how votes decide when samples are wrong, without a model.

Each case is a call that a person means, of a method drawn from the catalog. A sample is right with probability
1 - `error`; else it is wrong as models are: a sibling method of the service, a method of another service, a wrong
argument, one call too many, text that is no proposal, or a refusal. Real models err alike, so a case may have a
favourite wrong answer, which a wrong sample is with probability `favourite`: 0 makes all errors independent, 1 makes
them all the same. Samples are *text*, in the forms that models write, and go through the real parser, validation,
vote, stopping rule and least scopes.

Everything follows from the seed. Excessive and insufficient are as in the thesis: of what was decided without asking,
whether it takes a scope that the meant call doesn't need, or lacks one that it does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mapper.catalog import Catalog, tool_name
from mapper.proposals import parse_proposal
from mapper.stopping_rule import DEFAULT_CONFIDENCE, Experience, Plan
from mapper.tally import Tally
from mapper.vote import DEFAULT_THRESHOLD, REJECTIONS, Sample, Vote
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method
from tools.sample_values import example

FULL = 10
FIXED = (1, 3, 5, FULL)
ADAPTIVE = "adaptive"

_KINDS = ("sibling", "other service", "argument", "extra call", "malformed", "refusal")
_WEIGHTS = (25, 10, 25, 15, 15, 10)
_TRIES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How wrong the model is: the share of wrong samples, and how many of these are its favourite wrong answer."""

    error: float
    favourite: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.error <= 1 or not 0 <= self.favourite <= 1:
            raise InvalidInput("An error rate and the favourite's share are from 0 to 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One way of asking over all cases; shares in percent. `agreement_pct`: decided exactly as the full ten samples."""

    asked: str  # "1", "3", …, or "adaptive"
    cases: int
    agreement_pct: float
    samples_mean: float
    right_pct: float
    wrong_pct: float
    ask_pct: float  # left to the person, or said that nothing fits
    scope_excessive_pct: float
    scope_not_sufficient_pct: float


class NoisyModel:
    """Draws cases from a catalog and writes samples for them."""

    def __init__(self, catalog: Catalog, seed: int = 0) -> None:
        self._catalog = catalog
        self._seed = seed
        names: dict[str, list[Method]] = {}
        for method in catalog.methods():
            if method.scopes and not method.unsupported:
                names.setdefault(method.service, []).append(method)
        self._methods = {service: sorted(found, key=lambda m: m.name) for service, found in sorted(names.items())}
        self._all = [method for found in self._methods.values() for method in found]
        if not self._all:
            raise InvalidInput("The catalog has no method that may be called.", next_step="Import one: goex catalog")

    def cases(self, count: int) -> list[tuple[Call, ...]]:
        """What `count` people mean. Methods for whose arguments no value can be made up are passed over."""
        made: list[tuple[Call, ...]] = []
        for number in range(count * _TRIES):
            if len(made) == count:
                break
            call = self._call(self._all, self._random("case", number))
            if call is not None:
                made.append((call,))
        return made

    def completions(self, number: int, meant: tuple[Call, ...], noise: Noise, count: int = FULL) -> list[str]:
        """`count` samples for a case, as text."""
        favourite = self._wrong(meant, self._random("favourite", number), _KINDS[:4])
        made = []
        for sample in range(count):
            chance = self._random("sample", number, sample)
            if chance.random() >= noise.error:
                made.append(_written(meant, chance))
            elif chance.random() < noise.favourite:
                made.append(_written(favourite, chance) if isinstance(favourite, tuple) else favourite)
            else:
                wrong = self._wrong(meant, chance, _KINDS)
                made.append(_written(wrong, chance) if isinstance(wrong, tuple) else wrong)
        return made

    def _random(self, *what: object) -> random.Random:
        return random.Random(f"{self._seed} {what}")  # a simulation wants it repeatable

    def _call(self, among: Sequence[Method], chance: random.Random) -> Call | None:
        """A valid call of one of these methods, sometimes with arguments that it doesn't require."""
        for _ in range(_TRIES):
            method = chance.choice(among)
            properties = method.parameters.get("properties", {})
            required = method.parameters.get("required", ())
            optional = [name for name in properties if name not in required]
            names = [*required, *chance.sample(optional, min(len(optional), chance.randint(0, 2)))]
            values = {name: example(properties.get(name, {}), chance) for name in names}
            try:
                return self._catalog.validate(Call(service=method.service, method=method.name, arguments=values))
            except InvalidInput:
                continue
        return None

    def _wrong(self, meant: tuple[Call, ...], chance: random.Random, kinds: Sequence[str]) -> tuple[Call, ...] | str:
        """A wrong answer: calls, or text that is none."""
        kind = chance.choices(kinds, _WEIGHTS[: len(kinds)])[0]
        call = meant[0]
        siblings = [method for method in self._methods[call.service] if method.name != call.method]
        others = [method for method in self._all if method.service != call.service] if kind == "other service" else []
        if kind == "refusal":
            return chance.choice(_REFUSALS)
        if kind == "malformed":
            return chance.choice(_MALFORMED)(call)
        if kind == "argument":
            changed = self._changed(call, chance)
            if changed is not None:
                return (changed,)
        if kind == "extra call" and siblings:
            extra = self._call(siblings, chance)
            if extra is not None:
                return (call, extra)
        other = self._call(others or siblings or self._all, chance)
        return (other,) if other is not None and other.id != call.id else chance.choice(_REFUSALS)

    def _changed(self, call: Call, chance: random.Random) -> Call | None:
        properties = self._catalog.method(call.id).parameters.get("properties", {})
        for _ in range(_TRIES if call.arguments else 0):
            name = chance.choice(sorted(call.arguments))
            value = example(properties.get(name, {}), chance)
            try:
                made = self._catalog.validate(replace(call, arguments={**call.arguments, name: value}))
            except InvalidInput:
                continue
            if made != call:
                return made
        return None


def simulate(
    model: NoisyModel,
    catalog: Catalog,
    cases: Sequence[tuple[Call, ...]],
    noise: Noise,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    plan: Plan | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Result]:
    """Every way of asking over the same samples, by its name. `plan` stands in for the adaptive one of `confidence`."""
    adaptive = plan or Plan(k=FULL, confidence=confidence, threshold=DEFAULT_THRESHOLD)
    experience = Experience()
    counts = {name: _Counts() for name in (*map(str, FIXED), ADAPTIVE)}
    for number, meant in enumerate(cases):
        texts = model.completions(number, meant, noise)
        read = {text: parse_proposal(text, catalog) for text in dict.fromkeys(texts)}
        samples: list[Sample] = [read[text] for text in texts]
        tally = Tally(catalog)
        needed = set(tally.scopes_of(meant))
        full = tally.vote(samples)
        for k in FIXED:
            made = full if k == FULL else tally.vote(samples[:k])
            counts[str(k)].add(made, full, meant, needed)
        counts[ADAPTIVE].add(_adaptive(tally, samples, adaptive, experience), full, meant, needed)
        progress(number + 1)
    return {name: counted.result(name) for name, counted in counts.items()}


def _adaptive(tally: Tally, samples: Sequence[Sample], plan: Plan, experience: Experience) -> Vote:
    """As `mapper.mapper` does it: ask, vote, ask again."""
    asked = 0
    made = tally.vote([])
    while (more := plan.more(made.votes, asked, experience.habit)) > 0:
        asked += more
        made = tally.vote(samples[:asked])
    experience.observe(made.votes, made.ballots, REJECTIONS)
    return made


@dataclass(slots=True)
class _Counts:
    cases: int = 0
    agreed: int = 0
    samples: int = 0
    right: int = 0
    asked: int = 0
    excessive: int = 0
    insufficient: int = 0

    def add(self, made: Vote, full: Vote, meant: tuple[Call, ...], needed: set[str]) -> None:
        self.cases += 1
        self.samples += made.samples
        self.agreed += _decision(made) == _decision(full)
        if not made.sure:
            self.asked += 1
            return
        best = made.alternatives[0]
        self.right += best.calls == meant
        self.excessive += bool(set(best.scopes) - needed)
        self.insufficient += bool(needed - set(best.scopes))

    def result(self, name: str) -> Result:
        share = 100 / max(self.cases, 1)
        return Result(
            asked=name,
            cases=self.cases,
            agreement_pct=self.agreed * share,
            samples_mean=self.samples / max(self.cases, 1),
            right_pct=self.right * share,
            wrong_pct=(self.cases - self.asked - self.right) * share,
            ask_pct=self.asked * share,
            scope_excessive_pct=self.excessive * share,
            scope_not_sufficient_pct=self.insufficient * share,
        )


def _decision(made: Vote) -> tuple[object, ...]:
    """What a vote decides: whether to ask, the first reading, and its scopes."""
    best = made.alternatives[0] if made.alternatives else None
    return made.sure, best and best.calls, best and best.scopes


def _written(calls: tuple[Call, ...], chance: random.Random) -> str:
    """The calls in one of the forms that models write."""
    forms = [_json, _fenced, _functions, _protocol]
    if all(name.isidentifier() for call in calls for name in (*call.id.split("."), *call.arguments)):
        forms.append(_python)
    return chance.choice(forms)(calls)


def _json(calls: Sequence[Call]) -> str:
    return json.dumps({"calls": [{"name": call.id, "arguments": dict(call.arguments)} for call in calls]})


def _fenced(calls: Sequence[Call]) -> str:
    return f"This should do it:\n```json\n{_json(calls)}\n```"


def _functions(calls: Sequence[Call]) -> str:
    return json.dumps(
        [
            {
                "type": "function",
                "function": {"name": tool_name(call.id), "arguments": json.dumps(dict(call.arguments))},
            }
            for call in calls
        ]
    )


def _protocol(calls: Sequence[Call]) -> str:
    return "\n".join(
        f"Thought: Do I need to use a tool? Yes\nAction: {call.id}\nAction Input: {json.dumps(dict(call.arguments))}"
        for call in calls
    )


def _python(calls: Sequence[Call]) -> str:
    return "\n".join(
        f"{call.id}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})" for call in calls
    )


_REFUSALS = (
    '{"calls": []}',
    "Thought: Do I need to use a tool? No\nAI: I have nothing for that.",
    "[]",
)
_MALFORMED: tuple[Callable[[Call], str], ...] = (
    lambda call: _json((call,))[:-7],
    lambda call: f"You could use {call.id} for that.",
    lambda call: _json((replace(call, method=f"{call.method}Now"),)),
    lambda call: _json((replace(call, arguments={**call.arguments, "force_it": True}),)),
    lambda call: f"import os\nos.system({call.id!r})",
    lambda call: f"Thought: Do I need to use a tool? Yes\nAction: {call.id}",
)
