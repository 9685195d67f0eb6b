"""A task on the page: made less by the person, signed so by their passkey, and never made more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import Scene, scene
from tests.adversarial.test_tasks import line, post, task
from tests.goex.web.test_passkeys import Keyed
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import Journey
from tests.support.page import CHROMIUM, needs_browser, page_of, question_of
from tests.support.ports import free_port
from tests.support.waiting import SECONDS

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = [needs_browser, pytest.mark.docker]


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def desk(sandbox_image: str, port: int) -> Iterator[Scene]:
    with scene(config=f"[web]\nport = {port}\n") as made:
        yield made


@pytest.fixture(scope="module")
def keyed(browser: Any, desk: Scene, port: int) -> Iterator[Keyed]:
    with page_of(desk.daemon, port) as web:
        made = Keyed(browser, web.link())
        made.register()
        yield made
        made.context.close()


@pytest.fixture
def journey(desk: Scene, keyed: Keyed) -> Iterator[Journey]:
    """A task of two lines, open on the page."""
    desk.new_agent()
    made = desk.ask(task(line(times=3), line("conversations.history", None, times=0)))
    question = made.asked()
    keyed.tab.click("nav a:has-text('Waiting')")
    keyed.tab.click(f"button.open[data-id='{question.id}']")
    keyed.tab.wait_for_selector("article button.yes:not([disabled])")
    yield made
    desk.daemon.person("DenyAll", pb.DenyAllRequest(agent=desk.agent))


def grants(desk: Scene, id: str) -> dict[str, pb.GrantView]:
    found = desk.daemon.person("Grants", pb.GrantsRequest()).grants
    return {grant.scope: grant for grant in found if grant.why == id and grant.width == "task"}


@pytest.mark.promise(88)
@pytest.mark.promise(92)
def test_a_passkey_signs_the_task_as_the_person_narrowed_it(desk: Scene, keyed: Keyed, journey: Journey) -> None:
    tab = keyed.tab
    assert tab.is_disabled("li.item[aria-current] input[type=checkbox]"), "answered where it can be narrowed"
    tab.fill("[aria-label='How often, line 1']", "1")
    tab.uncheck("label:has-text('conversations.history') input")
    tab.fill("[aria-label='For how many minutes']", "5")
    tab.click("article button.yes")
    expect(tab.locator("#proof-what")).to_have_text("Line 1 at most 1 time. Not line 2. For 5 minutes.")
    tab.click("#proof-passkey")
    expect(tab.locator("main")).to_contain_text("settled: approved")
    assert journey.finished().action.state == "done"
    (given,) = grants(desk, journey.action_id).values()
    assert (given.scope, given.times) == ("chat.postMessage", 1)
    assert desk.unasked(post())
    assert not desk.unasked(post())

    rows = desk.daemon.person("Log", pb.LogRequest(limit=200)).rows
    facts = [json.loads(row.facts_json) for row in rows if row.action_id == journey.action_id and row.kind == "grant"]
    (signed,) = [json.loads(each["assertion"]["statement"]) for each in facts if "assertion" in each]
    assert (signed["narrowed"], signed["expires_seconds"]) == ([[0, 1], [1, 0]], 300)
    assert desk.daemon.goex("log", "--verify").returncode == 0


def test_as_it_is_it_allows_what_was_shown(desk: Scene, keyed: Keyed, journey: Journey) -> None:
    keyed.tab.click("article button.yes")
    expect(keyed.tab.locator("#proof-what")).to_have_text("All of it, as it was asked for.")
    keyed.tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    keyed.tab.click("#proof-yes")
    assert journey.finished().action.state == "done"
    assert {name: one.times for name, one in grants(desk, journey.action_id).items()} == {
        "chat.postMessage": 3, "conversations.history": 0,
    }  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("field", "value"),
    [("How often, line 1", "4"), ("How often, line 1", ""), ("How often, line 1", "0"), ("For how many minutes", "31")],
)
def test_the_page_sends_nothing_that_would_be_more(
    desk: Scene, keyed: Keyed, journey: Journey, field: str, value: str
) -> None:
    keyed.tab.fill(f"[aria-label='{field}']", value)
    keyed.tab.click("article button.yes")
    assert not keyed.tab.locator("#proof").is_visible()
    keyed.tab.fill(f"[aria-label='{field}']", "1")
    keyed.tab.click("article button.yes")  # the control
    assert keyed.tab.locator("#proof").is_visible()
    keyed.tab.click("#proof-no")
    assert not grants(desk, journey.action_id)


@pytest.mark.promise(92)
def test_the_daemon_takes_no_more_from_a_page_that_was_changed(desk: Scene, keyed: Keyed, journey: Journey) -> None:
    """Signed for more; signed for less and sent for more; more in the form, with its limits taken away."""
    tab = keyed.tab
    script = """async (id) => {
      const { call } = await import("/daemon.js"), { sign } = await import("/proof.js");
      const { digest } = (await call("Person/Approvals", { approval_id: id })).approvals[0];
      const base = { approval_id: id, approve: true, width: "once", digest };
      const less = { narrowed: [{ line: 0, times: 1 }] };
      const sent = async (request, signed) => {
        try { await call("Person/Decide", { ...request, assertion_json: await sign({ decide: signed }) }); }
        catch (error) { return error.message; }
        return "approved";
      };
      const told = [];
      const line = (line, times) => ({ narrowed: [{ line, times }] });
      for (const more of [line(0, 4), line(7, 1), { expires_seconds: 7200 }])
        told.push(await sent({ ...base, ...more }, { ...base, ...more }));
      for (const other of [{}, line(0, 2), { ...less, expires_seconds: 60 }])
        told.push(await sent({ ...base, ...other }, { ...base, ...less }));
      return told;
    }"""
    question = tab.get_attribute("li.item[aria-current] button.open", "data-id")
    told = tab.evaluate(script, question)
    assert "approved" not in told, told
    tab.evaluate("for (const one of document.querySelectorAll('article input')) one.removeAttribute('max')")
    tab.fill("[aria-label='How often, line 1']", "4")
    tab.click("article button.yes")
    tab.click("#proof-passkey")
    expect(tab.locator("#proof-problem")).to_contain_text("never larger")
    tab.click("#proof-no")
    assert not grants(desk, journey.action_id)
    assert desk.approval(question).state == "pending"


@pytest.mark.promise(5)
def test_two_browsers_that_narrow_it_otherwise_settle_it_once(
    desk: Scene, keyed: Keyed, journey: Journey, browser: Any, port: int
) -> None:
    other = browser.new_context().new_page()
    other.set_default_timeout(SECONDS * 1000)
    other.goto(desk.daemon.goex("web", "--no-browser").stdout.strip())
    other.click(f"button.open[data-id='{question_of(desk.daemon, journey.action_id)}']")
    tabs = {"1": keyed.tab, "2": other}
    for times, tab in tabs.items():
        tab.wait_for_selector("article button.yes:not([disabled])")
        tab.fill("[aria-label='How often, line 1']", times)
        tab.uncheck("label:has-text('conversations.history') input")
        tab.click("article button.yes")
        tab.fill("#passphrase", APPROVAL_PASSPHRASE)
    for tab in tabs.values():
        tab.evaluate("document.getElementById('proof-yes').click()")
    for tab in tabs.values():
        expect(tab.locator("main")).to_contain_text("settled: approved")
    assert journey.finished().action.state == "done"
    rows = desk.daemon.person("Log", pb.LogRequest(limit=200)).rows
    assert len([row for row in rows if row.action_id == journey.action_id and row.kind == "grant"]) == 1
    (given,) = grants(desk, journey.action_id).values()
    # The one that came second is told so, and leaves.
    first, second = (tabs.pop(str(given.times)), *tabs.values())
    expect(first.locator("#proof")).to_be_hidden()
    expect(second.locator("#proof-problem")).not_to_be_empty()
    second.click("#proof-no")
    other.context.close()
    done = [desk.unasked(post()) for _ in range(3)]
    assert done == [True] * given.times + [False] * (3 - given.times)
    assert given.times in (1, 2)
