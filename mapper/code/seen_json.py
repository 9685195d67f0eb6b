"""What reading a program gave, as JSON: how the process that reads it tells the daemon.

Rules: whoever reads hostile text may be anybody's by then, so what it says is parsed, never unpickled, and anything
that isn't as it should be is an error. What only the reader itself can use (functions, classes, objects) isn't known
beyond it.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from mapper.code.abstract_values import UNKNOWN, Fields, Form, Json, Listed, Lit, OneOf, Stream, Text, Value
from mapper.code.sent_requests import Kind, Request, Seen, Spoken

_KINDS: dict[str, Kind] = {"none": "none", "json": "json", "form": "form", "any": "any"}


class BadReading(ValueError):
    """This isn't what the reader writes."""


def to_json(seen: Seen) -> str:
    return json.dumps(
        {
            "requests": [
                [one.line, _value(one.verb), _value(one.url), _value(one.query), _value(one.body), one.kind,
                 one.signed, one.sdk]
                for one in seen.requests
            ],
            "spoken": [
                [one.line, one.sdk, one.name, _value(one.given), one.api, one.kind, one.upload, _value(one.verb),
                 None if one.base is None else _value(one.base)]
                for one in seen.spoken
            ],
            "unread": seen.unread,
            "notes": seen.notes,
            "addresses": seen.addresses,
            "headers": seen.headers,
        },
        separators=(",", ":"),
    )  # fmt: skip


def from_json(text: str) -> Seen:
    """Raises BadReading."""
    try:
        said = json.loads(text)
        made = Seen(
            requests=[_request(each) for each in said["requests"]],
            spoken=[_spoken(each) for each in said["spoken"]],
            unread=[(int(line), str(what)) for line, what in said["unread"]],
            notes=[str(note) for note in said["notes"]],
            addresses=[str(address) for address in said["addresses"]],
        )
        for name, value in said["headers"]:
            made.header(name, Lit(str(value)))
        return made
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise BadReading(str(error)) from error


def _request(said: Any) -> Request:
    line, verb, url, query, body, kind, signed, sdk = said
    return Request(
        line=int(line), verb=_known(verb), url=_known(url), query=_fields(query), body=_fields(body),
        kind=_KINDS[kind], signed=str(signed), sdk=bool(sdk),
    )  # fmt: skip


def _spoken(said: Any) -> Spoken:
    line, sdk, name, given, api, kind, upload, verb, base = said
    if sdk not in ("slack", "google"):
        raise BadReading(f"no naming is {sdk!r}")
    return Spoken(
        line=int(line), sdk=sdk, name=str(name), given=_fields(given), api=str(api), kind=_KINDS[kind],
        upload=bool(upload), verb=_known(verb), base=None if base is None else _known(base),
    )  # fmt: skip


def _value(value: Value) -> Any:
    match value:
        case Lit(value=bytes() as known):
            return ["bytes", base64.b64encode(known).decode()]
        case Lit(value=None | bool() | int() | float() | str() as known):
            return ["is", known]
        case Form(fields=fields):
            return ["form", _value(fields)]
        case Json(value=inner):
            return ["json", _value(inner)]
        case Text(parts=parts):
            return ["text", [_value(part) if isinstance(part, Form) else part for part in parts]]
        case Listed(items=items, more=more):
            return ["list", [_value(item) for item in items], more]
        case Stream(of=inner):
            return ["stream", _value(inner)]
        case Fields(items=items, more=more):
            return ["fields", [[name, _value(item)] for name, item in items], more]
        case OneOf(values=values):
            return ["one", [_value(each) for each in values]]
    return None


def _known(said: Any) -> Value:
    match said:
        case None:
            return UNKNOWN
        case ["bytes", str() as known]:
            return Lit(base64.b64decode(known))
        case ["is", None | bool() | int() | float() | str() as known]:
            return Lit(known)
        case ["form", inner]:
            return Form(_fields(inner))
        case ["json", inner]:
            return Json(_known(inner))
        case ["text", list() as parts]:
            return Text(tuple(_part(part) for part in parts))
        case ["list", list() as items, bool() as more]:
            return Listed(tuple(_known(item) for item in items), more)
        case ["stream", inner]:
            return Stream(_known(inner))
        case ["fields", list() as items, bool() as more]:
            return Fields(tuple((str(name), _known(item)) for name, item in items), more)
        case ["one", list() as values]:
            return OneOf(tuple(_known(each) for each in values))
    raise BadReading("a value is of no known kind")


def _part(said: Any) -> str | Form | None:
    if said is None or isinstance(said, str):
        return said
    made = _known(said)
    if not isinstance(made, Form):
        raise BadReading("a part of a text is neither text nor form")
    return made


def _fields(said: Any) -> Fields:
    made = _known(said)
    if not isinstance(made, Fields):
        raise BadReading("names are expected")
    return made
