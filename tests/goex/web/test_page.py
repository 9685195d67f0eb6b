"""The page in a real browser: what waits is answered on it, seen in its history, and taken back."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.led_browser import led_browser
from tests.support.page import (
    CHROMIUM,
    WebPage,
    add_shop,
    ask_for_update,
    needs_browser,
    page_of,
    status_of,
    until_view,
)
from tests.support.waiting import SECONDS, until

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser


def pending(daemon: Daemon) -> list[Any]:
    return list(daemon.person("Approvals", pb.ApprovalsRequest()).approvals)


def allow(tab: Any, passphrase: str = APPROVAL_PASSPHRASE) -> None:
    tab.click("article button.yes")
    tab.fill("#passphrase", passphrase)
    tab.click("#proof-yes")


def test_a_write_is_allowed_seen_in_the_history_and_undone(daemon: Daemon, shop: Path, token: str, tab: Any) -> None:
    expect(tab.locator("main")).to_have_text("Nothing waits for you.")
    ask_for_update(daemon, token, "sent")
    # Not inner_text: an item's text isn't laid out before the next frame.
    expect(tab.locator("li.item button.open")).to_contain_text("“bot” wants to change orders")
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    assert "“bot” wants to change" in tab.inner_text("article h2")
    assert "UPDATE orders SET status = 'sent' WHERE id = 1" in tab.inner_text("article pre >> nth=0").replace('"', "")
    allow(tab)
    expect(tab.locator("#said")).to_have_text("Allowed.")
    expect(tab.locator("main")).to_contain_text("settled: approved")
    tab.click("nav a:has-text('History')")
    tab.wait_for_selector("button:has-text('Undo')")
    until(lambda: status_of(shop) == "sent")
    tab.click("tbody a >> nth=0")
    expect(tab.locator("main")).to_contain_text("Nothing that came later.")
    assert "[object" not in tab.inner_text("main")
    tab.click("button:has-text('Undo') >> nth=0")
    tab.wait_for_selector("li.item button.open")
    tab.click("li.item button.open")
    tab.wait_for_selector("article h2")
    tab.click("article button.yes")
    if tab.locator("#proof").is_visible():
        tab.fill("#passphrase", APPROVAL_PASSPHRASE)
        tab.click("#proof-yes")
    expect(tab.locator("#said")).to_have_text("undo: done.")
    until(lambda: status_of(shop) == "new")


def test_a_wrong_passphrase_allows_nothing_and_says_so(daemon: Daemon, shop: Path, token: str, tab: Any) -> None:
    before = status_of(shop)
    action = ask_for_update(daemon, token, "wrong")
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    allow(tab, "not the passphrase")
    expect(tab.locator("#proof-problem")).not_to_be_empty()
    assert tab.input_value("#passphrase") == ""
    assert [one.action_id for one in pending(daemon)] == [action]
    tab.click("#proof-no")
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")
    assert not pending(daemon)
    assert status_of(shop) == before


def test_the_history_that_is_shown_follows_what_happens(daemon: Daemon, shop: Path, token: str, tab: Any) -> None:
    tab.click("nav a:has-text('History')")
    tab.wait_for_selector("table")
    action = ask_for_update(daemon, token, "x" * 400)
    tab.click(".newer button:has-text('1 new')")
    tab.wait_for_selector(f"tr[data-id='{action}']:has-text('asking')")
    expect(tab.locator(f"tr[data-id='{action}'] a")).to_contain_text("xx… (")  # that there is more of it
    daemon.person("DenyAll", pb.DenyAllRequest(agent="bot"))
    tab.wait_for_selector(f"tr[data-id='{action}']:has-text('denied')")
    expect(tab.locator(f"tr[data-id='{action}']")).to_have_count(1)


@pytest.mark.promise(86)
def test_the_browser_is_led_to_a_question_and_no_other_user_sees_the_link(
    daemon: Daemon, shop: Path, token: str, web: WebPage, browser: Any, tmp_path: Path
) -> None:
    script, opened = led_browser(tmp_path)
    action = ask_for_update(daemon, token, "led")
    (one,) = pending(daemon)
    env = {**daemon.env, "DISPLAY": ":0", "BROWSER": f"{script} %s"}
    subprocess.run([GOEX, "web", "--json"], env=env, cwd=daemon.home, stdout=subprocess.DEVNULL, check=True)
    assert not opened.exists(), "a program wants the link alone"
    done = subprocess.run(
        [GOEX, "web", "--question", one.id], env=env, cwd=daemon.home, capture_output=True, text=True, check=True
    )
    given, first, again, elsewhere = opened.read_text().splitlines()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}", given), "the link itself stands on the command line"
    assert first == f"302 {done.stdout.strip()}/{one.id}"
    assert (again, elsewhere) == ("410 None", "404 None"), "who comes later is led there too"
    made = browser.new_context().new_page()
    made.set_default_timeout(SECONDS * 1000)
    made.goto(f"{web.link()}/{one.id}")
    made.wait_for_selector("article h2:has-text('“bot” wants to change orders')")
    assert made.evaluate("location.hash") == f"#waiting/{one.id}"
    made.context.close()
    assert daemon.person_action(action) == "asking"
    daemon.person("DenyAll", pb.DenyAllRequest(agent="bot"))


def test_a_browser_that_stays_in_the_foreground_gets_the_page(tmp_path: Path) -> None:
    """As one does that Python doesn't know: whoever opens it waits for its end."""
    script, opened = led_browser(tmp_path)
    script.write_text(
        script.read_text()
        + "there = urllib.parse.urlsplit(said[1].split()[1])\n"
        + "link = http.client.HTTPConnection('127.0.0.1', there.port, timeout=300)\n"
        + "link.request('GET', '/', headers={'Host': there.netloc})\n"
        + f"os.rename({str(opened)!r}, {str(opened)!r} + str(link.getresponse().status))\n"
    )
    with Daemon() as other:
        page = subprocess.Popen(
            [GOEX, "web", "--port", "0"], env={**other.env, "DISPLAY": ":0", "BROWSER": f"{script} %s"},
            cwd=other.home, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until(Path(f"{opened}200").exists, "the page")
        finally:
            page.send_signal(signal.SIGINT)
            page.wait(SECONDS)


def test_a_page_that_is_killed_before_the_answer_settles_nothing_and_loses_nothing(browser: Any) -> None:
    def opened(page: WebPage) -> Any:
        made = browser.new_context().new_page()
        made.set_default_timeout(SECONDS * 1000)
        made.goto(page.first)
        made.click("li.item button.open")
        made.wait_for_selector("article button.yes:not([disabled])")
        return made

    with Daemon() as other:
        shop, agent = add_shop(other), other.add_agent("bot")
        action = ask_for_update(other, agent, "kept")
        with page_of(other) as page:
            tab = opened(page)
            page.end(signal.SIGKILL)
            allow(tab)
            expect(tab.locator("#proof-problem")).to_contain_text("Start it again: goex web")
            tab.context.close()
        assert [one.action_id for one in pending(other)] == [action]
        assert status_of(shop) == "new"
        with page_of(other) as page:
            tab = opened(page)
            allow(tab)
            expect(tab.locator("#said")).to_have_text("Allowed.")
            until(lambda: status_of(shop) == "kept")
            tab.context.close()
        assert not pending(other)


@pytest.mark.promise(27)
def test_nothing_is_allowed_before_its_end_was_on_the_screen(daemon: Daemon, token: str, tab: Any) -> None:
    value = "\n".join(f"line {number}" for number in range(300))
    ask_for_update(daemon, token, value)
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    assert tab.is_disabled("article button.yes")
    assert tab.is_disabled("li.item input[type=checkbox]")
    tab.evaluate("(box => { box.scrollTop = box.scrollHeight })(document.querySelector('article pre'))")
    tab.wait_for_selector("article button.yes:not([disabled])")
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(27)
def test_an_end_below_the_screen_was_not_on_it(daemon: Daemon, token: str, tab: Any) -> None:
    """On a phone that lies on its side all of a payload is in its box, and the box's end isn't on the screen."""
    tab.set_viewport_size({"width": 740, "height": 200})
    ask_for_update(daemon, token, "\n".join(f"line {number}" for number in range(3)))
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    below = "(box => box.scrollHeight <= box.clientHeight && box.getBoundingClientRect().bottom > innerHeight)"
    assert tab.evaluate(f"{below}(document.querySelector('article pre'))")
    tab.wait_for_timeout(1500)  # three times as long as a question stands before it can be allowed
    assert tab.is_disabled("article button.yes")
    tab.evaluate("document.querySelector('article pre').scrollIntoView({block: 'end'})")
    tab.wait_for_selector("article button.yes:not([disabled])")  # the control: then it was
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")


def test_several_are_allowed_together_each_bound_to_what_was_shown(
    daemon: Daemon, shop: Path, token: str, tab: Any
) -> None:
    for order, value in ((1, "first"), (2, "second")):
        ask_for_update(daemon, token, value, order)
    expect(tab.locator("li.item")).to_have_count(2)
    for place in range(2):
        tab.click(f"li.item button.open >> nth={place}")
        tab.wait_for_selector("article button.yes:not([disabled])")
        tab.wait_for_selector(f"li.item >> nth={place} >> input:not([disabled])")
        tab.check(f"li.item input >> nth={place}")
    tab.click("button:has-text('Allow these 2')")
    tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    tab.click("#proof-yes")
    expect(tab.locator("#said")).to_have_text("Allowed 2.")
    expect(tab.locator("main")).to_contain_text("Nothing waits")
    until(lambda: (status_of(shop, 1), status_of(shop, 2)) == ("first", "second"))


@pytest.mark.promise(26)
def test_what_an_agent_writes_is_text_on_the_page(daemon: Daemon, token: str, tab: Any) -> None:
    hostile = "<img src=x onerror=document.title=1><script>document.title=2</script></pre>"
    ask_for_update(daemon, token, hostile)
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    assert "<img src=x onerror=document.title=1>" in tab.inner_text("article pre >> nth=0")
    assert tab.locator("main img, main script").count() == 0
    assert "GoEx" in tab.title()
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")


def test_every_view_can_be_opened_and_used_at_390_pixels(tab: Any) -> None:
    tab.set_viewport_size({"width": 390, "height": 800})
    for view in ("waiting", "history", "grants", "rules", "accounts", "agents", "system"):
        tab.goto(tab.url.partition("#")[0] + f"#{view}")
        until_view(tab, view)
        expect(tab.locator("main")).not_to_be_empty()
        assert tab.locator("main .problem").count() == 0, view
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, view
        said = tab.inner_text("main")
        assert not {"null", "undefined", "[object"} & set(said.replace("[object", " [object ").split()), view


def test_a_daemon_that_is_restarted_is_found_again(daemon: Daemon, token: str, tab: Any) -> None:
    daemon.restart()
    action = ask_for_update(daemon, token, "later")
    tab.wait_for_selector("li.item button.open")
    daemon.actions("Cancel", pb.ActionId(id=action), token=token)
    expect(tab.locator("main")).to_contain_text("Nothing waits")


@pytest.mark.promise(27)
def test_a_click_that_came_with_the_question_allows_nothing(daemon: Daemon, token: str, tab: Any) -> None:
    """A second click of a double click lands where the question just came to stand."""
    action = ask_for_update(daemon, token, "early")
    tab.wait_for_selector("li.item button.open")
    early = tab.evaluate("""() => new Promise((resolve) => {
      new MutationObserver((_, watching) => {
        const yes = document.querySelector("article button.yes");
        if (!yes) return;
        watching.disconnect();
        yes.click();
        resolve(yes.disabled);
      }).observe(document.querySelector("main"), { childList: true, subtree: true });
      document.querySelector("li.item button.open").click();
    })""")
    assert early
    assert not tab.locator("#proof").is_visible()
    tab.wait_for_selector("article button.yes:not([disabled])")
    tab.click("article button.yes")
    assert tab.locator("#proof").is_visible()  # the control: later it does
    tab.keyboard.press("Escape")
    assert not tab.locator("#proof").is_visible()
    assert [one.action_id for one in pending(daemon)] == [action]
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(27)
@pytest.mark.parametrize("came", ["window focus", "window pageshow", "document visibilitychange"])
def test_a_click_meant_for_a_window_in_front_allows_nothing(daemon: Daemon, token: str, tab: Any, came: str) -> None:
    """A site's window or tab in front ends at the first click of a double click, and the second lands on the page."""
    action = ask_for_update(daemon, token, "behind")
    tab.click("li.item button.open")
    tab.wait_for_selector("article button.yes:not([disabled])")
    hit = """dispatched => {
      const [at, event] = dispatched.split(" ");
      if (event) globalThis[at].dispatchEvent(new Event(event));
      const box = document.querySelector("article button.yes").getBoundingClientRect();
      return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).closest("button")?.className;
    }"""
    assert tab.evaluate(hit, "") == "yes"  # the control
    assert tab.evaluate(hit, came) is None
    tab.click("article button.yes")  # later it does
    assert tab.locator("#proof").is_visible()
    tab.keyboard.press("Escape")
    assert [one.action_id for one in pending(daemon)] == [action]
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(27)
def test_a_view_that_was_left_takes_no_click(daemon: Daemon, token: str, tab: Any) -> None:
    """It stands until the next is ready, whose answer is held here."""
    action = ask_for_update(daemon, token, "left")
    tab.click("li.item button.open")
    tab.wait_for_selector("article button.yes:not([disabled])")
    held: list[Any] = []
    tab.route("**/call/Person/ListAgents", lambda route: held.append(route))
    with tab.expect_request("**/call/Person/ListAgents"):
        tab.click("nav a:has-text('Agents')")
    box = tab.locator("article button[data-width=no]").bounding_box()
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    held[0].continue_()
    until_view(tab, "agents")
    assert [one.action_id for one in pending(daemon)] == [action]


def test_a_view_that_is_drawn_while_something_is_done_shows_that_it_was_done(daemon: Daemon, tab: Any) -> None:
    """As when the daemon comes back while a passkey is asked for."""
    daemon.add_agent("going")
    tab.click("nav a:has-text('Agents')")
    until_view(tab, "agents")
    card = tab.locator("main li.card", has_text="going")
    held: list[Any] = []
    tab.route("**/call/Person/RemoveAgent", lambda route: held.append(route))
    with tab.expect_request("**/call/Person/RemoveAgent"):
        card.locator("button").click()
    with tab.expect_response("**/call/Person/ListAgents"):
        tab.evaluate("window.dispatchEvent(new Event('hashchange'))")
    until_view(tab, "agents")
    expect(card.locator("button")).to_be_enabled()  # it is drawn anew
    held[0].continue_()
    expect(card).to_have_count(0)


@pytest.mark.promise(27)
def test_by_keyboard_alone_and_enter_is_no_yes(daemon: Daemon, token: str, tab: Any) -> None:
    action = ask_for_update(daemon, token, "keys")
    tab.locator("li.item button.open").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("article button.yes:not([disabled])")
    for _ in range(3):
        tab.keyboard.press("Enter")  # the heading has the focus, not an answer
    assert [one.action_id for one in pending(daemon)] == [action]
    for _ in range(12):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.textContent") == "Deny":
            break
    tab.keyboard.press("Enter")
    expect(tab.locator("main")).to_contain_text("denied")


@pytest.mark.promise(86)
def test_the_page_is_in_no_frame_and_takes_nothing_of_another_page(browser: Any, web: WebPage, tmp_path: Path) -> None:
    other = browser.new_context().new_page()
    other.route("http://evil.example/**", lambda route: route.fulfill(
        content_type="text/html", body=f"<iframe src={web.origin}/></iframe><p id=out></p>"))  # fmt: skip
    other.goto("http://evil.example/")
    framed = other.frames[1]
    framed.wait_for_load_state()
    assert framed.url.startswith("chrome-error:") or framed.locator("nav").count() == 0
    assert framed.locator("text=Waiting").count() == 0
    read = f"""async () => {{
      const call = () => fetch('{web.origin}/call/Person/Status', {{method: 'POST', body: '{{}}'}});
      try {{ await (await call()).text(); return 'read'; }}
      catch (error) {{ return 'refused'; }}
    }}"""
    assert other.evaluate(read) == "refused"
    other.context.close()


@pytest.mark.promise(86)
def test_a_link_opens_one_tab_and_its_code_leaves_the_address(browser: Any, web: WebPage) -> None:
    link = web.link()
    context = browser.new_context()
    first, second = context.new_page(), context.new_page()
    first.goto(link)
    first.wait_for_selector("nav a")
    assert first.url == f"{web.origin}/#waiting"
    second.goto(link)
    expect(second.locator("main")).to_contain_text("used already")
    assert context.cookies() == []
    context.close()


def test_two_tabs_that_race_settle_it_once(daemon: Daemon, shop: Path, token: str, browser: Any, web: WebPage) -> None:
    ask_for_update(daemon, token, "raced")
    contexts = [browser.new_context() for _ in range(2)]
    tabs = [context.new_page() for context in contexts]
    for tab in tabs:
        tab.set_default_timeout(SECONDS * 1000)
        tab.goto(web.link())
        tab.click("li.item button.open")
        tab.wait_for_selector("article button.yes:not([disabled])")
        tab.click("article button.yes")
        tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    for tab in tabs:
        tab.evaluate("document.getElementById('proof-yes').click()")
    for tab in tabs:
        expect(tab.locator("main")).to_contain_text("settled: approved")
    assert not pending(daemon)
    until(lambda: status_of(shop) == "raced")
    for context in contexts:
        context.close()


def test_a_yes_and_a_no_at_once_settle_it_once(
    daemon: Daemon, shop: Path, token: str, browser: Any, web: WebPage
) -> None:
    before = status_of(shop)
    action = ask_for_update(daemon, token, "either")
    contexts = [browser.new_context() for _ in range(2)]
    yes, no = (context.new_page() for context in contexts)
    for tab in (yes, no):
        tab.set_default_timeout(SECONDS * 1000)
        tab.goto(web.link())
        tab.click("li.item button.open")
        tab.wait_for_selector("article button.yes:not([disabled])")
    yes.click("article button.yes")
    yes.fill("#passphrase", APPROVAL_PASSPHRASE)
    # Whichever comes first: the other's page may show by then that it was settled, and have no button left.
    yes.evaluate("document.getElementById('proof-yes').click()")
    no.evaluate("document.querySelector('article button[data-width=no]')?.click()")
    for tab in (yes, no):
        expect(tab.locator("main")).to_contain_text("settled: ")
    until(lambda: daemon.actions("Get", pb.ActionId(id=action), token=token).state in ("done", "denied"))
    done = daemon.actions("Get", pb.ActionId(id=action), token=token).state == "done"
    assert status_of(shop) == ("either" if done else before)
    rows = [row for row in daemon.person("Log", pb.LogRequest(limit=500)).rows if row.action_id == action]
    assert len([row for row in rows if row.kind == "grant"]) == int(done)
    for context in contexts:
        context.close()
