"""A phone: the page through a tunnel at `[web] public_url`, in a narrow Chromium with an authenticator of its own."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest

import goex.journal.verify as verify
from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from tests.goex.daemon.test_passkey_rows import remade, signed
from tests.goex.web.test_access import send
from tests.support.authenticator import Page, decoded, encoded
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import decide
from tests.support.page import (
    CHROMIUM,
    INTERNAL,
    WebPage,
    add_shop,
    ask_for_update,
    chromium,
    click_after_end,
    needs_browser,
    page_of,
    question_of,
    status_of,
    until_status,
    view,
)
from tests.support.ports import free_port
from tests.support.tunnel import tunnel
from tests.support.waiting import SECONDS

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser

NAME = "goex.test"


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture(scope="module")
def public(listener: socket.socket) -> str:
    return f"https://{NAME}:{listener.getsockname()[1]}"


@pytest.fixture(scope="module")
def port() -> int:
    """Of the page on this machine."""
    return free_port()


@pytest.fixture(scope="module")
def daemon(public: str, port: int) -> Iterator[Daemon]:
    with Daemon(config=f'[web]\nport = {port}\npublic_url = "{public}"\n') as running:
        yield running


@pytest.fixture(scope="module")
def web(daemon: Daemon, listener: socket.socket, port: int) -> Iterator[WebPage]:
    with page_of(daemon, port) as made, tunnel(NAME, listener, made.port):
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1", "--ignore-certificate-errors") as made:
        yield made


@pytest.fixture(scope="module")
def shop(daemon: Daemon) -> Path:
    return add_shop(daemon)


class Device:
    """A browser with an authenticator: the person's desk, or their phone."""

    def __init__(self, browser: Any, width: int) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 844}, ignore_https_errors=True)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(SECONDS * 1000)
        self.devtools = self.context.new_cdp_session(self.tab)
        self.devtools.send("WebAuthn.enable")
        self.authenticator = self.devtools.send("WebAuthn.addVirtualAuthenticator", {"options": INTERNAL})[
            "authenticatorId"
        ]

    def open(self, address: str) -> None:
        self.tab.goto(address)
        self.tab.wait_for_selector("nav a")

    def new_tab(self, address: str) -> None:
        """As after the browser was closed: no token is left."""
        page = urlsplit(address)
        self.tab.goto(f"{page.scheme}://{page.netloc}/page.css")  # which reloads nothing when its session ends
        self.tab.evaluate("sessionStorage.clear()")
        self.tab.goto(address)

    def sign_in(self) -> None:
        self.tab.click("button:has-text('Sign in with a passkey')")
        self.tab.wait_for_selector("nav a")


def phone_link(daemon: Daemon) -> str:
    done = daemon.goex("web", "--phone")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[0]


@pytest.fixture(scope="module")
def desk(browser: Any, web: WebPage) -> Iterator[Device]:
    """With the first passkey."""
    made = Device(browser, 1280)
    made.open(web.link())
    made.tab.click("nav a:has-text('System')")
    made.tab.click("button:has-text('Register a passkey')")
    made.tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    made.tab.click("#proof-yes")
    expect(made.tab.locator("#said")).to_have_text("The passkey is registered.")
    yield made
    made.context.close()


@pytest.fixture(scope="module")
def phone(browser: Any, daemon: Daemon, desk: Device, public: str) -> Iterator[Device]:
    """Begun by a link, with a passkey of its own, which the desk's confirmed."""
    made = Device(browser, 390)
    link = phone_link(daemon)
    assert link.startswith(f"{public}/#")
    made.open(link)
    made.tab.click("nav a:has-text('System')")
    made.tab.click("button:has-text('Register a passkey')")
    expect(made.tab.locator("main")).to_contain_text("Now confirm it where GoEx runs")
    view(desk.tab, "accounts")
    view(desk.tab, "system")  # drawn anew
    expect(desk.tab.locator("main")).to_contain_text(f"Adding a passkey for {NAME}")
    told = made.tab.locator("main [role=status]").inner_text()
    compared = told.rpartition(" ")[2]
    assert re.fullmatch("[0-9a-f]{64}", compared), told
    expect(desk.tab.locator("main")).to_contain_text(f'"public_key_sha256": "{compared}"')
    click_after_end(desk.tab, "Confirm with a passkey")
    expect(made.tab.locator("#said")).to_have_text("The passkey is registered.")
    yield made
    made.context.close()


