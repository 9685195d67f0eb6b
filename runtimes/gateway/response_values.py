"""Values that come from answers, and conditions on answers. Pure.

An answer of an untrusted service can fill a value. It can't add a path segment, a header, or a request; and where
it is missing, or isn't of a kind that fits the place, the request that wanted it is refused.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Literal

from policies.errors import GoexError, InvalidInput
from policies.graphql import answers_well
from policies.jsonpath import value_at
from policies.jsonvalue import JsonValue, MissingValue, canonical, find, parse
from policies.media_types import FORM, JSON, OCTETS
from policies.services import Expect
from runtimes.gateway.multipart import Part, write_parts
from runtimes.gateway.plan import PlannedRequest, Ref, fill
from runtimes.gateway.urls import MAX_QUERY_VALUE, BadTarget, check_segment, encode_query


class NoValue(GoexError):
    """A reference leads nowhere, or to something that doesn't fit its place."""

    code = "no-value"


class Answers:
    """The JSON bodies of a plan's answers so far, by request id."""

    def __init__(self) -> None:
        self._bodies: dict[str, JsonValue] = {}
        # Whoever asks again, in whatever words, has no second search made.
        self._found: dict[Ref, JsonValue | NoValue] = {}

    def keep(self, request: str, body: JsonValue) -> None:
        self._bodies[request] = body
        self._found = {ref: found for ref, found in self._found.items() if ref.request != request}

    def resolve(self, value: Any) -> Any:
        """`value` with every Ref in it replaced. Raises NoValue."""
        return fill(value, self._value)

    def _value(self, ref: Ref) -> JsonValue:
        if ref.request not in self._bodies:
            raise NoValue(f"there is no JSON answer to {ref.request} that a value could come from")
        if ref not in self._found:
            try:
                self._found[ref] = value_at(self._bodies[ref.request], ref.path)
            except InvalidInput as error:
                self._found[ref] = NoValue(f"the answer to {ref.request}: {error.message.rstrip('.')}")
        found = self._found[ref]
        if isinstance(found, NoValue):
            raise NoValue(found.message)
        return found

    def segment(self, part: str | Ref) -> str:
        """One path segment, decoded. Raises NoValue when it couldn't be exactly one."""
        text = part if isinstance(part, str) else scalar(self.resolve(part))
        try:
            return check_segment(text, may_be_empty=isinstance(part, str))
        except BadTarget as error:
            raise NoValue(error.message) from error

    def pairs(self, mapping: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        """A query or form, as decoded pairs: a list gives its name several times, null leaves it out."""
        found: list[tuple[str, str]] = []
        for name, value in self.resolve(mapping).items():
            for one in value if isinstance(value, list) else [value]:
                if one is None:
                    continue
                text = scalar(one)
                if len(text) > MAX_QUERY_VALUE:
                    raise NoValue(f"the value of {name} is too long")
                found.append((name, text))
        return tuple(found)


def scalar(value: Any) -> str:
    """A string, number or truth value as text. Raises NoValue for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return canonical(value).decode("ascii")
    raise NoValue("a value that must be a string or a number isn't one")


Kind = Literal["json", "empty", "other"]


def judge(expectations: tuple[Expect, ...], status: int, body: JsonValue, kind: Kind, answers: Answers) -> str:
    """What didn't hold, in words; "" when all of it did.

    An answer that is neither JSON nor empty can't be read, so no condition on its body holds.

    Without an expectation on the status, only 2xx is well. With one, it alone decides about the status, so that
    a read-back can expect 404.
    """
    if not any(one.op == "status" for one in expectations) and not 200 <= status < 300:
        return f"the server answered with status {status}"
    for one in expectations:
        if not _holds(one, status, body, kind, answers):
            return one.says or f"{one.op} {one.path} doesn't hold"
    return ""


def holds_of_list(op: str, found: JsonValue, wanted: JsonValue) -> bool:
    """`contains`: every one of `wanted` is in the list `found`; `lacks`: none is, nor an item that has all fields of an
    object among them, whatever else it has. False where either isn't a list."""
    if not isinstance(found, list) or not isinstance(wanted, list):
        return False
    there = {canonical(item) for item in found}
    if op == "contains":
        return all(canonical(one) in there for one in wanted)
    return not any(canonical(one) in there or any(_has(item, one) for item in found) for one in wanted)


def _has(item: JsonValue, wanted: JsonValue) -> bool:
    """Whether `item` has every field of `wanted`; to have none is to have null."""
    if isinstance(wanted, Mapping):
        return isinstance(item, Mapping) and all(_has(item.get(name), value) for name, value in wanted.items())
    return canonical(item) == canonical(wanted)


def _holds(one: Expect, status: int, body: JsonValue, kind: Kind, answers: Answers) -> bool:
    try:
        wanted = answers.resolve(one.value)
    except NoValue:
        return False
    if one.op == "status":
        return isinstance(wanted, list) and status in wanted
    if kind == "other":
        return False
    if one.op == "data":
        return answers_well(one, body)
    try:
        found = find(body, one.path)
        present = kind == "json"
    except MissingValue:
        found, present = None, False
    except InvalidInput:
        return False
    match one.op:
        case "exists":
            return present
        case "absent":
            return not present
        case "contains" | "lacks":
            return kind == "json" and holds_of_list(one.op, found if present else [], wanted)
        case "equals":
            return present and canonical(found) == canonical(wanted)
        case "not_equals":
            return not present or canonical(found) != canonical(wanted)
    return False


def readable(body: bytes, limit: int) -> tuple[JsonValue, Kind]:
    """An answer's body, parsed strictly (UTF-8, no duplicate keys, nothing that JSON can't hold again)."""
    if not body:
        return None, "empty"
    try:
        value: Any = parse(body.decode("utf-8"), limit=limit, what="This answer")
        canonical(value)
    except (InvalidInput, UnicodeError):
        return None, "other"
    return value, "json"


# Nothing that the head of a part would be read in another way for.
PART_TEXT = re.compile(r'[^"\\%\x00-\x1f\x7f]{1,256}')


def compose_body(planned: PlannedRequest, answers: Answers) -> tuple[bytes, str]:
    """Return the body as bytes, with its values filled, and its content type; (b"", "") for none. Raises NoValue."""
    if planned.body_format == "none" or planned.body is None:
        return b"", ""
    if planned.body_format == "form":
        return encode_query(answers.pairs(planned.body)).encode("ascii"), FORM
    filled = answers.resolve(planned.body)
    match planned.body_format:
        case "text":
            media = planned.body_type or "text/plain"
            return scalar(filled).encode("utf-8"), f"{media}; charset=utf-8" if media.startswith("text/") else media
        case "bytes":
            return decoded(filled), planned.body_type or OCTETS
        case "multipart":
            return write_parts(tuple(part for one in filled for part in _parts(one)))
    return canonical(filled), planned.body_type or JSON


def decoded(value: Any) -> bytes:
    """The bytes that a text in base64 stands for. Raises NoValue."""
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (AttributeError, UnicodeError, binascii.Error):
        raise NoValue("a value that must be base64 isn't") from None


def _parts(raw: Any) -> list[Part]:
    name = scalar(raw["name"])
    if "file" in raw:
        data = decoded(raw["base64"]) if "base64" in raw else scalar(raw.get("text", "")).encode("utf-8")
        return [Part(name=name, file=True, filename=scalar(raw["file"]), type=scalar(raw["type"]), data=data)]
    value = raw["value"]
    if isinstance(value, dict):
        return [Part(name=name, file=False, type=JSON, data=canonical(value))]
    if isinstance(value, list) and any(isinstance(one, list | dict) for one in value):
        return [Part(name=name, file=False, type=JSON, data=canonical(value))]
    listed = value if isinstance(value, list) else [value]
    return [Part(name=name, file=False, data=scalar(one).encode("utf-8")) for one in listed if one is not None]
