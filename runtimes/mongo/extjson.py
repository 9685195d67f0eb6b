"""MongoDB's Extended JSON, read strictly into BSON values, and BSON written back as text for a person.

Rules: the order of keys is kept; a key that stands twice, a number that BSON can't hold, an object that is half a type
(`{"$oid": …, "x": 1}`) and types that nobody should send any more (code, symbol, dbPointer, undefined) are refused.
Format: https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from bson import BSON, ObjectId
from bson.binary import Binary
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.errors import BSONError
from bson.int64 import Int64
from bson.json_util import JSONMode, JSONOptions, dumps
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.regex import Regex
from bson.timestamp import Timestamp

from policies.errors import InvalidInput
from policies.jsonvalue import MAX_BYTES, JsonValue, parse

MOST = MAX_BYTES  # characters of one operation
CODEC: CodecOptions[dict[str, Any]] = CodecOptions(
    document_class=dict, tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_MS
)

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_WRITTEN = JSONOptions(json_mode=JSONMode.RELAXED, datetime_conversion=DatetimeConversion.DATETIME_MS)
_EXACT = JSONOptions(json_mode=JSONMode.CANONICAL, datetime_conversion=DatetimeConversion.DATETIME_MS)
_REFUSED = frozenset({"$code", "$symbol", "$dbPointer", "$undefined", "$scope"})
_OPTIONS = frozenset("imsx")


def read(text: str, *, what: str = "This operation") -> Any:
    """The BSON value that a text of Extended JSON stands for. Raises InvalidInput."""
    return value(parse(text, limit=MOST, what=what))


def value(json: JsonValue) -> Any:
    """The BSON value of parsed Extended JSON. Raises InvalidInput."""
    if isinstance(json, Mapping):
        return _object(json)
    if isinstance(json, list):
        return [value(item) for item in json]
    if isinstance(json, bool) or json is None:
        return json
    if isinstance(json, str):
        return _text(json)
    if isinstance(json, int):
        return _integer(json)
    if isinstance(json, float) and math.isfinite(json):
        return json
    raise InvalidInput(f"{str(json)[:40]} is no number that BSON holds.", next_step='Write {"$numberDecimal": "…"}.')


def shown(bson: Any) -> str:
    """A BSON value as relaxed Extended JSON, on one line. Not escaped."""
    return dumps(bson, json_options=_WRITTEN, ensure_ascii=False)


def exact(bson: Any) -> str:
    """A BSON value as canonical Extended JSON: every type can be told from it. Not escaped."""
    return dumps(bson, json_options=_EXACT, ensure_ascii=False)


def has_unset(document: Mapping[str, Any]) -> bool:
    """Whether a field at its top holds the empty timestamp, which the server fills in when the document is inserted or
    takes another's place."""
    return any(key != "_id" and value == Timestamp(0, 0) for key, value in document.items())


def has_dollar(document: bytes) -> bool:
    """Whether a field's name at its top begins with `$`: the server inserts such a document, and doesn't take it in the
    place of another."""
    return any(key.startswith("$") for key in decode(document))


def decode(document: bytes) -> dict[str, Any]:
    """A BSON document as Python values, with every type kept. Raises InvalidInput for bytes that aren't one."""
    try:
        return BSON(document).decode(CODEC)
    except BSONError as error:
        raise InvalidInput("The server sent a document that isn't BSON.") from error


