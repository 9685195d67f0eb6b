"""After a crash: what a probe's answer means. Pure.

Rules: a probe is a read whose expectations hold exactly when the effect happened. An answer that is no answer to the
question (the service failed, the credential isn't taken) leaves it unknown; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from policies.display_text import escape
from policies.services import Service
from runtimes.rest.expectations import holds
from runtimes.rest.plan_text import heading
from runtimes.rest.records import Answer, Ledger
from runtimes.rest.steps import Step

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


def settle_answer(ledger: Ledger, request: str, verdict: Verdict) -> None:
    """Enter what a probe found about a sent request that has no answer."""
    if verdict is Verdict.HAPPENED:
        ledger.answers[request] = _NOBODY
    elif verdict is Verdict.NOT:
        ledger.sent.remove(request)
        ledger.answers[request] = replace(_NOBODY, well=False, failed="a probe found that it did not happen", text="")


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


def reverted_since(steps: Sequence[Step], ledger: Ledger) -> tuple[str, ...]:
    """What an undo that stopped half way left: then the outcome of the action isn't what is there now."""
    lines = []
    for step in steps:
        if step.role == "call" and step.call in ledger.undone:
            lines.append(f"Taken back since: {heading(step)}")
        elif step.role == "call" and step.call in ledger.doubtful:
            lines.append(f"Its undo was sent, and not confirmed: {heading(step)}")
    return tuple(lines)
