"""Accounts, end to end: a real daemon, a real authorization server, real containers, and a service that looks at the
scopes of the token that it gets."""

from __future__ import annotations

import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest

from goex.rpc import accounts_pb2 as ab
from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.accounts import Person, refuses
from tests.goex.daemon.test_accounts_renewal import stolen
from tests.services.oidc import Browser, OidcServer
from tests.support.daemon import Daemon
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
    """Somebody who hasn't connected anything."""
    made = Person(home, server)
    yield made
    for name in made.accounts():
        made.logout(name)


def test_a_login_by_code_is_sealed_with_what_was_granted(person: Person) -> None:
    done = person.login("notes.read")
    assert list(done.account.scopes) == ["notes.read"]
    assert not done.dropped
    one = person.accounts()["default"]
    assert (one.kind, one.renews, one.issuer) == ("login", True, person.server.issuer)
    assert one.expires and not one.trouble
    assert person.me() == {"sub": "ada", "client": "goex", "scope": "notes.read"}


def test_a_login_by_device_code_needs_no_browser_here(person: Person) -> None:
    done = person.login("notes.read", flow="device")
    assert list(done.account.scopes) == ["notes.read"]
    assert person.me()["scope"] == "notes.read"


def test_a_browser_elsewhere_ends_on_an_address_that_is_pasted(person: Person) -> None:
    events = person.stream(person.request("notes.read"))
    for event in events:
        if event.WhichOneof("what") == "open":
            landed = person.browser.visit(event.open.url, leave=False)
            with refuses("invalid"):
                person.call(
                    "FinishLogin",
                    ab.FinishLoginRequest(login_id=event.open.login_id, redirect_url="http://127.0.0.1:9/?code=x"),
                )
            person.call("FinishLogin", ab.FinishLoginRequest(login_id=event.open.login_id, redirect_url=landed.url))
        if event.WhichOneof("what") == "done":
            assert list(event.done.account.scopes) == ["notes.read"]
            return
    raise AssertionError("It never ended.")


@pytest.mark.promise(41)
def test_each_lease_is_narrowed_to_what_its_action_needs(person: Person) -> None:
    person.login("notes.read", "notes.write", "notes.delete")
    assert person.me()["scope"] == "notes.read"
    assert person.accounts()["default"].narrowed == "token"
    assert not person.run("add", body={"text": "hello"}).HasField("problem")
    narrowed = [each["scope"] for each in person.server.asked(grant_type="refresh_token") if each.get("scope")]
    assert narrowed[-2:] == ["notes.read", "notes.write"]
    question = person.journey("me").asked()
    (need,) = question.needs
    assert (need.held_by, need.held_by_seen) == ("token", True)
    assert list(need.opens) == ["notes.delete", "notes.read", "notes.write"]


@pytest.mark.promise(41)
def test_before_it_was_seen_the_prompt_promises_the_gateway_alone(person: Person) -> None:
    person.login("notes.read", "notes.write")
    (need,) = person.journey("me").asked().needs
    assert (need.held_by, need.held_by_seen) == ("gateway", False)
    assert list(need.opens) == ["notes.read", "notes.write"]


def test_what_a_login_lacks_is_said_before_anybody_is_asked(person: Person) -> None:
    person.login("notes.read")
    problem = person.refused("add", body={"text": "x"})
    assert (problem.code, list(problem.details)) == ("consent", ["notes.write"])
    assert problem.next_step == "Allow it: goex auth login notes --account default --scope notes.write"
    # Another login adds it, and the first one's scopes stay.
    done = person.login("notes.write")
    assert sorted(done.account.scopes) == ["notes.read", "notes.write"]
    assert not person.run("add", body={"text": "x"}).HasField("problem")
    assert person.me()["scope"] == "notes.read"


def test_an_action_of_an_account_that_isnt_there_says_what_a_login_would_ask_for(person: Person) -> None:
    problem = person.refused("add", body={"text": "x"})
    assert problem.code == "consent"
    assert list(problem.details) == ["notes.write"]
    assert "isn't connected" in problem.message
    # A login that names no scope asks for what the person's own action needed, and no more.
    done = person.login()
    assert list(done.account.scopes) == ["notes.write"]


