"""What an answer shows: whether an expectation holds, what a probe found, whether an undo pair worked. Pure.

- The gateway is who enforces expectations; here they are only explained, on the same answer.
- A probe is a read whose expectations hold exactly when the effect happened. An answer that is no answer to the
  question (the service failed, the credential isn't taken) leaves it unknown; nothing is guessed.
- A pair worked when its read-back holds; it failed when a good answer to its read-back shows that what was to be taken
  back wasn't, or when the service says that the undo's own request is wrong. Everything else (no permission, a service
  that breaks down or asks for patience, something that is gone, a conflict) says nothing about the pair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from mapper.catalog import Catalog
from policies.display_text import counted, escape, shorten
from policies.graphql import answers_well
from policies.jsonvalue import JsonValue, MissingValue, canonical, find
from policies.reversions import Result, ReversionSet, Use
from policies.services import Expect, Service
from runtimes.gateway.response_values import holds_of_list
from runtimes.rest.plan_text import heading
from runtimes.rest.planner import PlannedUndo
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.steps import Step

_MISSING: Any = object()


def unmet(expects: Iterable[Expect], status: int, body: JsonValue) -> tuple[str, ...]:
    """A line for each expectation that doesn't hold, escaped: what it means, what was expected, what is there."""
    return tuple(_difference(expect, status, body) for expect in expects if not holds(expect, status, body))


def holds(expect: Expect, status: int, body: JsonValue) -> bool:
    """Whether one expectation (its value literal) holds. An unknown operation doesn't."""
    if expect.op == "status":
        return isinstance(expect.value, list | tuple) and status in expect.value
    if expect.op == "data":
        return answers_well(expect, body)
    found = _found(expect, body)
    match expect.op:
        case "exists":
            return found is not _MISSING
        case "absent":
            return found is _MISSING
        case "equals":
            return found is not _MISSING and canonical(found) == canonical(expect.value)
        case "not_equals":
            return found is _MISSING or canonical(found) != canonical(expect.value)
        case "contains" | "lacks":
            return body is not None and holds_of_list(expect.op, [] if found is _MISSING else found, expect.value)
    return False


def _found(expect: Expect, body: JsonValue) -> Any:
    try:
        return find(body, expect.path)
    except MissingValue:
        return _MISSING


def _difference(expect: Expect, status: int, body: JsonValue) -> str:
    says = f"{expect.says.rstrip('.')}: " if expect.says else ""
    if expect.op == "status":
        wanted_status = " or ".join(map(str, expect.value)) if isinstance(expect.value, list) else _shown(expect.value)
        return escape(f"{says}expected status {wanted_status}, and it is {status}")
    if expect.op == "data":
        return escape(f"{says}{_shown(body)}")
    found = _found(expect, body)
    there = "nothing is there" if found is _MISSING else f"{_shown(found)} is there"
    wanted = {
        "exists": "something was expected",
        "absent": "nothing was expected",
        "equals": f"{_shown(expect.value)} was expected",
        "not_equals": f"anything but {_shown(expect.value)} was expected",
        "contains": f"every one of {_shown(expect.value)} was expected",
        "lacks": f"none of {_shown(expect.value)} was expected",
    }[expect.op]
    return escape(f"{says}at {expect.path} {wanted}, {there}")


def _shown(value: JsonValue) -> str:
    text, cut = shorten(json.dumps(value, ensure_ascii=False), 300)
    return f"{text}… ({counted(cut, 'more character')})" if cut else text


_NOBODY = Answer(status=0, well=True, failed="", body=None, text="It happened: a probe found it, its answer is lost.")


class Verdict(Enum):
    """What is known about one sent request."""

    HAPPENED = "happened"
    NOT = "did not happen"
    UNKNOWN = "unknown"


def judge(probe: Step, answer: Answer | None, service: Service) -> Verdict:
    """What the answer to `probe` says."""
    if answer is None or answer.status in (401, 403, 407, 408, 429) or answer.status >= 500:
        return Verdict.UNKNOWN
    about_status = any(expect.op == "status" for expect in probe.request.expect)
    if not 200 <= answer.status < 300:
        if about_status and answer.well:
            return Verdict.HAPPENED
        return Verdict.NOT if answer.status in (404, 410) else Verdict.UNKNOWN
    common = [expect for expect in probe.request.expect if expect in service.success]
    if not all(holds(expect, answer.status, answer.body) for expect in common):
        return Verdict.UNKNOWN
    return Verdict.HAPPENED if answer.well else Verdict.NOT


def settle_answer(call_record: CallRecord, request: str, verdict: Verdict) -> None:
    """Enter what a probe found about a sent request that has no answer."""
    if verdict is Verdict.HAPPENED:
        call_record.answers[request] = _NOBODY
    elif verdict is Verdict.NOT:
        call_record.sent.remove(request)
        call_record.answers[request] = replace(
            _NOBODY, well=False, failed="a probe found that it did not happen", text=""
        )


def evidence(step: Step, known: Answer | None, probe: Step | None, answer: Answer | None) -> tuple[str, ...]:
    """What a person needs to look for themselves: about a call whose own answer is `known`, and what a probe found."""
    said = "no answer to it is recorded" if known is None else f"its answer (status {known.status}) leaves it open"
    lines = [f"Call {step.call + 1} was sent, and {said}: {heading(step)}"]
    if probe is None:
        lines.append("The catalog knows no way to ask the service whether it happened.")
    elif answer is None:
        lines.append(f"The service could be asked, but didn't answer: {heading(probe)}")
    else:
        said = answer.failed or f"status {answer.status}"
        lines.append(escape(f"The service was asked, and its answer settles nothing: {said}"))
    return tuple(lines)


def reverted_since(steps: Sequence[Step], call_record: CallRecord) -> tuple[str, ...]:
    """What an undo that stopped half way left: then the outcome of the action isn't what is there now."""
    lines = []
    for step in steps:
        if step.role == "call" and step.call in call_record.undone:
            lines.append(f"Taken back since: {heading(step)}")
        elif step.role == "call" and step.call in call_record.doubtful:
            lines.append(f"Its undo was sent, and not confirmed: {heading(step)}")
    return tuple(lines)


_WRONG = frozenset({400, 405, 411, 413, 414, 415, 422, 501})
_GONE = frozenset({404, 410})


def uses_of(
    action: str,
    undos: Sequence[PlannedUndo],
    steps: Sequence[Step],
    own: CallRecord,
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


def record_uses(found: Sequence[Use], reversions: ReversionSet) -> None:
    """Note them, durably."""
    for use in found:
        reversions.used(use)


def _result(steps: Sequence[Step], own: CallRecord, failing: Step | None, catalog: Catalog) -> tuple[Result, str]:
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
