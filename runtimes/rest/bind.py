"""From a planned step to the request with literal values: what an answer may fill, and what it may not.

Rules: a value that a service supplied is checked against the schema of the argument that it fills, as a caller's would
be, and never read as a reference. In a path it is one short segment without a slash. The gateway fills references
itself; this is the daemon's own look at the same values before it agrees to the sending, and what an undo is made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mapper.catalog import Catalog
from mapper.validation import references
from policies.accounts import Account
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, MissingValue
from policies.services import Expect
from runtimes.gateway.plan import Ref
from runtimes.rest.records import Answer
from runtimes.rest.references import refs_in
from runtimes.rest.requests import check_segment, step_for
from runtimes.rest.steps import Step

MAX_VALUE = 65_536  # characters of one text that an answer supplies


def check_values(step: Step, answers: Mapping[str, Answer], catalog: Catalog) -> dict[str, Any]:
    """The arguments of `step` with every reference filled. Raises InvalidInput when one may not be what it is."""
    for ref in refs_in(step.arguments):
        _check_size(step, literal(ref, answers))
    for part in step.request.path:
        if isinstance(part, Ref):
            _check_path_value(step, _value(part, answers))
    arguments: dict[str, Any] = literal(step.arguments, answers)
    if refs_in(arguments):
        raise MissingValue(f"{step.method_id} needs an answer that isn't there.")
    if refs_in(step.arguments) and any(references(arguments)):
        raise InvalidInput(f"{step.method_id}: a service supplied something that reads as a reference.")
    own = catalog.method(step.method_id).parameters["properties"]
    call = replace(step.as_call(), arguments={name: value for name, value in arguments.items() if name in own})
    catalog.validate(call)
    return arguments


def check_known(step: Step, answers: Mapping[str, Answer], catalog: Catalog) -> None:
    """Raise InvalidInput where `step` couldn't be sent as far as its values are known: a reference to a request that
    has no answer yet may become anything."""
    known = [ref for ref in refs_in(step.arguments) if ref.request in answers]
    for ref in known:
        if not ref.optional or _there(ref, answers):
            value = _value(ref, answers)
            _check_size(step, value)
            if any(references(value)):
                raise InvalidInput(f"{step.method_id}: a service supplied something that reads as a reference.")
    for part in step.request.path:
        if isinstance(part, Ref) and part.request in answers:
            _check_path_value(step, _value(part, answers))
    own = catalog.method(step.method_id).parameters["properties"]
    arguments = {name: value for name, value in _as_known(step.arguments, answers).items() if name in own}
    catalog.validate(replace(step.as_call(), arguments=arguments))


def _as_known(value: Any, answers: Mapping[str, Answer]) -> Any:
    """`value` with what is known filled in, and every other reference as a caller's, which fits any schema."""
    if isinstance(value, Ref):
        return literal(value, answers) if value.request in answers else {"$from": 0, "path": "$"}
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if not _known_to_be_out(item, answers)}
        return {key: _as_known(item, answers) for key, item in kept.items()}
    if isinstance(value, list | tuple):
        return [_as_known(item, answers) for item in value]
    return value


def _known_to_be_out(item: Any, answers: Mapping[str, Answer]) -> bool:
    return isinstance(item, Ref) and item.request in answers and _left_out(item, answers)


def bind(step: Step, answers: Mapping[str, Answer], catalog: Catalog, account: Account) -> Step:
    """`step` with literal values in place of its references. Raises InvalidInput (MissingValue where one is absent)."""
    later = [ref for ref in refs_in(step.arguments) if is_later(ref, answers)]
    # What is to come is checked when it is there, before it is sent on.
    arguments = literal(step.arguments, answers) if later else check_values(step, answers, catalog)
    expect = tuple(_expected(expect, answers) for expect in step.request.expect)
    bound = step_for(
        id=step.id,
        call=step.call,
        role=step.role,
        service=catalog.service(step.service),
        method=catalog.method(step.method_id),
        account=account,
        arguments=arguments,
        expect=expect,
    )
    if (bound.request.origin, bound.request.base_path) != (step.request.origin, step.request.base_path):
        raise InvalidInput(f"The account {account.id} leads to another server than when this was planned.")
    return replace(bound, request=replace(bound.request, attempts=step.request.attempts))


def _expected(expect: Expect, answers: Mapping[str, Answer]) -> Expect:
    """`expect` with its value filled; to equal what was absent is to be absent."""
    value = literal(expect.value, answers)
    if expect.op == "equals" and isinstance(expect.value, Ref) and value is None and not _there(expect.value, answers):
        return replace(expect, op="absent", value=None)
    return replace(expect, value=value)


def literal(value: Any, answers: Mapping[str, Answer]) -> Any:
    """`value` with each `Ref` replaced by what was answered; null where an optional one has nothing to lead to.

    A reference to what only the undo itself will be answered stays one. Raises MissingValue.
    """
    if isinstance(value, Ref):
        if is_later(value, answers):
            return value
        return _value(value, answers) if not value.optional or _there(value, answers) else None
    if isinstance(value, Mapping):
        return {key: literal(item, answers) for key, item in value.items() if not _left_out(item, answers)}
    if isinstance(value, list | tuple):
        return [literal(item, answers) for item in value]
    return value


def is_later(ref: Ref, answers: Mapping[str, Answer]) -> bool:
    """Whether `ref` leads to an answer that comes when the undo runs."""
    return ref.request.startswith("undo-") and ref.request not in answers


def _left_out(value: Any, answers: Mapping[str, Answer]) -> bool:
    return isinstance(value, Ref) and value.omitted and not is_later(value, answers) and not _there(value, answers)


def _there(ref: Ref, answers: Mapping[str, Answer]) -> bool:
    """Whether `ref` leads to something. Raises MissingValue where that can't be known: the answer wasn't kept whole."""
    try:
        _value(ref, answers)
    except MissingValue:
        if ref.request not in answers or not answers[ref.request].whole:
            raise
        return False
    return True


def _value(ref: Ref, answers: Mapping[str, Answer]) -> JsonValue:
    if ref.request not in answers:
        raise MissingValue(f"{ref.request} has no answer that a value could come from.")
    return answers[ref.request].value(ref.path)


def _check_path_value(step: Step, value: JsonValue) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"{step.method_id}: what a service supplied for its path isn't a text or a number.")
    check_segment(step.method_id, str(value), foreign=True)


def _check_size(step: Step, value: JsonValue) -> None:
    if isinstance(value, str) and len(value) > MAX_VALUE:
        raise InvalidInput(f"{step.method_id}: a service supplied a value of {len(value)} characters.")
