"""Whether one type of a column has room for all values of another, and which it wouldn't have in turn."""

from __future__ import annotations

import re

_MOST_OF_TEXT = 16_383  # characters of four bytes in 64 kB
_TEXTS = {"tinytext": 2**8 - 1, "text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}  # bytes
_CHOICE = re.compile(r"(enum|set)\(('(?:[^']|'')*'(?:,'(?:[^']|'')*')*)\)", re.IGNORECASE)


def beyond(was: str, new: str, column: str) -> str:
    """The condition for values of `new`, as the server writes types, that `was` has no room for; "": a value of `was`
    may be another one in `new`. An ENUM or SET has room where its values begin with all of the other's, in their order:
    rows hold their numbers."""
    width = re.fullmatch(r"varchar\((\d+)\)", was.lower())
    wider = re.fullmatch(r"varchar\((\d+)\)|(medium|long)?text", new.lower())
    if width and wider and int(width[1]) <= (int(wider[1]) if wider[1] else _MOST_OF_TEXT):
        return f"CHAR_LENGTH({column}) > {width[1]}"
    if was.lower() in _TEXTS and _TEXTS[was.lower()] <= _TEXTS.get(new.lower(), 0):
        return f"LENGTH({column}) > {_TEXTS[was.lower()]}"
    one, other = _CHOICE.fullmatch(was), _CHOICE.fullmatch(new)
    if not one or not other or one[1].lower() != other[1].lower() or not f"{other[2]},".startswith(f"{one[2]},"):
        return ""
    values = len(re.findall(r"'(?:[^']|'')*'", one[2]))
    if one[1].lower() == "set":
        return f"CAST({column} + 0 AS UNSIGNED) >= {1 << values}"  # of 64 the last is the sign
    return f"{column} + 0 NOT BETWEEN 1 AND {values}"  # 0: a value that nobody knew, which undo might not put back
