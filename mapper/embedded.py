"""The embedded proposer: no model, lexical and deterministic.

It ranks the catalog's methods, fills their arguments from what the request names, and is sure only when one reading
stands clear of the others, explains most of the request's words, uses everything that was named and lacks nothing.
Otherwise it offers what it has and says what is missing. It never invents a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mapper.catalog import Catalog
from mapper.retrieval import Hit, Index, tokens
from mapper.slots import Said, Slots, extract
from policies.actions import Call
from policies.catalog import Method
from policies.errors import InvalidInput

NAME = "embedded"

# Tuned on the phrasings that tests/mapper keeps for training; the held-out ones measure it.
_MIN_COVERAGE = 0.5
_MIN_MARGIN = 0.08
_FILLED, _MISSING, _UNUSED = 1.2, 2.5, 2.0
_LACKING = 0.5
_CANDIDATES = 10
_UNRANKED = 60

_SAYABLE = {
    "text": ("any", "body", "title"),
    "title": ("title", "any"),
    "topic": ("topic", "any"),
    "body": ("body", "any"),
    "label": ("label",),
    "slack-name": ("title", "any"),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand the request. `missing` names required arguments that it doesn't give."""

    calls: tuple[Call, ...]
    method: Method
    score: float
    coverage: float
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    fit: float  # of the words alone, whatever could be filled


@dataclass(frozen=True, slots=True)
class Proposed:
    """What the embedded proposer found: complete readings best first, and whether the first can be trusted."""

    readings: tuple[Reading, ...]
    sure: bool
    notes: tuple[str, ...]


class EmbeddedProposer:
    """Proposes calls for a request in words. Holds an index of the catalog; safe to share."""

    name = NAME

    def __init__(self, catalog: Catalog, index: Index | None = None) -> None:
        self._catalog = catalog
        self.index = index or Index(catalog)
        self._services_of: dict[str, set[str]] = {}
        for method in catalog.methods():
            for schema in method.parameters["properties"].values():
                for kind in _kinds(schema) - {"number"}:
                    self._services_of.setdefault(kind, set()).add(method.service)
        self._spellings = sorted({name for s in catalog.services.values() for name in (s.name, s.title.lower())})

    def propose(self, text: str, *, connected: frozenset[str] = frozenset()) -> Proposed:
        """The readings of `text`, best first. `connected`: services that have an account, preferred among equals."""
        found = extract(text, self._spellings)
        hits = self._search(found, connected, _CANDIDATES)
        readings = sorted((self._read(hit, found) for hit in hits), key=lambda r: (-r.score, r.method.id))
        complete = tuple(reading for reading in readings if not reading.missing)
        notes: list[str] = []
        if not readings or readings[0].coverage < _MIN_COVERAGE / 2:
            return Proposed((), False, ("Nothing in the catalog fits these words.",))
        best = readings[0]
        runner_up = next((r for r in readings[1:]), None)
        lacking = max((r for r in readings if r.missing), key=lambda r: r.fit, default=None)
        margin = 1.0 if runner_up is None else (best.score - runner_up.score) / max(best.score, 1e-9)
        if best.missing:
            notes.append(f"{best.method.id} would fit, but the request doesn't give {', '.join(best.missing)}.")
        elif lacking is not None and lacking.fit > best.score + _LACKING:
            notes.append(f"{lacking.method.id} is nearer, but the request doesn't give {', '.join(lacking.missing)}.")
        if best.unused:
            notes.append(f"{best.method.id} has no use for {', '.join(best.unused)}.")
        if best.coverage < _MIN_COVERAGE:
            notes.append("Too many words of the request fit nothing in the catalog.")
        if margin < _MIN_MARGIN and runner_up is not None:
            notes.append(f"{best.method.id} and {runner_up.method.id} fit about equally well.")
        return Proposed(complete, sure=not notes and bool(complete), notes=tuple(notes))

    def search(self, text: str, *, connected: frozenset[str] = frozenset(), limit: int = _CANDIDATES) -> list[Hit]:
        """The methods that `text` may mean, best first: what a model chooses among."""
        return self._search(extract(text, self._spellings), connected, limit)

    def _search(self, found: Slots, connected: frozenset[str], limit: int) -> list[Hit]:
        hinted = {service for slot in found.slots for service in self._services_of.get(slot.kind, ())}
        hits = self.index.search(found.rest, connected=connected, hinted=hinted, limit=limit)
        if hits or not found.slots:
            return hits
        return self.index.methods_of(self.index.named(found.rest) or hinted, _UNRANKED)

    def _read(self, hit: Hit, found: Slots) -> Reading:
        method = hit.method
        filler = _Filler(self._catalog, method, found)
        calls, missing = filler.calls()
        unused = filler.unused()
        filled = len(filler.arguments)
        score = hit.score + _FILLED * filled - _MISSING * len(missing) - _UNUSED * len(unused)
        coverage = self._coverage(method, found.rest, named_something=filled > 0)
        return Reading(calls, method, score, coverage, missing, unused, hit.score)

    def _coverage(self, method: Method, rest: str, *, named_something: bool) -> float:
        """How much of what the words weigh is explained by the method and its service. Unknown words weigh most."""
        words = set(tokens(rest))
        if not words:
            return 1.0 if named_something else 0.0
        known = self.index.words_of(method)
        heaviest = max(self.index.idf.values(), default=1.0)
        weights = {word: self.index.idf.get(word, heaviest) for word in words}
        return sum(weight for word, weight in weights.items() if word in known) / sum(weights.values())


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = {schema.get("format", "")} | {schema.get("items", {}).get("format", "")}
    if "x-lookup" in schema:
        kinds.add("matrix-alias" if schema["x-lookup"]["pattern"].startswith("^#") else "")
    return kinds - {""}


