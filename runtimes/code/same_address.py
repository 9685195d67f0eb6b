"""Methods that have one address, told apart by what they always send: `files.star` and `files.trash`. Pure.

A rule for one of them has to hold its requests to what makes it that method, or it would be a rule for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mapper.code.found_calls import ANY, FoundCall
from mapper.code.routes import fixed_of
from policies.jsonvalue import JsonObject
from policies.services import Method, Service
from runtimes.gateway.request_headers import carries_credential

_HOLE = re.compile(r"\{(\+?)[^{}]+\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """What a method's requests send in their body always (`must`: no request without it, since it would be another
    method's), and the fields that only other methods of its address have."""

    shared: bool = False  # whether there is another method of its address
    fixed: JsonObject = field(default_factory=dict)
    must: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


def apart(method: Method, service: Service) -> Apart:
    """What tells `method` from the others of its verb and path."""
    fixed = _in_body(method)
    others = [
        other
        for other in service.methods.values()
        if other.id != method.id and (other.http, _shape(other)) == (method.http, _shape(method))
    ]
    must = tuple(name for name in fixed if any(_in_body(other).get(name) != fixed[name] for other in others))
    foreign = {
        name
        for other in others
        for name, place in other.locations.items()
        if place == "body" and name not in method.locations
    }
    return Apart(
        shared=bool(others), fixed=fixed, must=must, closed=tuple(sorted(foreign)) if known_fields(method) else ()
    )


def known_fields(method: Method) -> bool:
    """Whether the fields of a method's body are known by name."""
    return not method.mail and "whole" not in method.locations.values()


def beyond(method: Method, calls: Iterable[FoundCall], known: Iterable[str]) -> tuple[str, ...]:
    """The names that a program's own calls have in a body, which the catalog doesn't have."""
    names = {name for call in calls for name in (*call.fields, *call.open)} - {ANY, *known, *method.locations}
    in_path = {name for call in calls for name in call.path}
    return tuple(sorted(name for name in names - in_path if "/" not in name and not carries_credential(name, "token")))


def _in_body(method: Method) -> JsonObject:
    return {name: value for name, value in fixed_of(method).items() if method.locations.get(name) == "body"}


def _shape(method: Method) -> str:
    return _HOLE.sub(r"{\1}", method.path).rstrip("/")  # to most servers a slash at the end says nothing
