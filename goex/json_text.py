"""A JSON value as lines that a person reads: each text is escaped, and line breaks in one are lines.

Rules: what is in a text can't pose as what stands around it. A text of one line stands in quotation marks, as JSON has
it; one of several is announced with how many, and each of its lines stands behind a bar.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from policies.display_text import escape, escape_value

_STEP = 2  # spaces; the bar of a text's lines stands one further in


def json_lines(value: object) -> list[str]:
    """Return the lines of a value that `json` reads or writes."""
    return list(_lines(value, 0, "", ""))


def _lines(value: object, depth: int, before: str, after: str) -> Iterator[str]:
    """`before` and `after`: what stands on its first and on its last line beside it."""
    space = " " * (_STEP * depth)
    if isinstance(value, dict | list) and value:
        named = isinstance(value, dict)
        begins, ends = "{}" if named else "[]"
        yield f"{space}{before}{begins}"
        last = len(value) - 1
        for place, one in enumerate(value):
            name, inner = (f"{_one_line(str(one))}: ", value[one]) if isinstance(value, dict) else ("", one)
            yield from _lines(inner, depth + 1, name, "," if place < last else "")
        yield f"{space}{ends}{after}"
    elif isinstance(value, str) and "\n" in value:
        texts = escape(value, newlines=True).split("\n")
        yield f"{space}{before}({len(texts)} lines){after}"
        yield from (f"{space} | {text}" for text in texts)
    else:
        yield f"{space}{before}{_one_line(value)}{after}"


def _one_line(value: object) -> str:
    return escape_value(json.dumps(value, ensure_ascii=False))
