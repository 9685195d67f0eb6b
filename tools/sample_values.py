"""Made-up values that fit a JSON Schema, for simulations. What doesn't fit after all is found by validation."""

from __future__ import annotations

import random
import re
from typing import Any

_WORDS = ("harvest", "ledger", "north", "quartz", "report", "team", "violet", "willow", "draft", "archive")
# Tried where a pattern is declared; the first that fits is taken.
_FORMS: tuple[str, ...] = (
    "{word}", "{word}-{number}", "{number}", "#{word}", "@{word}", "C0{number}AB", "{number}.{number}00",
    "!{word}:example.org", "@{word}:example.org", "#{word}:example.org", "${word}{number}", "{word}@example.org",
    "{word}s/{number}", "{word}s/{number}/items/{word}", "projects/{word}", "https://example.org/{word}",
    "2026-03-{day:02d}", "2026-03-{day:02d}T09:00:00Z", "0123456789abcdef0123456789abcdef{number}",
)  # fmt: skip
_DEPTH = 4


def example(schema: Any, chance: random.Random, depth: int = 0) -> Any:
    """A value for `schema`, drawn by `chance`."""
    if not isinstance(schema, dict):
        return chance.choice(_WORDS)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return chance.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return example(chance.choice(schema[key]), chance, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "boolean":
            return chance.random() < 0.5
        case "integer":
            return chance.randint(*_bounds(schema))
        case "number":
            return chance.randint(*_bounds(schema)) + chance.choice((0.0, 0.25, 0.5))
        case "array":
            count = max(schema.get("minItems", 1), 1)
            return [example(schema.get("items", {}), chance, depth + 1) for _ in range(min(count, 5))]
        case "object":
            return _object(schema, chance, depth)
        case "null":
            return None
    return _text(schema, chance)


def _bounds(schema: dict[str, Any]) -> tuple[int, int]:
    least = int(schema.get("minimum", 1))
    return least, max(least, min(int(schema.get("maximum", least + 99)), least + 99))


def _object(schema: dict[str, Any], chance: random.Random, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    names = list(schema.get("required", ()))
    if not names and properties and depth < _DEPTH:
        names = [chance.choice(sorted(properties))]
    if depth >= _DEPTH:
        return {}
    return {name: example(properties.get(name, {}), chance, depth + 1) for name in names}


def _text(schema: dict[str, Any], chance: random.Random) -> str:
    facts = {"word": chance.choice(_WORDS), "number": chance.randint(100, 999), "day": chance.randint(1, 28)}
    forms = [form.format(**facts) for form in _FORMS]
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        return next((form for form in forms if re.search(pattern, form)), forms[0])
    if schema.get("format") == "date-time":
        return f"2026-03-{facts['day']:02d}T09:00:00Z"
    text = chance.choice(forms[:2])
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 200)]
