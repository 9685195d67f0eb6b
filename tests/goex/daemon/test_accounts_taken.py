"""Logging in as somebody else, and taking back: end to end, at the real authorization server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from goex.daemon.accounts_service import MOST_LOGINS
from goex.rpc import accounts_pb2 as ab
from tests.goex.daemon.accounts import Person, refuses
from tests.services.oidc import Browser, OidcServer
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import problem
from tests.support.waiting import until


@pytest.fixture(scope="module")
def server() -> Iterator[OidcServer]:
    with OidcServer() as running:
        yield running


@pytest.fixture(scope="module")
def home(server: OidcServer) -> Iterator[Daemon]:
    with Daemon() as running:
        Person(running, server).catalogue()
        yield running


@pytest.fixture
def person(home: Daemon, server: OidcServer) -> Iterator[Person]:
    made = Person(home, server)
    yield made
    for name in made.accounts():
        made.logout(name)


@pytest.mark.sampled(1)
@pytest.mark.promise(36)
@pytest.mark.parametrize("flow", ["code", "device"])
def test_nobody_else_takes_an_accounts_place(person: Person, server: OidcServer, flow: str) -> None:
    person.login("openid", "notes.read", flow="device")
    assert person.accounts()["default"].subject == "ada"
    ada, person.browser = person.browser, Browser(server, "grace")
    with refuses("login-denied"):
        person.login("notes.write", flow=flow)
    person.browser = ada
    assert "notes.write" not in person.accounts()["default"].scopes
    person.login("notes.write", flow=flow)
    one = person.accounts()["default"]
    assert one.subject == "ada" and {"notes.read", "notes.write"} <= set(one.scopes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scopes", [("openid", "notes.read"), ("notes.read",)])
def test_a_login_that_is_refused_takes_nothing_from_another_account(
    person: Person, server: OidcServer, scopes: tuple[str, ...]
) -> None:
    """Many servers end all of a person's tokens with one client when one of them is given back."""
    person.login("openid", "notes.read", flow="device")
    grace = Browser(server, "grace")
    person.login(*scopes, account="of-grace", browser=grace)
    before = len(server.asked("/token/revocation"))
    with refuses("login-denied"):
        person.login("notes.write", browser=grace)
    assert len(server.asked("/token/revocation")) == before


def test_a_login_that_is_left_takes_nothing_from_another_account(person: Person, server: OidcServer) -> None:
    person.login("notes.read", account="other")
    before = len(server.asked("/token/revocation"))
    issued = len(server.asked(grant_type="authorization_code", status=200))
    server.late("/token", 1.0)
    events = person.stream(person.request("notes.read"))
    opened = next(event for event in events if event.WhichOneof("what") == "open")
    person.browser.visit(opened.open.url)
    events.cancel()
    until(lambda: len(server.asked(grant_type="authorization_code", status=200)) > issued)
    time.sleep(1)  # in which it would give them back
    assert len(server.asked("/token/revocation")) == before and set(person.accounts()) == {"other"}


def opening(person: Person, account: str) -> tuple[Any, str]:
    """A login that is under way, and the address of its page."""
    events = person.stream(person.request("notes.read", account=account))
    return events, next(event for event in events if event.WhichOneof("what") == "open").open.url


def given_back(person: Person, opened: tuple[Any, str]) -> bool:
    """Whether the login as `taken` gives back what it got: a key has its name by its end, so it can't be stored."""
    put = ab.PutCredentialRequest(service="notes", account="taken", kind="bearer", secret=b"x" * 20)
    put.place.private, put.passphrase = True, APPROVAL_PASSPHRASE
    person.call("PutCredential", put)
    before = len(person.server.asked("/token/revocation"))
    events, url = opened
    person.browser.visit(url)
    with refuses("account-exists"):
        list(events)
    return len(person.server.asked("/token/revocation")) > before


@pytest.mark.promise(36)
@pytest.mark.parametrize("first", [True, False], ids=["begun first", "begun last"])
def test_a_login_that_fails_takes_nothing_from_one_that_is_under_way(person: Person, first: bool) -> None:
    """The vault knows neither yet: what one gives back may end what the other is given."""
    opened = {name: opening(person, name) for name in (("taken", "other") if first else ("other", "taken"))}
    assert not given_back(person, opened["taken"])
    events, url = opened["other"]
    person.browser.visit(url)
    assert [event.WhichOneof("what") for event in events] == ["done"]
    assert person.me("other")["scope"] == "notes.read"


def test_a_login_that_fails_alone_gives_back_what_it_got(person: Person) -> None:
    assert given_back(person, opening(person, "taken"))


def test_taking_back_doesnt_wait_for_a_login_that_is_under_way(person: Person) -> None:
    person.login("notes.read")
    events = person.stream(person.request("notes.write"))
    next(event for event in events if event.WhichOneof("what") == "open")
    ended: list[str] = []

    def follow() -> None:
        try:
            list(events)
        except grpc.RpcError as error:
            ended.append(problem(error).code)

    following = threading.Thread(target=follow)
    following.start()
    assert person.logout().revoked
    following.join(300)
    assert ended == ["login-cancelled"]
    assert person.accounts() == {}


def test_taking_back_takes_the_narrowed_tokens_too(person: Person) -> None:
    person.login("notes.read", "notes.write")
    assert person.me()["scope"] == "notes.read"
    before = len(person.server.asked("/token/revocation"))
    assert person.logout().revoked
    assert len(person.server.asked("/token/revocation")) == before + 3
    offer = person.call("Offer", ab.OfferRequest(service="notes", place=ab.AccountPlace(private=True)))
    assert not any(scope.granted for scope in offer.scopes)


def test_many_logins_at_once_hold_up_nothing_else(person: Person) -> None:
    streams = [person.stream(person.request("notes.read", account=f"many-{n}")) for n in range(MOST_LOGINS)]
    for events in streams:
        next(event for event in events if event.WhichOneof("what") == "open")
    with refuses("conflict"):
        person.login("notes.read", account="one-more")
    put = ab.PutCredentialRequest(service="notes", account="key", kind="bearer", secret=b"x" * 20)
    put.place.private, put.passphrase = True, APPROVAL_PASSPHRASE
    assert person.call("PutCredential", put).account == "key"
    for events in streams:
        events.cancel()
