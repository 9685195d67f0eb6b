"""A suggested rule is put in force on the page: with the approval passphrase, and signed by a passkey."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import Scene, call, scene, several
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.page import CHROMIUM, INTERNAL, click_after_end, needs_browser, page_of
from tests.support.ports import free_port
from tests.support.waiting import SECONDS

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = [needs_browser, pytest.mark.docker]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def made(sandbox_image: str, port: int) -> Iterator[Scene]:
    """An agent whose question was answered as often as a rule needs."""
    with scene(config=f"[web]\nport = {port}\n") as made:
        made.new_agent()
        for _ in range(2):
            made.allow(post("deployed"), "once")
        yield made


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    tab = context.new_page()
    tab.set_default_timeout(SECONDS * 1000)
    yield tab
    context.close()


def post(text: str) -> pb.ExecuteRequest:
    return several(call("slack.chat.postMessage", channel="C0ALL", text=text))


def in_force(made: Scene) -> list[str]:
    """The texts of those that are in force beside GoEx's own."""
    rules = json.loads(made.daemon.goex("rules", "--json").stdout)["rules"]
    return [str(rule["text"]) for rule in rules if rule["name"].startswith("suggested-")]


def registered(tab: Any) -> None:
    devtools = tab.context.new_cdp_session(tab)
    devtools.send("WebAuthn.enable")
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": INTERNAL})
    tab.click("nav a:has-text('System')")
    tab.click("button:has-text('Register a passkey')")
    tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    tab.click("#proof-yes")
    expect(tab.locator("#said")).to_have_text("The passkey is registered.")


@pytest.mark.promise(14, 4, 27)
def test_it_is_put_in_force_with_the_passphrase(made: Scene, port: int, tab: Any) -> None:
    with page_of(made.daemon, port) as web:
        tab.goto(web.link())
        tab.click("nav a:has-text('Rules')")
        tab.wait_for_timeout(1500)  # three times as long as it stands before it can be put in force
        assert tab.is_disabled("button:has-text('Put in force')")  # its end is below the screen
        card = tab.locator("li.card:has(button:has-text('Put in force'))")
        expect(card).to_contain_text("slack.chat.postMessage as work")
        shown = card.locator("pre").inner_text().strip()
        click_after_end(tab, "Put in force")
        tab.fill("#passphrase", "not the passphrase")
        tab.click("#proof-yes")
        expect(tab.locator("#proof-problem")).to_contain_text("approval passphrase")
        tab.click("#proof-no")
        assert in_force(made) == []
        click_after_end(tab, "Put in force")
        tab.fill("#passphrase", APPROVAL_PASSPHRASE)
        tab.click("#proof-yes")
        expect(tab.locator("#said")).to_contain_text("The rule is in force.")
        expect(tab.locator("main")).to_contain_text("No rule is suggested")
        (text,) = in_force(made)
        assert text.strip().endswith(shown)
    assert made.unasked(post("deployed"))
    assert not made.unasked(post("fired"))


@pytest.mark.promise(14, 87, 89)
def test_a_passkey_signs_that_very_rule(made: Scene, port: int, tab: Any) -> None:
    with page_of(made.daemon, port) as web:
        tab.goto(web.link())
        tab.wait_for_selector("nav a")
        registered(tab)
        made.daemon.stop()
        made.daemon.configure(f'[web]\nport = {port}\n[ask]\npresence = "passkey"\n')
        made.daemon.start()
        made.daemon.unlock()
        tab.reload()
        tab.wait_for_selector("nav a")
        tab.click("nav a:has-text('Rules')")
        click_after_end(tab, "Put in force")
        expect(tab.locator("#said")).to_contain_text("The rule is in force.")
        expect(tab.locator("main")).to_contain_text("No rule is suggested")
    rows = made.daemon.person("Log", pb.LogRequest(limit=20)).rows
    (signed,) = [json.loads(row.facts_json) for row in rows if row.kind == "presence"]
    statement = json.loads(signed["assertion"]["statement"])
    assert (statement["call"], statement["kind"]) == ("ApplySuggestedRules", "presence")
    verified = made.daemon.goex("log", "--verify")
    assert verified.returncode == 0, verified.stderr
    assert len(in_force(made)) == 1
    assert made.unasked(post("deployed"))
    assert not made.unasked(post("fired"))
