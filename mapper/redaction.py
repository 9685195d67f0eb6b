"""Requests and calls without what is the person's own, so that they may leave this machine.

It fails closed. Of a call's arguments only what the catalog itself names is kept: arguments' names, values of an
`enum`, defaults, truth values. Everything else becomes a placeholder by its kind, and the same one wherever the request
says it again. Of the words, what stands in quotation marks goes, addresses, links, paths, names, numbers, and every
word that the lexicon and manifests that come with GoEx don't use. What can't be told apart is a secret made of
everyday words (or a first name, in small letters, that the lexicon has in an example), neither quoted nor an argument:
nothing marks it as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from mapper.catalog import Catalog
from policies.actions import Call
from policies.jsonvalue import JsonValue
from policies.services import Method

_KINDS = (
    ("email", re.compile(r"[^\s@<>\"',;]+@[^\s@<>\"',;]+\.[^\s@<>\"',;]*\w")),
    ("link", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"']+", re.IGNORECASE)),
    ("text", re.compile(r'"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|`[^`]*`|(?<!\w)\'[^\']+\'(?!\w)|(?<!\w)‘[^’]+’(?!\w)')),
    ("setting", re.compile(r"(?<!\S)[\w.-]+[=:]\S+")),
    ("path", re.compile(r"(?<!\S)(?=\S*/)[~.\w]?[\w./~%-]*/[\w./~%-]*")),
    ("name", re.compile(r"[#@][\w./-]*\w")),
    ("number", re.compile(r"(?<![\w-])[-+$€£]?\d(?:[\d.,:/%-]*[\d%])?(?!\w|-\w)")),
    ("id", re.compile(r"(?<!\w)(?=[\w.-]*[\d_])[\w][\w.-]*\w")),
    ("id", re.compile(r"(?<!\w)(?!(?:e-mails?|to-dos?)\b)\w+(?:[-.]\w+)+", re.IGNORECASE)),
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_PLACE = re.compile(r"<[a-z]+_\d+>")
_PLAIN = re.compile(r"[\s.,?!;:()'’-]")
_REFERENCE = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*|\[\d{1,6}\])*")
_START = re.compile(r"(?:^|[.?!:]\s+)$")
_LONGEST = 10_000  # characters of a request


class Redactor:
    """The placeholders of one request. Use a new one for each."""

    def __init__(self, catalog: Catalog) -> None:
        self._titles = {
            word for service in catalog.services.values() if service.source != "imported"
            for word in _WORD.findall(f"{service.title} {service.name}")
        }  # fmt: skip
        self._places: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def redact(self, words: str, calls: Sequence[Call], methods: Sequence[Method]) -> tuple[str, list[dict[str, Any]]]:
        """The request and its calls, as `{"name", "arguments"}`. Accounts' names aren't in them."""
        made = []
        for call, method in zip(calls, methods, strict=True):
            keys, values = _catalogued(method.parameters)
            arguments = self._value(dict(call.arguments), keys, values)
            made.append({"name": call.id, "arguments": arguments})
            if call.account:
                self._placed(call.account, "account")
        return self._words(words[:_LONGEST]), made

    # ---- arguments

    def _value(self, value: JsonValue, keys: set[str], values: set[str]) -> JsonValue:
        if isinstance(value, dict):
            if set(value) == {"$from", "path"} and _REFERENCE.fullmatch(str(value["path"])):
                return {"$from": int(value["$from"]), "path": value["path"]}
            return {
                key if key in keys else self._placed(key, "key"): self._value(inner, keys, values)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self._value(inner, keys, values) for inner in value]
        if value is None or isinstance(value, bool):
            return value
        text = value if isinstance(value, str) else repr(value)
        if isinstance(value, str) and (value in values or not value):
            return value
        return self._placed(text, "number" if not isinstance(value, str) else _kind(text))

    def _placed(self, text: str, kind: str) -> str:
        """The placeholder that stands for this text, the same each time."""
        key = text.casefold()
        if key not in self._places:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._places[key] = f"<{kind}_{self._counts[kind]}>"
        return self._places[key]

    # ---- words

    def _words(self, text: str) -> str:
        # What the person wrote can't pass for one of our placeholders.
        text = text.replace("<", " ").replace(">", " ")
        for value in sorted(self._places, key=lambda each: (-len(each), each)):
            pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
            text = self._outside(text, pattern, lambda found, place=self._places[value]: place)
        for kind, pattern in _KINDS:
            text = self._outside(text, pattern, lambda found, kind=kind: self._placed(found.group(), kind))
        self._outside_words(text)  # so that a name which is one later isn't kept earlier
        return " ".join(self._outside_words(text).split())

    def _outside(self, text: str, pattern: re.Pattern[str], make: Any) -> str:
        """`pattern` replaced where there is no placeholder yet."""
        parts = re.split(f"({_PLACE.pattern})", text)
        return "".join(part if at % 2 else pattern.sub(make, part) for at, part in enumerate(parts))

    def _outside_words(self, text: str) -> str:
        """Known words, plain punctuation and placeholders; the rest is replaced."""
        made: list[str] = []
        at = 0
        while at < len(text):
            place, word = _PLACE.match(text, at), _WORD.match(text, at)
            if place is not None:
                made.append(place.group())
                at = place.end()
            elif word is not None:
                first = _START.search(text[:at]) is not None
                made.append(word.group() if self._known(word.group(), first) else self._placed(word.group(), "word"))
                at = word.end()
            else:
                made.append(text[at] if _PLAIN.match(text[at]) else " ")
                at += 1
        return "".join(made)

    def _known(self, word: str, first: bool) -> bool:
        if word in self._titles:
            return True
        if word.casefold() in self._places:
            return False
        if word != word.lower() and not (first and word[1:] == word[1:].lower()) and word[:2] not in ("I", "I'", "I’"):
            return False  # a name, as it is written
        plain = word.lower().replace("’", "'")
        return plain in vocabulary() or plain.removesuffix("'s") in vocabulary()


def _kind(text: str) -> str:
    for kind, pattern in _KINDS:
        if kind not in ("text", "setting") and pattern.fullmatch(text):
            return kind
    return "text"


def _catalogued(schema: Any) -> tuple[set[str], set[str]]:
    """The names of arguments and fields in a schema, and the texts that it lists as values."""
    keys: set[str] = set()
    values: set[str] = set()
    todo = [schema]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo.extend(one)
        elif isinstance(one, dict):
            properties = one.get("properties")
            if isinstance(properties, dict):
                keys.update(properties)
            values.update(_texts([*_listed(one.get("enum")), one.get("default"), one.get("const")]))
            todo.extend(one.values())
    return keys, values


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(values: Iterable[Any]) -> set[str]:
    return {value for value in values if isinstance(value, str)}


@cache
def vocabulary() -> frozenset[str]:
    """The words that the lexicon and the manifests write in small letters: no names. Read once a process."""
    found: set[str] = set()
    for folder in ("lexicon", "services"):
        for text in _tomls(files("mapper") / folder):
            for kind, pattern in _KINDS:
                if kind in ("email", "link", "name", "id"):
                    text = pattern.sub(" ", text)
            found.update(word for word in _WORD.findall(text) if word == word.lower())
    return frozenset(found)


def _tomls(folder: Traversable) -> Iterable[str]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            yield from _tomls(entry)
        elif entry.name.endswith(".toml"):
            yield entry.read_text(encoding="utf-8")


__all__ = ("Redactor", "vocabulary")