@pytest.mark.promise(94)
def test_a_phone_signs_in_and_approves_a_write(daemon: Daemon, shop: Path, phone: Device, public: str) -> None:
    """With the link that the room is told, which begins no session."""
    token = daemon.add_agent("bot")
    ask_for_update(daemon, token, "from afar")
    question = daemon.person("Approvals", pb.ApprovalsRequest()).approvals[0].id
    phone.new_tab(f"{public}/#waiting/{question}")
    phone.sign_in()
    yes = phone.tab.locator("article button.yes:not([disabled])")
    yes.click()
    phone.tab.click("#proof-passkey")
    expect(phone.tab.locator("main")).to_contain_text("settled: approved")
    until_status(shop, "from afar")
    rows = daemon.person("Log", pb.LogRequest(limit=50)).rows
    begun = next(row for row in rows if row.kind == "page-session")
    assert public in begun.facts_json
    assert any("for the public page (passkey pk-" in row.facts_json for row in rows if row.kind == "grant")
    verified = daemon.goex("log", "--verify")
    assert verified.returncode == 0, verified.stderr


@pytest.mark.promise(88, 94)
def test_what_a_phone_signed_is_checked_elsewhere_by_one_file(daemon: Daemon, phone: Device, tmp_path: Path) -> None:
    """And a byte of the signature that is changed, with every hash made anew, shows."""
    exported, alone = tmp_path / "journal.jsonl", tmp_path / "verify.py"
    assert daemon.goex("log", "--export", str(exported)).returncode == 0
    alone.write_bytes(Path(verify.__file__).read_bytes())

    def check(file: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", str(alone), str(file)], capture_output=True, text=True, cwd=tmp_path, check=False
        )

    def flip(rows: list[dict[str, Any]]) -> None:
        said = signed(rows, "grant")["facts"]["assertion"]
        assert NAME in said["statement"], "the yes was the phone's"
        raw = bytearray(decoded(said["signature"]))
        raw[-1] ^= 1
        said["signature"] = encoded(bytes(raw))

    whole = check(exported)
    assert whole.returncode == 0, whole.stderr
    assert "signed by passkeys" in whole.stdout
    assert check(remade(exported, tmp_path / "same", lambda rows: None)).returncode == 0  # the control
    bent = check(remade(exported, tmp_path / "bent", flip))
    assert bent.returncode == 1, bent.stdout
    assert "isn't what the passkey signed" in bent.stderr


