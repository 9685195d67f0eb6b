"""What a program read and wrote, by the requests that left. Pure.

Rules: a request that could have been a planned call wrote and named what that call does (`runtimes.rest.footprint`). Of
any other that may have changed something the whole service counts, at the account's own host and at the one that it
went to: one without a known answer, one whose answer lacks what it made, one that wasn't read whole, one that said what
no planned call says. What only read isn't recorded one by one, so all that it may call counts as read.
"""

from __future__ import annotations

from collections.abc import Iterable

from mapper.catalog import Catalog
from mapper.templates import complete
from policies.accounts import Account, Origin
from policies.actions import Call, Code, Plan
from policies.errors import GoexError, InvalidInput
from policies.reversions import NoReversions
from runtimes.base import Footprint
from runtimes.code.permits import Permit
from runtimes.code.record import Record, Sent, permits_of
from runtimes.code.written_headers import another_effect, answer_without
from runtimes.gateway.request_headers import LEAVING_OUT
from runtimes.idempotency import action_key
from runtimes.rest.footprint import footprint_of, place_of
from runtimes.rest.planner import PlannedUndo, StepMaker, chosen_for, planned_undo
from runtimes.rest.records import Answer
from runtimes.rest.references import refs_in, value_of
from runtimes.rest.steps import Step

MOST = 100  # requests that are looked at one by one; of more of them the whole service counts


def footprint(plan: Plan, kept: Record | None, catalog: Catalog) -> Footprint:
    """The footprint of a program. `kept` None: nothing of it is recorded any more."""
    if not isinstance(plan.action, Code):
        return Footprint(reads=frozenset({"calls"}), writes=frozenset({"calls"}))
    permits = permits_of(plan)
    urls = {(each["service"], each["account"]): each["base_url"] for each in plan.resolved.get("accounts", ())}
    accounts = [_account(permit, urls.get(permit.rule.account, "")) for permit in permits]
    places = [_places(permit, account) for permit, account in zip(permits, accounts, strict=True)]
    if kept is None:
        changing = (place for place, permit in zip(places, permits, strict=True) if not permit.read)
        return Footprint(reads=_all(places), writes=_all(changing))
    reads = [place for place, permit in zip(places, permits, strict=True) if permit.read]
    writes: list[frozenset[str]] = []
    steps: list[Step] = []
    undos: list[PlannedUndo] = []
    for one in kept.sent:
        answer = kept.answers.get(one.number)
        sure = answer is not None and not answer.doubtful and len(kept.sent) <= MOST
        try:
            step, undo = _as_planned(one, permits[one.permit], accounts[one.permit], answer if sure else None, catalog)
        except GoexError:
            reads.append(places[one.permit])
            if answer is None or answer.well or answer.doubtful:
                writes.append(places[one.permit])
            continue
        steps.append(step)
        undos += undo
    known = footprint_of(steps, kept.as_call_record(), undos, catalog)
    return Footprint(reads=known.reads | _all(reads), writes=known.writes | _all(writes))


def _as_planned(
    one: Sent, permit: Permit, account: Account, answer: Answer | None, catalog: Catalog
) -> tuple[Step, tuple[PlannedUndo, ...]]:
    """A request as a plan has it, and how that is taken back. Raises GoexError where it couldn't be a planned call, or
    what it changed can't be told."""
    service, method = catalog.service(permit.service), catalog.method(permit.method_id)
    if answer is None or one.more or not one.whole or permit.rule.origin.host != Origin.parse(account.base_url).host:
        raise InvalidInput("It isn't known what it changed.")
    if why := another_effect(permit, method):
        raise InvalidInput(f"It may do something else: {why}.")
    key = action_key("", one.number)
    call = Call(service=permit.service, method=permit.method, arguments=one.arguments, account=permit.account)
    arguments = complete(method, catalog.validate(call).arguments, key)
    maker = StepMaker(catalog, service, account, one.number, arguments, key)
    step = maker.call(method)
    if not answer.well:
        return step, ()  # refused: it changed nothing
    undo = planned_undo(chosen_for(method, arguments, catalog, NoReversions()), maker)
    if undo is None:
        if any(name in permit.rule.query for name in LEAVING_OUT) or answer_without(permit, ("",)):
            raise InvalidInput("Its answer may lack what it made.")
        return step, ()
    if undo.made is not None:
        raise InvalidInput("What it made is told by lists, which nobody read.")
    for ref in refs_in([each.arguments for each in undo.calls]):
        if ref.request == step.id:
            value_of(ref, {step.id: answer})  # an id that isn't there is no id of something else
    return step, (undo,)


def _account(permit: Permit, base_url: str) -> Account:
    """The account as the plan has it, whatever became of it since."""
    origin = Origin.parse(base_url) if base_url else permit.rule.origin
    return Account(
        service=permit.service,
        name=permit.account,
        origins=(origin,),
        base_url=base_url or str(origin),
        private=origin.scheme == "http",
    )


def _places(permit: Permit, account: Account) -> frozenset[str]:
    """The service where planned calls go, and where the program's go."""
    hosts = (permit.rule.origin.host, *(origin.host for origin in account.origins))
    return frozenset(place_of(permit.service, host) for host in hosts)


def _all(places: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*places)
