"""What a run amounts to, in one `Outcome`. Pure.

Rules: a call is done when the gateway saw it answered well, whatever the container said. Nothing was touched only when
each request that can change something either never left or was refused by the service in so many words. A sent request
without an answer is said to be just that. The summary, which a model reads as GoEx's own, holds nothing that a service,
a server or a container wrote: that is in the results, as data, and for the person in `details`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mapper.catalog import Catalog
from policies.actions import Outcome
from policies.display_text import escape, shorten
from policies.jsonvalue import JsonValue, canonical
from runtimes.rest.plan_text import reference
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import refs_in
from runtimes.rest.run import Report
from runtimes.rest.steps import Step

MAX_RESULTS = 500_000  # bytes of all results together: they are journaled, and handed to whoever asked
MAX_SAID = 200  # characters of an answer in the details
_MOST_ERRORS = 20  # of a list of errors that are looked at
_ERRORS = ("error", "errors", "details")  # where answers keep why
# Their codes (Slack, Dropbox; RFC 6750 and Spotify; Google) and where the scopes stand.
_LACKING = frozenset(
    {
        "missing_scope", "insufficient_scope", "insufficient client scope", "access_token_scope_insufficient",
        "insufficientpermissions",
    }
)  # fmt: skip
_SOMETHING = "a permission that this call needs"
_NAMED = ("needed", "required_scope", "required_scopes", "scope", "scopes")
NO_ANSWER = "was sent, but no answer to it is known, so it can't be known whether it happened"


def forward(
    steps: Sequence[Step], call_record: CallRecord, report: Report, catalog: Catalog, *, left: str = ""
) -> Outcome:
    """The outcome of an action (or of its redo): `steps` are all that were planned. `left`: why it can't be taken back,
    after what was answered."""
    calls = [step for step in steps if step.role == "call"]
    done = [step for step in calls if call_record.done(step.id)]
    failing = next((step for step in steps if not call_record.done(step.id)), None)
    ok = failing is None or len(done) == len(calls)
    if ok or failing is None:
        summary = _well(calls, call_record)
    else:
        summary = _badly(calls, done, failing, why_not(failing, call_record, report, catalog))
    if report.unkept:
        summary += escape(f" It can't be taken back here: {report.unkept}.")
    elif left:
        summary += escape(f" It can't be taken back: {left}.")
    unsure = not ok and bool(call_record.unsettled) and all(step.read for step in done)
    return Outcome(
        ok=ok,
        summary=summary,
        ended=report.ended,
        exit_code=report.exit_code,
        results=results(calls, call_record),
        touched=touched(call_record),
        left=bool(left),
        unsure=unsure,
        next_step=_next_step(failing, call_record, unsure=unsure) if failing is not None else "",
        details=said_of(failing, call_record, report) if failing is not None and not ok else (),
    )


def touched(call_record: CallRecord) -> bool:
    """Whether anything may have changed: a refusal (`4xx`, or whatever a service says in its stead) changes nothing."""
    return bool(call_record.unsettled) or any(call_record.done(id) for id in call_record.sent)


def results(calls: Sequence[Step], call_record: CallRecord) -> tuple[JsonValue, ...]:
    """What the answered calls gave, in order; too large ones without their body."""
    made: list[JsonValue] = []
    room = MAX_RESULTS
    for step in calls:
        if step.id not in call_record.answers:
            break
        result = call_record.answers[step.id].result()
        size = len(canonical(result))
        if size > room:
            result = {"status": result["status"], "body": None, "cut": True}
            size = len(canonical(result))
        room -= size
        made.append(result)
    return tuple(made)


def why_not(step: Step, call_record: CallRecord, report: Report, catalog: Catalog) -> str:
    """Why `step` isn't done, in GoEx's own words."""
    answer = call_record.answers.get(step.id)
    if answer is not None:
        if not answer.doubtful and (lacking := missing_scopes(answer.body)) is not None:
            known = catalog.service(step.service).scopes
            named = " ".join(name for name in lacking.split() if name in known) or _SOMETHING
            return escape(f"was refused (status {answer.status}): the credential lacks {named}")
        if not answer.status:
            return "didn't happen, as the service shows"
        other = ", and not as expected" if 200 <= answer.status < 300 else ""
        unsure = ", so it can't be known whether it happened" if answer.doubtful and not step.read else ""
        own = f": {report.trouble}" if report.trouble else ""
        return escape(f"answered {answer.status}{other}{unsure}{own}")
    if step.id in call_record.sent or step.id in report.sent:
        return NO_ANSWER if not step.read else "got no answer"
    if report.trouble or report.unkept:
        return escape(f"wasn't sent: {report.trouble or report.unkept}")
    if report.refused:
        filled = next((f", which fills in what comes {reference(ref)}" for ref in refs_in(step.arguments)), "")
        return escape(f"was refused by the gateway{filled}")
    return escape(f"wasn't sent: {report.ending}" if report.ending else "wasn't sent")


def said_of(step: Step, call_record: CallRecord, report: Report) -> tuple[str, ...]:
    """What others said of a step that isn't done, for the person: the service, the gateway, the container. Escaped."""
    answer = call_record.answers.get(step.id)
    if answer is not None:
        return _said(answer)
    refused = [one.reason for one in report.refused[:1]] if step.id not in report.sent else []
    return tuple(escape(text) for text in (report.said, *refused) if text)


