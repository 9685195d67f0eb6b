"""A host's one spelling is where browsers and HTTP clients go with it."""

from __future__ import annotations

import pytest

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.host_names import normal_host


@pytest.mark.parametrize(
    "host, normal",
    [
        ("faß.example", "xn--fa-hia.example"),  # not fass.example, which may be somebody else's
        ("βόλος.example", "xn--nxasmm1c.example"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("bücher。example", "xn--bcher-kva.example"),
        ("my_host.Example.", "my_host.example"),
        ("☃.example", "xn--n3h.example"),
        ("[::0001]", "::1"),
    ],
)
def test_one_that_is_taken(host: str, normal: str) -> None:
    assert normal_host(host) == normal == normal_host(normal)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "a..example",
        "a.１",
        "0x7f.1",
        "bücher.０x7f",
        "x" * 64 + ".example",
        "é" * 70,
        "ß" * 300,
        "a/b",
        "a\udc80.example",
    ],
)
def test_one_that_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match="isn't a host name"):
        normal_host(host)


def test_an_account_is_reached_where_its_address_leads() -> None:
    assert Origin.parse("https://faß.example").host == "xn--fa-hia.example"
