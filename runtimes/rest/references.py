"""Values with references in them: read, written, looked into, filled.

Rules: a `Ref` is the only thing that an answer can replace. In JSON it is `{"$ref": [request, path]}` (with a third
item, `"?"` or `"?-"`, where nothing need be there), and nothing else may look like one; what a caller writes is
`{"$from": N, "path": …}`, which becomes a `Ref` to `call-N` once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from policies.actions import ANY_VALUE
from policies.errors import InvalidInput
from policies.jsonpath import check_path, is_filter, value_at
from policies.jsonvalue import JsonValue, MissingValue, find, steps
from runtimes.gateway.plan import OMITTED, Ref, fill


class Answered(Protocol):
    """An answer that values come from."""

    @property
    def whole(self) -> bool:
        """Whether all of it was kept."""
        ...

    def value(self, path: str) -> JsonValue:
        """What stands at `path`. Raises MissingValue."""
        ...


_PLAIN_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")


def plain(value: Any) -> JsonValue:
    """`value` with each `Ref` as its JSON form. Raises InvalidInput where something else looks like one."""
    if isinstance(value, Ref):
        return value.to_json()
    if isinstance(value, Mapping):
        if "$ref" in value:
            raise InvalidInput("An argument with a key called $ref isn't taken: it would read as a reference.")
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def referring(value: JsonValue) -> Any:
    """`value` with each JSON reference as a `Ref` again."""
    if isinstance(value, Mapping):
        if "$ref" in value:
            request, path, *rest = value["$ref"]
            if len(value) != 1 or not isinstance(request, str) or not isinstance(path, str) or rest not in (
                [], ["?"], ["?-"],
            ):  # fmt: skip
                raise InvalidInput("A reference names one request and one path.")
            check_path(path)
            return Ref(request, path, optional=bool(rest), omitted=rest == ["?-"])
        return {key: referring(item) for key, item in value.items()}
    if isinstance(value, list):
        return [referring(item) for item in value]
    return value


def refs_in(value: Any) -> tuple[Ref, ...]:
    """Every reference in `value`, at any depth, in order."""
    if isinstance(value, Ref):
        return (value,)
    if isinstance(value, Mapping):
        return tuple(ref for item in value.values() for ref in refs_in(item))
    if isinstance(value, list | tuple):
        return tuple(ref for item in value for ref in refs_in(item))
    return ()


def with_refs(value: Any, index: int) -> Any:
    """`value` with each `{"$from": N, "path": …}` as the `Ref` that it means. Raises InvalidInput."""
    if isinstance(value, Mapping):
        if value == ANY_VALUE:
            raise InvalidInput('An argument that is {"$any": true} isn\'t taken: it would read as any value at all.')
        if "$each" in value:
            raise InvalidInput("What is done for each item of an answer is planned when that answer is there.")
        if "$from" in value:
            source, path = value["$from"], value.get("path")
            if set(value) != {"$from", "path"} or isinstance(source, bool) or not isinstance(source, int):
                raise InvalidInput('A reference is written {"$from": N, "path": "$.a"}.')
            if not isinstance(path, str):
                raise InvalidInput("The path of a reference is a text.")
            if not 0 <= source < index:
                raise InvalidInput(f"Call {index} can refer to the answers of earlier calls only, not to {source}.")
            check_path(path)
            return Ref(f"call-{source}", path)
        return {key: with_refs(item, index) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_refs(item, index) for item in value]
    return value


def look(value: Any, path: str) -> Any:
    """As `policies.jsonpath.value_at`, in values that may hold a `Ref`: a plain path into one makes a longer `Ref`."""
    if is_filter(path):
        return value_at(value, path)
    todo = steps(path)
    for place, step in enumerate(todo):
        if isinstance(value, Ref):
            return Ref(value.request, value.path + "".join(_spelled(rest) for rest in todo[place:]))
        value = find(value, f"${_spelled(step)}")
    return value


def literal(value: Any, answers: Mapping[str, Answered]) -> Any:
    """`value` with each `Ref` replaced by what was answered; null where an optional one has nothing to lead to.

    A reference to what only the undo itself will be answered stays one. Raises MissingValue.
    """
    return fill(value, lambda ref: ref if is_later(ref, answers) else _found(ref, answers))


def as_known(value: Any, answers: Mapping[str, Answered]) -> Any:
    """`value` with what is known filled in, and every other reference as a caller's, which fits any schema."""
    caller = {"$from": 0, "path": "$"}
    return fill(value, lambda ref: _found(ref, answers) if ref.request in answers else caller)


def _found(ref: Ref, answers: Mapping[str, Answered]) -> Any:
    if not ref.optional or is_there(ref, answers):
        return value_of(ref, answers)
    return OMITTED if ref.omitted else None


def is_later(ref: Ref, answers: Mapping[str, Answered]) -> bool:
    """Whether `ref` leads to an answer that comes when the undo runs."""
    return ref.request.startswith("undo-") and ref.request not in answers


def is_there(ref: Ref, answers: Mapping[str, Answered]) -> bool:
    """Whether `ref` leads to something. Raises MissingValue where that can't be known: the answer wasn't kept whole."""
    try:
        value_of(ref, answers)
    except MissingValue:
        if ref.request not in answers or not answers[ref.request].whole:
            raise
        return False
    return True


def value_of(ref: Ref, answers: Mapping[str, Answered]) -> JsonValue:
    if ref.request not in answers:
        raise MissingValue(f"{ref.request} has no answer that a value could come from.")
    return answers[ref.request].value(ref.path)


def _spelled(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_STEP.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
