"""The credential of an account, put into the place of a request where its service wants it. Pure.

An account's credential is one value with one place, or several values (`vault.secret.values_of`) each with its own.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, quote_from_bytes

from policies.errors import InvalidInput
from runtimes.gateway.admission import Ready
from runtimes.gateway.plan import CredentialPlace, GatewayPlan, Rule
from runtimes.gateway.urls import encode_query
from vault.lease import Lease
from vault.secret import Secret, values_of

AccountKey = tuple[str, str]

MAX_CREDENTIAL = 8192
HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_COOKIE_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")  # RFC 6265
_BASIC = "basic {secret}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialedRequest:
    """A request with its credential: never shown, never kept."""

    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


def credential_texts(rule: Rule, lease: Lease) -> tuple[tuple[CredentialPlace, str], ...]:
    """What stands in each place of the credential. Raises InvalidInput for a value that its place can't hold."""
    return tuple((place, _text(place, secret, lease)) for place, secret in _secrets(rule, lease))


def _secrets(rule: Rule, lease: Lease) -> list[tuple[CredentialPlace, Secret]]:
    """The value for each place. Raises InvalidInput where they aren't these."""
    places = rule.credential_places
    if len(places) == 1:
        return [(places[0], lease.secret)]
    values = values_of(lease.secret, [place.name for place in places])
    return [(place, _paired(place, values[place.name])) for place in places]


def _paired(place: CredentialPlace, secret: Secret) -> Secret:
    """A user and password among several values as the one word that Basic has; a colon is no letter of base64."""
    raw = secret.reveal()
    return Secret(base64.b64encode(raw)) if place.format.lower() == _BASIC and b":" in raw else secret


def _text(place: CredentialPlace, secret: Secret, lease: Lease) -> str:
    raw = secret.reveal()
    if not raw:
        raise InvalidInput(f"The credential of {lease.account.id} is empty.")
    where = "a cookie" if place.at == "cookie" else "a header"
    try:
        value = place.format.replace("{secret}", raw.decode("ascii"))
    except UnicodeError as error:
        raise InvalidInput(f"The credential of {lease.account.id} can't be written in {where}.") from error
    allowed = _COOKIE_VALUE if place.at == "cookie" else HEADER_VALUE
    if not allowed.fullmatch(value) or len(value) > MAX_CREDENTIAL:
        raise InvalidInput(
            f"The credential of {lease.account.id} can't be written in {where}.",
            next_step="Put it into the vault again, without line breaks or spaces around it.",
        )
    return value


def with_credential(ready: Ready, lease: Lease) -> CredentialedRequest:
    """The request with the credential in its place. Raises InvalidInput where it can't be written there."""
    admission = ready.admission
    target, headers, body = admission.target, admission.headers, ready.body
    cookies: list[str] = []
    for place, secret in credential_texts(admission.rule, lease):
        if place.at == "header":
            headers = (*headers, (place.name, secret))
        elif place.at == "cookie":
            cookies.append(f"{place.name}={secret}")
        elif place.at == "query":
            target += ("&" if "?" in target else "?") + encode_query([(place.name, secret)])
        elif admission.kind == "form":
            pair = encode_query([(place.name, secret)]).encode("ascii")
            body = pair if not body else body + b"&" + pair
        else:
            value = {**json.loads(body or b"{}"), place.name: secret}
            body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    if cookies:
        headers = (*headers, ("Cookie", "; ".join(cookies)))
    return CredentialedRequest(target=target, headers=headers, body=body)


def secrets_of(plan: GatewayPlan, leases: Mapping[AccountKey, Lease]) -> list[bytes]:
    """What must not come back: each secret, what its lease names beside it, each value of one that is several and,
    where one is a user and password in base64, those too; and each as JSON and as an address write it, since base64 and
    hex may be of those."""
    found = [each.reveal() for lease in leases.values() for each in (lease.secret, *lease.redact)]
    for rule in (*plan.requests, *plan.rules):
        lease = leases.get(rule.account)
        for place, secret in _secrets(rule, lease) if lease is not None else ():
            found.append(secret.reveal())
            if place.format.lower().startswith("basic "):
                try:
                    pair = base64.b64decode(secret.reveal(), validate=True)
                except (binascii.Error, ValueError):
                    continue
                found += [pair, pair.partition(b":")[2]]
    return list(dict.fromkeys(spelled for one in found for spelled in spellings(one)))


def spellings(secret: bytes) -> tuple[bytes, ...]:
    """The secret, and what is else written for it in a JSON text and in an address."""
    try:
        text = secret.decode("utf-8")
    except UnicodeDecodeError:
        return secret, quote_from_bytes(secret, safe="").encode()
    written = [json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (True, False)]
    written += [html.escape(written[0]), quote(text, safe="")]
    written += [written[0].replace("/", "\\/"), written[0].replace("+", "\\u002B")]  # as PHP and .NET write JSON
    return secret, *(each.encode("utf-8") for each in written)
