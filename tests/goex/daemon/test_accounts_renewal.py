"""Logins over time, end to end: rotation, a stolen token, sealing and dying in between, and other kinds of servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc
import pytest

from goex.rpc import accounts_pb2 as ab
from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.accounts import Person, refuses
from tests.services.oidc import OidcServer
from tests.support.daemon import Daemon
from tests.support.waiting import until
from vault.errors import VaultChanged
from vault.keys import PassphraseProtector
from vault.oauth.http import Http
from vault.oauth.token_requests import refresh
from vault.oauth.token_set import TokenSet
from vault.secret import Secret
from vault.store import Vault

LIFE = 6  # seconds of an access token
STALE = LIFE / 2 + 0.1  # seconds after which it is renewed before it is used: no action has less than half of its life


@pytest.fixture(scope="module")
def server() -> Iterator[OidcServer]:
    with OidcServer(access_seconds=LIFE) as running:
        yield running


@pytest.fixture(scope="module")
def home(server: OidcServer) -> Iterator[Daemon]:
    with Daemon() as running:
        Person(running, server).catalogue()
        yield running


@pytest.fixture
def person(home: Daemon, server: OidcServer) -> Iterator[Person]:
    """Somebody who hasn't connected anything, and whose server wasn't asked anything."""
    assert not server.asked("")  # what was asked before is noted by now
    server.requests.clear()
    made = Person(home, server)
    yield made
    for name in made.accounts():
        made.logout(name)


def stolen(person: Person) -> TokenSet:
    """The login's tokens, as somebody has them who could read the vault: its file and its passphrase."""
    from tests.support.daemon import VAULT_PASSPHRASE

    vault = Vault.open(person.daemon.state_dir / "vault.db")
    vault.unlock(PassphraseProtector(Secret(VAULT_PASSPHRASE)))
    try:
        return TokenSet.from_secret(vault.open_record("notes", "default").secret)
    finally:
        vault._unsealed.file.close()  # type: ignore[union-attr]  # not `seal`, which would write to the daemon's file


def renewing(person: Person) -> bool:
    """Whether a renewal is noted as under way. Another look may be needed: the daemon writes at this time."""
    try:
        return stolen(person).pending is not None
    except VaultChanged:
        return False


def test_tokens_rotate_over_several_actions_and_each_is_durable(person: Person) -> None:
    person.login("notes.read")
    seen = {stolen(person).refresh.reveal()}
    for _ in range(2):
        time.sleep(STALE)
        assert person.me()["scope"] == "notes.read"
        seen.add(stolen(person).refresh.reveal())
    assert len(seen) == 3, "a refresh token was used twice"
    person.daemon.kill()
    person.daemon.start()
    person.daemon.unlock()
    time.sleep(STALE)
    assert person.me()["sub"] == "ada"


@pytest.mark.promise(42)
def test_an_old_refresh_token_used_elsewhere_ends_the_family_and_a_new_login_mends_it(person: Person) -> None:
    person.login("notes.read")
    old = stolen(person)
    time.sleep(STALE)
    assert person.me()["sub"] == "ada"  # the old one is spent by now
    with pytest.raises(Exception, match="grant"):
        refresh(old, Http(private=True))
    time.sleep(STALE)
    finished = person.run("me")
    assert finished.problem.code == "login-expired"
    assert "goex auth login notes --account default" in finished.problem.next_step
    assert "Log in again" in person.accounts()["default"].trouble
    # What it was granted is asked for again without naming it.
    done = person.login()
    assert list(done.account.scopes) == ["notes.read"]
    assert not person.accounts()["default"].trouble
    assert person.me()["sub"] == "ada"


def test_sealing_while_a_renewal_is_under_way_loses_nothing(person: Person) -> None:
    person.login("notes.read")
    time.sleep(STALE)
    before = len(person.server.asked(grant_type="refresh_token"))
    person.server.late("/token", 3.0)
    journey = person.journey("me")
    thread = threading.Thread(target=journey.approve)
    thread.start()
    time.sleep(1.5)
    person.daemon.person("VaultSeal", pb.VaultSealRequest())
    thread.join(300)
    until(lambda: len(person.server.asked(grant_type="refresh_token")) > before)
    person.daemon.unlock()
    assert person.me()["sub"] == "ada"


