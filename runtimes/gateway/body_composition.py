"""The body of a planned request as bytes, and its content type. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from policies.jsonvalue import canonical
from policies.media_types import FORM, JSON, OCTETS
from runtimes.gateway.multipart import Part, write_parts
from runtimes.gateway.plan import PlannedRequest
from runtimes.gateway.response_values import Answers, NoValue, scalar
from runtimes.gateway.urls import encode_query

# Nothing that the head of a part would be read in another way for.
PART_TEXT = re.compile(r'[^"\\%\x00-\x1f\x7f]{1,256}')


def compose_body(planned: PlannedRequest, answers: Answers) -> tuple[bytes, str]:
    """The body, with its values filled, and its content type; (b"", "") for none. Raises NoValue."""
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
