"""The page of a test: `goex web` as a process, its links, and a real Chromium."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support import command
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.waiting import SECONDS, until

# The build without a screen opens a window in 0.3 s of the processor, the whole one in 1.2.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), "")
INTERNAL = {  # an authenticator within the device, for Chromium
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium on this machine")


class WebPage:
    """`goex web --no-browser` beside a daemon."""

    def __init__(self, daemon: Daemon, port: int | None = 0, *more: str) -> None:
        self._daemon, self._host = daemon, [one for one in more if one == "--localhost"]
        more = more if port is None else ("--port", str(port), *more)
        self._process = command.piped(
            [str(GOEX), "web", "--no-browser", *more], env=daemon.env, folder=daemon.home, err=2
        )
        assert self._process.stdout is not None
        self.pid = self._process.pid
        self.first = self._process.stdout.readline().decode().strip()
        self.origin = self.first.partition("/#")[0]
        self.port = int(self.origin.rpartition(":")[2] or 0)
        # What it says afterwards is read, so that it never waits for its reader.
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    def link(self) -> str:
        """One more link to it, as calling the command again gives one."""
        done = self._daemon.goex("web", "--no-browser", *self._host)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self._process.poll() is None:
            self._process.send_signal(how)
        return self._process.wait(10)


@contextmanager
def page_of(daemon: Daemon, port: int | None = 0, *more: str) -> Iterator[WebPage]:
    made = WebPage(daemon, port, *more)
    try:
        yield made
    finally:
        made.end()


@contextmanager
def chromium(*arguments: str) -> Iterator[Any]:
    """A headless Chromium, driven by Playwright."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", *arguments])
        try:
            yield browser
        finally:
            browser.close()


def view(tab: Any, name: str) -> None:
    """Go to a view by its link, and wait until it is what is shown, not the one before it."""
    tab.click(f"nav a[href='#{name}']")
    until_view(tab, name)


def until_view(tab: Any, name: str) -> None:
    tab.wait_for_selector(f"nav a[aria-current=page][href='#{name}']")
    tab.wait_for_selector("main:not([aria-busy])")


def see_end(tab: Any, label: str) -> None:
    """Scroll to the end of what the button of that label is for, the only one."""
    box = tab.locator(f"li.card:has(button:has-text('{label}')) pre")
    box.evaluate("box => { box.scrollTop = box.scrollHeight; box.scrollIntoView({ block: 'end' }); }")


def click_after_end(tab: Any, label: str) -> None:
    """Click a button that is enabled once the end of what it is for was on the screen."""
    button = tab.locator(f"button:has-text('{label}')")

    def seen() -> bool:
        see_end(tab, label)  # again when it was drawn anew
        return bool(button.is_enabled())

    until(seen, f"{label} to be enabled")
    button.click()


def question_of(daemon: Daemon, action: str) -> str:
    """The id of the question that an action waits for."""
    found = daemon.person("Approvals", pb.ApprovalsRequest()).approvals
    (id,) = [one.id for one in found if one.action_id == action]
    return str(id)


def add_shop(daemon: Daemon) -> Path:
    """Make a database of two orders, which the daemon knows as `shop`."""
    database = daemon.home / "shop.db"
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")
        made.executemany("INSERT INTO orders VALUES (?, 'new')", [(1,), (2,)])
    with daemon.terminal("db", "add", "shop", str(database)) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    return database


def status_of(database: Path, order: int = 1) -> str:
    with sqlite3.connect(database) as opened:
        return str(opened.execute("SELECT status FROM orders WHERE id = ?", (order,)).fetchone()[0])


def until_status(database: Path, value: str) -> None:
    """Wait until order 1 has this status."""
    until(lambda: status_of(database) == value, f"the status {value}")


def ask_for_update(daemon: Daemon, token: str, value: str, order: int = 1) -> str:
    """Let an agent ask for an update of `shop`; returns the action's id once the question stands."""
    sql = pb.SqlProgram(database="shop", statements=f"UPDATE orders SET status = '{value}' WHERE id = {order}")
    for event in daemon.actions("Execute", pb.ExecuteRequest(sql=sql, detach=True), token=token):
        if event.HasField("asking"):
            return str(event.action_id)
    raise AssertionError("nothing was asked")
