"""The dialog that asks for proof: it is of one call, and says what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.page import CHROMIUM, ask_for_update, needs_browser, status_of
from tests.support.waiting import until

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser

# Asks for proof of a call, and notes in `window.ran` what came of it.
PROVE = """async ([way, name]) => {
  const proof = await import("/proof.js");
  window.ran ||= [];
  const attempt = async () => { window.ran.push(`${name} was made`); return {}; };
  const more = way === "proveCall" ? [attempt] : [null, attempt];
  const asked = proof[way]("Prove this", name, ...more);
  asked.then(() => window.ran.push(`${name} ended`), (error) => window.ran.push(`${name}: ${error.code}`));
}"""


def held(tab: Any, call: str) -> list[Any]:
    """The calls of that name, which are answered when the test continues them."""
    found: list[Any] = []
    tab.route(f"**/call/{call}", lambda route: found.append(route))
    return found


@pytest.mark.promise(26)
@pytest.mark.parametrize("way", ["proveCall", "prove"])
def test_the_call_that_is_shown_is_the_one_that_is_made(daemon: Daemon, token: str, tab: Any, way: str) -> None:
    """A second one comes while it is looked up how the first is proven, and while the dialog stands."""
    looks = held(tab, "Passkeys/List")
    with tab.expect_request("**/call/Passkeys/List"):
        tab.evaluate(PROVE, ["proveCall", "first"])
    assert tab.evaluate("document.querySelector('main').inert")
    tab.evaluate(PROVE, [way, "second"])
    expect_ran(tab, ["second: busy"])
    looks[0].continue_()
    expect(tab.locator("#proof-what")).to_have_text("first")
    expect(tab.locator("#proof")).to_be_visible()
    assert not tab.evaluate("document.querySelector('main').inert")
    tab.evaluate(PROVE, [way, "third"])
    expect_ran(tab, ["second: busy", "third: busy"])
    assert tab.inner_text("#proof-what") == "first"
    tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    tab.click("#proof-yes")
    expect_ran(tab, ["second: busy", "third: busy", "first was made", "first ended"])
    tab.evaluate(PROVE, ["prove", "fourth"])  # the control: now another one's turn has come
    expect(tab.locator("#proof-what")).to_have_text("fourth")
    tab.keyboard.press("Escape")
    expect_ran(tab, ["second: busy", "third: busy", "first was made", "first ended", "fourth ended"])


def expect_ran(tab: Any, what: list[str]) -> None:
    tab.wait_for_function("what => JSON.stringify(window.ran) === JSON.stringify(what)", arg=what)


@pytest.mark.promise(27)
@pytest.mark.parametrize("right", [True, False])
def test_escape_cancels_no_call_that_is_under_way(
    daemon: Daemon, shop: Path, token: str, tab: Any, right: bool
) -> None:
    before, value = status_of(shop), f"escaped-{right}"
    ask_for_update(daemon, token, value)
    tab.click("li.item button.open")
    tab.click("article button.yes:not([disabled])")
    tab.fill("#passphrase", APPROVAL_PASSPHRASE if right else "not the passphrase")
    yes = held(tab, "Person/Decide")
    with tab.expect_request("**/call/Person/Decide"):
        tab.click("#proof-yes")
    for _ in range(3):  # a browser heeds a refusal once
        tab.keyboard.press("Escape")
        expect(tab.locator("#proof")).to_be_visible()
    yes[0].continue_()
    if right:
        expect(tab.locator("#said")).to_have_text("Allowed.")
        expect(tab.locator("#proof")).to_be_hidden()
        until(lambda: status_of(shop) == value)
        return
    expect(tab.locator("#proof-problem")).not_to_be_empty()
    tab.keyboard.press("Escape")  # the control: now it cancels
    expect(tab.locator("#proof")).to_be_hidden()
    assert status_of(shop) == before
    tab.unroute("**/call/Person/Decide")
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")
