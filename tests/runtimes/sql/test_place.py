"""Where may be connected to: without TLS only this machine and private addresses, by the address that was looked at."""

from __future__ import annotations

import pytest

from policies.accounts import Account
from policies.databases import Address
from policies.errors import InvalidInput, Unsupported
from runtimes.sql.contract import Place
from runtimes.sql.database_address import place_of, reachable


def place(url: str, *, private: bool = False) -> Place:
    spelled = Address.parse(url)[0].url
    account = Account(service="db", name="x", origins=(), base_url=spelled, format="database", private=private)
    return place_of(account)


@pytest.mark.promise(71)
@pytest.mark.parametrize(
    ("host", "private", "well"),
    [
        ("127.0.0.1", True, True),
        ("127.0.0.1", False, True),
        ("10.1.2.3", True, True),
        ("192.168.1.9", False, True),
        ("8.8.8.8", True, False),
        ("8.8.8.8", False, True),
        ("0.0.0.0", False, False),
        ("224.0.0.1", False, False),
        ("[2001:4860:4860::8888]", True, False),
        ("[::ffff:8.8.8.8]", True, False),
    ],
)
def test_a_public_address_needs_tls(host: str, private: bool, well: bool) -> None:
    found = place(f"postgresql://u@{host}:5432/x", private=private)
    assert found.tls == ("none" if private else "verify")
    if well:
        assert reachable(found).port == 5432
    else:
        with pytest.raises(Unsupported):
            reachable(found)


def test_without_tls_the_address_that_was_looked_at_is_connected_to() -> None:
    assert reachable(place("postgresql://u@localhost:5432/x", private=True)).host in ("127.0.0.1", "::1")
    assert reachable(place("postgresql://u@localhost:5432/x")).host == "localhost", "a certificate is for the name"


def test_sockets_and_files_need_none() -> None:
    assert place("postgresql://u@%2Frun%2Fpg:5433/x") == Place(
        dialect=place("postgresql://u@h:5432/x").dialect,
        socket="/run/pg",
        port=5433,
        database="x",
        user="u",
        tls="none",
    )
    assert place("sqlite:////home/you/x.db").path == "/home/you/x.db"


def test_a_mongodb_takes_no_sql() -> None:
    with pytest.raises(InvalidInput, match="MongoDB"):
        place("mongodb://u@h:27017/x")
