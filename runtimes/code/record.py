"""What a program's requests changed: the record that undo and a restart stand on.

Rules: a request that can change something is written down before it leaves, as it leaves, and its answer before the
program gets it. Each is a note of its own, sealed (`Records`), numbered in the order of leaving. The record holds what
the gateway saw, never what the program printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mapper.catalog import Catalog
from policies.actions import Plan
from policies.errors import InvalidInput
from policies.graphql import expected_of, leaves_open
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from policies.typed_json import SPARSE, from_json, to_json
from runtimes.base import Records
from runtimes.code.path_templates import as_text, name_from, shape_of
from runtimes.code.permits import Permit, held_in_path, typed
from runtimes.gateway.plan import Exchange, SentRequest
from runtimes.rest import records as rest_records
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.verdicts import holds

MAX_NOTE = 40_000_000
_FORGOTTEN = b"forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request that left. `arguments`: as far as they were read; `whole` says whether all of them were, `more`
    whether it may have said something beside them."""

    number: int
    request: str  # "rule-0#3", as the journal has it
    permit: int
    arguments: JsonObject
    whole: bool
    # By which the service knows it again: this action's, and no other's.
    keys: tuple[str, ...] = field(default=(), metadata=SPARSE)
    more: bool = field(default=True, metadata=SPARSE)  # so it was with those that an older GoEx recorded


@dataclass(slots=True)
class Record:
    """All that left of one action, with the answers; and what was taken back since."""

    sent: list[Sent] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)
    undone: list[int] = field(default_factory=list)
    doubtful: list[int] = field(default_factory=list)

    @property
    def unsettled(self) -> tuple[Sent, ...]:
        """What left without it being known whether it had its effect."""
        return tuple(
            one for one in self.sent if one.number not in self.answers or self.answers[one.number].doubtful
        )  # fmt: skip

    def done(self, number: int) -> bool:
        return number in self.answers and self.answers[number].well

    def as_call_record(self) -> CallRecord:
        """As the record of planned calls says it: `call-N` is the request of that number."""
        return CallRecord(
            sent=[f"call-{one.number}" for one in self.sent],
            answers={f"call-{number}": answer for number, answer in self.answers.items()},
            undone=list(self.undone),
            doubtful=list(self.doubtful),
        )


def note_sent(records: Records, sent: Sent) -> None:
    """Write durably that a request leaves."""
    records.put(f"sent-{sent.number}", canonical(to_json(sent)))


def note_answer(records: Records, number: int, answer: Answer) -> None:
    """Write durably what was answered."""
    records.put(f"answer-{number}", canonical(to_json(answer)))


def load(records: Records) -> Record | None:
    """The record of an action; None when it was forgotten. Raises InvalidInput when it can't be read."""
    if is_forgotten(records):
        return None
    made = Record()
    while (data := records.get(f"sent-{len(made.sent)}")) is not None:
        value = parse(data, limit=MAX_NOTE, what="The record of this action")
        made.sent.append(from_json(Sent, value, "The record of this action"))
    for one in made.sent:
        if (data := records.get(f"answer-{one.number}")) is not None:
            made.answers[one.number] = from_json(Answer, parse(data, limit=MAX_NOTE, what="An answer"), "An answer")
    if (reverted := CallRecord.load(records)) is not None:  # what an undo wrote
        made.undone, made.doubtful = list(reverted.undone), list(reverted.doubtful)
    return made


def is_forgotten(records: Records) -> bool:
    """Whether a commit dropped the record."""
    return rest_records.is_forgotten(records)


def forget(records: Records) -> None:
    """Drop what was recorded. Idempotent."""
    rest_records.forget(records)
    number = 0
    while (records.get(f"sent-{number}") or _FORGOTTEN) != _FORGOTTEN:
        records.put(f"sent-{number}", _FORGOTTEN)
        if records.get(f"answer-{number}") is not None:
            records.put(f"answer-{number}", _FORGOTTEN)
        number += 1


def answer_of(exchange: Exchange, permit: Permit, catalog: Catalog, wanted: Iterable[str] = ()) -> Answer:
    """What was answered, with the service's own idea of a good answer: some fail with status 200. `wanted`: the paths
    that are kept even of a very large one."""
    kept = Answer.of(exchange, wanted)
    method = catalog.method(permit.method_id)
    success = expected_of(method, catalog.service(permit.service).success)
    wrong = next((one for one in success if not holds(one, exchange.status, exchange.body)), None)
    if kept.well and wrong is not None:
        unsure = bool(method.document) and leaves_open(exchange.status, exchange.body)
        return replace(kept, well=False, failed=wrong.says or "the service says that it failed", unsure=unsure)
    return kept


