"""Where a credential goes: the service's own place, but for kinds of credentials that have a place of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.services import Placement
from runtimes.rest.requests import placement_for

BEARER, BASIC = Placement(), Placement(format="Basic {secret}")
KEY, TOKEN = Placement(header="X-Key", format="{secret}"), Placement(format="token {secret}")


@pytest.mark.parametrize(
    ("own", "format", "goes"),
    [
        (BEARER, "string", BEARER),
        (KEY, "string", KEY),
        (BASIC, "string", BASIC),
        (BEARER, "file", BEARER),
        (BEARER, "basic", BASIC),
        (KEY, "basic", BASIC),
        (BASIC, "basic", BASIC),
        (BEARER, "oauth", BEARER),
        (TOKEN, "oauth", TOKEN),
        (KEY, "oauth", BEARER),
        (BASIC, "oauth", BEARER),
    ],
)
def test_the_place_of_a_credential(
    own: Placement, format: Literal["string", "file", "basic", "oauth"], goes: Placement
) -> None:
    service = replace(Catalog.bundled().service("slack"), placement=own)
    origin = Origin.parse("https://slack.com")
    account = Account(service="slack", name="a", origins=(origin,), base_url="https://slack.com", format=format)
    assert placement_for(service, account) == goes
