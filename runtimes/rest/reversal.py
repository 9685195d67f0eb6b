"""Requests that were seen, reversed newest first by the reversion set. Pure: for whoever saw them.

Rules: a request is a service, a method, its arguments, the answer to it, and what was read before it (None: nothing
was); what can't be reversed is said with its reason and its place, and nothing is guessed for it. The steps are those
that an undo of planned calls sends: comparisons first, then newest first, all values literal but those that the undo
itself is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mapper.catalog import Catalog
from mapper.templates import complete
from policies.accounts import Account
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject
from policies.reversions import NoReversions, ReversionSet
from policies.services import Risk, believed_risk
from runtimes.rest.planner import PlannedUndo, StepMaker, action_key, chosen_for, planned_undo, why_none
from runtimes.rest.records import Answer, Ledger
from runtimes.rest.requests import step_for
from runtimes.rest.steps import Step
from runtimes.rest.undo import bound_undo, ordered


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
                bound.append(bound_undo(_call(one, maker), undo, _ledger(one), catalog, one.account))
                undos.append(undo)
            else:
                stuck[one.number] = why_none(method, chosen)
        except InvalidInput as error:
            stuck[one.number] = error.message
    return Reversal(steps=ordered(bound), undos=tuple(undos), stuck=stuck)


def _call(one: Seen, maker: StepMaker) -> Step:
    """The request as a step, to say what it was."""
    return step_for(
        id=f"call-{one.number}",
        call=one.number,
        role="call",
        service=maker.service,
        method=maker.catalog.method(one.method_id),
        account=one.account,
        arguments=maker.request,
        expect=(),
    )


def _ledger(one: Seen) -> Ledger:
    """What is known of it, as an action's own record would say it."""
    answers = {f"call-{one.number}": one.answer}
    if one.before is not None:
        answers[f"pre-{one.number}"] = one.before
    return Ledger(sent=[f"call-{one.number}"], answers=answers)
