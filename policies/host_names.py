"""The one spelling of a host's name or address, and the spellings that services take for one.

`bücher.example` and `xn--bcher-kva.example` are one host (UTS #46). Rules: a name is compared in letters; a label that
can't be decoded, or whose letters would be encoded otherwise, is no other spelling of anything and stays as it stands.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache

from policies.errors import InvalidInput

_HOSTS = "Write it like chat.example.org."
_PREFIX = "xn--"
_LONGEST = 253  # characters of a host's name
_LABEL = 63
_NAME = re.compile(rf"[a-z0-9_-]{{1,{_LABEL}}}")
_NO_HOST = re.compile(r"[#\s]")
_OLDER = str.maketrans({"ß": "ss", "ς": "σ"})


def normal_host(host: str) -> str:
    """The one spelling of a host name or address. Raises InvalidInput when it is neither."""
    host = host.rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    # As browsers do: IDNA 2003, Python's own, makes `faß.example` into `fass.example`, which may be somebody else's.
    spelled = host if host.isascii() else ".".join(map(_encoded, (_mapped(host[: _LONGEST + 1]) or "").split(".")))
    labels = spelled.split(".")
    # "0x7f.1" and "2130706433" are addresses to a resolver though not to us: a name must not end in a number.
    if not all(labels) or labels[-1].isdigit() or labels[-1].startswith("0x") or len(spelled) > _LONGEST:
        raise InvalidInput(f"{host[:100]!r} isn't a host name.", next_step=_HOSTS)
    if not all(_NAME.fullmatch(label) for label in labels):
        raise InvalidInput(f"{host[:100]!r} isn't a host name.", next_step=_HOSTS)
    return spelled


def with_decoded_host(name: str) -> str:
    """Return a host's name, or an address at one, with the host in letters: `eve@bücher.example`."""
    return _with_host(name, lambda host: ".".join(map(_decoded, (_mapped(host) or host).split("."))))


def with_encoded_host(name: str) -> str:
    """Return a host's name, or an address at one, with the host as DNS has it: `eve@xn--bcher-kva.example`."""
    return _with_host(with_decoded_host(name), lambda host: ".".join(map(_encoded, host.split("."))))


def with_older_host(name: str) -> str:
    """Return a host's name, or an address at one, as those read it who follow IDNA 2003, to whom ß is ss."""
    return with_decoded_host(_with_host(name, lambda host: host.translate(_OLDER)))


SPELLINGS: tuple[Callable[[str], str], ...] = (str, with_decoded_host, with_encoded_host, with_older_host)


def is_encoded(name: str) -> bool:
    """Whether a label is encoded: where the host is in letters, one that can't be decoded."""
    return any(label.startswith(_PREFIX) for label in re.split(r"[.@:/]", name.lower()))


def _with_host(name: str, spelled: Callable[[str], str]) -> str:
    before, colon, port = name.rpartition(":")
    end = len(before) if colon and port.isdigit() else len(name)
    start = max(name.rfind("@", 0, end), name.rfind(":", 0, end)) + 1  # `@eve:bücher.example` is a user of Matrix
    host = name[start:end]
    if len(host) > _LONGEST or (host.isascii() and _PREFIX not in host.lower()):
        return name
    if not start and _PREFIX not in host.lower() and ("." not in host or _NO_HOST.search(host)):
        return name  # `#büro` is a channel
    return name[:start] + spelled(host) + name[end:]


def _decoded(label: str) -> str:
    if not label.startswith(_PREFIX):
        return label
    try:
        letters = label.removeprefix(_PREFIX).encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    return letters if not letters.isascii() and _mapped(letters) == letters and _encoded(letters) == label else label


def _encoded(label: str) -> str:
    try:
        encoded = label if label.isascii() else _PREFIX + label.encode("punycode").decode("ascii")
    except UnicodeError:  # a surrogate
        return label
    return encoded if len(encoded) <= _LABEL else label


@lru_cache(maxsize=1024)
def _mapped(host: str) -> str | None:
    """The host as UTS #46 maps it; None where it has a character that no name may have."""
    import idna  # needed for few names

    try:
        return idna.uts46_remap(host, std3_rules=False)
    except idna.IDNAError:
        return None
