"""The `[oauth]` table of a manifest, and how its scopes are spelled at a server."""

from __future__ import annotations

import pytest

from mapper import manifest
from mapper.catalog import Catalog
from mapper.toml_tables import ManifestError
from policies.services import OAuth
from tests.mapper.test_manifest import GOOD

ISSUER = 'issuer = "https://accounts.example.org"'


def read(table: str) -> OAuth | None:
    head, _, rest = GOOD.partition("[shared.channel]")
    service = manifest.load(f"{head}[oauth]\n{table}\n\n[shared.channel]{rest}", file="chat.toml")
    return service.oauth


def test_without_the_table_nothing_is_known() -> None:
    assert manifest.load(GOOD, file="chat.toml").oauth is None


def test_everything_is_read() -> None:
    made = read(
        'authorization_endpoint = "https://a.example.org/authorize"\ntoken_endpoint = "https://a.example.org/token"\n'
        'device_endpoint = "https://a.example.org/device"\nrevocation_endpoint = "https://a.example.org/revoke"\n'
        'client = "public"\nclient_id = "goex"\nprefix = "https://example.org/auth/"\nseparator = ","\n'
        'always = ["offline_access"]\nparameters = { access_type = "offline" }\n'
        'spelled = { "chat:read" = ["read", "profile"] }'
    )
    assert made is not None
    assert (made.token_endpoint, made.client, made.client_id) == ("https://a.example.org/token", "public", "goex")
    assert (made.separator, made.always, dict(made.parameters)) == (
        ",", ("offline_access",), {"access_type": "offline"},
    )  # fmt: skip
    assert made.spell("chat:write") == ("https://example.org/auth/chat:write",)
    assert made.spell("chat:read") == ("read", "profile")
    assert made.source == "bundled"


def test_a_scope_is_held_when_all_that_it_stands_for_is_granted() -> None:
    made = read(f'{ISSUER}\nspelled = {{ "chat:read" = ["read", "profile"] }}')
    assert made is not None
    assert made.held(("chat:read", "chat:write"), ("read",)) == frozenset()
    assert made.held(("chat:read", "chat:write"), ("read", "profile")) == {"chat:read"}
    assert made.held(("chat:read", "chat:write"), ("chat:write", "other")) == {"chat:write"}


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("", "token_endpoint"),
        ('issuer = "http://accounts.example.org"', "oauth.issuer"),
        ('issuer = "https://user@accounts.example.org"', "oauth.issuer"),
        ('issuer = "https://accounts.example.org/?x=1"', "oauth.issuer"),
        ('token_endpoint = "https://a.example.org/#x"', "oauth.token_endpoint"),
        (f'{ISSUER}\nclient = "secret"', "oauth.client"),
        (f'{ISSUER}\nclient_id = "a b"', "oauth.client_id"),
        (f'{ISSUER}\nseparator = ";"', "oauth.separator"),
        (f'{ISSUER}\nprefix = "a b"', "oauth.prefix"),
        (f'{ISSUER}\nalways = ["a b"]', "oauth.always"),
        (f'{ISSUER}\nparameters = {{ redirect_uri = "https://evil.example.org" }}', "oauth.parameters.redirect_uri"),
        (f'{ISSUER}\nparameters = {{ scope = "everything" }}', "oauth.parameters.scope"),
        (f'{ISSUER}\nparameters = {{ access_type = "offline&scope=all" }}', "oauth.parameters.access_type"),
        (f'{ISSUER}\nspelled = {{ "chat:all" = ["all"] }}', "chat:all"),
        (f'{ISSUER}\nspelled = {{ "chat:read" = [] }}', "chat:read"),
        (f'{ISSUER}\nspelled = {{ "chat:read" = ["a b"] }}', "chat:read"),
        (f'{ISSUER}\nscopes = ["chat:read"]', "scopes"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(table: str, where: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read(table)
    assert where in refused.value.message


def test_services_of_ours_that_hand_out_tokens_say_where() -> None:
    known = {name: service.oauth for name, service in Catalog.bundled().services.items() if service.oauth}
    assert {"gmail", "google_drive", "google_calendar", "spotify", "dropbox"} <= known.keys()
    assert all(one.source == "bundled" and (one.issuer or one.token_endpoint) for one in known.values())