def _next_step(failing: Step, call_record: CallRecord, *, unsure: bool) -> str:
    """What the person can do about a call that failed, where more can be said than of each."""
    if unsure:
        return "Look at the service whether it happened, and take it back there if it did."
    answer = call_record.answers.get(failing.id)
    if answer is not None and not answer.doubtful and missing_scopes(answer.body) is not None:
        return f"Give the account {escape(failing.service)}/{escape(failing.account)} a credential that has it."
    return ""


def missing_scopes(body: JsonValue, depth: int = 3) -> str | None:
    """What a refusal says that the credential lacks, in words; None where it gives another reason.

    Services say it by a code (RFC 6750, section 3.1: `insufficient_scope`) and most name the scopes beside it.
    """
    if isinstance(body, list):
        found = (missing_scopes(each, depth - 1) for each in body[:_MOST_ERRORS] if depth)
        return next((each for each in found if each is not None), None)
    if not isinstance(body, dict):
        return None
    if any(isinstance(said, str) and said.casefold() in _LACKING for said in body.values()):
        named = next((body[name] for name in _NAMED if body.get(name)), "")
        scopes = " ".join(map(str, named)) if isinstance(named, list) else str(named)
        text, cut = shorten(" ".join(re.split(r"[\s,]+", scopes)), MAX_SAID)
        return f"{text}{'…' if cut else ''}" if text else _SOMETHING
    return missing_scopes([body[name] for name in _ERRORS if name in body], depth) if depth else None


def _said(answer: Answer) -> tuple[str, ...]:
    """What didn't hold, and the beginning of what the service said about it."""
    body = json.dumps(answer.body, ensure_ascii=False) if answer.body is not None else answer.text
    text, cut = shorten(" ".join(body.split()), MAX_SAID)
    failed = "" if answer.failed.startswith("the server answered with status") else answer.failed.rstrip(".")
    lines = (failed, f"It answered: {text}{'…' if cut else ''}" if text else "")
    return tuple(escape(line) for line in lines if line)


def _well(calls: Sequence[Step], call_record: CallRecord) -> str:
    if len(calls) == 1:
        status = call_record.answers[calls[0].id].status
        return escape(f"{calls[0].method_id} went well" + (f" (status {status})." if status else "."))
    return f"All {len(calls)} calls went well."


def _badly(calls: Sequence[Step], done: Sequence[Step], failing: Step, reason: str) -> str:
    what = f"What was to be read first ({escape(failing.method_id)})" if failing.role == "pre" else "It"
    reason = reason.rstrip(".")
    call = next(step for step in calls if step.call == failing.call)
    if len(calls) == 1:
        return f"{escape(call.method_id)} failed. {what} {reason}."
    went = f"{len(done)} of {len(calls)} calls went well"
    return f"{went}; {escape(call.method_id)} (call {call.call + 1}) failed. {what} {reason}."
