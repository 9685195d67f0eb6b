"""The credential of an account, put into the one place of a request where its service wants it. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from policies.errors import InvalidInput
from runtimes.gateway.admission import Ready
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.urls import encode_query
from vault.lease import Lease

AccountKey = tuple[str, str]

MAX_CREDENTIAL = 8192
HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialedRequest:
    """A request with its credential: never shown, never kept."""

    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


def credential_text(form: str, lease: Lease) -> str:
    """The secret as `form` has it. Raises InvalidInput when it couldn't be one header's value."""
    secret = lease.secret.reveal()
    if not secret:
        raise InvalidInput(f"The credential of {lease.account.id} is empty.")
    try:
        value = form.replace("{secret}", secret.decode("ascii"))
    except UnicodeError as error:
        raise InvalidInput(f"The credential of {lease.account.id} can't be written in a header.") from error
    if not HEADER_VALUE.fullmatch(value) or len(value) > MAX_CREDENTIAL:
        raise InvalidInput(
            f"The credential of {lease.account.id} can't be written in a header.",
            next_step="Put it into the vault again, without line breaks or spaces around it.",
        )
    return value


def with_credential(ready: Ready, lease: Lease) -> CredentialedRequest:
    """The request with the credential in its one place. Raises InvalidInput where it can't be written there."""
    rule, admission = ready.admission.rule, ready.admission
    secret = credential_text(rule.credential_format, lease)
    target, headers, body = admission.target, admission.headers, ready.body
    if rule.credential_at == "header":
        headers = (*headers, (rule.credential_name, secret))
    elif rule.credential_at == "query":
        target += ("&" if "?" in target else "?") + encode_query([(rule.credential_name, secret)])
    elif admission.kind == "form":
        pair = encode_query([(rule.credential_name, secret)]).encode("ascii")
        body = pair if not body else body + b"&" + pair
    else:
        value = {**json.loads(body or b"{}"), rule.credential_name: secret}
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return CredentialedRequest(target=target, headers=headers, body=body)


def secrets_of(plan: GatewayPlan, leases: Mapping[AccountKey, Lease]) -> list[bytes]:
    """What must not come back: each secret, what its lease names beside it and, where one is a user and password in
    base64, those too."""
    found = [each.reveal() for lease in leases.values() for each in (lease.secret, *lease.redact)]
    for rule in (*plan.requests, *plan.rules):
        if rule.credential_format.lower().startswith("basic "):
            try:
                pair = base64.b64decode(leases[rule.account].secret.reveal(), validate=True)
            except (binascii.Error, ValueError):
                continue
            found += [pair, pair.partition(b":")[2]]
    return found