def answers_of(
    kept: Record, number: int, answer: Answer, *, replayed: bool, wanted: Iterable[str] = ()
) -> dict[int, Answer]:
    """What an answer to a request is the answer of, by the requests' numbers. One that was given before is that of the
    request that the service had first: of this action, since its keys are in no other. Not every service says so: to
    the same key, one that names the same thing (at the paths `wanted`) is such an answer, too. Two that name nothing
    may be of two things."""
    if kept.done(number):
        return {}  # a later one has had its answer already
    if not answer.well:
        return {number: answer}
    one = kept.sent[number]
    nothing = replace(answer, well=False, failed="it was answered as an earlier request was, so nothing was made by it")
    same = [other for other in kept.sent if other is not one and {*other.keys} & {*one.keys}]
    done = [kept.answers[other.number] for other in same if kept.done(other.number)]
    if not replayed:
        its = [kept.answers[other.number] for other in same if kept.done(other.number) and other.permit == one.permit]
        paths = tuple(wanted) if its else ()
        return {number: nothing if any(_names_the_same(given, answer, paths) for given in its) else answer}
    if not one.keys or done or any(other.permit != one.permit for other in same):
        return {number: nothing}
    if not same:
        return {number: answer}
    alike = [other for other in same if (other.arguments, other.whole) == (one.arguments, one.whole)]
    if not alike:  # which of them it was isn't known
        return {number: replace(nothing, failed="it was answered as another request was", unsure=True)}
    return {alike[0].number: answer, number: nothing}


def _names_the_same(one: Answer, other: Answer, wanted: Sequence[str]) -> bool:
    """Whether two answers are alike in what a way back reads there."""
    found = [_at(one, path) for path in wanted]
    return any(value is not None for value in found) and found == [_at(other, path) for path in wanted]


def _at(answer: Answer, path: str) -> JsonValue:
    try:
        return answer.value(path)
    except InvalidInput:
        return None


def arguments_of(sent: SentRequest, permit: Permit, catalog: Catalog) -> tuple[dict[str, JsonValue], bool]:
    """The arguments of a catalogued call in a request as it left, of those that the catalog knows; and whether all of
    its body was read, and is one call's. The path's word counts, whatever else calls itself so: it is what was acted
    on. What stands in two places otherwise isn't known."""
    method = catalog.method(permit.method_id)
    if method.document:
        return {}, False  # its document says what its variables are, and may have arguments of its own
    properties: Mapping[str, Any] = method.parameters.get("properties", {})
    body = sent.body if isinstance(sent.body, Mapping) else {}
    found: dict[str, JsonValue] = {}
    for name in held_in_path(permit):
        found[name] = permit.held[name][0]
    if (whole := next((name for name, place in method.locations.items() if place == "whole"), "")) and body:
        found[whole], body = dict(body), {}  # all of it is one argument
    named = {slot.partition("/")[0] for slot in sent.slots if "/" in slot}
    names = {name: name_from(shape_of(method, name), name, sent.slots) for name in named}
    for name, value in (*sent.slots.items(), *names.items()):
        if name in properties:
            found.setdefault(name, typed(value, properties[name]))
    path = frozenset(found)
    clear = True
    for name, value in (*sent.query, *body.items()):
        if name in properties and name not in path:
            clear = clear and name not in found
            found[name] = typed(value, properties[name])
    read = isinstance(sent.body, Mapping) or (sent.body is None and sent.size == 0)
    return found, clear and read and not sent.file


def says_more(sent: SentRequest, permit: Permit, catalog: Catalog) -> bool:
    """Whether a request said something that is no argument in the catalog, and neither what a planned call says there
    anyway nor about its answer's form: it may name what else the request is about. So may an argument that it says
    twice, in two ways."""
    method = catalog.method(permit.method_id)
    properties: Mapping[str, Any] = method.parameters.get("properties", {})
    form = catalog.service(permit.service).code.query
    one_argument = "whole" in method.locations.values()
    body = sent.body.items() if isinstance(sent.body, Mapping) and not one_argument else ()
    query = [(name, value) for name, value in sent.query if name not in form]
    slots = [(name.partition("/")[0], value) for name, value in sent.slots.items()]
    known = {**method.defaults, **arguments_of(sent, permit, catalog)[0]}
    return any(name not in properties and name not in known for name, _ in slots) or any(
        name not in known or as_text(value) != as_text(known[name]) for name, value in (*query, *body)
    )


def permits_of(plan: Plan) -> tuple[Permit, ...]:
    """The permits of a plan, as they were shown and digested. Raises InvalidInput for what isn't one."""
    found: tuple[Permit, ...] = from_json(tuple[Permit, ...], plan.resolved.get("permits"), "What the program may call")
    return found


def planned_permits(plan: Plan) -> dict[str, tuple[int, Permit]]:
    """The plan's permits by the id of their rule, each with its place."""
    return {permit.rule.id: (place, permit) for place, permit in enumerate(permits_of(plan))}
