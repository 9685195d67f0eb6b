"""Content types of bodies: which format a body of one has, and which are never sent."""

from __future__ import annotations

import re
from typing import Literal

MEDIA = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+\-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+\-]{0,126}")
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
OCTETS = "application/octet-stream"

_JSON = re.compile(r"application/json|text/json|application/[a-z0-9!#$&^_.\-]+\+json")
_TEXT = re.compile(
    r"text/.+|[a-z]+/(?:[a-z0-9!#$&^_.\-]+\+)?(?:xml|yaml)|application/(?:x-yaml|x-ndjson|jwt|jsonl|sdp)"
)
# Several requests in one body, or a language of their own: whoever grants them couldn't say what is in them.
_HIDDEN = re.compile(r"multipart/.*|message/.*|application/(?:http|graphql.*)")


def format_of(media: str) -> Literal["json", "form", "multipart", "text", "bytes", ""]:
    """The format of a body of that type (lower case, without parameters); "" where none is sent."""
    if media == FORM:
        return "form"
    if media == MULTIPART:
        return "multipart"
    if not MEDIA.fullmatch(media) or _HIDDEN.fullmatch(media):
        return ""
    if _JSON.fullmatch(media):
        return "json"
    return "text" if _TEXT.fullmatch(media) else "bytes"
