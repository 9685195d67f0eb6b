"""Which addresses a name may lead to. Pure: it is given addresses, and looks nothing up.

Without `private`, only globally reachable unicast passes, also after unpacking what an address carries inside
(IPv4-mapped, IPv4-compatible, 6to4, Teredo, NAT64). With `private`, addresses of this machine and its networks pass
too. Cloud metadata and link-local addresses pass only when the account's origin is that very address; unspecified,
multicast and broadcast never do.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = IPv6Network("::/96")
_SITE_LOCAL = IPv6Network("fec0::/10")
# Special uses that one Python or another calls global.
_NEVER_GLOBAL = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    )
)
_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)


def refusal(text: str, *, host: str, private: bool) -> str:
    """Why the address `text`, found for `host`, must not be connected to; "" when it may be.

    `private`: the account entry allows addresses that aren't public for this origin.
    """
    if "%" in text:
        return f"{text} has a zone, which only a link-local address needs"
    try:
        address = ip_address(text)
    except ValueError:
        return f"{text} isn't an address"
    named = host == str(address)
    for carried in _unpacked(address):
        reason = _reason(carried, private=private, named=named and carried == address)
        if reason:
            return f"{text} is {reason}" if carried == address else f"{text} carries {carried}, which is {reason}"
    return ""


def _unpacked(address: Address) -> tuple[Address, ...]:
    """The address and every IPv4 address that a translator or tunnel would find in it."""
    if isinstance(address, IPv4Address):
        return (address,)
    found: list[Address] = [address]
    low = IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.extend(address.teredo)
    if any(address in network for network in _NAT64):
        found.append(low)
        if address in _NAT64[0]:
            return (low,)
    if address in _COMPATIBLE and int(address) > 1:
        found.append(low)
    return tuple(found)


def _reason(address: Address, *, private: bool, named: bool) -> str:
    if address.is_unspecified:
        return "unspecified"
    if address.is_multicast:
        return "multicast"
    if address == IPv4Address("255.255.255.255"):
        return "broadcast"
    if address in _METADATA:
        return "" if private and named else "a metadata address"
    if address.is_link_local:
        return "" if private and named else "link-local"
    if private:
        return ""
    if address.is_loopback:
        return "loopback"
    if isinstance(address, IPv4Address) and any(address in network for network in _NEVER_GLOBAL):
        return "reserved"
    if isinstance(address, IPv6Address) and (address in _SITE_LOCAL or address.sixtofour or address.teredo):
        return "not a public address"
    if address.is_private:
        return "private"
    if address.is_reserved or not address.is_global:
        return "reserved"
    return ""
