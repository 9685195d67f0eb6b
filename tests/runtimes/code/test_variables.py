"""What a program finds in its variables beside its placeholders."""

from __future__ import annotations

from dataclasses import replace

from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.services import Placement, Service
from runtimes.code.run import is_bearer, variables

CATALOG = Catalog.bundled()
ORIGIN = Origin.parse("https://slack.com")
ACCOUNT = Account(service="slack", name="work", origins=(ORIGIN,), base_url=str(ORIGIN))


def found(account: Account, catalog: Catalog = CATALOG) -> dict[str, str]:
    return variables({("slack", "work"): account}, {("slack", "work"): "xoxb-goex"}, catalog)


def test_a_password_comes_with_a_name_for_its_user() -> None:
    made = found(replace(ACCOUNT, format="basic"))
    assert {name: made[f"SLACK_{name}"] for name in ("USER", "USERNAME", "EMAIL")} == dict.fromkeys(
        ("USER", "USERNAME", "EMAIL"), "goex"
    )
    assert "xoxb-goex" in made.values()


def test_a_token_comes_with_none() -> None:
    assert not {"SLACK_USER", "SLACK_USERNAME", "SLACK_EMAIL"} & found(ACCOUNT).keys()


def test_a_service_that_takes_passwords_alone_comes_with_one() -> None:
    class Basic(Catalog):
        def service(self, name: str) -> Service:
            return replace(CATALOG.service(name), placement=Placement(format="Basic {secret}"))

    assert found(ACCOUNT, Basic.__new__(Basic))["SLACK_EMAIL"] == "goex"


def test_a_token_endpoint_is_for_what_goes_where_its_tokens_go() -> None:
    """An API key of Google's has another place, and leads no library that asks for tokens."""
    assert is_bearer(Placement())
    assert not is_bearer(Placement(header="x-goog-api-key", format="{secret}"))
    assert not is_bearer(Placement(header="key", format="{secret}", at="query"))
    assert not is_bearer(Placement(format="Basic {secret}"))