def test_what_an_agent_was_refused_for_isnt_asked_for_by_itself(person: Person) -> None:
    token = person.daemon.add_agent("helper")
    journey = person.journey("remove", "side", token=token, id="1")
    for _ in journey._events:
        pass
    offer = person.call("Offer", ab.OfferRequest(service="notes", account="side", place=ab.AccountPlace(private=True)))
    (removing,) = [scope for scope in offer.scopes if scope.name == "notes.delete"]
    assert not removing.wanted
    assert any(said.endswith("of helper") for said in removing.wanted_by)
    with refuses("invalid"):
        person.login(account="side")


@pytest.mark.promise(41)
def test_scopes_that_a_server_drops_are_said_and_nothing_runs_without_them(person: Person) -> None:
    done = person.login("notes.read", "notes.write", browse=lambda url: person.browser.visit(url, allow=["notes.read"]))
    assert list(done.dropped) == ["notes.write"]
    assert list(done.account.scopes) == ["notes.read"]
    assert list(person.accounts()["default"].refused) == ["notes.write"]
    assert person.refused("add", body={"text": "x"}).code == "consent"


@pytest.mark.promise(41)
def test_a_login_that_was_given_less_doesnt_replace_one_that_has_more(person: Person) -> None:
    person.login("notes.read", "notes.write")
    other = Browser(person.server)
    with refuses("conflict") as found:
        person.login("notes.delete", browse=lambda url: other.visit(url, allow=["notes.read", "notes.delete"]))
    assert "notes.write" in found[0].message
    assert sorted(person.accounts()["default"].scopes) == ["notes.read", "notes.write"]
    assert person.me()["scope"] == "notes.read"


def test_two_accounts_of_one_service_are_two_people(person: Person) -> None:
    person.login("notes.read", account="home")
    person.login("notes.read", account="work", browser=Browser(person.server, "grace"))
    assert person.me("home")["sub"] == "ada"
    assert person.me("work")["sub"] == "grace"
    problem = person.refused("me")
    assert "home, work" in problem.message


def test_saying_no_at_the_provider_stores_nothing(person: Person) -> None:
    with refuses("login-denied"):
        person.login("notes.read", browse=lambda url: person.browser.visit(url, deny=True))
    assert person.accounts() == {}


def test_a_client_that_leaves_ends_the_login(person: Person) -> None:
    before = len(person.server.asked())
    events = person.stream(person.request("notes.read"))
    url = next(event.open.url for event in events if event.WhichOneof("what") == "open")
    events.cancel()

    def ended() -> bool:
        try:
            return person.browser.visit(url).status == 410
        except OSError:  # nobody listens there any more
            return True

    until(ended)
    assert person.accounts() == {}
    assert len(person.server.asked()) == before, "a code was exchanged for nobody"


def test_a_daemon_that_stops_doesnt_wait_for_a_login(person: Person) -> None:
    events = person.stream(person.request("notes.read"))
    next(event for event in events if event.WhichOneof("what") == "open")
    try:
        assert person.daemon.stop(seconds=15) == 0
    finally:
        person.daemon.start()
        person.daemon.unlock()


def test_one_login_at_a_time_for_an_account(person: Person) -> None:
    events = person.stream(person.request("notes.read"))
    next(event for event in events if event.WhichOneof("what") == "open")
    with refuses("conflict"):
        person.login("notes.read")
    events.cancel()


def test_logging_out_takes_the_login_back_at_the_server(person: Person) -> None:
    person.login("notes.read")
    reply = person.logout()
    assert reply.revoked and not reply.why
    assert person.server.asked("/token/revocation", status=200)
    assert person.accounts() == {}


def test_a_renewal_while_another_action_runs_takes_nothing_from_it(person: Person) -> None:
    person.login("notes.read", "notes.write")
    server = person.server
    began = len(server.asked(grant_type="refresh_token"))
    server.late("/api/me", 3.0)
    slow: list[pb.Finished] = []
    thread = threading.Thread(target=lambda: slow.append(person.run("me")))
    thread.start()
    until(lambda: len(server.asked(grant_type="refresh_token")) > began)
    before = len(server.asked(grant_type="refresh_token"))
    assert not person.run("add", body={"text": "meanwhile"}).HasField("problem")
    assert len(server.asked(grant_type="refresh_token")) > before
    thread.join(300)
    assert not slow[0].HasField("problem"), slow[0].problem


