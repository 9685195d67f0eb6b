"""Which addresses pass, for a public and for a private account."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.addresses import refusal

NEVER = [
    "0.0.0.0", "::", "224.0.0.1", "239.255.255.250", "ff02::1", "255.255.255.255", "::ffff:0.0.0.0", "fe80::1%eth0",
]  # fmt: skip
NOT_PUBLIC = [
    "127.0.0.1", "127.9.9.9", "::1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "100.127.255.255", "fd00::1", "fc00::1", "fec0::1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1",
    "240.0.0.1", "192.88.99.1", "0.1.2.3", "2001:db8::1", "100::1", "2001::1", "2002:7f00:1::", "2002:a00:1::1",
    "2002:5db8:d822::1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::7f00:1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1", "192.0.0.8",
]  # fmt: skip
METADATA = [
    "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "169.254.170.2", "169.254.1.1", "fe80::1", "::169.254.169.254",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1", "172.32.0.1",
    "100.128.0.1",
]  # fmt: skip


@pytest.mark.parametrize(
    "address", [*NEVER, *NOT_PUBLIC, *METADATA, "", "localhost", "127.1", "0x7f000001", "1.1.1.1 "]
)
def test_refused_for_a_public_account(address: str) -> None:
    assert refusal(address, host="api.example", private=False)


@pytest.mark.parametrize("address", [*NEVER, *METADATA, "", "127.1"])
def test_refused_for_a_private_account_too(address: str) -> None:
    assert refusal(address, host="api.example", private=True)


@pytest.mark.parametrize("address", PUBLIC)
@pytest.mark.parametrize("private", [False, True])
def test_public_addresses_pass(address: str, private: bool) -> None:
    assert refusal(address, host="api.example", private=private) == ""


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd00::1", "100.64.0.1"])
def test_private_accounts_reach_their_own_network(address: str) -> None:
    assert refusal(address, host="api.example", private=True) == ""


def test_metadata_only_when_the_account_names_that_very_address() -> None:
    assert refusal("169.254.169.254", host="169.254.169.254", private=True) == ""
    assert refusal("169.254.169.254", host="169.254.169.254", private=False)


@given(st.integers(0, 2**32 - 1))
def test_what_is_refused_stays_refused_inside_ipv6(number: int) -> None:
    address = IPv4Address(number)
    if refusal(str(address), host="h", private=False):
        high, low = number >> 16, number & 0xFFFF
        for carrying in (f"::ffff:{address}", f"64:ff9b::{high:x}:{low:x}", f"2002:{high:x}:{low:x}::1"):
            assert refusal(carrying, host="h", private=False), carrying


@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_passes_that_python_knows_as_special(number: int) -> None:
    address = IPv4Address(number)
    if not address.is_global or address.is_multicast:
        assert refusal(str(address), host="h", private=False)
