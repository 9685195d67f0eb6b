"""Connecting an account at a terminal, end to end: the command, a real daemon and server, and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.goex.daemon.accounts import Person
from tests.services.oidc import OidcServer
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.person import QUESTION
from tests.support.terminal import Terminal

ADDRESS = r"(http://127\.0\.0\.1:\d+/auth\?\S+)"


@pytest.fixture(scope="module")
def home() -> Iterator[Person]:
    with OidcServer() as server, Daemon() as daemon:
        made = Person(daemon, server)
        made.catalogue()
        yield made


@pytest.fixture
def person(home: Person) -> Iterator[Person]:
    """Somebody who hasn't connected anything, and whose server wasn't asked anything."""
    assert not home.server.asked("")  # what was asked before is noted by now
    home.server.requests.clear()
    yield home
    for name in home.accounts():
        home.logout(name)


def in_the_browser(person: Person, terminal: Terminal) -> None:
    """Log in at the address that the terminal shows."""
    person.browser.visit(terminal.expect(ADDRESS)[1])


def show_presence(terminal: Terminal) -> None:
    terminal.expect("Approval passphrase: ")
    terminal.type(APPROVAL_PASSPHRASE)


def test_from_nothing_to_a_call_that_needed_more_and_back(person: Person) -> None:
    daemon = person.daemon
    refused = daemon.goex("exec", "--call", "notes.list")
    assert refused.returncode == 7
    assert "goex auth login notes --account default --scope notes.read" in refused.stderr
    with daemon.terminal("auth", "login", "notes", "--client-id", "goex", "--private", "--no-browser") as terminal:
        terminal.expect("the provider's own")
        terminal.type("yes")
        show_presence(terminal)
        terminal.expect(r"Asked for: notes\.read, offline_access\.")  # what the refused action needs, and no more
        in_the_browser(person, terminal)
        terminal.expect(r"Connected notes/default\.")
        assert terminal.wait() == 0
    with daemon.terminal("exec", "--call", "notes.add", 'body:={"text": "hello"}') as terminal:
        terminal.expect(r"Log in to notes/default now, for notes\.write\?")
        terminal.type("yes")
        show_presence(terminal)
        in_the_browser(person, terminal)
        terminal.expect(r"scopes\s+notes\.read, notes\.write")
        # It goes on by itself: the question comes without the command being typed again.
        terminal.expect(QUESTION)
        terminal.type("?")
        terminal.expect(
            r"GoEx's gateway holds the credential to this[^;]*; by itself it opens: notes\.read, notes\.write"
        )
        terminal.expect(QUESTION)
        terminal.type("once")
        terminal.expect("went well")
        assert terminal.wait() == 0
    with daemon.terminal("exec", "--call", "notes.list") as terminal:
        terminal.expect(QUESTION)
        terminal.type("?")
        terminal.expect(r"the service gives a token for this alone; it opens: notes\.read")
        terminal.expect(QUESTION)
        terminal.type("once")
        terminal.expect("hello")
        assert terminal.wait() == 0
    listed = daemon.goex("auth", "list")
    assert "notes.read, notes.write" in listed.stdout and "the provider" in listed.stdout
    with daemon.terminal("auth", "logout", "notes") as terminal:
        show_presence(terminal)
        terminal.expect("Taken back at the provider, and forgotten: notes/default")
        assert terminal.wait() == 0
    assert "No account is connected" in daemon.goex("auth", "list").stdout


def test_one_command_connects_what_it_needs_and_goes_on(person: Person) -> None:
    with person.daemon.terminal("exec", "--call", "notes.list") as terminal:
        terminal.expect(r"Log in to notes/default now, for notes\.read\?")
        terminal.type("yes")
        terminal.expect("on this machine or network, and may the credential go there")
        terminal.type("yes")
        terminal.expect("the provider's own")
        terminal.type("yes")
        terminal.expect("Client id: ")
        terminal.type("goex")
        show_presence(terminal)
        in_the_browser(person, terminal)
        terminal.expect(QUESTION)
        terminal.type("once")
        terminal.expect("went well")
        assert terminal.wait() == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("said", ["", "no"])
def test_plain_http_takes_no_credential_without_a_yes(person: Person, said: str) -> None:
    with person.daemon.terminal("auth", "login", "notes", "--scope", "notes.read") as terminal:
        terminal.expect("may the credential go there")
        terminal.type(said)
        terminal.expect("plain http, which shows the credential")
        assert terminal.wait() == 3
    assert not person.server.asked("/.well-known/oauth-authorization-server")
