"""`goex auth` on a terminal: the address, the browser, what is pasted, and the login that an action lacks."""

from __future__ import annotations

import html
import os
import re
import signal
import threading
import webbrowser
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from goex.browser import lead_browser
from goex.rpc import accounts_pb2 as ab
from goex.rpc import goex_pb2 as pb
from tests.goex.cli.conftest import GOEX, Inside
from tests.goex.cli.fake import PASSPHRASE, Fake, approval, finished, problem
from tests.goex.cli.fake_accounts import URL, connected
from tests.support.led_browser import led_browser
from tests.support.person import QUESTION
from tests.support.terminal import Terminal
from tests.support.waiting import until
from vault.oauth import loopback

ADDRESS = r"https://login\.example\.org/authorize\S+"


def goex(env: dict[str, str], *arguments: str) -> Terminal:
    return Terminal([*GOEX, *arguments], env=env, cwd=Path(env["HOME"]))


def waiting(fake: Fake) -> None:
    """A login that waits for the person, once its address was shown."""
    fake.accounts.events.insert(2, "wait")


def lacks_consent(fake: Fake) -> None:
    fake.scripts = [
        [finished(problem=problem("consent", 7, "The login of notes/default doesn't cover notes.write."))],
        [finished()],
    ]


@pytest.fixture
def browser(env: dict[str, str], tmp_path: Path) -> Path:
    """The person's browser, and what it writes down."""
    script, opened = led_browser(tmp_path)
    env["BROWSER"] = f"{script} %s"
    return opened


CODE = ab.EnterCode(
    user_code="BCDF-GHJK",
    verification_url="https://login.example.org/device",
    verification_url_complete="https://login.example.org/device?user_code=BCDF-GHJK",
    deadline="2030-01-01T12:00:00Z",
)


@pytest.mark.promise(36)
@pytest.mark.parametrize(
    ("event", "url"),
    [
        (ab.LoginEvent(open=ab.OpenBrowser(login_id="l-1", url=URL)), URL),
        (ab.LoginEvent(code=CODE), CODE.verification_url_complete),
    ],
)
def test_the_address_is_opened_in_the_persons_browser_and_no_other_user_sees_it(
    env: dict[str, str], fake: Fake, browser: Path, event: ab.LoginEvent, url: str
) -> None:
    """Its command line is there for all to read: who finds the code there approves with an account of their own."""
    fake.accounts.events[1] = event
    with goex(env, "auth", "login", "notes") as terminal:
        terminal.expect(r"https://login\.example\.org/\S+")
        assert terminal.wait() == 0
    given, first, again, elsewhere = browser.read_text().splitlines()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}", given), "the address itself stands on the command line"
    assert first == f"302 {url}"
    assert (again, elsewhere) == ("410 None", "404 None"), "who comes later is led there too"


def test_where_the_system_tells_no_users_apart_the_browser_is_given_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(loopback, "_TABLES", ())

    def opened(url: str) -> bool:
        given.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    file = tmp_path / "login.html"
    with ExitStack() as ending:
        assert lead_browser(file, URL, ending)
        assert given == [file.as_uri()]
        assert file.stat().st_mode & 0o777 == 0o600 and f"url={html.escape(URL)}" in file.read_text()
    assert not file.exists(), "it is left after the login"
    with ExitStack() as ending:
        assert lead_browser(file, URL, ending, wait=1)
    assert file.exists(), "a browser that comes after the command has ended finds nothing"


def test_a_command_that_ends_then_waits_until_the_browser_was_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    led: list[str | None] = []

    def visit(url: str) -> None:
        there = urlsplit(url)
        link = HTTPConnection(there.netloc, timeout=600)
        link.request("GET", there.path)
        led.append(link.getresponse().headers["Location"])
        link.close()

    visits: list[threading.Thread] = []

    def opened(url: str) -> bool:
        visits.append(threading.Thread(target=visit, args=(url,)))
        visits[0].start()
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    with ExitStack() as ending:
        assert lead_browser(tmp_path / "never.html", URL, ending, wait=600)
        assert not [each for each in threading.enumerate() if each.name == "goex-login-visit"], "it wasn't told yet"
    visits[0].join()
    assert led == [URL]


def test_no_browser_prints_the_address_and_opens_nothing(env: dict[str, str], fake: Fake, browser: Path) -> None:
    with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
        terminal.expect(ADDRESS)
        assert terminal.wait() == 0
    assert not browser.exists()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "--help"])
def test_only_a_web_address_is_opened(env: dict[str, str], fake: Fake, browser: Path, url: str) -> None:
    fake.accounts.events[1] = ab.LoginEvent(open=ab.OpenBrowser(login_id="l-1", url=url))
    with goex(env, "auth", "login", "notes") as terminal:
        assert terminal.wait() == 0
    assert not browser.exists()


def test_ctrl_c_leaves_the_login(env: dict[str, str], fake: Fake) -> None:
    waiting(fake)
    with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
        terminal.expect("Ctrl-C ends the login")
        os.kill(terminal.pid, signal.SIGINT)
        assert terminal.wait() == 130, terminal.text
    until(lambda: fake.accounts.left)


