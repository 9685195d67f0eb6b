"""The `[oauth]` table of a manifest: how a login to the service goes.

[oauth]
issuer = "https://accounts.example.org"         # its metadata says the rest, or:
authorization_endpoint = "https://…"
token_endpoint = "https://…"
device_endpoint = "https://…"                   # RFC 8628, where there is one
revocation_endpoint = "https://…"               # RFC 7009, where there is one
client = "public"                               # or "confidential": which kind is registered for a desktop program
client_id = "…"                                 # where the provider has one for everybody
prefix = "https://example.org/auth/"            # before each scope's name, at the server alone
separator = ","                                 # between scopes, where it isn't a blank
always = ["offline_access"]                     # asked for beside the scopes that are needed
parameters = { access_type = "offline" }        # for the authorization endpoint, from a short list
spelled = { "notes.read" = ["notes", "read"] }  # scopes with another name, or several, at the server
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from mapper.toml_tables import Table
from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.services import OAuth

ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint", "device_endpoint", "revocation_endpoint")
# None of these can choose where an answer goes, who asks or what for.
PARAMETERS = {
    "access_type": r"offline|online",
    "token_access_type": r"offline|online|legacy",
    "approval_prompt": r"force|auto",
    "prompt": r"(none|login|consent|select_account)( (login|consent|select_account))*",
    "include_granted_scopes": r"true|false",
    "duration": r"permanent|temporary",
    "owner": r"user|workspace",
    "audience": r"[!-~]{1,300}",
    "show_dialog": r"true|false",
}
SCOPE = re.compile(r"[!#-\[\]-~]{1,200}")  # RFC 6749's scope-token
_CLIENT_ID = re.compile(r"[!-~]{1,300}")


def read(root: Table, scopes: Iterable[str]) -> OAuth | None:
    """The table below `oauth`; None when there is none. Raises ManifestError."""
    if not root.has("oauth"):
        return None
    table = root.table("oauth")
    places = {name: _address(table, name) for name in ENDPOINTS}
    if not places["issuer"] and not places["token_endpoint"]:
        table.fail("needs an issuer, or a token_endpoint")
    client = table.take("client", str, "")
    if client not in ("", "public", "confidential"):
        table.fail("must be public or confidential", "client")
    client_id = table.take("client_id", str, "")
    if client_id and not _CLIENT_ID.fullmatch(client_id):
        table.fail("isn't a client's id", "client_id")
    prefix = table.take("prefix", str, "")
    if prefix and not SCOPE.fullmatch(prefix):
        table.fail("can't begin the name of a scope", "prefix")
    separator = table.take("separator", str, " ")
    if separator not in (" ", ","):
        table.fail("must be a blank or a comma", "separator")
    always = table.texts("always")
    for scope in always:
        if not SCOPE.fullmatch(scope):
            table.fail(f"{scope!r} isn't a scope", "always")
    made = OAuth(
        issuer=places["issuer"],
        authorization_endpoint=places["authorization_endpoint"],
        token_endpoint=places["token_endpoint"],
        device_endpoint=places["device_endpoint"],
        revocation_endpoint=places["revocation_endpoint"],
        client="public" if client == "public" else "confidential" if client else "",
        client_id=client_id,
        prefix=prefix,
        separator="," if separator == "," else " ",
        always=always,
        parameters=MappingProxyType(_parameters(table)),
        spelled=MappingProxyType(_spelled(table, frozenset(scopes))),
    )
    table.done()
    return made


def _address(table: Table, name: str) -> str:
    url = table.take(name, str, "")
    if url:
        try:
            origin = Origin.parse(url)
        except InvalidInput as error:
            table.fail(error.message.rstrip("."), name)
        if origin.scheme != "https" or any(char in url for char in "#{}") or (name == "issuer" and "?" in url):
            table.fail("must be an https URL without fragment or braces, and an issuer without query", name)
    return url


def _parameters(table: Table) -> dict[str, str]:
    found = table.table("parameters").rest()
    for name, value in found.items():
        if name not in PARAMETERS:
            table.fail(f"isn't one that may be sent: {', '.join(PARAMETERS)}", "parameters", name)
        if not isinstance(value, str) or not re.fullmatch(PARAMETERS[name], value):
            table.fail("hasn't a value that may be sent", "parameters", name)
    return found


def _spelled(table: Table, scopes: frozenset[str]) -> dict[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {}
    found: dict[str, Any] = table.table("spelled").rest()
    for name, value in found.items():
        if name not in scopes:
            table.fail("isn't a scope of this service", "spelled", name)
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(v, str) and SCOPE.fullmatch(v) for v in value)
        ):
            table.fail("must be a list of the server's scopes", "spelled", name)
        made[name] = tuple(value)
    return made
