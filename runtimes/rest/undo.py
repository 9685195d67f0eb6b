"""The requests of an undo: which, in which order, and what their answers mean. Pure.

Rules: only calls that were done are taken back, newest first. Every comparison (guard) comes before the first request
that changes something, so that a conflict leaves all as it is. The exception: when an older call's guard asks for the
very thing that a newer call's guard asks for, the two calls changed the same object, and the older comparison can only
hold after the newer call was taken back.

Of requests that were seen (a program's), each is a service, a method, its arguments, the answer to it, and what was
read before it (None: nothing was); what can't be reversed is said with its reason, and nothing is guessed for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mapper.catalog import Catalog
from mapper.pairs import names_nothing_new
from mapper.templates import complete
from policies.accounts import Account
from policies.actions import Plan
from policies.display_text import escape, shorten
from policies.errors import InvalidInput, Unsupported
from policies.jsonpath import is_filter
from policies.jsonvalue import JsonObject, MissingValue
from policies.reversions import NoReversions, ReversionSet, Standing
from policies.services import Risk, Service, believed_risk
from policies.typed_json import from_json
from runtimes.idempotency import action_key
from runtimes.rest.planner import PlannedUndo, StepMaker, chosen_for, planned_undo, read_undos, why_none
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.requests import bind, check_known, step_for
from runtimes.rest.steps import Step
from runtimes.rest.verdicts import holds, unmet


class UndoImpossible(InvalidInput):
    """The undo that was promised for a call couldn't be made of what was there before it."""

    def __init__(self, undo: PlannedUndo, why: str) -> None:
        self.undo, self.why = undo, why
        again = ". Ask for it again, and it is asked for as what can't be taken back" if self.by_guess else ""
        super().__init__(f"it couldn't be taken back as promised ({why}){again}.")

    @property
    def by_guess(self) -> bool:
        """Whether the pair was made from a document or by a model, so that it may be wrong for every such call."""
        return self.undo.source in ("derived", "imported", "model")


COMMITTED = "What undo would need was dropped when the action was committed."


def planned_steps(plan: Plan, key: str = "steps") -> tuple[Step, ...]:
    """The steps of a plan, as they were shown and digested."""
    steps: tuple[Step, ...] = from_json(tuple[Step, ...], plan.resolved[key], "The requests of this plan")
    return steps


def done_calls(plan: Plan, call_record: CallRecord) -> tuple[Step, ...]:
    """The calls that changed something and weren't taken back since, in order."""
    return tuple(
        step
        for step in planned_steps(plan)
        if step.role == "call" and not step.read and call_record.done(step.id) and step.call not in call_record.undone
    )


def undo_steps(
    plan: Plan,
    call_record: CallRecord,
    catalog: Catalog,
    accounts: Mapping[tuple[str, str], Account],
    reversions: ReversionSet | None = None,
) -> tuple[Step, ...]:
    """The requests that take back what was done, their values literal.

    Raises Unsupported when a call has no way back, when that failed since, or what it needs wasn't in the answer.
    """
    reversions = reversions or NoReversions()
    calls = done_calls(plan, call_record)
    if not calls and call_record.unsettled:
        raise Unsupported(
            "It can't be known whether it happened, so it isn't taken back blindly.",
            next_step="Look at the service, and take it back there if it did.",
        )
    if not calls:
        raise Unsupported("No call of it changed anything that is still there, so there is nothing to take back.")
    known = {undo.call: undo for undo in read_undos(call_record.undo or plan.undo["calls"])}
    stuck = [step for step in calls if step.call not in known]
    if stuck:
        names = ", ".join(f"{step.method_id} (call {step.call + 1})" for step in stuck)
        raise Unsupported(f"{names} can't be taken back.", next_step=plan.undo_text)
    bound: list[list[Step]] = []
    for step in reversed(calls):
        _check_believed(step, known[step.call], reversions)
        account = accounts.get((step.service, step.account))
        if account is None:
            raise Unsupported(f"The account {step.service}/{step.account} is gone, so nothing can be taken back there.")
        try:
            bound.append(bound_undo(step, known[step.call], call_record, catalog, account))
        except InvalidInput as error:
            raise Unsupported(
                f"{step.method_id} (call {step.call + 1}) can't be taken back: {error.message}",
                next_step="Look at the service, and take it back there.",
            ) from error
    return ordered(bound)


