"""What an undo says about the pairs that it used. Pure but for the record.

Rules: a pair worked when its read-back holds; it failed when a good answer to its read-back shows that what was to be
taken back wasn't, or when the service says that the undo's own request is wrong. Everything else (no permission, a
service that breaks down or asks for patience, something that is gone, a conflict) says nothing about the pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapper.catalog import Catalog
from policies.reversions import Result, ReversionSet, Use
from runtimes.rest.expectations import holds, unmet
from runtimes.rest.planner import PlannedUndo
from runtimes.rest.records import Answer, Ledger
from runtimes.rest.steps import Step

_WRONG = frozenset({400, 405, 411, 413, 414, 415, 422, 501})
_GONE = frozenset({404, 410})


def uses(
    action: str,
    undos: Sequence[PlannedUndo],
    steps: Sequence[Step],
    own: Ledger,
    failing: Step | None,
    catalog: Catalog,
) -> tuple[Use, ...]:
    """What became of each pair, of calls for which that is known. `own` are the answers to `steps`."""
    made = []
    for undo in undos:
        mine = [step for step in steps if step.call == undo.call]
        if not undo.pair or not mine:
            continue
        result, why = _result(mine, own, failing, catalog)
        if result is not Result.OPEN:
            made.append(Use(pair=undo.pair, action=action, call=undo.call, result=result, why=why))
    return tuple(made)


def record(found: Sequence[Use], reversions: ReversionSet) -> None:
    """Note them, durably."""
    for use in found:
        reversions.used(use)


def _result(steps: Sequence[Step], own: Ledger, failing: Step | None, catalog: Catalog) -> tuple[Result, str]:
    verify = [step for step in steps if step.role == "verify"]
    if verify and all(own.done(step.id) for step in verify):
        return Result.WORKED, ""
    if not verify and all(own.done(step.id) for step in steps):
        return Result.UNVERIFIED, ""
    if failing is None or failing not in steps or failing.id not in own.answers:
        return Result.OPEN, ""
    answer = own.answers[failing.id]
    if failing.role == "undo" and answer.status in _WRONG:
        return Result.FAILED, f"{failing.method_id} answered {answer.status}"
    if failing.role == "verify" and _is_good(failing, answer, catalog):
        lines = unmet(failing.request.expect, answer.status, answer.body)
        return Result.FAILED, f"{failing.method_id}: {'; '.join(lines) or answer.failed}"[:500]
    return Result.OPEN, ""


def _is_good(step: Step, answer: Answer, catalog: Catalog) -> bool:
    """Whether an answer shows what is there, as far as the service's own idea of a good answer goes."""
    if answer.status in _GONE:
        return True
    if not 200 <= answer.status < 300 or (answer.whole and answer.body is None and answer.text):
        return False
    return all(holds(expect, answer.status, answer.body) for expect in catalog.service(step.service).success)
