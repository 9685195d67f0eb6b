"""Addresses of databases: one spelling, no password in it, none in an error; and terms for taking back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.accounts import Account
from policies.databases import Address, Terms
from policies.errors import GoexError, InvalidInput
from policies.typed_json import from_json, to_json

PASSWORD = "Xq7%2Fzz"


@pytest.mark.parametrize(
    ("text", "url", "password"),
    [
        ("postgresql://app:p%40ss@db.example.org/shop", "postgresql://app@db.example.org:5432/shop", "p@ss"),
        ("postgres://app@DB.Example.Org./shop", "postgresql://app@db.example.org:5432/shop", ""),
        ("postgresql+psycopg://app@h/shop", "postgresql://app@h:5432/shop", ""),
        ("postgresql://app@%2Frun%2Fpg:5433/shop", "postgresql://app@%2Frun%2Fpg:5433/shop", ""),
        ("postgresql:///shop?host=/run/pg", "postgresql://%2Frun%2Fpg:5432/shop", ""),
        ("postgresql://[::1]:5433/shop", "postgresql://[::1]:5433/shop", ""),
        ("mysql://app:a@b@127.0.0.1:3307/shop", "mariadb://app@127.0.0.1:3307/shop", "a@b"),
        ("mariadb://app@localhost/shop?unix_socket=/run/m.sock", "mariadb://app@%2Frun%2Fm.sock/shop", ""),
        ("sqlite:////home/you/a%20b.db", "sqlite:////home/you/a%20b.db", ""),
        (
            "mongodb://u:p@a:1,b/shop?replicaSet=rs0&authSource=admin",
            "mongodb://u@a:1,b:27017/shop?authSource=admin&replicaSet=rs0",
            "p",
        ),
    ],
)
def test_an_address_has_one_spelling(text: str, url: str, password: str) -> None:
    address, found = Address.parse(text)
    assert (address.url, found) == (url, password)
    assert Address.parse(url) == (address, "")
    Account(service="db", name="x", origins=(), base_url=url, format="database")


@pytest.mark.parametrize(
    "text",
    [
        "oracle://u:{}@h/x",
        "postgresql://u:{}@/x",
        "postgresql://u:{}@h",
        "postgresql://u:{}@h/x/y",
        "postgresql://u:{}@h,i/x",
        "postgresql://u:{}@h:99999/x",
        "postgresql://u:{}@0x7f.1/x",
        "postgresql://u:{}@h/x?sslmode=disable",
        "postgresql://u:{}@h/x?options=-c%20role",
        "postgresql://u:a/{}@h/x",
        "postgresql://u:a#{}@h/x",
        "postgresql://u:a {}@h/x",
        "mariadb://u:{}@h/x?unix_socket=/a",
        "sqlite://u:{}@h/x",
        "sqlite:///{}",
        "mongodb+srv://u:{}@h/x",
        "{}",
    ],
)
def test_what_cant_be_read_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(GoexError) as refused:
        Address.parse(text.format(PASSWORD))
    assert refused.value.next_step
    assert "Xq7" not in str(refused.value) and "Xq7" not in repr(refused.value.__cause__)


@given(st.text(max_size=40), st.sampled_from(["postgresql://", "mariadb://u:", "mongodb://", "sqlite:///", ""]))
@settings(max_examples=300)
def test_any_text_is_an_address_or_an_error(text: str, head: str) -> None:
    try:
        address, _ = Address.parse(head + text)
    except GoexError:
        return
    assert Address.parse(address.url) == (address, "")


def test_an_account_of_a_database_has_no_password_and_no_origin() -> None:
    for url in ("postgresql://u:p@h:5432/x", "postgresql://u@h/x", "https://h/x"):
        with pytest.raises(InvalidInput):
            Account(service="db", name="x", origins=(), base_url=url, format="database")
    with pytest.raises(InvalidInput):
        Account(service="slack", name="x", origins=(), base_url="postgresql://u@h:5432/x", format="database")


def test_terms_are_the_tables_then_the_databases_and_never_two() -> None:
    terms = Terms(policy="reversal", tables={"orders": "versioning"})
    assert terms.applies(frozenset({"orders"})) == "versioning"
    assert terms.applies(frozenset({"customers"})) == "reversal"
    with pytest.raises(InvalidInput, match="different ways"):
        terms.applies(frozenset({"orders", "customers"}))
    assert from_json(Terms, to_json(terms), "It") == terms
    for bad in ({"policy": "never"}, {"hold_hours": 0}, {"hold_hours": True}, {"tables": ["orders"]}):
        with pytest.raises(InvalidInput):
            from_json(Terms, {**to_json(terms), **bad}, "It")