def test_the_address_of_a_browser_elsewhere_is_pasted(env: dict[str, str], fake: Fake) -> None:
    waiting(fake)
    with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
        terminal.expect("Ctrl-C ends the login")
        terminal.type("http://127.0.0.1:1/callback?code=x&state=another")
        terminal.expect("isn't the address that this login ends on")
        terminal.type("http://127.0.0.1:1/callback?code=c&state=s")
        terminal.expect("Connected notes/default")
        assert terminal.wait() == 0
    assert fake.accounts.pasted == ["http://127.0.0.1:1/callback?code=c&state=s"]


def test_what_only_an_import_says_is_shown_and_agreed_to(env: dict[str, str], fake: Fake) -> None:
    fake.accounts.offers = [
        ab.OfferReply(service="notes", confirm=True, said_by="import", client_id="goex",
                      server=ab.AuthorizationServer(issuer="https://login.example.org")),
        *fake.accounts.offers,
    ]  # fmt: skip
    with goex(env, "auth", "login", "notes", "--scope", "notes.read", "--no-browser") as terminal:
        terminal.expect("issuer: https://login.example.org")
        terminal.expect("the provider's own")
        terminal.type("yes")
        assert terminal.wait() == 0
    login = fake.accounts.requests[-1]
    assert login.confirmed.issuer == "https://login.example.org"


def test_where_an_import_sends_the_token_is_in_the_question(env: dict[str, str], fake: Fake) -> None:
    fake.source = "imported"
    fake.accounts.offers[0].base_urls.append("https://api.example.org")
    first = ab.OfferReply()
    first.CopyFrom(fake.accounts.offers[0])
    first.confirm, first.said_by = True, "import"
    fake.accounts.offers.insert(0, first)
    with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
        terminal.expect(r"calls with the token: https://api\.example\.org")
        terminal.expect("the provider's own")
        terminal.type("yes")
        assert terminal.wait() == 0
    assert "Is that" not in terminal.text


@pytest.mark.parametrize(("source", "said"), [("imported", "yes"), ("imported", "no"), ("bundled", "")])
def test_where_an_import_sends_the_token_is_asked_with_an_issuer_too(
    env: dict[str, str], fake: Fake, source: str, said: str
) -> None:
    """The person says where logins happen; where the token then goes is still the document's word."""
    fake.source = source
    fake.accounts.offers[0].said_by = "you"
    fake.accounts.offers[0].base_urls.append("https://api.example.org")
    words = ("auth", "login", "notes", "--no-browser", "--issuer", "https://login.example.org")
    with goex(env, *words) as terminal:
        if said:
            terminal.expect(r"calls with the token: https://api\.example\.org")
            terminal.expect("the provider's own")
            terminal.type(said)
        assert terminal.wait() == (3 if said == "no" else 0)
    sent = any(isinstance(request, ab.LoginRequest) for request in fake.accounts.requests)
    assert sent == (said != "no")


def test_whoever_says_the_services_address_isnt_asked_for_it(inside: Inside, fake: Fake) -> None:
    fake.source = "imported"
    fake.accounts.offers[0].said_by = "you"
    fake.accounts.offers[0].base_urls.append("https://api.example.org")
    issuer = "auth login notes --no-browser --issuer https://login.example.org"
    refused = inside(*issuer.split())  # without a terminal nobody can agree
    assert refused.code == 3
    assert "--base-url" in refused.err
    assert inside(*issuer.split(), "--base-url", "https://api.example.org").code == 0


def test_what_isnt_agreed_to_isnt_used(env: dict[str, str], fake: Fake) -> None:
    fake.accounts.offers[0].confirm = True
    for said in ("", "no", "perhaps"):
        with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
            for _ in range(3 if said == "perhaps" else 1):  # what is neither yes nor no is asked again
                terminal.expect("the provider's own")
                terminal.type(said)
            assert terminal.wait() == 3
    assert not any(isinstance(request, ab.LoginRequest) for request in fake.accounts.requests)


def test_a_client_and_its_secret_are_asked_for_and_the_secret_isnt_shown(env: dict[str, str], fake: Fake) -> None:
    fake.accounts.offers[0].client_id = ""
    fake.accounts.offers[0].client = "confidential"
    fake.accounts.presence = True
    with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
        terminal.expect("http://127.0.0.1")
        terminal.expect("Client id: ")
        terminal.type("my-client")
        terminal.expect("Client secret")
        terminal.type("hush hush")
        terminal.expect("Approval passphrase: ")
        terminal.type(PASSPHRASE)
        assert terminal.wait() == 0
        assert "hush" not in terminal.text and PASSPHRASE not in terminal.text
    login = fake.accounts.requests[-1]
    assert (login.client_id, login.client_secret) == ("my-client", b"hush hush")


