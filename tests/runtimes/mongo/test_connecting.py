"""Connecting: who is refused, TLS, servers that the entry doesn't name; and no error with a password in it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from pymongo import errors
from pymongo.server_description import ServerDescription

from policies.accounts import Account
from policies.databases import Address
from policies.errors import GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.mongo import connection
from runtimes.mongo.connection import check_user, connect
from runtimes.sql.contract import Limits
from tests.runtimes.gateway.authority import TestCA
from tests.services.nx import Nx, find_binary
from vault.secret import Secret

PASSWORD = Secret("hunter2-correct-horse")
SHOP = Address.parse("mongodb://app@db.example.org/shop")[0]


@pytest.fixture(scope="module")
def nx() -> Iterator[Nx]:
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        yield server


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SECONDS", 0.5)


def entry(url: str, **changes: Any) -> Account:
    account = Account(
        service="db", name="shop", origins=(), base_url=Address.parse(url)[0].url, format="database", private=True
    )
    return replace(account, **changes)


def roles(*named: str, privileges: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {
        "authenticatedUsers": [{"user": "app", "db": "shop"}],
        "authenticatedUserRoles": [{"role": role, "db": "shop"} for role in named],
        "authenticatedUserPrivileges": list(privileges),
    }


@pytest.mark.promise(71)
@pytest.mark.parametrize("role", sorted(connection._TOO_MUCH))
def test_users_who_may_do_everything_are_refused(role: str) -> None:
    with pytest.raises(Unsupported, match="may do too much") as refused:
        check_user(roles("readWrite", role), SHOP)
    assert "createUser" in refused.value.next_step and "readWrite" in refused.value.next_step


@pytest.mark.parametrize(
    "privilege",
    [
        {"resource": {"anyResource": True}, "actions": ["find", "remove"]},
        {"resource": {"db": "", "collection": ""}, "actions": ["insert"]},
        {"resource": {"cluster": True}, "actions": ["shutdown"]},
        {"resource": {"db": "shop", "collection": ""}, "actions": ["grantRole"]},
        {"resource": {"db": "shop", "collection": ""}, "actions": ["find", "anyAction"]},
    ],
)
def test_roles_of_their_own_making_are_looked_through(privilege: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="may do too much"):
        check_user(roles("mine", privileges=(privilege,)), SHOP)


def test_a_user_of_one_database_is_taken() -> None:
    own = {"resource": {"db": "shop", "collection": ""}, "actions": ["find", "insert", "update", "remove", "dropIndex"]}
    assert check_user(roles("readWrite", privileges=(own,)), SHOP) == ()
    assert "whoever reaches it" in check_user({"authenticatedUsers": []}, SHOP)[0]


class Answering:
    """A client whose server answers so."""

    def __init__(self, **answers: Any) -> None:
        self.admin = self
        self._answers = {
            "hello": {"isWritablePrimary": True, "setName": "rs0"},
            "buildInfo": {"version": "8.0.4"},
            "connectionStatus": {"authInfo": roles("readWrite")},
            **answers,
        }

    def command(self, name: str, **more: Any) -> Any:
        answer = self._answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


def looked(**answers: Any) -> Any:
    return connection.look(Answering(**answers), SHOP)  # type: ignore[arg-type]


def test_what_a_server_says_of_itself() -> None:
    assert looked().transactions and looked(hello={"isWritablePrimary": True, "msg": "isdbgrid"}).transactions
    assert not looked(hello={"ismaster": True}).transactions
    with pytest.raises(Unavailable, match="can't be written to"):
        looked(hello={"isWritablePrimary": False, "setName": "rs0"})
    with pytest.raises(Unsupported, match=r"4\.4 is the oldest"):
        looked(buildInfo={"version": "4.2.24"})
    unknown = errors.OperationFailure("no such command", 59)
    assert "doesn't say" in looked(connectionStatus=unknown).remarks[0]
    with pytest.raises(errors.OperationFailure):
        looked(connectionStatus=errors.OperationFailure("no", 13))


def test_nobody_there() -> None:
    with pytest.raises(Unavailable, match="No server answers"):
        connect(entry("mongodb://127.0.0.1:1/shop"), PASSWORD, Limits())


@pytest.mark.promise(72)
def test_a_refused_login_quotes_no_password(nx: Nx) -> None:
    with pytest.raises(GoexError) as refused:
        connect(entry(f"mongodb://app@127.0.0.1:{nx.port}/shop"), PASSWORD, Limits())
    shown: BaseException | None = refused.value
    while shown is not None:
        assert "hunter2" not in str(shown) and "hunter2" not in repr(shown)
        shown = shown.__cause__


@pytest.mark.parametrize("mechanism", ["PLAIN", "GSSAPI", "MONGODB-AWS"])
def test_logins_that_send_the_password_are_refused(mechanism: str) -> None:
    with pytest.raises(Unsupported, match="Logging in by"):
        connect(entry(f"mongodb://app@127.0.0.1:1/shop?authMechanism={mechanism}"), PASSWORD, Limits())


def test_without_tls_only_private_addresses_are_connected_to() -> None:
    with pytest.raises(Unsupported, match="public address"):
        connect(entry("mongodb://app@93.184.215.14/shop"), PASSWORD, Limits())


def test_another_kind_of_database_is_said_to_be_one() -> None:
    with pytest.raises(InvalidInput, match="isn't a MongoDB"):
        connect(entry("postgresql://app@127.0.0.1/shop"), PASSWORD, Limits())


def test_a_server_that_the_set_names_and_the_entry_does_not_is_never_used() -> None:
    address = Address.parse("mongodb://app@one.example.org,two.example.org:27018/shop?replicaSet=rs0")[0]
    chosen = connection._only(address)
    servers = [
        ServerDescription(("one.example.org", 27017)),
        ServerDescription(("two.example.org", 27017)),
        ServerDescription(("two.example.org", 27018)),
        ServerDescription(("evil.example.org", 27017)),
    ]
    assert chosen(servers) == [servers[0], servers[2]]


@contextmanager
def secured(port: int, context: ssl.SSLContext) -> Iterator[int]:
    """A TLS server on loopback that hands on what it hears to `port`."""
    ready, found = threading.Event(), [0]
    loop = asyncio.new_event_loop()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, out = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, out), pump(inner, writer))

    async def serve() -> None:
        server = await asyncio.start_server(joined, "127.0.0.1", 0, ssl=context)
        found[0] = server.sockets[0].getsockname()[1]
        ready.set()
        await done.wait()
        server.close()

    done = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    ready.wait(300)
    yield found[0]
    loop.call_soon_threadsafe(done.set)
    thread.join(300)


def test_the_certificate_is_checked(nx: Nx) -> None:
    authority, other = TestCA(), TestCA()
    with secured(nx.port, authority.context("127.0.0.1")) as port:
        url = f"mongodb://127.0.0.1:{port}/shop"
        backend = connect(entry(url, private=False, ca_pem=authority.pem), Secret(""), Limits())
        assert backend.facts.version
        backend.close()
        for pem in (other.pem, ""):
            with pytest.raises(Unavailable, match="No server answers"):
                connect(entry(url, private=False, ca_pem=pem), Secret(""), Limits())
    with secured(nx.port, authority.context("elsewhere.example.org")) as port, pytest.raises(Unavailable):
        url = f"mongodb://127.0.0.1:{port}/shop"
        connect(entry(url, private=False, ca_pem=authority.pem), Secret(""), Limits())


def test_a_server_without_tls_is_not_spoken_to_when_tls_is_wanted(nx: Nx) -> None:
    with pytest.raises(Unavailable):
        connect(entry(nx.url, private=False), Secret(""), Limits())