class _Filler:
    """Fills one method's arguments from what was named. Each thing is used once."""

    def __init__(self, catalog: Catalog, method: Method, found: Slots) -> None:
        self._catalog = catalog
        self._method = method
        self._found = found
        self._said = list(found.said)
        self._left = list(found.slots)
        self._before: list[Call] = []
        self._settings = dict(found.settings)
        self.arguments: dict[str, Any] = {}
        required = method.parameters["required"]
        properties = method.parameters["properties"]
        # What is required is served first, in the order of the manifest.
        for name in sorted(properties, key=lambda name: name not in required):
            value = self._fill(name, properties[name], name in required)
            if value is not None:
                self.arguments[name] = value

    def calls(self) -> tuple[tuple[Call, ...], tuple[str, ...]]:
        """The calls, looked-up values first, and the required arguments that are missing or don't fit."""
        missing = tuple(name for name in self._method.parameters["required"] if name not in self.arguments)
        if missing:
            return (), missing
        call = Call(service=self._method.service, method=self._method.name, arguments=self.arguments)
        try:
            return self._catalog.validate_all((*self._before, call)), ()
        except InvalidInput as error:
            return (), (error.message.removeprefix(f"{self._method.id}: ").rstrip("."),)

    def unused(self) -> tuple[str, ...]:
        """What was named and has no place in this method."""
        names = [f'"{said.text[:40]}"' for said in self._said]
        names += [slot.value[:40] for slot in self._left if slot.kind not in ("handle", "url")]
        return (*names, *(f"{key}={value[:40]}" for key, value in self._settings.items()))

    def _fill(self, name: str, schema: Mapping[str, Any], required: bool) -> Any:
        setting = next((key for key in self._settings if key.lower() == name.lower()), None)
        if setting is not None:
            return _typed(self._settings.pop(setting), schema)
        kind = schema.get("format", "")
        if schema.get("type") == "array":
            return self._several(schema)
        if "enum" in schema:
            return self._choice(schema["enum"], required)
        if "x-lookup" in schema and not any(slot.kind == kind for slot in self._left):
            return self._looked_up(schema["x-lookup"])
        if kind in _SAYABLE:
            if kind == "slack-name" and not self._said:
                channel = self._take("slack-channel")
                return channel.lstrip("#") if channel else None
            said = self._say(kind, required)
            return said.text if said else None
        value = self._take(kind) if kind else None
        if value is None and name in ("limit", "per_page"):
            value = self._take("limit")
        if value is None and kind == "slack-channel" and required:
            value = self._take("handle") or self._channel_word()
        return None if value is None else _typed(value, schema)

    def _take(self, kind: str) -> str | None:
        for slot in self._left:
            if slot.kind == kind:
                self._left.remove(slot)
                return slot.value
        return None

    def _several(self, schema: Mapping[str, Any]) -> list[str] | None:
        kind = schema.get("items", {}).get("format", "")
        if kind in _SAYABLE:
            values = [said.text for said in self._said if said.role in _SAYABLE[kind]]
            self._said = [said for said in self._said if said.role not in _SAYABLE[kind]]
            values = [part.strip() for value in values for part in value.split(",") if part.strip()]
        else:
            values = [slot.value for slot in self._left if slot.kind == kind]
            self._left = [slot for slot in self._left if slot.kind != kind]
        return values or None

    def _say(self, kind: str, required: bool) -> Said | None:
        for role in _SAYABLE[kind]:
            if role == "any" and not required and kind != "body":
                continue
            for said in self._said:
                if said.role == role:
                    self._said.remove(said)
                    return said
        return None

    def _choice(self, choices: list[Any], required: bool) -> Any:
        words = set(re.findall(r"[a-z_-]+", self._found.rest.lower()))
        if not required:  # "merge" asks for the method that merges, not for a way to merge
            words -= set(re.findall(r"[a-z]+", self._method.name.lower()))
        return next((choice for choice in choices if isinstance(choice, str) and choice.lower() in words), None)

    def _looked_up(self, lookup: Mapping[str, str]) -> dict[str, Any] | None:
        """A call that finds the wanted value by another name, and a reference to its answer."""
        for slot in self._left:
            if re.fullmatch(lookup["pattern"], slot.value):
                self._left.remove(slot)
                self._before.append(
                    Call(
                        service=self._method.service,
                        method=lookup["method"],
                        arguments={lookup["argument"]: slot.value},
                    )
                )
                return {"$from": len(self._before) - 1, "path": lookup["path"]}
        return None

    def _channel_word(self) -> str | None:
        match = re.search(r"\b(?:the\s+)?([a-z0-9_-]{2,40})\s+channel\b", self._found.rest, re.IGNORECASE)
        word = match[1].lower() if match else ""
        return f"#{word}" if word and word not in _NO_NAMES else None


_NO_NAMES = {
    "the", "a", "an", "this", "that", "my", "our", "slack", "public", "private", "new", "each", "every", "which",
    "some", "any", "to", "in", "of", "for", "on", "from", "general-purpose", "what", "no",
}  # fmt: skip


def _typed(value: str, schema: Mapping[str, Any]) -> Any:
    """A word of the request as the schema's type; the word itself where it isn't one (validation then says so)."""
    kinds = schema.get("type")
    if kinds == "integer" and re.fullmatch(r"-?\d{1,15}", value):
        return int(value)
    if kinds == "boolean" and value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("true", "yes")
    if kinds == "array":
        return [part for part in value.split(",") if part]
    return value
