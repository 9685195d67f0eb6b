"""The rules in force, and what they say of a question.

Rules: one evaluation tells all: a plain forbid that applies forbids; else one with `@effect("ask")` asks; else a permit
permits; else grants decide. Cedar skips a policy that errs, so any error is a denial that names the rule. Only policies
whose head can't fit are left out of an evaluation (a head is compared, never computed), so that leaving out never
changes an answer; what is kept between evaluations is parsed text, never an answer.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from policies.decisions import Request, Ruling
from policies.rules.arguments import TypesOf
from policies.rules.facts import NO_CATALOG, REVERTS, TOOL, Catalogued, Question, questions
from policies.rules.source import EVERYTHING, Effect, Policy, agents_of, joined, read, services_of

DEFAULT_FILE = "default.cedar"
_SLICES = 128
_KEYS = 2048
_ERROR = re.compile(r"policy `policy(\d+)`")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the rules say of one question. `problem` is why it can't be judged; it then counts as a forbid."""

    effect: Effect | None
    rules: tuple[str, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class _Slice:
    """The policies whose heads can fit, parsed, in this order."""

    indices: tuple[int, ...]
    policies: tuple[Policy, ...]
    handle: Any
    reads: frozenset[str] | None
    facts: frozenset[str]


@dataclass(slots=True)
class RuleBook:
    """All rules in force. Immutable as to what it says."""

    policies: tuple[Policy, ...]
    catalog: Catalogued = NO_CATALOG
    _types: TypesOf = field(default_factory=TypesOf)
    _by_resource: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _anywhere: list[int] = field(default_factory=list)
    _slices: OrderedDict[tuple[int, ...], _Slice] = field(default_factory=OrderedDict)
    _keys: OrderedDict[tuple[Any, ...], tuple[tuple[int, ...], Any]] = field(default_factory=OrderedDict)
    _services: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for index, policy in enumerate(self.policies):
            how, kind, id = policy.head.resource
            if how in ("eq", "in", "is in"):
                self._by_resource.setdefault((kind, id), []).append(index)
            else:
                self._anywhere.append(index)

    @classmethod
    def of(cls, texts: Mapping[str, str], catalog: Catalogued = NO_CATALOG) -> RuleBook:
        """The rules of these files, and the default ones unless a file of their name is among these. Raises BadRule."""
        if DEFAULT_FILE not in texts:
            texts = {DEFAULT_FILE: default_text(), **texts}
        return cls(read(texts), catalog)

    def judge(self, request: Request, now: datetime) -> Ruling:
        """What the rules say of a plan: a forbid of one of its calls is a forbid of all."""
        asked = questions(request.plan, agent=request.agent, situation=request.situation, now=now, catalog=self.catalog)
        return ruling(zip(asked, map(self.answer, asked), strict=True), len(request.plan.required))

    def answer(self, question: Question) -> Answer:
        """What the rules say of one question."""
        chosen, entities = self._chosen(question)
        return self._judged(question, chosen, entities)

    def verdicts(self, question: Question) -> tuple[tuple[Policy, Answer], ...]:
        """What each single rule says, for an explanation: those that say something, or can't."""
        chosen, entities = self._chosen(question)
        said = ((self.policies[index], self._judged(question, (index,), entities)) for index in chosen)
        return tuple((policy, answer) for policy, answer in said if answer.effect is not None)

    def naming(self, agent: str) -> tuple[str, ...]:
        """The names of the rules that name this agent, in their head or in their conditions."""
        return tuple(policy.name for policy in self.policies if agent in agents_of(policy))

    def services(self) -> frozenset[str]:
        """The services that rules name, themselves or by a method."""
        if self._services is None:
            self._services = frozenset().union(*map(services_of, self.policies))
        return self._services

    def permits_anywhere(self) -> bool:
        """Whether a permit isn't for one service, method or folder by its head."""
        heads = (policy.head.resource[0] for policy in self.policies if policy.effect is Effect.PERMIT)
        return any(how in ("", "is") for how in heads)

    # ---- inside

    def _chosen(self, question: Question) -> tuple[tuple[int, ...], Any]:
        """The indices of the policies whose heads fit, and the entities that the question is about."""
        key = (question.agent, question.kind, question.resource, question.above)
        found = self._keys.pop(key, None)
        if found is None:
            places = (question.resource, *question.above)
            indices = set(self._anywhere)
            for place in places:
                indices.update(self._by_resource.get(place, ()))
            fitting = tuple(i for i in sorted(indices) if fits(self.policies[i], question))
            found = fitting, _entities(question)
        self._keys[key] = found
        while len(self._keys) > _KEYS:
            self._keys.popitem(last=False)
        return found

    def _slice(self, chosen: tuple[int, ...]) -> _Slice:
        found = self._slices.pop(chosen, None)
        if found is None:
            found = _made(chosen, tuple(self.policies[index] for index in chosen))
        self._slices[chosen] = found
        while len(self._slices) > _SLICES:
            self._slices.popitem(last=False)
        return found

    def _judged(self, question: Question, chosen: tuple[int, ...], entities: Any) -> Answer:
        """The answer of these policies. Those that look at what can't be known aren't evaluated: such a forbid denies,
        such a rule to ask asks, such a permit doesn't permit."""
        part = self._slice(chosen)
        arguments, unknown = question.typed_arguments(part.reads, self._types(question.method))
        hidden = question.hidden if EVERYTHING in part.facts else question.hidden & part.facts
        if not unknown and not hidden:
            return self._evaluate(question, part, arguments, entities)
        blind = {
            index: policy
            for index, policy in zip(part.indices, part.policies, strict=True)
            if _looks_at(policy, unknown, hidden) and fits(policy, question)
        }
        names = tuple(sorted(policy.name for policy in blind.values() if policy.effect is Effect.FORBID))
        if names:
            why = [f"its argument {name}: {text}" for name, text in sorted(unknown.items())]
            return Answer(
                Effect.FORBID, names, "; ".join([*why, *(f"nobody knows its {name} yet" for name in sorted(hidden))])
            )
        rest = self._evaluate(
            question, self._slice(tuple(index for index in chosen if index not in blind)), arguments, entities
        )
        asking = tuple(sorted(policy.name for policy in blind.values() if policy.effect is Effect.ASK))
        if not asking or rest.effect is Effect.FORBID:
            return rest
        return Answer(Effect.ASK, (*asking, *(rest.rules if rest.effect is Effect.ASK else ())))

    def _evaluate(self, question: Question, part: _Slice, arguments: Mapping[str, Any], entities: Any) -> Answer:
        if not part.policies:
            return Answer(None)
        import cedarpy

        request = {
            "principal": {"type": "Agent", "id": question.agent},
            "action": {"type": "Action", "id": question.kind},
            "resource": {"type": question.resource[0], "id": question.resource[1]},
            "context": {**question.context, "arguments": dict(arguments)},
        }
        try:
            result = cedarpy.is_authorized(request, part.handle, entities)
            allowed, reasons, errors = result.allowed, result.diagnostics.reasons, result.diagnostics.errors
        except Exception as error:  # noqa: BLE001  what can't be evaluated denies, whatever the library raises
            return Answer(Effect.FORBID, (), f"rules can't be evaluated ({type(error).__name__})")
        if errors:
            named = sorted(part.policies[int(found[1])].name for found in map(_ERROR.search, errors) if found)
            return Answer(Effect.FORBID, tuple(named), "it looks at something that isn't there")
        said = [part.policies[int(id.removeprefix("policy"))] for id in reasons]
        return _read(said, allowed)


def _read(said: list[Policy], allowed: bool) -> Answer:
    for effect in (Effect.FORBID, Effect.ASK, Effect.PERMIT):
        names = tuple(sorted(policy.name for policy in said if policy.effect is effect))
        if not names:
            continue
        if allowed is not (effect is Effect.PERMIT):
            return Answer(Effect.FORBID, names, "its evaluation contradicts itself")
        return Answer(effect, names)
    if allowed:
        return Answer(Effect.FORBID, (), "it was allowed by no rule that is known")
    return Answer(None)


def ruling(answers: Iterable[tuple[Question, Answer]], needs: int) -> Ruling:
    """What the answers to all questions of a plan come to."""
    forbidding: dict[str, None] = {}
    asking: dict[str, None] = {}
    permitting: dict[int, dict[str, None]] = {index: {} for index in range(needs)}
    unpermitted: set[int] = set()
    problem = ""
    for question, answer in answers:
        if answer.effect is Effect.FORBID:
            problem = problem or (f"{answer.problem}." if answer.problem else "")
            forbidding.update(dict.fromkeys(answer.rules))
            if not answer.rules:
                problem = problem or "it can't be judged."
        elif answer.effect is Effect.ASK:
            asking.update(dict.fromkeys(answer.rules))
        for index in question.needs:
            if answer.effect is Effect.PERMIT:
                permitting[index].update(dict.fromkeys(answer.rules))
            else:
                unpermitted.add(index)
    return Ruling(
        forbid=tuple(forbidding),
        ask=tuple(asking),
        permits={index: tuple(names) for index, names in permitting.items() if names and index not in unpermitted},
        problem=problem,
    )


def fits(policy: Policy, question: Question) -> bool:
    """Whether a policy's head can apply to the question: Cedar's own comparison, without its conditions. A permit that
    names no action is about what GoEx runs: it was never meant for what runs outside of it."""
    head = policy.head
    if question.kind == TOOL and policy.effect is Effect.PERMIT and not head.action_how:
        return False
    if head.action_how:
        groups = {question.kind} | ({"revert"} if question.kind in REVERTS and head.action_how == "in" else set())
        if not groups & set(head.actions):
            return False
    return _fits(head.principal, ("Agent", question.agent), ()) and _fits(
        head.resource, question.resource, question.above
    )


def _fits(constraint: tuple[str, str, str], one: tuple[str, str], above: tuple[tuple[str, str], ...]) -> bool:
    how, kind, id = constraint
    match how:
        case "":
            return True
        case "eq":
            return one == (kind, id)
        case "in":
            return (kind, id) in (one, *above)
        case "is":
            return one[0] == kind
    # "is in": the type that it is may be another than that of what it is in, and only the latter is kept.
    return (kind, id) in (one, *above)


def _looks_at(policy: Policy, unknown: Mapping[str, str], hidden: frozenset[str]) -> bool:
    if policy.reads is None or EVERYTHING in policy.facts:
        return True
    return bool(policy.reads & unknown.keys() or policy.facts & hidden)


def _made(indices: tuple[int, ...], policies: tuple[Policy, ...]) -> _Slice:
    import cedarpy

    reads: set[str] | None = set()
    facts: set[str] = set()
    for policy in policies:
        facts |= policy.facts
        if policy.reads is None:
            reads = None
        elif reads is not None:
            reads |= policy.reads
    handle = cedarpy.PolicySet.from_str(joined(policies)) if policies else None
    return _Slice(indices, policies, handle, None if reads is None else frozenset(reads), frozenset(facts))


def _entities(question: Question) -> Any:
    import json

    import cedarpy

    above = question.above
    made: list[dict[str, Any]] = [_entity(question.resource, above)]
    made += [_entity(place, above[index + 1 :] if place[0] == "Folder" else ()) for index, place in enumerate(above)]
    if question.kind in REVERTS:
        made += [_entity(("Action", question.kind), (("Action", "revert"),)), _entity(("Action", "revert"), ())]
    return cedarpy.Entities.from_json_str(json.dumps(made))


def _entity(one: tuple[str, str], parents: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {
        "uid": {"type": one[0], "id": one[1]},
        "attrs": {},
        "parents": [{"type": kind, "id": id} for kind, id in parents[:1]],
    }


@cache
def default_text() -> str:
    """The rules that come with GoEx, as a file with its comments."""
    return (files("policies.rules") / DEFAULT_FILE).read_text(encoding="utf-8")
