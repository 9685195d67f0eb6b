"""axe-core over every view of the page, light and dark, wide and narrow: nothing serious, nothing critical."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide
from tests.support.npm import node_modules
from tests.support.page import CHROMIUM, WebPage, ask_for_update, needs_browser, until_view
from tests.support.waiting import SECONDS

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser
VIEWS = ("waiting", "history", "grants", "rules", "accounts", "agents", "system")


def modules() -> Path:
    """The folder of the checker, installed when it is missing."""
    return node_modules(Path(__file__).parent / "axe", "axe")


@pytest.fixture(scope="module")
def axe() -> str:
    return (modules() / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def questions(daemon: Daemon, shop: Path, token: str) -> Iterator[dict[str, str]]:
    """What the views have to show: an action that ran, a grant, an account, a statement and a task that wait."""
    statement = pb.SqlProgram(database="shop", statements="UPDATE orders SET status = 'seen' WHERE id = 2")
    ran = Journey(daemon, pb.ExecuteRequest(sql=statement), token=token)
    decide(daemon, ran.asked(), width="session")
    assert ran.finished().action.state == "done"
    account = pb.VaultPutRequest(
        service="slack", account="work", secret=b"of-the-tests", passphrase=APPROVAL_PASSPHRASE
    )
    daemon.person("VaultPut", account)
    line = pb.Allowance(
        service="db", method="orders:update", account="shop", arguments_json='{"rows": {"most": 1}}', times=2
    )
    task = Journey(daemon, pb.ExecuteRequest(task=pb.Task(title="Tidy", allows=[line]), detach=True), token=token)
    held = daemon.add_agent("other")
    ask_for_update(daemon, held, "waits")
    waiting = daemon.person("Approvals", pb.ApprovalsRequest()).approvals
    yield {"ran": ran.action_id, "task": task.asked().id, "sql": next(one.id for one in waiting if one.kind == "sql")}
    daemon.person("DenyAll", pb.DenyAllRequest(agent="other"))


def found(tab: Any, axe: str, where: str) -> list[str]:
    """The rules that are broken badly, and by what."""
    if not tab.evaluate("typeof window.axe === 'object'"):
        tab.evaluate(f"(() => {{ {axe} }})()")
    violations = tab.evaluate("async () => (await axe.run(document)).violations")
    assert isinstance(violations, list)
    return [
        f"{where}: {one['id']}: {json.dumps([node['html'] for node in one['nodes']])[:400]}"
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        ("dark", 390),
        pytest.param("light", 390, marks=pytest.mark.thorough),
        pytest.param("dark", 1280, marks=pytest.mark.thorough),
    ],
)
def test_no_view_has_a_serious_barrier(
    browser: Any, web: WebPage, questions: dict[str, str], axe: str, scheme: str, width: int
) -> None:
    # The checker writes styles of its own, which the page's policy refuses.
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.set_default_timeout(SECONDS * 1000)
    tab.goto(web.link())
    tab.wait_for_selector("li.item button.open")
    wrong = []
    for view in (*VIEWS, f"history/{questions['ran']}"):
        tab.evaluate("view => { location.hash = view }", view)
        until_view(tab, view.partition("/")[0])
        wrong += found(tab, axe, view)
    for kind in ("sql", "task"):
        tab.evaluate("view => { location.hash = view }", f"waiting/{questions[kind]}")
        expect(tab.locator(f"li.item[aria-current] button[data-id='{questions[kind]}']")).to_be_attached()
        try:
            expect(tab.locator("article button.yes")).to_be_enabled()
        except AssertionError as error:
            raise AssertionError(f"{kind} can't be allowed: {tab.inner_text('body')}") from error
        tab.click("article summary")
        wrong += found(tab, axe, kind)
        tab.click("article button.yes")
        wrong += found(tab, axe, f"{kind}, asked for presence")
        tab.click("#proof-no")
    # The control: the checker finds what is wrong.
    tab.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any("button-name" in one for one in found(tab, axe, "control"))
    context.close()
    assert not wrong, "\n".join(wrong)
