"""From a person's entry to a connected backend: only the servers that the entry names, and only a user whom the server
itself holds to less than everything.

Rules: TLS with a checked certificate, unless the entry is for this machine and its networks; authentication by SCRAM
alone, which doesn't send the password; a server that a replica set names and the entry doesn't is never authenticated
to. No error carries the password, nor an address with one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bson.errors import BSONError
from pymongo import MongoClient, errors
from pymongo.server_description import ServerDescription

from policies.accounts import Account
from policies.databases import Address
from policies.display_text import escape
from policies.errors import InvalidInput, Unavailable, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.mongo.backend import Facts
from runtimes.mongo.errors import translated
from runtimes.mongo.wire import WireBackend
from runtimes.sql.contract import Limits
from runtimes.sql.database_address import checked_addresses
from vault.secret import Secret

_SECONDS = 5.0  # to find a server, and to connect to it
_NOT_KNOWN = frozenset({59, 115})  # of servers that only speak the protocol: no such command
_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-1")
_OLDEST = (4, 4)  # collections can be made in a transaction, and documents measured
# Roles of MongoDB's own that may do more than read and write documents of one database.
_TOO_MUCH = frozenset(
    {
        "__system", "root", "clusterAdmin", "clusterManager", "hostManager", "backup", "restore", "userAdmin",
        "userAdminAnyDatabase", "dbAdminAnyDatabase", "readWriteAnyDatabase", "dbOwner", "searchCoordinator",
        "atlasAdmin",
    }
)  # fmt: skip
_DANGEROUS = frozenset(
    {
        "anyAction", "internal", "grantRole", "createUser", "createRole", "changePassword", "changeCustomData",
        "setParameter", "shutdown", "fsync", "applyOps", "dropDatabase", "useUUID", "impersonate",
    }
)  # fmt: skip


def address_of(account: Account) -> Address:
    """Where an entry's database is. Raises InvalidInput for another kind of database."""
    address = Address.parse(account.base_url)[0]
    if address.engine != "mongodb":
        raise InvalidInput(
            f"{account.name} isn't a MongoDB.", next_step=f'It takes SQL: goex exec --db {account.name} --sql "…"'
        )
    return address


def facts_of(account: Account) -> JsonObject:
    """What a plan is bound to: the same entry elsewhere is another database."""
    address = address_of(account)
    return {"place": address.url, "tls": "none" if account.private else "verify"}


def connect(account: Account, secret: Secret, limits: Limits) -> WireBackend:
    """Raises Unavailable (nobody there, wrong password), Unsupported (the user may do too much, the server is old)."""
    address = address_of(account)
    mechanism = address.options.get("authMechanism", "")
    if mechanism and mechanism not in _MECHANISMS:
        raise Unsupported(f"Logging in by {mechanism[:40]} isn't done here.", next_step="Use SCRAM-SHA-256.")
    hosts: list[str] = []
    for host, port in address.hosts:
        found = checked_addresses(host, port, encrypted=not account.private)
        direct = account.private and len(address.hosts) == 1 and not _is_set(address)
        hosts.append(_spelled(found[0] if direct and found else host, port))
    with _authority(account.ca_pem) as ca:
        options: dict[str, Any] = _login(address, secret, mechanism)
        if ca:
            options["tlsCAFile"] = ca
        if "replicaSet" in address.options:
            options["replicaSet"] = address.options["replicaSet"]
        try:
            client: MongoClient[Any] = MongoClient(
                hosts,
                connect=False,
                appname="goex",
                tz_aware=True,
                directConnection=_direct(address),
                serverSelectionTimeoutMS=int(_SECONDS * 1000),
                connectTimeoutMS=int(_SECONDS * 1000),
                socketTimeoutMS=int((limits.seconds + _SECONDS) * 1000),
                waitQueueTimeoutMS=int(_SECONDS * 1000),
                maxPoolSize=4,
                tls=not account.private,
                server_selector=_only(address),
                **options,
            )
        except (errors.PyMongoError, OSError, ValueError):
            raise InvalidInput("The entry can't be connected with.", next_step="Add it again: goex db add") from None
    try:
        facts = look(client, address)
    except errors.PyMongoError as error:
        client.close()
        raise _no_entry(error) from None
    except (BSONError, KeyError, TypeError, ValueError):  # what pymongo meets in answers that aren't MongoDB's
        client.close()
        raise Unavailable("What answers there isn't a MongoDB, or can't log anybody in.") from None
    except BaseException:
        client.close()
        raise
    return WireBackend(client, address.database, facts, limits)


