"""The one spelling of a host's name or address."""

from __future__ import annotations

import ipaddress

from policies.errors import InvalidInput

_HOSTS = "Write it like chat.example.org."


def normal_host(host: str) -> str:
    """The one spelling of a host name or address. Raises InvalidInput when it is neither."""
    host = host.rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        spelled = host.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise InvalidInput(f"{host[:100]!r} isn't a host name.", next_step=_HOSTS) from error
    labels = spelled.split(".")
    # "0x7f.1" and "2130706433" are addresses to a resolver though not to us: a name must not end in a number.
    if not all(labels) or labels[-1].isdigit() or labels[-1].startswith("0x") or len(spelled) > 253:
        raise InvalidInput(f"{host[:100]!r} isn't a host name.", next_step=_HOSTS)
    if not all(char.isalnum() or char in "-_" for label in labels for char in label):
        raise InvalidInput(f"{host[:100]!r} isn't a host name.", next_step=_HOSTS)
    return spelled
