"""Self-consistency: what most samples agree on, and how much they do.

First the structure (which methods, on which accounts, in which order where it matters), then each argument within the
winning structure. Agreement is the weakest link: the share of *all* samples, rejected ones too, that stand behind the
structure and behind every single argument. Below the threshold, at a tie, or when nothing fits, the result isn't sure,
and the person chooses. Everything is deterministic: equal samples in any order give one result.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from mapper.validation import references
from policies.actions import Alternative, Call, Clarification, Klass, Rejected
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical
from policies.typed_json import to_json

DEFAULT_THRESHOLD = 0.6
MAX_ALTERNATIVES = 5

REJECTIONS = frozenset(get_args(Klass))

Sample = tuple[Call, ...] | Rejected | Clarification
_ABSENT = b"\0absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """The result over all samples. `alternatives` best first; none of them when most say that nothing fits.

    `votes` stand behind the winner at its weakest choice, the saying that nothing fits included. `ballots` has one
    entry a sample, in their order: the beginning of its calls' SHA-256, "nothing", "question", or the class of its
    rejection. `clarification`: what at least as many samples ask as stand behind any calls, which stay alternatives.
    """

    alternatives: tuple[Alternative, ...]
    agreement: float
    votes: int
    samples: int
    rejected: tuple[Rejected, ...]
    ballots: tuple[str, ...]
    sure: bool
    notes: tuple[str, ...] = ()
    clarification: Clarification | None = None


def vote(
    samples: Sequence[Sample],
    *,
    scopes_of: Callable[[tuple[Call, ...]], tuple[str, ...]],
    check: Callable[[tuple[Call, ...]], tuple[Call, ...]],
    is_read: Callable[[Call], bool],
    threshold: float = DEFAULT_THRESHOLD,
) -> Vote:
    """Vote over validated samples.

    `scopes_of` gives the least scopes of calls as "service:scope"; `check` validates a combination that no sample
    wrote as a whole (InvalidInput: the most frequent whole sample is taken instead); `is_read` says that a call changes
    nothing, so that its place among other such calls means nothing.
    """
    total = len(samples)
    rejected = tuple(sample for sample in samples if isinstance(sample, Rejected))
    ballots = tuple(_ballot(sample, is_read) for sample in samples)
    asks = [sample for sample in samples if isinstance(sample, Clarification)]
    taken = sorted((_ordered(sample, is_read) for sample in samples if isinstance(sample, tuple)), key=key_of)
    if asks and len(asks) >= max(Counter(_structure(sample) for sample in taken).values(), default=0):
        return _question(asks, taken, total, rejected, ballots, scopes_of)
    if not taken:
        note = "No proposal could be taken." if total else "There was no proposal."
        return Vote(
            alternatives=(),
            agreement=0.0,
            votes=0,
            samples=total,
            rejected=rejected,
            ballots=ballots,
            sure=False,
            notes=(note,),
        )

    structures = Counter(_structure(sample) for sample in taken)
    best = max(structures, key=lambda structure: (structures[structure], structure != (), structure))
    tie = sum(votes == structures[best] for votes in structures.values()) > 1
    group = [sample for sample in taken if _structure(sample) == best]
    winner, votes, torn = _merge(group, check)
    agreement = votes / total
    if not winner:
        note = "The proposals say that nothing in the catalog fits."
        return Vote(
            alternatives=(),
            agreement=agreement,
            votes=votes,
            samples=total,
            rejected=rejected,
            ballots=ballots,
            sure=False,
            notes=(note,),
        )
    whole = Counter(key_of(sample) for sample in taken)
    by_key = {key_of(sample): sample for sample in taken}
    ranked = sorted(whole, key=lambda key: (-whole[key], key))
    others = [by_key[key] for key in ranked if key != key_of(winner) and by_key[key]]
    alternatives = [Alternative(calls=winner, scopes=scopes_of(winner), votes=votes, score=agreement)]
    for calls in others[: MAX_ALTERNATIVES - 1]:
        count = whole[key_of(calls)]
        alternatives.append(Alternative(calls=calls, scopes=scopes_of(calls), votes=count, score=count / total))
    notes = []
    if tie or torn:
        notes.append("Two readings have equally many votes.")
    elif agreement < threshold:
        notes.append(f"Only {votes} of {total} proposals agree.")
    return Vote(
        alternatives=tuple(alternatives),
        agreement=agreement,
        votes=votes,
        samples=total,
        rejected=rejected,
        ballots=ballots,
        sure=not tie and not torn and agreement >= threshold,
        notes=tuple(notes),
    )


def _question(
    asks: Sequence[Clarification],
    taken: Sequence[tuple[Call, ...]],
    total: int,
    rejected: tuple[Rejected, ...],
    ballots: tuple[str, ...],
    scopes_of: Callable[[tuple[Call, ...]], tuple[str, ...]],
) -> Vote:
    """The result where most would have to ask: the most frequent question, and the calls that others proposed."""
    texts = Counter(canonical(to_json(ask)) for ask in asks)
    chosen = max(asks, key=lambda ask: (texts[canonical(to_json(ask))], canonical(to_json(ask))))
    whole = Counter(key_of(sample) for sample in taken if sample)
    by_key = {key_of(sample): sample for sample in taken}
    ranked = sorted(whole, key=lambda key: (-whole[key], key))[:MAX_ALTERNATIVES]
    alternatives = tuple(
        Alternative(calls=by_key[key], scopes=scopes_of(by_key[key]), votes=whole[key], score=whole[key] / total)
        for key in ranked
    )
    return Vote(
        alternatives=alternatives,
        agreement=len(asks) / total,
        votes=len(asks),
        samples=total,
        rejected=rejected,
        ballots=ballots,
        sure=False,
        notes=("The model would have to know more first.",),
        clarification=chosen,
    )


def _merge(
    group: Sequence[tuple[Call, ...]], check: Callable[[tuple[Call, ...]], tuple[Call, ...]]
) -> tuple[tuple[Call, ...], int, bool]:
    """The majority's value for each argument of calls of one structure, the votes of its weakest choice, and whether
    some choice was a tie."""
    whole = Counter(key_of(sample) for sample in group)
    frequent = max(group, key=lambda sample: (whole[key_of(sample)], key_of(sample)))
    weakest, torn = len(group), False
    merged: list[Call] = []
    for position, call in enumerate(frequent):
        arguments: dict[str, JsonValue] = {}
        for name in sorted({name for sample in group for name in sample[position].arguments}):
            values = [sample[position].arguments.get(name, _ABSENT) for sample in group]
            counts = Counter(_bytes(value) for value in values)
            preferred = _bytes(call.arguments.get(name, _ABSENT))
            winner = max(counts, key=lambda key: (counts[key], key == preferred, key))
            weakest = min(weakest, counts[winner])
            torn = torn or sum(count == counts[winner] for count in counts.values()) > 1
            if winner != _ABSENT:
                arguments[name] = next(value for value in values if _bytes(value) == winner)
        merged.append(replace(call, arguments=arguments))
    made = tuple(merged)
    if key_of(made) == key_of(frequent):
        return frequent, weakest, torn
    try:
        return check(made), weakest, torn
    except InvalidInput:
        return frequent, min(weakest, whole[key_of(frequent)]), torn


def _bytes(value: JsonValue) -> bytes:
    return _ABSENT if value is _ABSENT else canonical(value)


def _ordered(calls: tuple[Call, ...], is_read: Callable[[Call], bool]) -> tuple[Call, ...]:
    """Calls that don't build on each other, and are all reads, in one order: there their order means nothing.

    Calls are kept as they were written wherever a value or an effect could depend on their order.
    """
    if len(calls) < 2 or any(True for call in calls for _ in references(call.arguments)):
        return calls
    if not all(is_read(call) for call in calls):
        return calls
    return tuple(sorted(calls, key=lambda call: canonical(to_json(call))))


def _ballot(sample: Sample, is_read: Callable[[Call], bool]) -> str:
    if isinstance(sample, Clarification):
        return "question"
    if isinstance(sample, Rejected):
        return sample.klass
    return hashlib.sha256(key_of(_ordered(sample, is_read))).hexdigest()[:16] if sample else "nothing"


def _structure(calls: tuple[Call, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((call.id, call.account) for call in calls)


def key_of(calls: tuple[Call, ...]) -> bytes:
    """The calls as bytes: equal ones are the same calls."""
    return canonical([to_json(call) for call in calls])