@pytest.mark.promise(94)
def test_nothing_is_shown_and_no_passphrase_counts_away(daemon: Daemon, shop: Path, phone: Device, public: str) -> None:
    """Before the passkey there is one button; after it a passphrase approves nothing, and its field isn't there."""
    ask_for_update(daemon, daemon.add_agent("third"), "not by passphrase")
    phone.new_tab(f"{public}/")
    phone.tab.wait_for_selector("button:has-text('Sign in with a passkey')")
    assert "not by passphrase" not in phone.tab.content()
    assert phone.tab.locator("nav a").count() == 0
    phone.sign_in()
    phone.tab.click("li.item button.open")
    phone.tab.click("article button.yes:not([disabled])")
    expect(phone.tab.locator("#passphrase")).to_be_hidden()
    phone.tab.click("#proof-no")
    script = """async (passphrase) => {
      const { call } = await import("/daemon.js");
      const one = (await call("Person/Approvals", {})).approvals[0];
      const yes = { approval_id: one.id, approve: true, width: "once", digest: one.digest, passphrase };
      try { await call("Person/Decide", yes); } catch (error) { return error.code; }
      return "approved";
    }"""
    assert phone.tab.evaluate(script, APPROVAL_PASSPHRASE) == "passkey"
    assert status_of(shop) != "not by passphrase"
    phone.tab.click("article button:has-text('Deny')")
    expect(phone.tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(94)
def test_a_phone_signs_a_yes_to_a_read_too(daemon: Daemon, shop: Path, phone: Device, public: str) -> None:
    look = pb.ExecuteRequest(sql=pb.SqlProgram(database="shop", statements="SELECT status FROM orders"), detach=True)
    events = daemon.actions("Execute", look, token=daemon.add_agent("reader"))
    action = next(event.action_id for event in events if event.HasField("asking"))
    phone.new_tab(f"{public}/#waiting/{question_of(daemon, action)}")
    phone.sign_in()
    phone.tab.click("article button.yes:not([disabled])")
    phone.tab.click("#proof-passkey")
    expect(phone.tab.locator("main")).to_contain_text("settled: approved")


@pytest.mark.promise(94)
def test_what_a_phone_undoes_its_passkey_confirms(daemon: Daemon, shop: Path, phone: Device, public: str) -> None:
    before = status_of(shop)
    action = ask_for_update(daemon, daemon.add_agent("fourth"), "to be undone")
    decide(daemon, pb.Approval(id=question_of(daemon, action)))
    until_status(shop, "to be undone")
    phone.new_tab(f"{public}/#history")
    phone.sign_in()
    phone.tab.click(f"tr[data-id='{action}'] button:has-text('Undo')")
    phone.tab.click("li.item button.open")  # once the passkey confirmed it, it asks
    phone.tab.click("article button.yes:not([disabled])")
    phone.tab.click("#proof-passkey")
    until_status(shop, before)
    confirmed = [row for row in daemon.person("Log", pb.LogRequest(limit=50)).rows if row.kind == "presence"]
    assert any(f"Undoing {action}" in row.facts_json for row in confirmed)


@pytest.mark.promise(87, 94)
def test_a_phone_signs_its_own_call_though_another_waits(
    daemon: Daemon, shop: Path, phone: Device, public: str
) -> None:
    """And none where its own isn't told: the only one that waits may be an attacker's."""
    action = ask_for_update(daemon, daemon.add_agent("fifth"), "beside another")
    decide(daemon, pb.Approval(id=question_of(daemon, action)))
    until_status(shop, "beside another")
    here = Page(daemon)
    removed = ppb.RemovePasskeyRequest(id=here.list().passkeys[0].id)
    with pytest.raises(grpc.RpcError):
        here.call("Remove", removed)
    phone.new_tab(f"{public}/#history")
    phone.sign_in()
    phone.tab.wait_for_selector("table")
    script = """async () => {
      const { Problem } = await import("/daemon.js"), { confirmed } = await import("/proof.js");
      let made = 0;
      const due = new Problem({ code: "passkey", message: "Due." });
      const attempt = async () => { if (!made++) throw due; return "made"; };
      try { return await confirmed(attempt); } catch (error) { return `${error.text} ${location.hash}`; }
    }"""
    told = phone.tab.evaluate(script)
    assert "under System" in told and told.endswith("#system"), told
    (other,) = here.list().waiting
    assert other.what == "Removing a passkey"
    expect(phone.tab.locator("main")).to_contain_text("Removing a passkey")
    view(phone.tab, "history")
    phone.tab.click(f"tr[data-id='{action}'] button:has-text('Undo')")
    phone.tab.wait_for_selector("li.item button.open")  # it was confirmed, and asks
    assert [one.id for one in here.list().waiting] == [other.id]
    with pytest.raises(grpc.RpcError):
        here.call("Remove", removed)
    phone.tab.click("li.item button.open")
    phone.tab.click("article button:has-text('Deny')")
    expect(phone.tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(94)
def test_a_session_is_listed_and_ends_where_the_person_ends_it(
    daemon: Daemon, phone: Device, desk: Device, public: str
) -> None:
    phone.new_tab(f"{public}/#history")
    phone.sign_in()
    view(desk.tab, "accounts")
    view(desk.tab, "system")  # drawn anew
    ends = desk.tab.locator("button:has-text('End this session')")
    listed = len(Page(daemon).list().sessions)
    assert listed > 0
    for left in range(listed, 0, -1):
        expect(ends).to_have_count(left)
        ends.first.click()
    expect(ends).to_have_count(0)
    assert not Page(daemon).list().sessions
    phone.sign_in()  # offered again: the page reloads when its session ends
    expect(phone.tab.locator("nav a[aria-current=page]")).to_have_text("History")


@pytest.mark.promise(94)
def test_a_flood_of_strangers_keeps_no_phone_out_that_was_here(phone: Device, web: WebPage, public: str) -> None:
    over, told = threading.Event(), set()
    host = public.removeprefix("https://")

    def flood() -> None:
        while not over.is_set():
            told.add(send(web, "/sign-in/challenge", Host=host, Origin=public)[0])

    strangers = threading.Thread(target=flood)
    strangers.start()
    try:
        while 429 not in told:
            over.wait(0.05)
        phone.new_tab(f"{public}/#history")
        phone.sign_in()
        expect(phone.tab.locator("nav a[aria-current=page]")).to_have_text("History")
    finally:
        over.set()
        strangers.join()


@pytest.mark.promise(94)
def test_the_loopback_page_offers_no_passkey_to_begin_with(desk: Device, web: WebPage, browser: Any) -> None:
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(web.origin)
    expect(tab.locator("main")).to_contain_text("goex web")
    assert tab.locator("button:has-text('Sign in')").count() == 0
    context.close()
