"""Rules that would have answered questions of the past: the narrowest permits, from what the person answered.

Rules: only a yes to one call of a named agent counts, and only method, account and the argument values that the person
saw; no wish, reason or description. A rule names one agent, method and account. An argument is held to values that
were approved at least twice; it may be anything only where different values were approved on several days (which no
agent makes), in a change only where the catalog says who is reached, all of them held, and in a read only where it is
a number or a yes or no: how much is read may vary, what is read was seen. What wasn't there may not be there. Nothing
that deletes, administers or can't be undone is in a rule; a call that was ever denied is in none.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import prod
from typing import Literal

from policies.actions import ApiCalls, Plan, UndoClass
from policies.decisions import Allow, Request, Rules, decide
from policies.grants import ANONYMOUS, PERSON
from policies.jsonvalue import canonical
from policies.rules.arguments import types_of
from policies.rules.audience import names_reached
from policies.rules.book import DEFAULT_FILE, RuleBook
from policies.rules.cedar_text import Path, has, held_to, leaves, quoted
from policies.rules.facts import Catalogued, Question, Situation, questions
from policies.rules.source import MAX_TOKENS, Effect
from policies.services import Method, Risk

FILE = "suggested.cedar"
LEAST = 2  # times that a value was approved before a rule is held to it
DAYS = 3  # on which different values were approved before an argument may be anything
MOST_VALUES = 8  # of one argument
MOST_RULES = 50
_AMOUNTS = frozenset({"Long", "Boolean", "Extension"})  # Cedar's types; the extension is decimal
Answer = Literal["yes", "no", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of the past: what it was about, what the person answered ("": nothing), and when."""

    agent: str
    plan: Plan
    answer: Answer
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One permit. `free` are the arguments that may be anything, `values` those of the others; `answers` how many
    questions that you answered with yes it would have answered, `unanswered` how many that you didn't answer, and `new`
    how many combinations of its values were never approved."""

    text: str
    agent: str
    method: str
    account: str
    risk: str
    free: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]
    answers: int = 0
    unanswered: int = 0
    new: int = 0

    @property
    def name(self) -> str:
        return _name(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """What is suggested, replayed over all questions: how many there were, how many of those the rules would have
    answered, and how many were denied (of which none is answered)."""

    rules: tuple[Suggestion, ...] = ()
    asked: int = 0
    answered: int = 0
    denied: int = 0
    unanswered: int = 0

    @property
    def text(self) -> str:
        """The file of rules."""
        return _joined(one.text for one in self.rules)


def suggested(history: Iterable[Asked], files: Mapping[str, str], catalog: Catalogued) -> Suggested:
    """What these questions suggest beside the rules in force (`files`). Raises BadRule where those can't be read."""
    every = tuple(one for one in history if isinstance(one.plan.action, ApiCalls))
    in_force = RuleBook.of(files, catalog)
    asked = tuple(one for one in every if not _allowed(in_force, one))
    groups: dict[_Group, list[_Example]] = {}
    for one in asked:
        if one.answer == "yes":
            for group, example in _examples(one, catalog):
                groups.setdefault(group, []).append(example)
    kept = [made for group, examples in groups.items() if (made := _made(group, examples, free=True)) is not None]
    kept = _without_denied(kept, [one for one in every if one.answer == "no"], catalog)
    rules = [one.suggestion for one in kept]
    if not rules:
        return _counted((), asked)
    beside = f"{files.get(FILE, '')}\n{_joined(one.text for one in rules)}"
    answered = _answered(RuleBook.of({**files, FILE: beside}, catalog), asked)
    used = [_used(one, asked, answered) for one in rules]
    best = sorted((one for one in used if one.answers >= LEAST), key=lambda one: (-one.answers, one.text))[:MOST_RULES]
    beside = f"{files.get(FILE, '')}\n{_joined(one.text for one in best)}"
    answered = _answered(RuleBook.of({**files, FILE: beside}, catalog), asked)
    return _counted(tuple(_used(one, asked, answered) for one in best), asked, answered)


