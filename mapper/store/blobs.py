"""Schemas and parameters as small compressed blobs, one for each different content.

A blob's number is taken from its content, so that equal ones (most versions of a service share theirs) are kept once.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from typing import Any

from policies.errors import InvalidInput

MAX_BLOB = 8_000_000  # bytes of JSON that one blob may grow to

# What such JSON is full of, the most frequent last. Changing it changes the file's format.
_COMMON = (
    b'"maximum":"minimum":"pattern":"^projects/[^/]+/locations/[^/]+$"google-datetimegoogle-durationgoogle-fieldmask'
    b'"format":"double""format":"float""format":"byte""format":"uint64""default":"deprecated":true'
    b"The maximum number of results to return. A page token, received from a previous call. Provide this to retrieve "
    b"the subsequent page. An optional filter. The fields to update. If true, the request succeeds even if the name of "
    b"the parent resource. Required. Optional. Output only. Identifier. Immutable. The resource name of the "
    b'{"enum":["UNSPECIFIED"{"additionalProperties":{"type":"string"},"description":"Labels as key value pairs",'
    b'"format":"google-datetime","readOnly":true,"type":"string"},"format":"int32","type":"integer"}'
    b'"format":"int64","type":"string"}"items":{"type":"string"},"type":"array"}"items":{"$ref":"#/$defs/'
    b'"locations":{"pageSize":"query","pageToken":"query","filter":"query","orderBy":"query","name":"path",'
    b'"parent":"path","body":"whole"},"properties":{"body":{"$ref":"#/$defs/"},"required":["name"],"required":["parent"]'
    b'{"additionalProperties":false,"properties":{"description":"type":"boolean"},{"$ref":"#/$defs/'
    b'{"description":"Required. The name of the ","type":"string"},'
)


def pack(value: Any) -> tuple[int, bytes]:
    """The blob's number and bytes. Raises InvalidInput for what is too long."""
    raw = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")
    if len(raw) > MAX_BLOB:
        raise InvalidInput(f"A schema is {len(raw)} bytes long; at most {MAX_BLOB} are taken.")
    squeezer = zlib.compressobj(6, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, _COMMON)
    number = int.from_bytes(hashlib.sha256(raw).digest()[:8], "big") >> 1
    return number, squeezer.compress(raw) + squeezer.flush()


def unpack(data: bytes) -> Any:
    """The value of a blob. Raises sqlite3.DatabaseError for damaged ones: the file is what is wrong then."""
    try:
        opener = zlib.decompressobj(-15, _COMMON)
        raw = opener.decompress(data, MAX_BLOB + 1)
        if len(raw) > MAX_BLOB or opener.unconsumed_tail:
            raise sqlite3.DatabaseError("a schema is longer than any that was written")
        return json.loads(raw)
    except (zlib.error, ValueError, RecursionError) as error:
        raise sqlite3.DatabaseError(f"a schema is damaged: {error}") from error
