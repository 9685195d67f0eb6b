"""Bodies whose fields the catalog doesn't list: it has all of them as one argument, or as a mail that is encoded. Pure.

What the program's own calls have in such a body is what its requests are held to, as with fields that are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from mapper.code.found_calls import ANY, FoundCall
from policies.jsonvalue import JsonValue, canonical
from policies.services import Method
from runtimes.gateway.request_headers import carries_credential

MOST_BODIES = 32  # ways in which the fields' values go together; with more of them the argument counts as free


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """What a rule holds such a body to (`fields`, `must`, `only`), and what that means for its argument: every value
    that it can have (`held`); else what single fields are held to (`parts`), those of them that may be left out
    (`optional`), and what may be anything (`free`), by the names that a person is told."""

    fields: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)
    must: tuple[str, ...] = ()
    only: bool = False
    held: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)
    parts: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    free: tuple[str, ...] = ()

    @classmethod
    def of(cls, method: Method, calls: Sequence[FoundCall], body_format: str, listed: Collection[str]) -> Unlisted:
        """Of a method without such a body all are empty. `listed`: the arguments that stand elsewhere."""
        whole = next((name for name, place in method.locations.items() if place == "whole"), "")
        if not whole and not method.mail:
            return cls()
        said = whole or "its message"
        if body_format not in ("json", "form") or not calls:
            return cls(free=(said,))
        fields = _fields(calls, frozenset(listed))
        only = not any(ANY in call.open for call in calls)
        must = tuple(name for name, values in fields.items() if values and all(name in call.fields for call in calls))
        bodies = _bodies(fields, must) if only and whole and body_format == "json" else ()
        if bodies:
            return cls(fields=fields, must=must, only=only, held={whole: bodies})
        at = f"{whole}." if whole else ""
        parts = {at + name: values for name, values in fields.items() if values}
        loose = tuple(at + name for name, values in fields.items() if not values)
        rest = () if only else (f"other fields of {said}" if fields else said,)
        optional = tuple(at + name for name, values in fields.items() if values and name not in must)
        return cls(fields=fields, must=must, only=only, parts=parts, optional=optional, free=(*loose, *rest))


def _fields(calls: Sequence[FoundCall], elsewhere: frozenset[str]) -> dict[str, tuple[JsonValue, ...]]:
    """The fields that the calls have, each with its values; () for one that may have any."""
    made: dict[str, tuple[JsonValue, ...]] = {}
    names = dict.fromkeys(name for call in calls for name in (*call.fields, *call.open))
    for name in names:
        written = any(name in call.fields for call in calls)
        other = name in elsewhere or any(name in call.path or name in call.query for call in calls)
        if name == ANY or (other and not written) or carries_credential(name, "token"):
            continue
        known = {canonical(call.fields[name]): call.fields[name] for call in calls if name in call.fields}
        open_ = any(name in call.open or (ANY in call.open and name not in call.fields) for call in calls)
        made[name] = () if open_ or len(known) > MOST_BODIES else tuple(known.values())
    return made


def _bodies(fields: Mapping[str, tuple[JsonValue, ...]], must: Sequence[str]) -> tuple[JsonValue, ...]:
    """Every body that the gateway lets through; () where one of its fields is free, or where they are too many."""
    many = 1
    for name, values in fields.items():
        many *= len(values) + (name not in must)
    if not fields or many > MOST_BODIES or not all(fields.values()):
        return ()
    ways = [
        [(True, value) for value in values] + [(False, None)] * (name not in must) for name, values in fields.items()
    ]
    return tuple(
        {name: value for name, (there, value) in zip(fields, one, strict=True) if there} for one in product(*ways)
    )