def bound_undo(
    step: Step, undo: PlannedUndo, call_record: CallRecord, catalog: Catalog, account: Account
) -> list[Step]:
    """What takes back one call, with what was answered. Raises InvalidInput where that can't be."""
    undo, answers = undo.after(call_record.answers), _with_made(step, undo, call_record)
    made = [bind(each, answers, catalog, account) for each in undo.steps]
    _check_parts(step, undo, call_record)
    if undo.source == "model":
        _check_aim(step, made, call_record, catalog)
    return made


def why_left(plan: Plan, call_record: CallRecord) -> str:
    """Why the undo that was promised doesn't hold for what was answered; "" where it does, as far as answers say."""
    undos = {undo.call: undo for undo in read_undos(call_record.undo or plan.undo.get("calls", []))}
    for step in done_calls(plan, call_record):
        try:
            if step.call in undos:
                _with_made(step, undos[step.call], call_record)
        except InvalidInput as error:
            return f"{step.method_id} (call {step.call + 1}): {error.message.rstrip('.')}"
    return ""


def _with_made(step: Step, undo: PlannedUndo, call_record: CallRecord) -> Mapping[str, Answer]:
    """What was answered, and what the call made. Raises InvalidInput where it isn't sure that it made something."""
    answers = call_record.answers
    own = answers.get(step.id)
    if undo.created and own is not None and own.status != 201:
        said = own.status or "something that was lost"
        raise InvalidInput(
            f"the service answered {said}, and its document says 201 of what is made: it may have been there before"
        )
    if undo.made is None:
        return answers
    return {**answers, f"made-{undo.call}": undo.made.found(undo.call, answers)}


def check_promise(step: Step, plan: Plan, call_record: CallRecord, catalog: Catalog) -> None:
    """Raise UndoImpossible where what was read before `step` already shows that its promised undo couldn't be sent."""
    for undo in read_undos(call_record.undo or plan.undo["calls"]):
        if undo.call != step.call:
            continue
        try:
            undo = undo.after(call_record.answers)
            for each in undo.steps:
                check_known(each, call_record.answers, catalog)
            if undo.parts and f"pre-{undo.call}" in call_record.answers:
                _check_parts(step, undo, call_record)
        except InvalidInput as error:
            raise UndoImpossible(undo, error.message.rstrip(".")) from error


def _check_believed(step: Step, undo: PlannedUndo, reversions: ReversionSet) -> None:
    standing = reversions.standing(undo.pair)
    if undo.pair and standing is Standing.FAILED:
        raise Unsupported(
            f"The way back of {step.method_id} (call {step.call + 1}) failed once, so it isn't used again.",
            next_step=f"See how it failed: goex undo-pairs show {undo.pair[:12]}. Then take it back at the service, or "
            f"use it again: goex undo-pairs retry {undo.pair[:12]}",
        )
    if standing is Standing.UNBELIEVED and undo.source != "bundled":
        raise Unsupported(
            f"The way back of {step.method_id} (call {step.call + 1}) isn't GoEx's own, and what is known of those was"
            " altered.",
            next_step="Bring back what the journal says: goex undo-pairs restore",
        )


def _check_parts(step: Step, undo: PlannedUndo, call_record: CallRecord) -> None:
    """Raise InvalidInput where a part was put into an object that didn't have it: writing the old object back may leave
    it there."""
    for path in undo.parts:
        holder, answer = path.rpartition(".")[0], call_record.answers[f"pre-{step.call}"]
        try:
            answer.value("$." + path[2:].partition(".")[0])
        except MissingValue:
            if not answer.whole:
                raise
            continue  # the whole field wasn't there
        try:
            answer.value(path)
        except MissingValue as error:
            raise InvalidInput(f"{path[2:]} wasn't in {holder[2:]} before, and may stay there.") from error


def _check_aim(step: Step, undo: Sequence[Step], call_record: CallRecord, catalog: Catalog) -> None:
    """Raise InvalidInput where a model's undo would destroy something that was there before the action."""
    read = call_record.answers.get(f"pre-{step.call}")
    before = [dict(step.arguments), read.body if read is not None else None]
    for each in undo:
        harmful = each.role == "undo" and catalog.method(each.method_id).risk > Risk.WRITE
        if harmful and names_nothing_new(each.arguments, before):
            raise InvalidInput(f"{each.method_id} would be aimed at what was there before the action.")


