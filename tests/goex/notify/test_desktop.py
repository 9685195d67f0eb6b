"""Real questions of a real daemon, on real notification servers, answered with a pointer."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from goex.web.access import KeyFile
from tests.acceptance.notes_service import NotesService
from tests.goex.notify.asking import CUT, IRREVERSIBLE, READ, STILL, message, pending, read, write
from tests.support.daemon import Daemon
from tests.support.desktop import Desktop, Notifying
from tests.support.journey import Journey, decide
from tests.support.led_browser import led_browser
from tests.support.ports import free_port
from tests.support.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.sampled(1)]  # each at one of the servers


@pytest.mark.promise(25)
def test_a_read_is_allowed_once_by_a_click(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, notes: NotesService, token: str
) -> None:
    before = len(notes.got)
    journey = Journey(daemon, read(tag=["a"]), token=token)
    approval = journey.asked()
    shown = notifying.until("shown", approvals=[approval.id])
    assert (shown["buttons"], shown["allows"]) == (READ, True)
    time.sleep(STILL)
    desktop.press("Allow once", READ)
    finished = journey.finished()
    assert finished.action.state == "done", finished
    assert [request[0] for request in notes.got[before:]] == ["GET"]
    notifying.until("settled", approval=approval.id, state="approved")
    grants = daemon.person("Grants", pb.GrantsRequest()).grants
    assert not [grant for grant in grants if grant.width != "once"]
    # It was one's own click: nothing more is said.
    until(lambda: not desktop.windows(), "an empty screen")
    assert not notifying.of("notice")
    # Once is once.
    again = Journey(daemon, read(tag=["a"]), token=token)
    assert again.asked().id != approval.id
    again.leave()


def test_deny_denies(daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str) -> None:
    journey = Journey(daemon, write("denied"), token=token)
    approval = journey.asked()
    assert notifying.until("shown", approvals=[approval.id])["buttons"] == IRREVERSIBLE
    desktop.press("Deny", IRREVERSIBLE)
    finished = journey.finished()
    assert (finished.action.state, finished.problem.exit_status) == ("denied", 3)
    assert not notifying.of("opened")


@pytest.mark.sampled(5)
@pytest.mark.promise(25)
@pytest.mark.parametrize(
    ("request_", "labels", "label"),
    [
        (write("by the pointer"), IRREVERSIBLE, "Allow once…"),
        (message("by the pointer"), CUT, "Show it whole…"),
        (read(), READ, "For the session…"),
    ],
    ids=["a write", "a write with more than there is room for", "a read for the session"],
)
def test_what_a_click_may_not_settle_opens_the_terminal(
    daemon: Daemon,
    desktop: Desktop,
    notifying: Notifying,
    token: str,
    terminal: Path,
    request_: pb.ExecuteRequest,
    labels: list[str],
    label: str,
) -> None:
    stays = terminal.with_name("terminal.open")
    stays.touch()
    journey = Journey(daemon, request_, token=token)
    approval = journey.asked()
    assert notifying.until("shown", approvals=[approval.id])["buttons"] == labels
    time.sleep(STILL)
    desktop.press(label, labels)
    notifying.until("opened", approval=approval.id)
    until(terminal.exists, "the terminal")
    (words,) = json.loads(terminal.read_text())
    assert words[-2:] == ["approve", approval.id]
    assert pending(daemon) == [approval.id]
    # The window is closed and nothing was decided: it is asked again.
    stays.unlink()
    notifying.until("shown", approvals=[approval.id])
    assert pending(daemon) == [approval.id]
    assert not daemon.person("Grants", pb.GrantsRequest()).grants
    journey.leave()
    notifying.until("settled", state="withdrawn")


@pytest.mark.promise(25)
def test_where_there_is_a_browser_it_opens_the_page_at_the_question(
    daemon: Daemon, desktop: Desktop, token: str, tmp_path: Path
) -> None:
    script, opened = led_browser(tmp_path)
    daemon.configure(f"[web]\nport = {free_port()}\n")
    try:
        with Notifying(daemon, desktop, env={"BROWSER": str(script)}) as notifying:
            journey = Journey(daemon, message("on the page"), token=token)
            approval = journey.asked()
            notifying.until("shown", approvals=[approval.id])
            time.sleep(STILL)
            desktop.press("Show it whole…", CUT)
            notifying.until("opened", approval=approval.id)
            until(opened.exists, "the browser")
            assert opened.read_text().splitlines()[1].endswith(f"/{approval.id}")
            assert pending(daemon) == [approval.id]
            journey.leave()
            notifying.until("settled", state="withdrawn")
            page = KeyFile(Paths.from_env(daemon.env).web_key)
            assert page.of_running() is not None
    finally:
        daemon.configure("")
    until(lambda: page.of_running() is None, "the page's end")


@pytest.mark.promise(25)
def test_a_click_on_the_body_decides_nothing(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str, terminal: Path
) -> None:
    journey = Journey(daemon, read(), token=token)
    approval = journey.asked()
    notifying.until("shown", approvals=[approval.id])
    time.sleep(STILL)
    desktop.click_body()
    if desktop.server == "dunst":  # its click is the default action: the view
        notifying.until("opened", approval=approval.id)
        until(terminal.exists, "the terminal")
    else:  # there a click closes it
        notifying.until("closed", approval=approval.id)
    time.sleep(0.5)
    assert pending(daemon) == [approval.id]
    journey.leave()
    assert not daemon.person("Grants", pb.GrantsRequest()).grants


@pytest.mark.promise(25)
def test_nobody_answers_and_the_daemon_says_no(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str
) -> None:
    request = read()
    request.ask_seconds = 2
    journey = Journey(daemon, request, token=token)
    approval = journey.asked()
    notifying.until("shown", approvals=[approval.id])
    finished = journey.finished()
    assert (finished.action.state, finished.problem.exit_status) == ("denied", 4)
    assert notifying.until("notice")["title"] == "Timed out: no answer denies"


def test_settled_elsewhere_is_said(daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str) -> None:
    journey = Journey(daemon, write("elsewhere"), token=token)
    approval = journey.asked()
    notifying.until("shown", approvals=[approval.id])
    decide(daemon, approval, approve=False)
    assert notifying.until("notice")["title"] == "Denied elsewhere"
    journey.finished()
    # The question is gone, the notice is there; it has no buttons, and goes by itself.
    until(lambda: len(desktop.windows()) == 1, "the notice alone")
    desktop.click_body()