def encode(document: Mapping[str, Any]) -> bytes:
    """A document as BSON. Raises InvalidInput for what BSON can't hold."""
    try:
        return bytes(BSON.encode(document, codec_options=CODEC))
    except (BSONError, OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput("This isn't a document that BSON can hold.") from error


def _object(json: Mapping[str, JsonValue]) -> Any:
    for key in json:
        if "\0" in key:
            raise InvalidInput("A key holds a NUL, which BSON can't.")
        if key in _REFUSED:
            raise InvalidInput(f"{key} isn't taken: no code, and no types that MongoDB has given up.")
        if key in _TYPES:
            if len(json) != 1:
                raise InvalidInput(f"{key} must stand alone in its object.", next_step="Take its neighbours out.")
            return _typed(key, json[key])
        _text(key)
    return {key: value(item) for key, item in json.items()}


def _typed(key: str, inner: JsonValue) -> Any:
    try:
        return _TYPES[key](inner)
    except InvalidInput:
        raise
    except (ValueError, TypeError, KeyError, ArithmeticError, BSONError) as error:
        raise InvalidInput(
            f"What {key} stands for can't be read.", next_step="Look at its form in Extended JSON v2."
        ) from error


def _text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput("A text holds half a character.", next_step="Send valid Unicode.") from error
    return text


def _integer(number: int) -> int:
    if -(2**31) <= number < 2**31:
        return number
    if -(2**63) <= number < 2**63:
        return Int64(number)
    raise InvalidInput(f"{str(number)[:40]} is larger than 64 bits.", next_step='Write {"$numberDecimal": "…"}.')


def _string(inner: JsonValue) -> str:
    if not isinstance(inner, str):
        raise TypeError("text is wanted")
    return _text(inner)


def _object_id(inner: JsonValue) -> ObjectId:
    return ObjectId(_string(inner))


def _int32(inner: JsonValue) -> int:
    number = int(_digits(inner))
    if not -(2**31) <= number < 2**31:
        raise ValueError("more than 32 bits")
    return number


def _int64(inner: JsonValue) -> Int64:
    number = int(_digits(inner))
    if not -(2**63) <= number < 2**63:
        raise ValueError("more than 64 bits")
    return Int64(number)


def _double(inner: JsonValue) -> float:
    text = _string(inner)
    if not re.fullmatch(r"-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Infinity)|NaN", text, re.ASCII):
        raise ValueError("not a number")
    return float(text)


def _decimal(inner: JsonValue) -> Decimal128:
    return Decimal128(_string(inner))


def _date(inner: JsonValue) -> DatetimeMS:
    if isinstance(inner, Mapping):
        if set(inner) != {"$numberLong"}:
            raise ValueError("not a date")
        return DatetimeMS(int(_int64(inner["$numberLong"])))
    if isinstance(inner, int) and not isinstance(inner, bool):  # as Meteor and older dumps have it
        return DatetimeMS(int(_int64(str(inner))))
    moment = datetime.fromisoformat(_string(inner))
    if moment.tzinfo is None:
        raise InvalidInput("A date has no time zone.", next_step="Write it like 2026-01-31T12:00:00Z.")
    return DatetimeMS((moment - _EPOCH) // timedelta(milliseconds=1))


def _binary(inner: JsonValue) -> Any:
    if not isinstance(inner, Mapping) or set(inner) != {"base64", "subType"}:
        raise ValueError("base64 and subType are wanted")
    data = base64.b64decode(_string(inner["base64"]), validate=True)
    kind = int(_string(inner["subType"]), 16)
    if not 0 <= kind <= 255:
        raise ValueError("not a subtype")
    return Binary(data, kind)


def _uuid(inner: JsonValue) -> Binary:
    text = _string(inner)
    if not re.fullmatch(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text, re.ASCII):
        raise ValueError("not a UUID")
    return Binary(bytes.fromhex(text.replace("-", "")), 4)


def _timestamp(inner: JsonValue) -> Timestamp:
    if not isinstance(inner, Mapping) or set(inner) != {"t", "i"}:
        raise ValueError("t and i are wanted")
    for part in inner.values():
        if not isinstance(part, int) or isinstance(part, bool) or not 0 <= part < 2**32:
            raise ValueError("not 32 bits")
    return Timestamp(inner["t"], inner["i"])


def _regex(inner: JsonValue) -> Regex[str]:
    if not isinstance(inner, Mapping) or set(inner) != {"pattern", "options"}:
        raise ValueError("pattern and options are wanted")
    pattern, options = _string(inner["pattern"]), _string(inner["options"])
    if "\0" in pattern or not set(options) <= _OPTIONS or len(set(options)) != len(options):
        raise ValueError("not a regular expression")
    flags = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
    return Regex(pattern, sum(flags[option] for option in options))


def _min_key(inner: JsonValue) -> MinKey:
    if inner != 1:
        raise ValueError("1 is wanted")
    return MinKey()


def _max_key(inner: JsonValue) -> MaxKey:
    if inner != 1:
        raise ValueError("1 is wanted")
    return MaxKey()


def _digits(inner: JsonValue) -> str:
    text = _string(inner)
    if not re.fullmatch(r"-?\d{1,20}", text, re.ASCII):
        raise ValueError("not an integer")
    return text


_TYPES: Mapping[str, Callable[[JsonValue], Any]] = {
    "$oid": _object_id,
    "$numberInt": _int32,
    "$numberLong": _int64,
    "$numberDouble": _double,
    "$numberDecimal": _decimal,
    "$date": _date,
    "$binary": _binary,
    "$uuid": _uuid,
    "$timestamp": _timestamp,
    "$regularExpression": _regex,
    "$minKey": _min_key,
    "$maxKey": _max_key,
}
