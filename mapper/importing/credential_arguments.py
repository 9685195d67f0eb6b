"""Parameters that are the account's credential: a document lists them beside the others, and an agent has none to give.

Rules: by its name alone a parameter is one where the name can be nothing else (`api_key`); `token`, `key` and the like
also need a description that says so. What an operation needs such a parameter for, and has no security scheme that
says so, is read as a key in that place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mapper.importing.security import Way, Ways, at_once, key_place
from policies.services import Placement

_PLACES = ("header", "query")
_SURE = frozenset(
    {
        "accesstoken", "oauthtoken", "bearertoken", "authtoken", "authenticationtoken", "authorizationtoken",
        "apikey", "xapikey", "apitoken", "xapitoken", "xauthtoken", "xaccesstoken", "clientsecret", "subscriptionkey",
        "ocpapimsubscriptionkey", "appkey", "apisecret",
    }
)  # fmt: skip
_MAYBE = frozenset({"token", "key", "auth", "secret", "authkey", "appid", "userkey", "sessiontoken"})
_SAYS = re.compile(
    r"(?i)\bapi[ _-]?(?:key|token|secret)\b|\bauth(?:entication|orization|orisation)? ?(?:token|key)\b|"
    r"\baccess[ _-]?(?:token|key)\b|\bbearer\b|\byour (?:\w+ )?(?:key|token)\b"
)


def is_credential(raw: Mapping[str, Any]) -> bool:
    """Whether a parameter is what the account's credential is."""
    plain = re.sub(r"[^a-z0-9]", "", str(raw.get("name", "")).lower())
    # Behind a dot or a dash stands what a maker calls its own: `WM_SEC.ACCESS_TOKEN`.
    last = re.sub(r"[^a-z0-9]", "", re.split(r"[.]", str(raw.get("name", "")).lower())[-1])
    return plain in _SURE or last in _SURE or (plain in _MAYBE and bool(_SAYS.search(str(raw.get("description", "")))))


def stands_in(placement: Placement, place: str, name: str) -> bool:
    """Whether the account's credential goes there already."""
    wanted = name.lower() if place == "header" else name
    return any(
        one.at == place and (one.header.lower() if place == "header" else one.header) == wanted
        for one in placement.places
    )


def is_its_token(raw: Mapping[str, Any], ways: Ways) -> bool:
    """Whether a parameter is the very token that an operation's security sends as a bearer's: it is said twice."""
    last = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(raw.get("name", ""))).lower())[-1]
    bearers = (one for way in ways.usable if way.placement is not None for one in way.placement.places)
    return (
        last in ("token", "accesstoken")
        and is_credential(raw)
        and any(
            one.at == "header" and one.header.lower() == "authorization" and one.format.startswith("Bearer ")
            for one in bearers
        )
    )


def ways_by_arguments(ways: Ways, parameters: Iterable[Mapping[str, Any]]) -> Ways:
    """The ways of an operation, with its parameters looked at: those that put the credential where it is needed."""
    if ways.why:
        return ways
    found: list[Placement] = []
    for raw in parameters:
        place, name = str(raw.get("in")), str(raw.get("name"))
        if place in _PLACES and raw.get("required") is True and is_credential(raw):
            at = key_place(place, name)
            if at is None:
                return ways
            found.append(at)
    wanted = at_once(found)
    if not isinstance(wanted, Placement):
        return ways
    if not ways.usable:
        return Ways((Way(wanted, frozenset()),))
    places = set(wanted.places)
    fit = tuple(way for way in ways.usable if way.placement is not None and places <= set(way.placement.places))
    return Ways(fit) if fit else ways