def ordered(calls: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """The steps of several calls, given newest first, in the order in which they are sent."""
    first: list[Step] = []
    then: list[Step] = []
    looked_at: list[tuple[object, ...]] = []
    for steps in calls:
        for step in steps:
            if step.role == "guard" and _object(step) not in looked_at:
                looked_at.append(_object(step))
                first.append(step)
            else:
                then.append(step)
    return (*first, *then)


def _object(step: Step) -> tuple[object, ...]:
    request = step.request
    return request.account, request.origin, request.method, request.path, dict(request.query), request.body


def difference(step: Step, answer: Answer, service: Service) -> tuple[str, ...] | None:
    """What a guard found to differ; None when its answer isn't a comparison at all (the service failed)."""
    if answer.status in (401, 407, 429) or answer.status >= 500:
        return None
    own = [expect for expect in step.request.expect if expect not in service.success]
    if not 200 <= answer.status < 300 and not any(expect.op == "status" for expect in own):
        return (f"{step.method_id} answered {answer.status}: what was done isn't there any more, or can't be seen",)
    lines = unmet(own, answer.status, answer.body)
    refusal = unmet((expect for expect in step.request.expect if expect in service.success), answer.status, answer.body)
    if refusal and not lines:
        return None
    said = (_said(answer),) if refusal else ()
    return (*lines, *refusal, *said) or (escape(answer.failed or "it isn't as it was left"),)


def differing(step: Step, answer: Answer, service: Service) -> tuple[str, ...]:
    """The fields that aren't as `step` expects them, without their values: whoever undoes may not be allowed to read
    these. A path that filters holds values, too, and isn't named."""
    own = (expect for expect in step.request.expect if expect not in service.success and expect.path)
    paths = (each.path for each in own if not is_filter(each.path) and not holds(each, answer.status, answer.body))
    return tuple(dict.fromkeys(paths))


def _said(answer: Answer) -> str:
    """The beginning of an answer: services that fail with status 200 give their reason there."""
    text, cut = shorten(json.dumps(answer.body, ensure_ascii=False), 300)
    return escape(f"the service answered {text}{'…' if cut else ''}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request that was answered well. `number` is its place among all of them, from 0."""

    number: int
    service: str
    method: str
    account: Account
    arguments: JsonObject
    answer: Answer
    before: Answer | None = None

    @property
    def method_id(self) -> str:
        return f"{self.service}.{self.method}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """What takes seen requests back: `steps` in the order in which they are sent. `stuck`: the numbers of those that
    can't be, each with the reason."""

    steps: tuple[Step, ...]
    undos: tuple[PlannedUndo, ...]
    stuck: Mapping[int, str]


def reversal(
    seen: Iterable[Seen], catalog: Catalog, reversions: ReversionSet | None = None, *, action_id: str
) -> Reversal:
    """Reverse requests. Reads among them are left out. Raises UnknownName for what isn't in the catalog."""
    known = reversions or NoReversions()
    bound: list[list[Step]] = []
    undos: list[PlannedUndo] = []
    stuck: dict[int, str] = {}
    for one in sorted(seen, key=lambda one: one.number, reverse=True):
        method = catalog.method(one.method_id)
        if believed_risk(catalog.service(one.service), method) is Risk.READ:
            continue
        arguments = complete(method, one.arguments, action_key(action_id, one.number))
        chosen = chosen_for(method, arguments, catalog, known)
        key = action_key(action_id, one.number, "/undo")
        maker = StepMaker(catalog, catalog.service(one.service), one.account, one.number, arguments, key)
        try:
            undo = planned_undo(chosen, maker)
            if undo is not None:
                bound.append(bound_undo(_seen_call(one, maker), undo, _seen_record(one), catalog, one.account))
                undos.append(undo)
            else:
                stuck[one.number] = why_none(method, chosen)
        except InvalidInput as error:
            stuck[one.number] = error.message
    return Reversal(steps=ordered(bound), undos=tuple(undos), stuck=stuck)


def _seen_call(one: Seen, maker: StepMaker) -> Step:
    """The request as a step, to say what it was."""
    return step_for(
        id=f"call-{one.number}",
        call=one.number,
        role="call",
        catalog=maker.catalog,
        service=maker.service,
        method=maker.catalog.method(one.method_id),
        account=one.account,
        arguments=maker.request,
        expect=(),
    )


def _seen_record(one: Seen) -> CallRecord:
    """What is known of it, as an action's own record would say it."""
    answers = {f"call-{one.number}": one.answer}
    if one.before is not None:
        answers[f"pre-{one.number}"] = one.before
    return CallRecord(sent=[f"call-{one.number}"], answers=answers)