def look(client: MongoClient[Any], address: Address) -> Facts:
    """What the server says of itself and of the user. Raises Unsupported, pymongo's errors."""
    hello = client.admin.command("hello")
    version = str(client.admin.command("buildInfo").get("version", ""))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _OLDEST:
        raise Unsupported(f"This server is MongoDB {escape(version)[:40]}; 4.4 is the oldest that works here.")
    if not hello.get("isWritablePrimary", hello.get("ismaster")):
        raise Unavailable(
            "This server can't be written to: another one of its set is the primary.",
            next_step="Name all of them in the entry's URL, with ?replicaSet=NAME.",
        )
    try:
        status = client.admin.command("connectionStatus", showPrivileges=True)
    except errors.OperationFailure as error:
        if error.code not in _NOT_KNOWN:
            raise
        remarks: tuple[str, ...] = ("The server doesn't say what its user may do: give GoEx one that may little.",)
    else:
        remarks = check_user(status.get("authInfo") or {}, address)
    transactions = bool(hello.get("setName")) or hello.get("msg") == "isdbgrid"
    return Facts(transactions=transactions, version=version, remarks=remarks)


def check_user(info: Mapping[str, Any], address: Address) -> tuple[str, ...]:
    """Raise Unsupported for a user who may do more than GoEx can hold them to; returns remarks for the person."""
    if not info.get("authenticatedUsers"):
        return ("The server asks nobody who they are: whoever reaches it may do everything.",)
    roles = [str(one.get("role")) for one in info.get("authenticatedUserRoles") or ()]
    found = next((role for role in roles if role in _TOO_MUCH), "")
    if not found:
        for privilege in info.get("authenticatedUserPrivileges") or ():
            resource, actions = privilege.get("resource") or {}, set(privilege.get("actions") or ())
            everywhere = resource.get("anyResource") or resource.get("db") == ""
            if actions & _DANGEROUS or (everywhere and actions & {"insert", "update", "remove"}):
                found = next(iter(sorted(actions & _DANGEROUS)), "writing in every database")
                break
    if found:
        raise Unsupported(
            f"The user {escape(address.user)} may do too much there ({escape(found)[:60]}).",
            next_step="Make one for GoEx: db.createUser({user: 'goex', pwd: passwordPrompt(), "
            f"roles: [{{role: 'readWrite', db: '{escape(address.database)}'}}]}})",
        )
    return ()


def _login(address: Address, secret: Secret, mechanism: str) -> dict[str, Any]:
    if not address.user:
        return {}
    made = {
        "username": address.user,
        "password": secret.reveal().decode("utf-8"),
        "authSource": address.options.get("authSource", address.database),
    }
    return {**made, "authMechanism": mechanism} if mechanism else made


def _is_set(address: Address) -> bool:
    return len(address.hosts) > 1 or "replicaSet" in address.options


def _direct(address: Address) -> bool:
    """Without a replica set's name the one server is spoken to, whatever else it says there is."""
    said = address.options.get("directConnection", "").lower()
    return said == "true" if said else not _is_set(address)


def _only(address: Address) -> Callable[[Sequence[ServerDescription]], list[ServerDescription]]:
    named = {(host.lower(), port) for host, port in address.hosts}

    def chosen(servers: Sequence[ServerDescription]) -> list[ServerDescription]:
        if _direct(address):
            return list(servers)
        return [one for one in servers if (str(one.address[0]).lower(), one.address[1]) in named]

    return chosen


def _spelled(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _no_entry(error: errors.PyMongoError) -> Exception:
    if isinstance(error, errors.OperationFailure) and error.code in (18, 8000):
        return Unavailable(
            "The server doesn't take the user's name and password.", next_step="Add it again: goex db add NAME URL"
        )
    return translated(error, transaction=False, writes=False)


@contextmanager
def _authority(pem: str) -> Iterator[str]:
    """The entry's certificate authority as a file, while the client is made: it is read there and then."""
    if not pem:
        yield ""
        return
    handle, path = tempfile.mkstemp(prefix="goex-ca-", suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(pem)
        yield path
    finally:
        Path(path).unlink()
