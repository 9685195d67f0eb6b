"""What can go wrong around a question: servers and daemons that end, floods, forgeries, clicks that come too soon."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.notify.asking import CUT, READ, STILL, message, pending, read, write
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.desktop import Desktop, Notifying
from tests.support.journey import Journey
from tests.support.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.sampled(1)]  # each at one of the servers


@pytest.mark.promise(25)
def test_a_click_that_comes_too_soon_allows_nothing(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str
) -> None:
    asked = [Journey(daemon, read(tag=["first"]), token=token)]
    notifying.until("shown", approvals=[asked[0].asked().id])
    for number in range(10):
        time.sleep(STILL)
        # Another one is drawn, and the pointer is at the button already; where the click came late, once more.
        press = desktop.aim("Allow once", READ)
        asked.append(Journey(daemon, read(tag=[str(number)]), token=token))
        notifying.until("shown", approvals=[asked[-1].asked().id])
        waiting = sorted(pending(daemon))
        assert len(waiting) == 2
        press()
        notifying.until("clicked", button="once")
        if notifying.until("shown", "settled")["event"] == "shown":
            break
    assert sorted(pending(daemon)) == waiting
    for journey in asked:
        journey.leave()


def test_a_server_that_restarts_shows_it_again(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str
) -> None:
    journey = Journey(daemon, read(tag=["restart"]), token=token)
    approval = journey.asked()
    notifying.until("shown", approvals=[approval.id])
    desktop.end("server", signal.SIGKILL)
    notifying.until("server", name="")
    desktop.start_server()
    assert notifying.until("server")["name"] != ""
    notifying.until("shown", approvals=[approval.id])
    time.sleep(STILL)
    desktop.press("Allow once", READ)
    assert journey.finished().action.state == "done"


def test_a_server_that_comes_late_is_waited_for(daemon: Daemon, desktop: Desktop, token: str, terminal: Path) -> None:
    journey = Journey(daemon, read(tag=["late"]), token=token)
    approval = journey.asked()
    desktop.end("server")
    try:
        with Notifying(daemon, desktop) as notifying:
            notifying.until("server", name="")
            notifying.until("daemon", running=True)
            until(lambda: "No notification server is there; waiting for one." in notifying.said, "what it says of it")
            desktop.start_server()
            notifying.until("shown", approvals=[approval.id])
            journey.leave()
            notifying.until("settled", approval=approval.id)
    finally:
        if not desktop.owner():
            desktop.start_server()


@pytest.mark.promise(25)
def test_a_forged_click_is_no_click(daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str) -> None:
    """Any program on the session bus can send the signal; only the server's own counts."""
    journey = Journey(daemon, read(tag=["forged"]), token=token)
    approval = journey.asked()
    id = notifying.until("shown", approvals=[approval.id])["notification"]
    time.sleep(STILL)
    for key in ("once", "deny", "default"):
        desktop.forge("org.freedesktop.Notifications.ActionInvoked", f"uint32:{id}", f"string:{key}")
    desktop.forge("org.freedesktop.Notifications.NotificationClosed", f"uint32:{id}", "uint32:2")
    time.sleep(0.3)
    assert not notifying.of("clicked")
    assert not notifying.of("closed")
    assert pending(daemon) == [approval.id]
    desktop.press("Deny", READ)  # the control: the server's own does
    assert journey.finished().action.state == "denied"


@pytest.mark.promise(26)
def test_hostile_text_stays_text(daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str) -> None:
    """Markup, line breaks, bidirectional overrides, colours: servers take it without complaint."""
    hostile = (
        '<b>Risk: none</b> &amp; </span><a href="x">\u202e\x1b[31m\nRisk: read; nothing to take back.\n<img src="/x"/>'
    )
    journey = Journey(daemon, message(hostile), token=token)
    approval = journey.asked()
    shown = notifying.until("shown", approvals=[approval.id])
    assert shown["allows"] is False
    desktop.press("Deny", shown["buttons"])
    assert journey.finished().action.state == "denied"
    said = desktop.log("server").lower()
    assert "markup" not in said
    assert "pango" not in said


@pytest.mark.promise(25)
def test_what_is_cut_is_said_and_no_click_allows_it(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str, terminal: Path
) -> None:
    journey = Journey(daemon, read(tag=[f"tag number {number}" for number in range(40)]), token=token)
    approval = journey.asked()
    shown = notifying.until("shown", approvals=[approval.id])
    assert (shown["buttons"], shown["allows"]) == (CUT, False)
    time.sleep(STILL)
    desktop.press(CUT[0], CUT)
    notifying.until("opened", approval=approval.id)
    until(terminal.exists, "the terminal")
    assert pending(daemon) == [approval.id]
    journey.leave()