def added(before: str, texts: Iterable[str]) -> str:
    """A file of rules with these suggested ones at its end; one that stands there stays as it is."""
    new = _joined(text for text in texts if quoted(_name(text)) not in before)
    return "\n".join(part for part in (before.rstrip("\n"), new) if part) if new else before


@dataclass(frozen=True, slots=True)
class _Group:
    """Calls that one rule may be for: alike but for the values of their arguments."""

    agent: str
    method: Method
    account: str
    risk: Risk
    names: frozenset[Path]

    def __hash__(self) -> int:
        return hash((self.agent, self.method.id, self.account, self.risk, self.names))


@dataclass(frozen=True, slots=True)
class _Example:
    values: Mapping[Path, str]  # as Cedar writes them
    day: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    suggestion: Suggestion
    group: _Group = field(compare=False)
    examples: tuple[_Example, ...] = field(compare=False)


def _examples(one: Asked, catalog: Catalogued) -> Iterable[tuple[_Group, _Example]]:
    """What a yes says: its one call, and what GoEx reads beside it for the call's undo."""
    plan = one.plan
    assert isinstance(plan.action, ApiCalls)
    if one.agent in (ANONYMOUS, PERSON) or len(plan.action.calls) != 1 or plan.unseen:
        return
    if plan.risk > Risk.WRITE or (plan.undo_class is UndoClass.IRREVERSIBLE and plan.risk > Risk.READ):
        return
    told: set[bytes] = set()
    for question in _questions(one, catalog):
        said = canonical([question.resource, question.arguments, sorted(question.needs)])
        if not question.needs or said in told:
            continue  # by another of a folder's paths nothing is permitted; another spelling is the same yes
        told.add(said)
        method = question.method
        risk = max((plan.required[index].risk for index in question.needs), default=Risk.DELETE)
        values = leaves(method.parameters, question.arguments) if method is not None else None
        if method is not None and values is not None:
            group = _Group(one.agent, method, str(question.context["account"]), risk, frozenset(values))
            yield group, _Example(values, one.at.date().isoformat())


def _made(group: _Group, examples: Sequence[_Example], *, free: bool) -> _Candidate | None:
    """The narrowest rule for most of these; without `free` each argument has values. None where nothing recurs."""
    names = sorted(group.names)
    counts = {name: Counter(one.values[name] for one in examples) for name in names}
    open_ = {name for name in names if free and _may_be_free(group, name, counts[name], examples)}
    fitting = [
        one for one in examples if all(counts[name][one.values[name]] >= LEAST for name in names if name not in open_)
    ]
    values = {name: tuple(sorted({one.values[name] for one in fitting})) for name in names if name not in open_}
    if len(fitting) < LEAST or any(len(each) > MOST_VALUES for each in values.values()):
        return None
    seen = {tuple(one.values[name] for name in values) for one in fitting}
    text = _text(group, values)
    if len(text) // 2 > MAX_TOKENS:
        return None
    made = Suggestion(
        text=text,
        agent=group.agent,
        method=group.method.id,
        account=group.account,
        risk=group.risk.word,
        free=tuple(".".join(name) for name in sorted(open_)),
        values={".".join(name): each for name, each in values.items()},
        new=prod(len(each) for each in values.values()) - len(seen),
    )
    return _Candidate(made, group, tuple(examples))


def _may_be_free(group: _Group, name: Path, counts: Counter[str], examples: Sequence[_Example]) -> bool:
    """Whether an argument's values don't recur, over several days, and are no matter of who is reached."""
    if sum(count for count in counts.values() if count >= LEAST) * 2 > counts.total():
        return False
    first: dict[str, str] = {}
    for one in examples:
        first.setdefault(one.values[name], one.day)
    if len(set(first.values())) < DAYS:
        return False
    if group.risk <= Risk.READ:
        return _type(group.method, name) in _AMOUNTS
    return names_reached(group.method, name) is False


