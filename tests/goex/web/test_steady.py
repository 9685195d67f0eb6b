"""Nothing that the person could click moves by itself, and a click that was meant for what stood there before does
nothing; going back and forward loses nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tests.support.page import CHROMIUM, WebPage, ask_for_update, needs_browser, question_of, view
from tests.support.waiting import until

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser

PLACES = "(which) => [...document.querySelectorAll(which)].map((one) => one.getBoundingClientRect().top)"
FIFTY = 50  # rows of one answer


def action(number: int, **changed: Any) -> dict[str, Any]:
    facts = {"id": f"a-{number}", "number": str(number), "created": "2026-01-02T03:04:05+00:00", "agent": "bot"}
    return {**facts, "what": f"shop: change {number}", "state": "done", "outcome": "1 row changed.", **changed}


class History:
    """The history of a tab, newest first, which a test changes."""

    def __init__(self, tab: Any, many: int) -> None:
        self.actions = [action(number) for number in range(many, 0, -1)]
        tab.route("**/call/Audit/Actions", self._answer)
        tab.route("**/call/Audit/Story", lambda route: route.fulfill(json={"logged": self.actions[0]}))
        tab.route("**/call/Actions/WayBack", lambda route: route.fulfill(json={"steps": []}))

    def _answer(self, route: Any) -> None:
        before = int(json.loads(route.request.post_data).get("before", 0))
        found = [one for one in self.actions if not before or int(one["number"]) < before][:FIFTY]
        route.fulfill(json={"actions": found, "before": found[-1]["number"] if int(found[-1]["number"]) > 1 else "0"})


def to_history(tab: Any, many: int = 60) -> History:
    made = History(tab, many)
    view(tab, "history")
    expect(tab.locator("tbody tr")).to_have_count(min(many, FIFTY))
    return made


@pytest.mark.promise(27)
@pytest.mark.parametrize("width", [1280, 390])
def test_the_history_moves_only_when_the_person_says_so(tab: Any, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    history = to_history(tab)
    before = tab.evaluate(PLACES, "tbody tr, tbody a")
    history.actions[3] |= {"outcome": "It failed. " * 40, "can_undo": True}
    history.actions[4] |= {"outcome": "2 rows changed."}
    history.actions[:0] = [action(62), action(61)]
    expect(tab.locator(".newer button")).to_have_text("2 new, 1 changed")
    expect(tab.locator("tr[data-id=a-56]")).to_contain_text("2 rows changed.")  # the control: it moves nothing
    assert tab.evaluate(PLACES, "tbody tr, tbody a") == before
    tab.click(".newer button")
    expect(tab.locator("tbody tr >> nth=0")).to_contain_text("change 62")
    expect(tab.locator("tr[data-id=a-57]")).to_contain_text("It failed.")
    expect(tab.locator(".newer button")).to_be_disabled()


@pytest.mark.promise(27)
def test_a_button_that_came_by_itself_takes_no_click_for_a_moment(tab: Any) -> None:
    history = to_history(tab)
    tab.evaluate("""() => { window.came = new Promise((resolve) => new MutationObserver((_, watching) => {
      const undo = document.querySelector("tbody button");
      if (!undo) return;
      watching.disconnect();
      undo.click();
      resolve(undo.disabled);
    }).observe(document.querySelector("tbody"), { childList: true, subtree: true })); }""")
    asked: list[Any] = []
    tab.route("**/call/Actions/Revert", lambda route: asked.append(route) or route.fulfill(body=""))
    history.actions[0] |= {"can_undo": True}
    assert tab.evaluate("window.came")
    assert not asked
    with tab.expect_request("**/call/Actions/Revert"):
        tab.click("tbody button:has-text('Undo')")  # the control: later it does


@pytest.mark.promise(27)
def test_a_row_that_is_in_use_stays(tab: Any) -> None:
    history = to_history(tab)
    tab.focus("tr[data-id=a-59] a")
    history.actions[1] |= {"outcome": "2 rows changed."}
    expect(tab.locator(".newer button")).to_have_text("1 changed")
    assert tab.evaluate("document.activeElement.closest('tr').dataset.id") == "a-59"
    tab.focus("#search")
    expect(tab.locator("tr[data-id=a-59]")).to_contain_text("2 rows changed.")
    expect(tab.locator(".newer button")).to_be_disabled()


def test_back_leads_to_the_place_in_the_history_that_was_left(tab: Any) -> None:
    to_history(tab, 1000)
    for pages in range(2, 21):
        tab.click("button:has-text('Older')")
        expect(tab.locator("tbody tr")).to_have_count(FIFTY * pages)
    expect(tab.locator("button:has-text('Older')")).to_be_hidden()
    tab.locator("tr[data-id=a-300] a").scroll_into_view_if_needed()
    left = tab.evaluate("scrollY")
    assert left
    tab.click("tr[data-id=a-300] a")
    tab.wait_for_selector("h3")
    assert tab.evaluate("[scrollY, document.activeElement.localName]") == [0, "main"]
    tab.go_back()
    expect(tab.locator("tbody tr")).to_have_count(1000)
    until(lambda: tab.evaluate("scrollY") == left, "where it was")
    view(tab, "agents")
    view(tab, "history")
    expect(tab.locator("tbody tr")).to_have_count(FIFTY)


def test_a_click_meant_for_the_view_before_does_nothing(tab: Any) -> None:
    to_history(tab)
    tab.evaluate("""() => { window.fresh = new Promise((resolve) => {
      const look = () => {
        if (!document.querySelector("h3")) requestAnimationFrame(look);
        else resolve(document.elementFromPoint(300, 300).closest("main"));
      };
      look();
    }); }""")  # fmt: skip
    tab.click("tbody a >> nth=0")
    assert tab.evaluate("window.fresh") is None
    tab.click("main a[href='#history']")  # the control: later it does
    expect(tab.locator("tbody tr")).to_have_count(FIFTY)


@pytest.fixture
def three(daemon: Daemon, token: str, tab: Any) -> list[tuple[str, str]]:
    """Three questions that wait in the list, by action and question."""
    actions = [ask_for_update(daemon, token, f"v{number}", number) for number in (1, 2, 3)]
    expect(tab.locator("li.item")).to_have_count(3)
    return [(one, question_of(daemon, one)) for one in actions]


@pytest.mark.promise(27)
def test_what_is_settled_and_what_is_new_moves_no_other_question(
    daemon: Daemon, token: str, tab: Any, three: list[tuple[str, str]]
) -> None:
    rest = f"li.item button[data-id='{three[1][1]}'], li.item button[data-id='{three[2][1]}']"
    before = tab.evaluate(PLACES, rest)
    daemon.actions("Cancel", pb.ActionId(id=three[0][0]), token=token)
    expect(tab.locator("li.item")).to_have_count(2)
    ask_for_update(daemon, token, "more", 4)
    expect(tab.locator("li.item")).to_have_count(3)
    assert tab.evaluate(PLACES, rest) == before
    assert tab.locator("li.gone").evaluate("one => one.inert")
    view(tab, "agents")
    view(tab, "waiting")
    expect(tab.locator("li.item")).to_have_count(3)
    expect(tab.locator("li.gone")).to_have_count(0)


@pytest.mark.promise(27)
def test_a_no_that_came_with_the_question_denies_nothing(
    daemon: Daemon, tab: Any, three: list[tuple[str, str]]
) -> None:
    early = tab.evaluate("""() => new Promise((resolve) => {
      new MutationObserver((_, watching) => {
        const no = document.querySelector("article button[data-width=no]");
        if (!no) return;
        watching.disconnect();
        no.click();
        resolve(no.disabled);
      }).observe(document.querySelector("main"), { childList: true, subtree: true });
      document.querySelector("li.item button.open").click();
    })""")
    assert early
    assert len(daemon.person("Approvals", pb.ApprovalsRequest()).approvals) == 3
    tab.click("article button[data-width=no]")  # the control: later it does
    expect(tab.locator("li.item")).to_have_count(2)


@pytest.mark.promise(27)
def test_the_buttons_for_several_take_no_click_where_they_have_just_come(
    tab: Any, three: list[tuple[str, str]]
) -> None:
    for place in range(2):
        tab.click(f"li.item button.open >> nth={place}")
        tab.wait_for_selector(f"li.item >> nth={place} >> input:not([disabled])")
    tab.check("li.item input >> nth=0")
    early = tab.evaluate("""() => new Promise((resolve) => {
      new MutationObserver((_, watching) => {
        const deny = [...document.querySelectorAll("main button")].find((one) => one.textContent === "Deny these 2");
        if (!deny) return;
        watching.disconnect();
        resolve(deny.disabled);
      }).observe(document.querySelector("main"), { childList: true, subtree: true });
      document.querySelectorAll("li.item input")[1].focus();
      document.querySelectorAll("li.item input")[1].click();
    })""")
    assert early
    assert tab.evaluate("document.activeElement.dataset.id") == three[1][1]  # who ticks by keyboard goes on there
    tab.click("button:has-text('Deny these 2')")
    expect(tab.locator("li.item")).to_have_count(1)


def test_back_leads_from_a_question_to_the_list(tab: Any, three: list[tuple[str, str]]) -> None:
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.click("li.item button.open >> nth=1")
    expect(tab.locator("article h2")).to_be_visible()
    expect(tab.locator("li.item >> nth=0")).to_be_hidden()
    tab.go_back()
    expect(tab.locator("li.item >> nth=0")).to_be_visible()
    expect(tab.locator("article")).to_have_count(0)
    tab.go_forward()
    expect(tab.locator("article")).to_contain_text(three[1][1])
    tab.reload()
    expect(tab.locator("article")).to_contain_text(three[1][1])


def test_a_link_keeps_the_focus_when_a_question_comes(daemon: Daemon, token: str, tab: Any) -> None:
    tab.focus("nav a[href='#rules']")
    ask_for_update(daemon, token, "comes")
    expect(tab.locator("nav a >> nth=0")).to_have_text("Waiting (1)")
    assert tab.evaluate("document.activeElement.hash") == "#rules"


def test_a_question_that_was_settled_while_the_daemon_was_away_is_open_no_more(
    daemon: Daemon, token: str, tab: Any, three: list[tuple[str, str]]
) -> None:
    tab.click("li.item button.open >> nth=0")
    tab.wait_for_selector("article button.yes:not([disabled])")
    tab.route("**/call/Person/WatchApprovals", lambda route: route.abort())
    daemon.restart()
    expect(tab.locator("#connection")).not_to_be_empty()
    daemon.actions("Cancel", pb.ActionId(id=three[0][0]), token=token)
    tab.unroute("**/call/Person/WatchApprovals")
    expect(tab.locator("main")).to_contain_text("This question is settled")
    expect(tab.locator("article")).to_have_count(0)


@pytest.mark.parametrize("away", [False, True])
def test_no_passphrase_is_asked_for_once_its_question_is_settled(
    daemon: Daemon, token: str, tab: Any, three: list[tuple[str, str]], away: bool
) -> None:
    tab.click("li.item button.open >> nth=1")
    tab.click("article button[data-width]:not([disabled]):has-text('session')")
    expect(tab.locator("#passphrase")).to_be_focused()
    tab.keyboard.type("half of")
    daemon.actions("Cancel", pb.ActionId(id=three[0][0]), token=token)
    expect(tab.locator("li.item")).to_have_count(2)
    expect(tab.locator("#passphrase")).to_have_value("half of")  # the control: another question's goes on
    if away:
        tab.route("**/call/Person/WatchApprovals", lambda route: route.abort())
        daemon.restart()
        expect(tab.locator("#connection")).not_to_be_empty()
    daemon.actions("Cancel", pb.ActionId(id=three[1][0]), token=token)
    if away:
        tab.unroute("**/call/Person/WatchApprovals")
    expect(tab.locator("#proof")).to_be_hidden()
    expect(tab.locator("main")).to_contain_text("This question is settled")
    assert tab.input_value("#passphrase") == ""
    tab.click("li.item button.open >> nth=0")
    tab.click("article button[data-width]:not([disabled]):has-text('session')")
    expect(tab.locator("#proof")).to_be_visible()  # the control: the next one is asked for


@pytest.mark.promise(87)
def test_a_passkey_that_is_cancelled_says_that_nothing_was_done(daemon: Daemon, tab: Any) -> None:
    tab.evaluate("""() => {
      PublicKeyCredential.parseRequestOptionsFromJSON = (options) => options;
      navigator.credentials.get = () => Promise.reject(new DOMException("Not allowed.", "NotAllowedError"));
    }""")
    history = to_history(tab)
    history.actions[0] |= {"can_undo": True}
    tab.route("**/call/Passkeys/Challenge", lambda route: route.fulfill(json={"options_json": "{}"}))
    refused = {"problem": {"code": "passkey", "message": "Confirm it.", "next_step": "", "waiting": "w-1"}}
    tab.route("**/call/Actions/Revert", lambda route: route.fulfill(status=403, json=refused))
    tab.click("tbody button:has-text('Undo')")
    expect(tab.locator("#said")).to_have_text("The passkey wasn't used, and nothing was done: Not allowed.")


def test_another_link_opens_the_page_in_a_tab_whose_session_has_ended(tab: Any, web: WebPage) -> None:
    tab.evaluate("""() => fetch("/leave", { method: "POST", body: "{}", headers: {
      "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem("goex-session")}` } })""")
    expect(tab.locator("main")).to_contain_text("This tab has no session.")
    tab.goto(web.link())
    expect(tab.locator("main")).to_have_text("Nothing waits for you.")
    assert tab.evaluate("location.hash") == "#waiting"
