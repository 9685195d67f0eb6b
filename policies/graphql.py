"""GraphQL as GoEx sends it: one operation with one root field, printed when the schema was imported. Pure.

Rules: a document holds names, braces and variables, and no text of anybody's, so that a call's arguments can't become a
part of it. Of a mutation an answer with errors is no good one; of a query it is one where it has data besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from policies.jsonvalue import JsonValue
from policies.services import Expect, Method

MAX_DOCUMENT = 40_000  # characters
_NO_DATA = "the answer has errors, or no data"
NO_ERRORS = Expect(op="data", value="all", says=_NO_DATA)
SOME_DATA = Expect(op="data", value="some", says=_NO_DATA)

_NAME = r"[_A-Za-z][_0-9A-Za-z]*"
_TYPE = rf"\[*{_NAME}[!\]]*"
_VARIABLE = rf"\${_NAME}: {_TYPE}"
_ARGUMENT = rf"{_NAME}: \${_NAME}"
_HEAD = re.compile(
    rf"(?P<kind>query|mutation) {_NAME}(?:\({_VARIABLE}(?:, {_VARIABLE})*\))?"
    rf" \{{\n  {_NAME}(?:\({_ARGUMENT}(?:, {_ARGUMENT})*\))?"
)
_LINE = re.compile(rf"  +(?:{_NAME}(?: \{{)?|\.\.\. on {_NAME} \{{|\}})")


def operation_of(document: str) -> str:
    """What a printed document does, `query` or `mutation`; "" for what isn't one operation with one root field."""
    head = _HEAD.match(document)
    if head is None or len(document) > MAX_DOCUMENT:
        return ""
    rest = document[head.end() :]
    depth = 1
    if rest != "\n}":
        first, *lines = rest.split("\n")
        if first != " {" or lines[-2:] != ["  }", "}"]:
            return ""
        for line in lines[:-2]:
            # The indentation is the depth: what closes the root field early would stand to its left.
            if not _LINE.fullmatch(line) or len(line) - len(line.lstrip()) < 4:
                return ""
            depth += line.endswith("{") - line.endswith("}")
            if depth < 1:
                return ""
        if depth != 1:
            return ""
    return head["kind"]


def paths_of(document: str) -> tuple[str, ...]:
    """The plain values that a printed document asks for, each by the names that lead to it: `issue.author.login`."""
    names: list[str] = []
    found: list[str] = []
    for line in document.split("\n")[1:-1]:
        text = line.strip().partition("(")[0]
        if line.endswith("{"):
            names.append("" if text.startswith("...") else text.removesuffix("{").strip())
        elif text == "}":
            names.pop()
        else:
            found.append(".".join((*filter(None, names), text)))
    return tuple(dict.fromkeys(found))


def answers_well(expect: Expect, body: JsonValue) -> bool:
    """Whether an answer has data, and (as the expectation's value says) no errors, or some data beside its errors."""
    data = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(data, Mapping):
        return False
    if not body.get("errors"):
        return True
    return expect.value == "some" and any(value is not None for value in data.values())


def expected_of(method: Method, expects: tuple[Expect, ...]) -> tuple[Expect, ...]:
    """The expectations without what is expected of a mutation alone, where the method is a query."""
    if not method.document.startswith("query "):
        return expects
    return tuple(expect for expect in expects if expect != NO_ERRORS)


def leaves_open(status: int, body: JsonValue) -> bool:
    """Whether an answer leaves open if a mutation was carried out: one that was refused beforehand has no `data`."""
    return status < 400 and isinstance(body, Mapping) and "data" in body