def test_a_clients_secret_comes_from_a_file_descriptor(inside: Inside, fake: Fake) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"from a pipe\n")
    os.close(writing)
    ran = inside("auth", "login", "notes", "--client-id", "web", "--client-secret-fd", str(reading), "--no-browser")
    assert ran.code == 0, ran.err
    assert fake.accounts.requests[-1].client_secret == b"from a pipe"


def test_everything_that_is_said_arrives(inside: Inside, fake: Fake) -> None:
    words = (
        "auth login notes --account work --scope a --scope b --scope a --device --no-browser --client-id c"
        " --issuer https://i.example.org --token-endpoint https://i.example.org/t --base-url https://n.example.org"
        " --origin https://m.example.org --private"
    )
    assert inside(*words.split()).code == 0
    login = fake.accounts.requests[-1]
    assert (login.service, login.account, list(login.scopes), login.flow) == ("notes", "work", ["a", "b"], "device")
    assert (login.server.issuer, login.server.token_endpoint) == ("https://i.example.org", "https://i.example.org/t")
    assert (login.place.base_url, list(login.place.origins)) == ("https://n.example.org", ["https://m.example.org"])
    assert login.place.private


# ---- the login that an action lacks


@pytest.mark.parametrize("pasted", [True, False])
def test_exec_offers_the_login_and_goes_on_by_itself(env: dict[str, str], fake: Fake, pasted: bool) -> None:
    lacks_consent(fake)
    if pasted:
        waiting(fake)
    fake.scripts[1] = [pb.Event(action_id="ac-0001", asking=approval()), fake.WAIT, finished()]
    with goex(env, "exec", "--call", "notes.add") as terminal:
        terminal.expect(r"Log in to notes/default now, for notes\.write\?")
        terminal.type("yes")
        terminal.expect("Ctrl-C ends the login")
        if pasted:
            terminal.type("http://127.0.0.1:1/callback?code=c&state=s")
        # What is typed next is for the next question, not for the login.
        terminal.expect(QUESTION)
        terminal.type("no")
        assert terminal.wait() == 0
    login = next(request for request in fake.accounts.requests if isinstance(request, ab.LoginRequest))
    assert (login.service, login.account, list(login.scopes)) == ("notes", "default", ["notes.write"])
    assert len(fake.requests) == 2
    assert fake.decided[0].approve is False


def test_undo_offers_the_login_that_taking_it_back_lacks(env: dict[str, str], fake: Fake) -> None:
    lacks_consent(fake)
    with goex(env, "undo", "ac-0001") as terminal:
        terminal.expect("Log in to notes/default now")
        terminal.type("yes")
        terminal.expect("Connected notes/default")
        assert terminal.wait() == 0
    assert [type(request) for request in fake.requests] == [pb.RevertRequest, pb.RevertRequest]


@pytest.mark.parametrize("said", ["", "no", "n", "later"])
def test_without_a_yes_exec_logs_in_nowhere(env: dict[str, str], fake: Fake, said: str) -> None:
    lacks_consent(fake)
    with goex(env, "exec", "--call", "notes.add") as terminal:
        for _ in range(3 if said == "later" else 1):  # what is neither yes nor no is asked again
            terminal.expect("Log in to notes/default now")
            terminal.type(said)
        assert terminal.wait() == 7
    assert len(fake.requests) == 1
    assert not any(isinstance(request, ab.LoginRequest) for request in fake.accounts.requests)


def test_a_login_that_brought_nothing_isnt_offered_again(env: dict[str, str], fake: Fake) -> None:
    lacks_consent(fake)
    done = ab.LoginDone(account=connected(), dropped=["notes.write"])
    fake.accounts.events[-1] = ab.LoginEvent(done=done)
    with goex(env, "exec", "--call", "notes.add") as terminal:
        terminal.expect("Log in to notes/default now")
        terminal.type("yes")
        terminal.expect("not granted: notes.write")
        assert terminal.wait() == 7
    assert len(fake.requests) == 1


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_without_a_terminal_exec_only_says_what_to_do(inside: Inside, fake: Fake, more: tuple[str, ...]) -> None:
    lacks_consent(fake)
    ran = inside("exec", "--call", "notes.add", *more)
    assert ran.code == 7
    assert "doesn't cover notes.write" in ran.err
    assert not fake.accounts.requests


def test_the_person_is_told_as_whom_they_are_logged_in(env: dict[str, str], fake: Fake) -> None:
    """Somebody else's login would otherwise pass for theirs."""
    whose = connected(subject="mallory\x1b[2J")
    fake.accounts.events[-1] = ab.LoginEvent(done=ab.LoginDone(account=whose))
    with goex(env, "auth", "login", "notes", "--no-browser") as terminal:
        terminal.expect(r"logged in as +mallory\\u\{1b\}")
        assert terminal.wait() == 0
    fake.accounts.list = [whose]
    with goex(env, "auth", "list") as terminal:
        terminal.expect(r"logged in as mallory\\u\{1b\}\[2J at")
        assert terminal.wait() == 0
