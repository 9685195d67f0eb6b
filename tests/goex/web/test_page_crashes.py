"""The page's process ends: while an answer is on its way through it, or with somebody else at its port afterwards."""

from __future__ import annotations

import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.web.test_page import pending
from tests.goex.web.test_passkeys import Keyed
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.freezing import freeze
from tests.support.page import CHROMIUM, ask_for_update, needs_browser, page_of, status_of
from tests.support.waiting import SECONDS, until

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


class Planting(BaseHTTPRequestHandler):
    """What another user of the machine serves where the page was: a worker that answers there from then on."""

    def do_GET(self) -> None:
        worker = self.path == "/worker.js"
        body = WORKER if worker else "<script>navigator.serviceWorker.register('/worker.js')</script>"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if worker else "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


WORKER = """addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => event.respondWith(
  new Response("<title>planted</title>", { headers: { "Content-Type": "text/html" } })));
"""
PRESENT = """async () => {
  const { call } = await import("/daemon.js"), { sign } = await import("/proof.js");
  await call("Person/Present", { assertion_json: await sign({ presence: "" }) });
}"""


@pytest.mark.promise(86)
@pytest.mark.promise(87)
def test_who_held_the_port_between_two_pages_has_no_part_in_the_next(daemon: Daemon, browser: Any) -> None:
    """What the browser keeps of the earlier origin, and of plain localhost, is of no use; a passkey still is."""
    with page_of(daemon) as page:
        keyed = Keyed(browser, page.first)
        keyed.register()
    tab = keyed.tab
    planted = [page.origin, f"http://localhost:{page.port}"]
    with ThreadingHTTPServer(("127.0.0.1", page.port), Planting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tab.reload()
        for origin in planted:
            tab.goto(origin)
            tab.evaluate("navigator.serviceWorker.ready.then(() => {})")
        server.shutdown()
    with page_of(daemon, page.port) as page:
        tab.goto(page.first)
        assert tab.title() == "GoEx"
        tab.wait_for_selector("nav a")
        tab.evaluate(PRESENT)
        for origin in planted:  # the control
            tab.goto(origin)
            assert tab.title() == "planted"
    keyed.context.close()
