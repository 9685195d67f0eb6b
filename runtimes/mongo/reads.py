"""What the operations of a program give back."""

from __future__ import annotations

import json
from collections.abc import Iterable

from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, check_depth
from runtimes.mongo.backend import Unit
from runtimes.mongo.extjson import decode, shown
from runtimes.mongo.operations import Read, Write
from runtimes.mongo.records import Change
from runtimes.sql.contract import Limits

_DEEPEST = 40  # levels; MongoDB holds 100


def read(unit: Unit, operation: Read, limits: Limits, budget: list[int]) -> JsonValue:
    """What it found, as JSON (relaxed Extended JSON); `more`: there was more than is given back. `budget` holds how
    many bytes the whole program may still give back."""
    if operation.how in ("count", "distinct"):
        found = next(iter(unit.read(operation, 1)), None)
        answer = decode(found) if found is not None else {}
        if operation.how == "count":
            return {"count": int(answer.get("count", 0))}
        values: list[JsonValue] = []
        listed = answer.get("values", [])
        for value in listed:
            text = shown(value)
            if len(values) >= limits.result_rows or len(text) > budget[0]:
                break
            budget[0] -= len(text)
            values.append(_plain(text))
        return {"values": values, "more": len(values) < len(listed)}
    return _documents(unit.read(operation, limits.result_rows + 1), limits, budget)


def returned(write: Write, change: Change | None, limits: Limits, budget: list[int]) -> JsonValue:
    """The document that a write gives back, as a read of it would."""
    document = None if change is None else change.before if write.returns == "before" else change.after
    return _documents([] if document is None else [document], limits, budget)


def _documents(found: Iterable[bytes], limits: Limits, budget: list[int]) -> JsonValue:
    documents: list[JsonValue] = []
    more = False
    for document in found:
        text = shown(decode(document))
        if len(documents) >= limits.result_rows or len(text) > budget[0]:
            more = True
            break
        budget[0] -= len(text)
        documents.append(_plain(text))
    return {"documents": documents, "more": more}


def _plain(text: str) -> JsonValue:
    """As JSON; what is nested deeper than an answer of ours may be stays text."""
    value: JsonValue = json.loads(text)
    try:
        check_depth(value, _DEEPEST)
    except InvalidInput:
        return text
    return value