def test_stopping_while_a_renewal_is_under_way_waits_for_its_answer(person: Person) -> None:
    person.login("notes.read")
    old = stolen(person).refresh
    time.sleep(STALE)
    person.server.late("/token", 4.0)
    journey = person.journey("me")
    answered: list[object] = []

    def approve() -> None:
        try:
            answered.append(journey.approve())
        except grpc.RpcError as error:  # the daemon ends in between
            answered.append(error)

    thread = threading.Thread(target=approve)
    thread.start()
    until(lambda: renewing(person))
    person.daemon.stop()
    thread.join(300)
    left = stolen(person)
    assert left.pending is None
    assert left.refresh != old
    person.daemon.start()
    person.daemon.unlock()
    assert person.me()["sub"] == "ada"


@pytest.mark.sampled(1)
@pytest.mark.promise(42)
@pytest.mark.parametrize("step", ["open", "visited", "exchange"])
def test_a_daemon_that_dies_during_a_login_leaves_no_half_of_it(person: Person, step: str) -> None:
    if step == "exchange":
        person.server.late("/token", 2.0)
    events = person.stream(person.request("notes.read"))
    url = next(event.open.url for event in events if event.WhichOneof("what") == "open")
    if step != "open":
        landed = person.browser.visit(url, leave=step == "exchange")
        assert landed.status in (200, 303)
    person.daemon.kill()
    person.daemon.start()
    person.daemon.unlock()
    assert person.accounts() == {}
    done = person.login("notes.read")
    assert list(done.account.scopes) == ["notes.read"]


@pytest.mark.promise(42)
def test_a_vault_that_is_sealed_during_a_login_stores_nothing_and_gives_the_tokens_back(person: Person) -> None:
    def browse(url: str) -> None:
        person.daemon.person("VaultSeal", pb.VaultSealRequest())
        person.browser.visit(url)

    with refuses("vault-sealed"):
        person.login("notes.read", browse=browse)
    assert person.server.asked(grant_type="authorization_code", status=200)
    until(lambda: person.server.asked("/token/revocation", status=200))
    person.daemon.unlock()
    assert person.accounts() == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("flow", ["code", "device"])
def test_a_server_that_wants_offline_access_asked_for_is_asked_for_it(flow: str) -> None:
    with OidcServer(offline=True, access_seconds=LIFE) as server, Daemon() as daemon:
        person = Person(daemon, server)
        person.catalogue()
        done = person.login("notes.read", "notes.write", flow=flow)
        assert done.account.renews
        assert list(done.account.scopes) == ["notes.read", "notes.write"], "it opens nothing, and isn't shown as if"
        for _ in range(2):
            time.sleep(STALE)
            assert person.me()["scope"] == "notes.read"
        assert "offline_access" not in str(person.journey("me").asked().needs)


def test_a_server_that_only_exchanges_tokens_narrows_by_that() -> None:
    with OidcServer(exchange=True) as server, Daemon() as daemon:
        person = Person(daemon, server)
        person.catalogue()
        person.login("notes.read", "notes.write")
        assert person.me()["scope"] == "notes.read"
        assert person.accounts()["default"].narrowed == "token"


@pytest.mark.promise(40)
def test_a_document_without_an_issuer_gives_its_endpoints(person: Person) -> None:
    """The last one here: the catalog is another one after it."""
    person.catalogue(issuer=False)
    shown = ab.AuthorizationServer(
        authorization_endpoint=f"{person.server.issuer}/auth", token_endpoint=f"{person.server.issuer}/token"
    )
    with refuses("unconfirmed"):
        person.login("notes.read")
    done = person.login("notes.read", confirmed=shown)
    assert list(done.account.scopes) == ["notes.read"]
    time.sleep(STALE)
    assert person.me()["scope"] == "notes.read"
    # An import that says otherwise by now moves nothing: the login is sealed with where it came from.
    with OidcServer() as other:
        assert person.daemon.goex("catalog", "remove", "notes").returncode == 0
        Person(person.daemon, other).catalogue(issuer=False)
        time.sleep(STALE)
        assert person.me()["sub"] == "ada"
        assert not other.asked()
    reply = person.logout()
    assert not reply.revoked and "no way to take tokens back" in reply.why
