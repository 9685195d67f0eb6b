"""The Thought / Action / Action Input protocol of GPT4Tools and its kin, read and never run.

    Thought: Do I need to use a tool? Yes          Thought: Do I need to use a tool? No
    Action: slack.chat.postMessage                 AI: There is nothing for this here.
    Action Input: {"channel": "#ops", "text": "hi"}

Rules: each Action has one Action Input, in order; several are several calls. An input is JSON, which may go over lines,
or on one line `key=value, …` or the bare value of the only required argument. A "No" with an action, a "Yes" without
one, and an observation that the model made up (it would go on from an answer that nobody gave) reject the whole text;
so does `key=value` where a quotation isn't closed before the next key, since what is quoted holds no keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mapper import python_calls
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, parse
from policies.services import Method

MAX_ACTIONS = 50
MAX_LINES = 2_000

_LABEL = re.compile(r"[ \t]{0,8}(Thought|Action Input|Action|Observation|AI|Final Answer)[ \t]*:[ \t]*(.*)", re.DOTALL)
_NEEDED = re.compile(r"do i need to use a tool\?\s*(yes|no)\b", re.IGNORECASE)
_OPENERS = re.compile(r"(?:\A|\n)[ \t]{0,8}(?:Action[ \t]*:|Thought[ \t]*:)")
_ASSIGNED = re.compile(r"(?:\A|,)\s*([A-Za-z_][A-Za-z0-9_.-]{0,80})\s*=\s*")
_QUOTES = ("``", "''", '""', "[]")


class NotProtocol(Exception):
    """The text isn't of this protocol's form, or an input can't be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action as written: the tool's name and its input, both untrusted."""

    name: str
    input: str


def speaks(text: str) -> bool:
    """Whether `text` is written in this protocol."""
    return _OPENERS.search(text) is not None


def read(text: str) -> list[Action]:
    """The actions in `text`, in order; [] when it says that no tool is needed. Raises NotProtocol."""
    actions: list[Action] = []
    needed = ""
    name: str | None = None
    for label, said in _sections(text):
        if name is not None and label != "Action Input":
            raise NotProtocol("An action has no input.")
        if label == "Thought":
            found = _NEEDED.search(said)
            needed = found[1].lower() if found else needed
        elif label == "Action":
            name = _unquoted(said)
        elif label == "Action Input":
            if name is None:
                raise NotProtocol("An input stands without an action.")
            if len(actions) >= MAX_ACTIONS:
                raise NotProtocol("There are more actions than an action may have calls.")
            actions.append(Action(name, said))
            name = None
        elif label == "Observation" and said:
            raise NotProtocol("It makes up what an action answers.")
        elif label in ("AI", "Final Answer") and not actions and needed != "no":
            raise NotProtocol("It answers in words, and doesn't say that no tool is needed.")
    if name is not None:
        raise NotProtocol("An action has no input.")
    if actions and needed == "no":
        raise NotProtocol("It says that no tool is needed, and names one.")
    if not actions and needed != "no":
        raise NotProtocol("It names no action.")
    return actions


def arguments(text: str, method: Method) -> dict[str, Any]:
    """The arguments that an input gives to `method`. Raises NotProtocol."""
    properties = method.parameters.get("properties", {})
    required: Sequence[str] = method.parameters.get("required", ())
    if text[:1] in ("{", "["):
        value = _json(text)
        if isinstance(value, dict):
            return value
        return _single(value, required)
    if not text:
        return {}
    if "\n" in text:
        raise NotProtocol("An input over several lines must be JSON.")
    try:
        return python_calls.keywords(text)
    except python_calls.NotCalls:
        pass
    named = _assigned(text, properties)
    if named:
        return named
    return _single(_typed(text, properties.get(required[0], {})) if len(required) == 1 else text, required)


def _sections(text: str) -> list[tuple[str, str]]:
    """(label, what follows it up to the next one). What stands before the first label is skipped: models talk."""
    found: list[tuple[str, list[str]]] = []
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise NotProtocol(f"It has more than {MAX_LINES} lines.")
    for line in lines:
        match = _LABEL.match(line)
        if match is not None:
            found.append((match[1], [match[2]]))
        elif found:
            found[-1][1].append(line)
    return [(label, "\n".join(parts).strip()) for label, parts in found]


def _unquoted(name: str) -> str:
    return name[1:-1].strip() if len(name) > 1 and name[0] + name[-1] in _QUOTES else name


def _json(text: str) -> JsonValue:
    try:
        return parse(text, limit=len(text), what="The input")
    except InvalidInput as error:
        raise NotProtocol(error.message) from error


def _assigned(text: str, properties: dict[str, Any]) -> dict[str, Any]:
    """`key=value, key=value` without quotes, where each key is one of the method's; {} when it isn't that."""
    marks = [match for match in _ASSIGNED.finditer(text) if match[1] in properties]
    if not marks or marks[0].start() != 0:
        return {}
    ends = [match.start() for match in marks[1:]] + [len(text)]
    made: dict[str, Any] = {}
    for match, end in zip(marks, ends, strict=True):
        if match[1] in made:
            raise NotProtocol(f"{match[1][:60]} is given twice.")
        value = text[match.end() : end].strip()
        if value.replace('\\"', "").count('"') % 2 or (value[:1] == "'" and (len(value) < 2 or value[-1] != "'")):
            raise NotProtocol(f"The quotation in {match[1][:60]} isn't closed.")
        made[match[1]] = _typed(value, properties[match[1]])
    return made


def _typed(text: str, schema: Any) -> JsonValue:
    """A bare value, read as the type that the schema wants; text where it may be text, or isn't what is wanted."""
    kinds = schema.get("type", "string") if isinstance(schema, dict) else "string"
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    if quoted and text[0] == '"':
        return _json(text)
    if quoted:
        return text[1:-1]
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return text
    try:
        return _json(text)
    except NotProtocol:
        return text  # the schema says what it should have been


def _single(value: JsonValue, required: Sequence[str]) -> dict[str, Any]:
    if len(required) != 1:
        raise NotProtocol("A bare input needs a method with exactly one required argument.")
    return {required[0]: value}
