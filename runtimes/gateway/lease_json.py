"""Leases as JSON for the socket pair: secrets cross as base64, here and nowhere else. All else that crosses is written
as its type says (`policies.typed_json`)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import astuple
from datetime import datetime
from typing import Any

from policies.accounts import Account, Origin
from vault.lease import Lease
from vault.secret import Secret


def lease_to_json(lease: Lease) -> dict[str, Any]:
    account = lease.account
    return {
        "action_id": lease.action_id,
        "account": {
            "service": account.service,
            "name": account.name,
            "origins": [list(astuple(origin)) for origin in account.origins],
            "base_url": account.base_url,
            "format": account.format,
            "private": account.private,
            "ca_pem": account.ca_pem,
        },
        "secret": base64.b64encode(lease.secret.reveal()).decode("ascii"),
        "expires": lease.expires.isoformat(),
        "redact": [base64.b64encode(each.reveal()).decode("ascii") for each in lease.redact],
    }


def lease_from_json(raw: Mapping[str, Any]) -> Lease:
    account = dict(raw["account"])
    account["origins"] = tuple(Origin(*origin) for origin in account["origins"])
    return Lease(
        action_id=raw["action_id"],
        account=Account(**account),
        secret=Secret(base64.b64decode(raw["secret"], validate=True)),
        expires=datetime.fromisoformat(raw["expires"]),
        redact=tuple(Secret(base64.b64decode(each, validate=True)) for each in raw["redact"]),
    )
