"""An account that goes takes along what was granted on it: another one under its name is somebody else's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.accounts import SERVICE, Person
from tests.services.oidc import Browser, OidcServer
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def home() -> Iterator[Person]:
    with OidcServer() as server, Daemon() as running:
        made = Person(running, server)
        made.catalogue()
        yield made


@pytest.fixture
def person(home: Person) -> Iterator[Person]:
    """Somebody who hasn't connected anything."""
    yield home
    for name in home.accounts():
        home.logout(name)


def live(person: Person) -> list[tuple[str, str]]:
    return [(grant.account, grant.width) for grant in person.daemon.person("Grants", pb.GrantsRequest()).grants]


@pytest.mark.promise(24)
@pytest.mark.parametrize("how", ["logout", "remove"])
def test_a_standing_grant_isnt_for_whoever_is_connected_next(person: Person, how: str) -> None:
    person.login("notes.read", account="home")
    person.login("notes.read", account="work")
    token = person.daemon.add_agent(f"bot-{how}")
    for account in ("home", "work"):
        finished = person.journey("me", account, token=token).approve("permanent", passphrase=APPROVAL_PASSPHRASE)
        assert finished.action.state == "done", finished
    assert live(person) == [("work", "permanent"), ("home", "permanent")]
    if how == "logout":
        person.logout("home")
    else:
        request = pb.VaultRemoveRequest(service=SERVICE, account="home", passphrase=APPROVAL_PASSPHRASE)
        person.daemon.person("VaultRemove", request)
    assert live(person) == [("work", "permanent")]
    person.login("notes.read", account="home", browser=Browser(person.server, "grace"))
    assert person.journey("me", "home", token=token).asked().agent == f"bot-{how}"
