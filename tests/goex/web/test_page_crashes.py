"""The page's process is killed while an answer is on its way through it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.web.test_page import pending
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.freezing import freeze
from tests.support.page import CHROMIUM, SECONDS, ask_for_update, needs_browser, page_of, status_of
from tests.support.waiting import until

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser

# Answers what still waits. The first answer may yet come through meanwhile: then this one is refused.
AGAIN = """async (passphrase) => {
  const { call } = await import("/daemon.js");
  for (const { id } of (await call("Person/Approvals", { brief: true })).approvals) {
    const { digest } = (await call("Person/Approvals", { approval_id: id })).approvals[0];
    await call("Person/Decide", { approval_id: id, approve: true, width: "once", digest, passphrase }).catch(() => {});
  }
}"""


@pytest.mark.parametrize("held", [True, False])
def test_a_page_that_is_killed_in_an_answer_loses_nothing(
    daemon: Daemon, shop: Path, token: str, browser: Any, held: bool
) -> None:
    """The answer is on its way: to a daemon that is held, or to one that isn't. It counts, or it is given anew."""
    value = f"killed-{held}"
    action = ask_for_update(daemon, token, value)
    context = browser.new_context()
    tab = context.new_page()
    tab.set_default_timeout(SECONDS * 1000)
    pid = daemon.person("Status", pb.StatusRequest()).pid
    with page_of(daemon) as page:
        tab.goto(page.first)
        tab.click("li.item button.open")
        tab.wait_for_selector("article button.yes:not([disabled])")
        tab.click("article button.yes")
        tab.fill("#passphrase", APPROVAL_PASSPHRASE)
        if held:
            freeze(pid)
        try:
            with tab.expect_request("**/call/Person/Decide"):
                tab.evaluate("document.getElementById('proof-yes').click()")
            page.end(signal.SIGKILL)
        finally:
            os.kill(pid, signal.SIGCONT)
        if held:
            expect(tab.locator("#proof-problem")).to_contain_text("process has ended")
        else:  # it may have been answered before the page's end
            until(lambda: not tab.locator("#proof").is_visible() or tab.inner_text("#proof-problem") != "")
    with page_of(daemon) as page:
        again = context.new_page()
        again.goto(page.first)
        again.wait_for_selector("nav a")
        again.evaluate(AGAIN, APPROVAL_PASSPHRASE)
        until(lambda: status_of(shop) == value)
    context.close()
    rows = daemon.person("Log", pb.LogRequest(limit=500)).rows
    assert len([row for row in rows if row.action_id == action and row.kind == "grant"]) == 1
    assert not pending(daemon)
    assert daemon.goex("log", "--verify").returncode == 0
