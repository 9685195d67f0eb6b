"""Passkeys on the page, with Chromium's own virtual authenticator: registered, used, cloned, for another origin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.page import (
    CHROMIUM,
    INTERNAL,
    WebPage,
    add_shop,
    ask_for_update,
    needs_browser,
    page_of,
    question_of,
    status_of,
    until_status,
)
from tests.support.ports import free_port
from tests.support.waiting import SECONDS

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def daemon(port: int) -> Iterator[Daemon]:
    with Daemon(config=f"[web]\nport = {port}\n") as running:
        yield running


@pytest.fixture(scope="module")
def web(daemon: Daemon, port: int) -> Iterator[WebPage]:
    with page_of(daemon, port) as made:
        yield made


@pytest.fixture(scope="module")
def shop(daemon: Daemon) -> Path:
    return add_shop(daemon)


class Keyed:
    """A tab whose browser has an authenticator."""

    def __init__(self, browser: Any, address: str) -> None:
        self.context = browser.new_context()
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(SECONDS * 1000)
        self.tab.goto(address)
        self.tab.wait_for_selector("nav a")
        self.devtools = self.context.new_cdp_session(self.tab)
        self.devtools.send("WebAuthn.enable")
        self.authenticator = self.devtools.send("WebAuthn.addVirtualAuthenticator", {"options": INTERNAL})[
            "authenticatorId"
        ]

    def credentials(self) -> list[dict[str, Any]]:
        found = self.devtools.send("WebAuthn.getCredentials", {"authenticatorId": self.authenticator})
        return list(found["credentials"])

    def register(self) -> None:
        """The first passkey, by the approval passphrase."""
        self.tab.click("nav a:has-text('System')")
        self.tab.click("button:has-text('Register a passkey')")
        self.tab.fill("#passphrase", APPROVAL_PASSPHRASE)
        self.tab.click("#proof-yes")
        expect(self.tab.locator("#said")).to_have_text("The passkey is registered.")
        assert len(self.credentials()) == 1

    def open(self, question: str) -> None:
        """A question, until it can be allowed."""
        self.tab.click("nav a:has-text('Waiting')")
        self.tab.click(f"button.open[data-id='{question}']")
        self.tab.wait_for_selector("article button.yes:not([disabled])")
        self.tab.click("article button.yes")


@pytest.fixture(scope="module")
def keyed(browser: Any, web: WebPage, daemon: Daemon) -> Iterator[Keyed]:
    """With one passkey registered on the page."""
    made = Keyed(browser, web.link())
    made.register()
    yield made
    made.context.close()


@pytest.mark.promise(87)
def test_a_write_is_approved_by_a_signature_that_the_log_verifies(daemon: Daemon, shop: Path, keyed: Keyed) -> None:
    action = ask_for_update(daemon, daemon.add_agent("one"), "signed")
    keyed.open(question_of(daemon, action))
    keyed.tab.click("#proof-passkey")
    expect(keyed.tab.locator("main")).to_contain_text("settled: approved")
    until_status(shop, "signed")
    rows = daemon.person("Log", pb.LogRequest(limit=50)).rows
    assert any("clientDataJSON" in row.facts_json or "assertion" in row.facts_json for row in rows)
    assert daemon.goex("log", "--verify").returncode == 0


@pytest.mark.promise(87)
def test_a_cloned_authenticator_is_refused(daemon: Daemon, shop: Path, keyed: Keyed) -> None:
    """Its count goes back behind what the daemon saw."""
    token = daemon.add_agent("two")
    credential = keyed.credentials()[0]
    send = keyed.devtools.send
    behind = {**credential, "signCount": 0}
    action = ask_for_update(daemon, token, "counted")
    keyed.open(question_of(daemon, action))
    keyed.tab.click("#proof-passkey")
    expect(keyed.tab.locator("main")).to_contain_text("settled: approved")
    until_status(shop, "counted")  # the control
    send(
        "WebAuthn.removeCredential",
        {"authenticatorId": keyed.authenticator, "credentialId": credential["credentialId"]},
    )
    send("WebAuthn.addCredential", {"authenticatorId": keyed.authenticator, "credential": behind})
    action = ask_for_update(daemon, token, "cloned")
    keyed.open(question_of(daemon, action))
    keyed.tab.click("#proof-passkey")
    expect(keyed.tab.locator("#proof-problem")).not_to_be_empty()
    keyed.tab.click("#proof-no")
    assert [one.action_id for one in daemon.person("Approvals", pb.ApprovalsRequest()).approvals] == [action]
    assert status_of(shop) == "counted"
    keyed.tab.click("article button:has-text('Deny')")
    expect(keyed.tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(87)
def test_an_answer_to_one_question_is_none_to_another(daemon: Daemon, shop: Path, keyed: Keyed) -> None:
    """A script in the page's place signs one question and sends it for another, and twice."""
    token = daemon.add_agent("three")
    send = keyed.devtools.send
    credential = keyed.credentials()[0]
    send(
        "WebAuthn.removeCredential",
        {"authenticatorId": keyed.authenticator, "credentialId": credential["credentialId"]},
    )
    send("WebAuthn.addCredential",
         {"authenticatorId": keyed.authenticator, "credential": {**credential, "signCount": 1000}})  # fmt: skip
    for value in ("mine", "theirs"):
        ask_for_update(daemon, token, value, 2 if value == "theirs" else 1)
    script = """async () => {
      const { call } = await import("/daemon.js"), { sign } = await import("/proof.js");
      const full = [];
      for (const { id } of (await call("Person/Approvals", { brief: true })).approvals)
        full.push((await call("Person/Approvals", { approval_id: id })).approvals[0]);
      const of = (one) => ({ approval_id: one.id, approve: true, width: "once", digest: one.digest });
      const sent = async (request, assertion_json) => {
        try { await call("Person/Decide", { ...request, assertion_json }); } catch (error) { return error.code; }
        return "approved";
      };
      const signed = await sign({ decide: of(full[0]) });
      const told = [await sent(of(full[1]), signed)];
      const again = await sign({ decide: of(full[0]) });
      told.push(await sent({ ...of(full[0]), width: "permanent" }, again));
      const good = await sign({ decide: of(full[0]) });
      told.push(await sent(of(full[0]), good), await sent(of(full[1]), good));
      await call("Person/Decide", { approval_id: full[1].id, approve: false });
      return told;
    }"""
    told = keyed.tab.evaluate(script)
    assert told[2] == "approved", told
    assert "approved" not in (told[0], told[1], told[3]), told
    until_status(shop, "mine")
    assert status_of(shop, 2) == "new"


@pytest.mark.promise(87)
def test_another_origin_gets_no_signature_and_none_counts_from_there(keyed: Keyed, browser: Any, web: WebPage) -> None:
    other = browser.new_context().new_page()
    other.route("http://localhost:1/**", lambda route: route.fulfill(content_type="text/html", body="<p>other</p>"))
    other.goto("http://localhost:1/")
    script = "fetch(`%s/call/Passkeys/Challenge`, {method: 'POST', body: '{}'}).then(() => 'read', () => 'refused')"
    assert other.evaluate(script % web.origin) == "refused"
    challenge = keyed.tab.evaluate(
        """async () => (await (await import("/daemon.js")).call("Passkeys/Challenge",
             { presence: "", origin: location.origin })).options_json"""
    )
    assert json.loads(challenge)["userVerification"] == "required"
    assert json.loads(challenge)["rpId"] == "goex.localhost"
    other.context.close()
