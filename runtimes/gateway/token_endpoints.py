"""Token endpoints that the gateway answers itself (RFC 6749, 7523). Pure.

A file credential in the container holds a throwaway key and names such an endpoint. Whatever is sent there, signed or
not, what comes back is the account's placeholder: it is worth nothing outside the action, so nothing is checked that
only a real server could know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse
from runtimes.gateway.plan import GatewayPlan, TokenEndpoint
from runtimes.gateway.urls import BadTarget, decode_query

LASTS = 3600  # seconds; longer than any action, so that a client has no reason to ask again
_GRANTS = re.compile(r"urn:ietf:params:oauth:grant-type:jwt-bearer|refresh_token|client_credentials")
_HEADERS = (("content-type", "application/json"), ("cache-control", "no-store"))

# Status, headers, body.
Reply = tuple[int, tuple[tuple[str, str], ...], bytes]


def placeholder_of(plan: GatewayPlan, endpoint: TokenEndpoint) -> str:
    """The placeholder of the endpoint's account. Raises KeyError where it has none."""
    return {account: placeholder for placeholder, account in plan.placeholders.items()}[endpoint.account]


def answer_token(placeholder: str, body: bytes, *, form: bool) -> Reply:
    """The endpoint's answer to a POST, in RFC 6749's words."""
    try:
        asked = _asked(body, form)
    except (InvalidInput, BadTarget, UnicodeError):
        return _error("invalid_request", "The body is one form, or one JSON object, of texts.")
    if not _GRANTS.fullmatch(asked.get("grant_type", "")):
        return _error("unsupported_grant_type", "Here the grants are jwt-bearer, refresh_token and client_credentials.")
    if "target_audience" in asked:
        return _error("invalid_scope", "Only access tokens can be had here.")
    said = {"access_token": placeholder, "token_type": "Bearer", "expires_in": LASTS}
    if asked.get("scope"):
        said["scope"] = asked["scope"]
    return 200, _HEADERS, canonical(said)


def _asked(body: bytes, form: bool) -> Mapping[str, str]:
    """Raises InvalidInput, BadTarget, UnicodeError."""
    if form:
        pairs = decode_query(body.decode("ascii"), form=True)
    else:
        value = parse(body.decode("utf-8"), what="The body")
        pairs = tuple(value.items()) if isinstance(value, dict) else ()
    asked = dict(pairs)
    if len(asked) != len(pairs) or not all(isinstance(value, str) for value in asked.values()):
        raise InvalidInput("A parameter stands twice, or isn't a text.")
    return asked


def _error(code: str, description: str) -> Reply:
    return 400, _HEADERS, canonical({"error": code, "error_description": description})
