"""Where an entry's database is, as a driver is told: addresses looked up and checked.

Rules: without TLS only this machine and private addresses are connected to, by the address that was looked at; cloud
metadata and link-local addresses never, unless the entry names that very address. Looking up blocks: call it from a
thread. SQLite's files are its driver's to check.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

from policies.accounts import Account
from policies.addresses import refusal
from policies.databases import Address
from policies.errors import InvalidInput, Unavailable, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.sql.contract import Dialect, Place


def place_of(account: Account) -> Place:
    """The place that an entry names, as it names it. Looks nothing up. Raises InvalidInput, Unsupported."""
    address = Address.parse(account.base_url)[0]
    if address.engine == "mongodb":
        raise InvalidInput(
            f"{account.name} is a MongoDB, which takes operations, not SQL.",
            next_step=f"For example: goex exec --db {account.name} --mongo '{{\"find\": …}}'",
        )
    host, port = address.hosts[0] if address.hosts else ("", address.port)
    return Place(
        dialect=Dialect(address.engine),
        host=host,
        port=port,
        socket=address.socket,
        database=address.database,
        user=address.user,
        path=address.path,
        tls="none" if account.private or address.socket or address.path else "verify",
        ca_pem=account.ca_pem,
    )


def facts(place: Place) -> JsonObject:
    """What a plan is bound to: the same entry elsewhere is another database."""
    return {
        "dialect": place.dialect.value,
        "host": place.host,
        "port": place.port,
        "socket": place.socket,
        "database": place.database,
        "user": place.user,
        "path": place.path,
        "tls": place.tls,
    }


def reachable(place: Place) -> Place:
    """The same place, with what may be connected to. Raises Unsupported, Unavailable."""
    if not place.host:
        return place
    addresses = checked_addresses(place.host, place.port, encrypted=place.tls != "none")
    # The address that was looked at, not what the name leads to a moment later; a certificate is checked by the name.
    return replace(place, host=addresses[0]) if place.tls == "none" and addresses else place


def checked_addresses(host: str, port: int, *, encrypted: bool) -> tuple[str, ...]:
    """The addresses of a host, all of which may be connected to. Raises Unsupported, Unavailable."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise Unavailable(
            f"The name server knows no address of {host}.", next_step="See the entry: goex db show NAME"
        ) from None
    addresses = tuple(dict.fromkeys(str(one[4][0]) for one in found))
    for address in addresses:
        if why := refusal(address, host=host, private=True):
            raise Unsupported(
                f"{host} isn't connected to: {why}.", next_step="Name the database's own address in its entry."
            )
        if not encrypted and not refusal(address, host=host, private=False):
            raise Unsupported(
                f"{host} is at a public address ({address}), and what is said there would be open to everybody.",
                next_step="Add the entry again without --no-tls.",
            )
    return addresses


def real_file(path: str) -> str:
    """The one path of an existing SQLite file. Raises InvalidInput."""
    try:
        return str(Path(path).resolve(strict=True))
    except (OSError, RuntimeError):
        raise InvalidInput(f"There is no file {path[:300]!r}.", next_step="Name the database's file.") from None
