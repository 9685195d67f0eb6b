"""Requests with the methods and the least scopes that serve them: one JSON object a line.

`id` and `prompt`; `acceptable_apis`, the sets of methods any of which serves the request, by the provider's own ids
(or `apis`, one set; none: nothing in the catalog serves it); `min_scopes`, the sets of scopes that are least for it;
`service`, `version` and `args`, which say what the methods' names mean and what a person would answer when asked; for
an ambiguous request `ambiguous` and its `readings`, each with its own `apis` and `min_scopes`; `class`, a name that
figures are told apart by: `ambiguous` says the same as that key, and `unservable` that nothing serves it. Other keys
are left alone. Anything that isn't so is an InvalidInput that names file, line and field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapper.evaluation import lines
from mapper.evaluation.lines import Line
from mapper.mapper import check_intent
from policies.errors import InvalidInput

MAX_REQUESTS = 100_000

Sets = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `ways`: the sets of methods that serve it; `least`: the sets of scopes that are least for it, and
    `least_of`: for those ways whose own least sets the data tells apart. `klass`: or "". `raw`: the whole
    line."""

    id: str
    text: str
    ways: Sets
    least: Sets
    least_of: tuple[tuple[frozenset[str], Sets], ...]
    ambiguous: bool
    raw: Mapping[str, Any]
    klass: str = ""

    @property
    def answerable(self) -> bool:
        """Whether anything in the catalog serves it; of an ambiguous one that is so, though no way may be named."""
        return bool(self.ways) or self.ambiguous


def read(file: Path) -> tuple[Request, ...]:
    """The requests of a file. Raises InvalidInput."""
    found: dict[str, Request] = {}
    for line in lines.read(file):
        one = _request(line)
        if one.id in found:
            raise line.wrong(f"the id {one.id[:80]!r} is there already.")
        if len(found) >= MAX_REQUESTS:
            raise line.wrong(f"there are more than {MAX_REQUESTS} requests.")
        found[one.id] = one
    return tuple(found.values())


def _request(line: Line) -> Request:
    name = line.text("id")
    try:
        text = check_intent(line.text("prompt"))
    except InvalidInput as error:
        raise error if error.message.startswith(str(line.file)) else line.wrong(f"'prompt': {error.message}") from error
    ways = _sets(line, line.value, "acceptable_apis") or tuple(filter(None, (_set(line, line.value, "apis"),)))
    least = _sets(line, line.value, "min_scopes")
    readings = line.value.get("readings", [])
    if not isinstance(readings, list) or not all(isinstance(one, dict) for one in readings):
        raise line.wrong("'readings' must be a list of objects.")
    for key in ("service", "version", "class"):
        if not isinstance(line.value.get(key), str | None):
            raise line.wrong(f"{key!r} must be text, or null.")
    if not isinstance(line.value.get("args"), dict | None):
        raise line.wrong("'args' must be an object.")
    klass = line.value.get("class") or ""
    if klass == "unservable" and ways:
        raise line.wrong("'class' says that nothing serves it, and there are methods that do.")
    return Request(
        id=name,
        text=text,
        ways=ways,
        least=least or ((frozenset(),) if ways else ()),
        least_of=_joined(line, readings),
        ambiguous=line.value.get("ambiguous") is True or klass == "ambiguous",
        raw=line.value,
        klass=klass,
    )


def _joined(line: Line, readings: list[dict[str, Any]]) -> tuple[tuple[frozenset[str], Sets], ...]:
    """Each set of methods with the least scopes of every reading that it may be."""
    found: dict[frozenset[str], Sets] = {}
    for one in readings:
        way = _set(line, one, "apis")
        found[way] = tuple(dict.fromkeys((*found.get(way, ()), *_sets(line, one, "min_scopes"))))
    return tuple((way, least) for way, least in found.items() if way and least)


def _sets(line: Line, value: Mapping[str, Any], key: str) -> Sets:
    found = value.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, list) and _texts(one) for one in found):
        raise line.wrong(f"{key!r} must be a list of lists of text.")
    return tuple(dict.fromkeys(frozenset(one) for one in found))


def _set(line: Line, value: Mapping[str, Any], key: str) -> frozenset[str]:
    found = value.get(key, [])
    if not isinstance(found, list) or not _texts(found):
        raise line.wrong(f"{key!r} must be a list of text.")
    return frozenset(found)


def _texts(values: list[Any]) -> bool:
    return all(isinstance(one, str) and one for one in values)


__all__ = ("MAX_REQUESTS", "Request", "Sets", "read")
