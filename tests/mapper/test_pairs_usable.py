"""What a pair's listing says of it is what a call would be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mapper.catalog import Catalog
from mapper.pairs import of_catalog, why_unusable
from policies.services import Method, Risk

CATALOG = Catalog.bundled()
POST = CATALOG.method("slack.chat.postMessage")


def changed(name: str, **facts: object) -> Catalog:
    slack = CATALOG.service("slack")
    method: Method = replace(slack.methods[name], **facts)  # type: ignore[arg-type]  # whatever a case changes
    return Catalog.of([replace(slack, source="imported", methods={**slack.methods, name: method})])


@pytest.mark.parametrize(
    ("catalog", "says"),
    [
        (CATALOG, ""),
        (changed("chat.delete", unsupported="its body is XML."), "chat.delete can't be called through GoEx"),
        (changed("chat.getPermalink", http="POST"), "chat.getPermalink would only be read"),
        (changed("chat.getPermalink", risk=Risk.WRITE), "chat.getPermalink would only be read"),
    ],
)
def test_a_pair_that_no_call_can_use_says_why(catalog: Catalog, says: str) -> None:
    pair = of_catalog(CATALOG, POST)
    assert pair is not None
    assert (says in why_unusable(catalog, pair)) and bool(why_unusable(catalog, pair)) is bool(says)


def test_every_bundled_pair_can_be_used() -> None:
    methods = [method for service in CATALOG.services.values() for method in service.methods.values()]
    found = [pair for method in methods if (pair := of_catalog(CATALOG, method)) is not None]
    assert found and [pair.method_id for pair in found if why_unusable(CATALOG, pair)] == []