def test_a_login_that_was_taken_back_at_the_provider_is_found_out_by_the_services_answer(person: Person) -> None:
    person.login("notes.read")
    form = {"token": stolen(person).access.token.reveal().decode(), "client_id": "goex"}
    address = f"{person.server.issuer}/token/revocation"
    with urllib.request.urlopen(address, urllib.parse.urlencode(form).encode(), timeout=300) as answer:
        assert answer.status == 200
    # By its own dates the token is good for an hour.
    assert "401" in person.run("me").problem.message
    assert person.run("me").problem.code == "login-expired"


def test_a_server_that_cant_be_reached_is_said_and_the_login_is_forgotten_all_the_same(home: Daemon) -> None:
    with OidcServer() as server:
        person = Person(home, server)
        person.login(
            "notes.read",
            account="gone",
            server=ab.AuthorizationServer(issuer=server.issuer),
            place=ab.AccountPlace(private=True, base_url=f"{server.issuer}/api"),
        )
        server.kill()
        reply = person.logout("gone")
    assert not reply.revoked
    assert "wasn't taken back" in reply.why and reply.next_step
    assert "gone" not in person.accounts()


def test_a_sealed_vault_shows_which_accounts_there_are_and_that_none_can_be_used(person: Person) -> None:
    person.login("notes.read")
    person.daemon.person("VaultSeal", _seal())
    try:
        one = person.accounts()["default"]
        assert one.kind == "login" and "sealed" in one.trouble and not one.scopes
        with refuses("vault-sealed"):
            person.login("notes.write")
    finally:
        person.daemon.unlock()
    assert list(person.accounts()["default"].scopes) == ["notes.read"]


def test_a_provider_without_a_page_says_which_other_ways_there_are(person: Person) -> None:
    place = ab.AuthorizationServer(token_endpoint=f"{person.server.issuer}/token")
    with refuses("invalid") as found:
        person.login("notes.read", server=place)
    assert "--client-credentials" in found[0].next_step


def test_client_credentials_need_no_person(person: Person) -> None:
    from tests.services.oidc import SERVICE_SECRET

    done = person.login(
        "notes.read",
        account="robot",
        flow="client_credentials",
        client_id="service",
        client_secret=SERVICE_SECRET.encode(),
    )
    assert done.account.kind == "client credentials"
    assert person.me("robot") == {"sub": None, "client": "service", "scope": "notes.read"}


@pytest.mark.promise(40)
def test_presence_is_due_for_whatever_connects_or_disconnects(person: Person) -> None:
    person.daemon.person("VaultSeal", _seal())
    person.daemon.unlock()  # sealing forgets presence
    with refuses("presence"):
        person.login("notes.read", passphrase="")
    with refuses("presence"):
        person.login("notes.read", passphrase="not the one")
    put = ab.PutCredentialRequest(service="notes", account="k", kind="bearer", secret=b"x" * 20)
    put.place.private = True
    with refuses("presence"):
        person.call("PutCredential", put)
    assert person.accounts() == {}
    person.login("notes.read")
    with refuses("presence"):
        person.call("Logout", ab.LogoutRequest(service="notes", account="default"))
    assert person.accounts()


@pytest.mark.promise(40)
def test_what_only_an_import_says_must_be_confirmed(person: Person) -> None:
    with refuses("unconfirmed"):
        person.login("notes.read", confirmed=ab.AuthorizationServer())
    with refuses("unconfirmed"):
        person.login("notes.read", confirmed=ab.AuthorizationServer(issuer="https://accounts.example.org"))
    offer = person.call("Offer", ab.OfferRequest(service="notes", place=ab.AccountPlace(private=True)))
    assert offer.confirm and offer.said_by == "import"
    assert offer.server.issuer == person.server.issuer
    assert not offer.server.token_endpoint, "an imported issuer was asked before the person agreed to it"


def test_a_scope_that_isnt_the_services_isnt_asked_for(person: Person) -> None:
    with refuses("unknown-name"):
        person.login("notes.everything")
    with refuses("invalid"):
        person.login(account="fresh")


def _seal() -> object:
    from goex.rpc import goex_pb2 as pb

    return pb.VaultSealRequest()
