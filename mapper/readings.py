"""A model's completion, read back: the sample that it votes with, and the scopes that it claims to need.

A completion is what a server sends (a message with words or native tool calls, or the choice around it), or the words
alone, as from a file. All of it is untrusted. A claim of scopes isn't followed, and never rejects a sample: it is
recorded, so that a model which asks for more than the catalog says can be seen to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mapper import prompts
from mapper.catalog import Catalog
from mapper.proposals import (
    MAX_NESTING,
    MAX_PROPOSAL,
    Malformed,
    nesting,
    parse_proposal,
    parse_tool_calls,
    rejected,
    unfenced,
)
from mapper.techniques import Technique
from mapper.vote import Sample
from policies.display_text import escape
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical, parse

MAX_CLAIMS = 20
_MAX_TOOL_CALLS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One completion. `claims`: scopes that the model says its calls need, escaped and bounded."""

    sample: Sample
    claims: tuple[str, ...] = ()
    reason: str = ""  # why nothing fits, escaped and bounded


def read(completion: JsonValue, technique: Technique, catalog: Catalog, number: int = 0) -> Reading:
    """The sample in a completion that answers a prompt of `technique`. Never raises for what a model wrote."""
    message = message_of(completion)
    if isinstance(message, str):
        return _words(message, technique, catalog, number)
    if isinstance(message, Mapping):
        tool_calls = message.get("tool_calls")
        if isinstance(tool_calls, list) and tool_calls:
            return _tools(tool_calls, technique, catalog, number)
        if isinstance(message.get("content"), str):
            return _words(message["content"], technique, catalog, number)
    return Reading(sample=rejected(Malformed("The model said nothing."), number, ""))


def message_of(completion: JsonValue) -> JsonValue:
    """The message in a completion: what is in a choice, or tool calls alone."""
    if isinstance(completion, Mapping) and isinstance(completion.get("message"), Mapping):
        completion = completion["message"]
    return {"tool_calls": completion} if isinstance(completion, list) else completion


def tool_pairs(tool_calls: list[Any]) -> list[tuple[str, str]] | Malformed:
    """Native tool calls as names and arguments in JSON text, or what is wrong with them."""
    if len(tool_calls) > _MAX_TOOL_CALLS:
        return Malformed("More tool calls than an action may have.", "limits")
    pairs: list[tuple[str, str]] = []
    for item in tool_calls:
        function = item.get("function") if isinstance(item, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        arguments = function.get("arguments", "{}") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not isinstance(arguments, str):
            return Malformed("A tool call without a name or arguments.")
        pairs.append((name, arguments))
    return pairs


def _tools(tool_calls: list[Any], technique: Technique, catalog: Catalog, number: int) -> Reading:
    named = tool_pairs(tool_calls)
    if isinstance(named, Malformed):
        return Reading(sample=rejected(named, number, ""))
    pairs: list[tuple[str, str]] = []
    claims: tuple[str, ...] = ()
    for name, arguments in named:
        if technique.scopes and name == prompts.SCOPES:
            claims = _claims(_scopes(arguments))
        else:
            pairs.append((name, arguments))
    if [name for name, _ in pairs] == [prompts.NOTHING]:
        return Reading(sample=(), claims=claims)
    if not pairs:
        return Reading(sample=rejected(Malformed("It names scopes, and no call."), number, ""), claims=claims)
    return Reading(sample=parse_tool_calls(pairs, catalog, number), claims=claims)


def _words(text: str, technique: Technique, catalog: Catalog, number: int) -> Reading:
    if technique.scopes and len(text) <= MAX_PROPOSAL and nesting(text) <= MAX_NESTING:
        # With scopes the answer is one object; without that key it is a proposal like any other.
        try:
            value = parse(unfenced(text) if text.count("```") <= 2 else text, limit=MAX_PROPOSAL, what="The answer")
        except InvalidInput:
            value = None
        if isinstance(value, dict) and "scopes" in value:
            claims = _claims(value.pop("scopes"))
            try:
                rest = canonical(value).decode("utf-8")
            except InvalidInput as error:
                return Reading(sample=rejected(Malformed(error.message, "arguments"), number, text), claims=claims)
            return Reading(sample=parse_proposal(rest, catalog, number), claims=claims)
    return Reading(sample=parse_proposal(text, catalog, number))


def _scopes(arguments: str) -> JsonValue:
    if nesting(arguments[:MAX_PROPOSAL]) > MAX_NESTING:
        return None
    try:
        value = parse(arguments, limit=MAX_PROPOSAL, what="The scopes")
    except InvalidInput:
        return None
    return value.get("scopes") if isinstance(value, dict) else None


def _claims(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    texts = dict.fromkeys(escape(item[:120]) for item in value if isinstance(item, str))
    return tuple(texts)[:MAX_CLAIMS]
