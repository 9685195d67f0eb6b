"""The evaluation of scopes: requests in, a proposer or the rule over them, the figures out.

Deterministic but for the latencies. The catalog is `alone.Alone`: Google's, without any service of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from mapper.embedded import EmbeddedProposer
from mapper.evaluation import oracle, retrieval
from mapper.evaluation.alone import Alone
from mapper.evaluation.request_sets import Request
from mapper.evaluation.scope_table import Answer, Candidate, Decision, Judge, Row, figures
from mapper.least_scopes import least_scopes
from policies.errors import GoexError

EMBEDDED, ORACLE = "embedded", "oracle"

Progress = Callable[[int], None]


def embedded(alone: Alone, requests: Sequence[Request], progress: Progress = lambda _: None) -> list[Row]:
    """The embedded proposer over the requests."""
    proposer, judge = alone.proposer(), Judge(alone.catalog)
    rows = []
    for done, request in enumerate(requests, 1):
        rows.append(judge.row(request, answered(proposer, alone, request)))
        progress(done)
    return rows


def answered(proposer: EmbeddedProposer, alone: Alone, request: Request) -> Answer:
    """What the embedded proposer does with one request, least scopes included."""
    began = time.perf_counter()
    proposed = proposer.propose(request.text)
    best = proposed.readings[0] if proposed.readings else None
    if best is not None and best.calls:
        with suppress(GoexError):  # timed alone: the judge asks again
            least_scopes(alone.catalog, best.calls, frozenset(), words=request.text)
    milliseconds = 1000 * (time.perf_counter() - began)
    runs = best is not None and not best.missing and not proposed.declined
    decision: Decision = "executed" if proposed.sure and runs else "asked"
    return Answer(
        decision="declined" if proposed.declined or best is None else decision,
        candidates=tuple(
            Candidate(tuple(alone.catalog.method(call.id) for call in one.calls) or (one.method,), one.calls)
            for one in proposed.readings
        ),
        confidence=best.probability if best is not None and runs else None,
        samples=1,
        milliseconds=milliseconds,
        notes=proposed.notes,
    )


def retrieved(alone: Alone, requests: Iterable[Request], progress: Progress = lambda _: None) -> dict[str, Any]:
    """`service_top1_pct` and `recall_at` of the ranking, over the requests that something serves."""
    judged = []
    for done, request in enumerate(requests, 1):
        if request.ways:
            wanted = retrieval.Wanted(request.id, request.text, tuple(tuple(sorted(way)) for way in request.ways))
            judged.append(retrieval.judge(alone.index, wanted))
        progress(done)
    found = retrieval.report(judged)
    return {key: found[key] if judged else None for key in ("service_top1_pct", "recall_at")}


def report(method: str, rows: Sequence[Row], ranking: dict[str, Any]) -> dict[str, Any]:
    """Every figure of a method, as JSON."""
    return {"method": method, **figures(rows), **ranking}


def rule(alone: Alone, requests: Iterable[Request]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The rule for least scopes with the right methods given (`oracle`), and its mistakes: the same keys as of
    `report`, None where they mean nothing.

    `n` counts the requests that have methods and least scopes; nothing is asked, since the rule always answers.
    """
    found = oracle.measure(alone.catalog, (request.raw for request in requests))
    empty = dict.fromkeys(figures(()))
    return {
        "method": ORACLE,
        **empty,
        "service_top1_pct": None,
        "recall_at": None,
        "n": found.cases,
        "answerable": found.cases,
        "accepted_pct": found.accepted_pct,
        "scope_excessive_pct": found.excessive_pct,
        "excessive_executed_pct": found.excessive_pct,
        "scope_not_sufficient_pct": found.insufficient_pct,
        "accuracy_at_once_pct": found.accepted_pct,
        "accuracy_after_asking_pct": 0.0,
        "accuracy_total_pct": found.accepted_pct,
        "ask_pct": 0.0,
    }, [asdict(one) for one in found.failures]


__all__ = ("EMBEDDED", "ORACLE", "answered", "embedded", "report", "retrieved", "rule")