def _type(method: Method, name: Path) -> str:
    kind = types_of(method.parameters)[name[0]]
    for member in name[1:]:
        kind = kind["attributes"][member]
    return str(kind["type"])


def _text(group: _Group, values: Mapping[Path, tuple[str, ...]]) -> str:
    held = [f"context.account == {quoted(group.account)}"]
    if group.risk > Risk.READ:
        held.append('context.undo != Undo::"irreversible"')
    held += [held_to(name, values.get(name, ())) for name in sorted(group.names)]
    absent = has(group.method.parameters, group.names)
    when = "\n  && ".join(held)
    head = (
        f'permit (principal == Agent::{quoted(group.agent)}, action == Action::"call",'
        f" resource == Method::{quoted(group.method.id)})\nwhen {{ {when} }}"
    )
    unless = f"\nunless {{ {' || '.join(absent)} }}" if absent else ""
    return f"{head}{unless};"


def _without_denied(candidates: list[_Candidate], denied: Sequence[Asked], catalog: Catalogued) -> list[_Candidate]:
    """The candidates of which none permits a call of a denied action: narrowed once, else left out."""
    wanted = [
        question
        for one in denied
        for question in _questions(one, catalog)
        if (question.resource[1], str(question.context["account"])) in _own(one)
    ]
    kept = candidates
    for narrowed in (True, False):
        book = RuleBook.of({DEFAULT_FILE: "", FILE: _joined(one.suggestion.text for one in kept)}, catalog)
        bad = {name for question in wanted for name in _permitting(book, question)}
        good = [one for one in kept if one.suggestion.name not in bad]
        if not bad:
            return kept
        again = [_made(one.group, one.examples, free=False) for one in kept if one.suggestion.name in bad]
        kept = good + ([one for one in again if one is not None] if narrowed else [])
    return kept


def _permitting(book: RuleBook, question: Question) -> tuple[str, ...]:
    answer = book.answer(question)
    return answer.rules if answer.effect is Effect.PERMIT else ()


def _own(one: Asked) -> set[tuple[str, str]]:
    assert isinstance(one.plan.action, ApiCalls)
    return {(f"{call.service}.{call.method}", call.account) for call in one.plan.action.calls}


def _questions(one: Asked, catalog: Catalogued) -> tuple[Question, ...]:
    return questions(one.plan, agent=one.agent, situation=Situation(), now=one.at, catalog=catalog)


def _allowed(rules: Rules, one: Asked) -> tuple[str, ...]:
    """The rules by which it runs unasked; () where it doesn't."""
    request = Request(agent=one.agent, session="", digest="replayed", plan=one.plan)
    decision = decide(request, (), rules, one.at)
    return decision.rules if isinstance(decision, Allow) else ()


def _answered(rules: Rules, asked: Sequence[Asked]) -> list[tuple[str, ...]]:
    return [_allowed(rules, one) for one in asked]


def _used(one: Suggestion, asked: Sequence[Asked], answered: Sequence[tuple[str, ...]]) -> Suggestion:
    by_it = Counter(each.answer for each, names in zip(asked, answered, strict=True) if one.name in names)
    return replace(one, answers=by_it["yes"], unanswered=by_it[""])


def _counted(
    rules: tuple[Suggestion, ...], asked: Sequence[Asked], answered: Sequence[tuple[str, ...]] = ()
) -> Suggested:
    by_answer = Counter(one.answer for one, names in zip(asked, answered, strict=False) if names)
    if by_answer["no"]:
        return Suggested(asked=len(asked))  # can't be: each was left out above
    return Suggested(
        rules=rules,
        asked=len(asked),
        answered=by_answer["yes"],
        denied=sum(one.answer == "no" for one in asked),
        unanswered=by_answer[""],
    )


def _name(text: str) -> str:
    return f"suggested-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(f"@id({quoted(_name(text))})\n{text}\n" for text in texts)