def test_the_same_again_is_counted_and_each_is_allowed_by_itself(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str
) -> None:
    first = Journey(daemon, read(tag=["twin"]), token=token)
    one = first.asked().id
    notifying.until("shown", approvals=[one])
    second = Journey(daemon, read(tag=["twin"]), token=token)
    two = second.asked().id
    shown = notifying.until("shown", approvals=[one, two])
    assert "(×2)" in shown["title"]
    assert len(desktop.windows()) == 1
    time.sleep(STILL)
    desktop.press("Allow once", READ)
    assert first.finished().action.state == "done"
    notifying.until("shown", approvals=[two])
    third = Journey(daemon, read(tag=["twin"]), token=token)
    three = third.asked().id
    notifying.until("shown", approvals=[two, three])
    desktop.press("Deny", READ)
    assert second.finished().action.state == "denied"
    assert third.finished().action.state == "denied"


@pytest.mark.promise(26)
def test_a_flood_is_summed_up_and_hides_no_other_agent(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str, terminal: Path
) -> None:
    many = [Journey(daemon, read(tag=[str(number)]), token=token) for number in range(12)]
    for journey in many:
        journey.asked()
    notifying.until("shown", title="8 more wait for you")
    if desktop.server == "xfce":
        until(lambda: len(desktop.windows()) == 5, "four questions and the sum")
    other = Journey(daemon, read(tag=["other"]), token=daemon.add_agent(f"other-{desktop.server}"))
    notifying.until("shown", approvals=[other.asked().id])
    notifying.until("shown", title="9 more wait for you")
    assert len(pending(daemon)) == 13
    daemon.person("DenyAll", pb.DenyAllRequest(agent="helper"))
    notifying.until("notice")
    other.leave()
    for journey in many:
        assert journey.finished().action.state == "denied"
    # Those that were on the screen end with one word, not with one each.
    assert notifying.of("notice")[0]["title"].endswith("questions are settled")


def test_a_daemon_that_restarts_is_found_again(
    daemon: Daemon, desktop: Desktop, notifying: Notifying, token: str
) -> None:
    request = read(tag=["restarted"])
    request.detach = True
    journey = Journey(daemon, request, token=token)
    approval = journey.asked()
    notifying.until("shown", approvals=[approval.id])
    daemon.kill()
    notifying.until("daemon", running=False)
    until(lambda: not desktop.windows(), "an empty screen")
    daemon.start()
    daemon.unlock()
    notifying.until("daemon", running=True)
    notifying.until("shown", approvals=[approval.id])
    desktop.press("Deny", READ)
    notifying.until("settled", approval=approval.id, state="denied")
    assert not pending(daemon)


def test_the_terminal_decides_what_the_click_did_not(
    daemon: Daemon, desktop: Desktop, token: str, tmp_path: Path
) -> None:
    """A terminal that really runs what it is given: the person types there, passphrase and all."""
    script, screen = tmp_path / "at_the_terminal.py", tmp_path / "screen.txt"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from tests.support.terminal import Terminal\n"
        "from tests.support.person import answer\n"
        "with Terminal(sys.argv[1:]) as terminal:\n"
        f"    answer(terminal, 'no not today', {APPROVAL_PASSPHRASE!r})\n"
        "    terminal.expect('Enter closes this window')\n"
        "    terminal.type()\n"
        "    terminal.wait()\n"
        f"    open({str(screen)!r}, 'w').write(terminal.text)\n"
    )
    daemon.configure(f"[notify]\nterminal = {json.dumps([sys.executable, str(script)])}\n")
    try:
        with Notifying(daemon, desktop) as notifying:
            notifying.until("daemon", running=True)
            journey = Journey(daemon, write("in the terminal"), token=token)
            labels = notifying.until("shown", approvals=[journey.asked().id])["buttons"]
            desktop.press(labels[0], labels)
            notifying.until("opened")
            notifying.until("settled", state="denied", seconds=300)
            finished = journey.finished()
            assert finished.action.state == "denied"
            assert "not today" in finished.problem.message
            assert notifying.until("notice")["title"] == "Denied in the terminal"
            until(screen.exists, "the end of the window")
            assert "in the terminal" in screen.read_text()
    finally:
        daemon.configure("")


def test_one_notifier_a_session(daemon: Daemon, desktop: Desktop, notifying: Notifying) -> None:
    with Notifying(daemon, desktop) as second:
        assert second.wait() == 8
        assert "A notifier runs in this session already." in second.said


def test_it_takes_its_notifications_with_it(daemon: Daemon, desktop: Desktop, token: str, terminal: Path) -> None:
    with Notifying(daemon, desktop) as notifying:
        journey = Journey(daemon, read(tag=["left"]), token=token)
        notifying.until("shown", approvals=[journey.asked().id])
        assert notifying.stop() == 0
    until(lambda: not desktop.windows(), "an empty screen")
    assert len(pending(daemon)) == 1
    journey.leave()


def test_the_end_of_the_session_ends_it(daemon: Daemon, terminal: Path, desktop: Desktop) -> None:
    with Desktop(desktop.server) as own, Notifying(daemon, own) as notifying:
        notifying.until("daemon", running=True)
        own.end("bus")
        assert notifying.wait() == 8
        assert "The desktop session has ended." in notifying.said
        assert "goex approve --watch" in notifying.said
