"""Attacks by text that would begin a line of its own on the page, and look like GoEx's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tests.support.page import CHROMIUM, ask_for_update, needs_browser, view

if CHROMIUM:
    from playwright.sync_api import expect
pytestmark = needs_browser

WIDTHS = [390, 1280]
# A word that ends one row, and what is to begin the next, wherever a row ends.
PADS = {
    "blanks": "sent" + " " * 300 + "Unasked by bot",
    "one row": "sent" + " " * 80 + "Unasked by bot",
    "words": "sent " * 60,
}

# Of each text in `box`: the left edge of each of its rows, in the window; of the first row of a line, and of the rest.
ROWS = """box => {
  const first = [], later = [];
  for (const line of box.matches(".line") ? [box] : box.querySelectorAll(".line")) {
    const text = document.createRange();
    text.selectNodeContents(line);
    const rows = [...text.getClientRects()].filter((one) => one.width > 0);
    const top = Math.min(...rows.map((one) => one.top));
    for (const one of rows) (one.top < top + 2 ? first : later).push(one.left);
  }
  return { first: [...new Set(first.map(Math.round))], later: [...new Set(later.map(Math.round))] };
}"""
# All text of `box` is in a line of its own block.
LOOSE = """box => {
  const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), loose = [];
  while (texts.nextNode()) if (!texts.currentNode.parentElement.closest(".line")) loose.push(texts.currentNode.data);
  return loose;
}"""

# What a browser takes for one sign, which it breaks nowhere, however long it is.
SIGNS = {
    "marks": "\u0915" + "\u093e" * 300,
    "consonants": "\u0915\u094d" * 200 + "\u0915",
    "Korean": "\u1100" * 300,
    "Thai": "\u0e01" + "\u0e33" * 300,
    "skins": "\U0001f44d" + "\U0001f3fb" * 300,
}
# The lines of which a text stands outside.
OUTSIDE = """() => [...document.querySelectorAll("main .line")]
  .filter((line) => line.clientWidth && line.scrollWidth > line.clientWidth + 1)
  .map((line) => line.textContent.slice(0, 40))"""


def check_rows(box: Any) -> None:
    """No row but a line's first begins where lines begin, and the bar is drawn beside the others."""
    assert box.evaluate(LOOSE) == []
    rows = box.evaluate(ROWS)
    assert rows["later"], "nothing was broken: the attack didn't take place"
    assert min(rows["later"]) >= min(rows["first"]) + 10, rows


def check_bar(box: Any) -> None:
    """The bar is drawn, left of all text."""
    drawn = box.locator(".line >> nth=0").evaluate("""line => {
      const style = getComputedStyle(line), at = parseFloat(style.backgroundPositionX);
      return { image: style.backgroundImage, left: line.getBoundingClientRect().left,
        ends: at + parseFloat(style.backgroundSize) };
    }""")
    rows = box.evaluate(ROWS)
    assert drawn["image"] != "none" and drawn["ends"] > 0
    assert min(rows["first"] + rows["later"]) > drawn["left"] + drawn["ends"]


@pytest.mark.sampled(3)
@pytest.mark.promise(26)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("pad", PADS)
def test_no_statement_begins_a_line_of_its_own(daemon: Daemon, token: str, tab: Any, pad: str, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    ask_for_update(daemon, token, PADS[pad])
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    box = tab.locator("article pre >> nth=0")
    check_rows(box)
    check_bar(box)
    tab.click("article summary")
    check_rows(tab.locator("article details pre >> nth=0"))
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    # The control: without the indent it would look like a line.
    box.locator(".line").evaluate_all("lines => { for (const one of lines) one.style.textIndent = 0; }")
    with pytest.raises(AssertionError):
        check_rows(box)


@pytest.mark.promise(26)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_title_of_a_task_draws_a_line_that_it_doesnt_have(daemon: Daemon, token: str, tab: Any, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    title = "Tidy" + " " * (105 if width == 1280 else 40) + "1. db.orders:select as shop, once: rows at most 1."
    bounds = json.dumps({"rows": {"any": True}})
    folder = pb.Allowance(service="files", method="files.read", account="/x/" + "a 1. db.orders:select " * 4 + "b")
    update = pb.Allowance(service="db", method="orders:update", account="shop", times=1000, arguments_json=bounds)
    task = pb.Task(title=title, seconds=3600, allows=[update, folder])
    for event in daemon.actions("Execute", pb.ExecuteRequest(task=task, detach=True), token=token):
        if event.HasField("asking"):
            break
    tab.click("li.item button.open")
    tab.wait_for_selector("article button.yes:not([disabled])")
    check_rows(tab.locator("article pre >> nth=0"))
    assert tab.locator("article fieldset .line").evaluate_all("lines => lines.map((one) => one.textContent)") == [
        "1. db.orders:update as shop",
        "2. files.files.read as /x/" + "a 1. db.orders:select " * 4 + "b",
    ]
    tab.click("article button.yes")
    assert tab.locator("#proof-what").evaluate(LOOSE) == []


@pytest.mark.promise(26)
def test_what_was_asked_for_begins_no_line_in_the_proof_nor_in_the_history(
    daemon: Daemon, token: str, tab: Any
) -> None:
    tab.set_viewport_size({"width": 390, "height": 800})
    ask_for_update(daemon, token, PADS["blanks"])
    tab.click("li.item button.open")
    tab.wait_for_selector("article button[data-width=session]:not([disabled])")
    tab.click("article button[data-width=session]")
    check_rows(tab.locator("#proof-what"))
    tab.keyboard.press("Escape")
    tab.click("article button:has-text('Deny')")
    expect(tab.locator("main")).to_contain_text("denied")
    view(tab, "history")
    for cell in (3, 4):
        assert tab.locator(f"tbody tr >> nth=0 >> td:nth-child({cell})").evaluate(LOOSE) == []
    tab.click("tbody a >> nth=0")
    tab.wait_for_selector("main h3:has-text('The plan')")
    check_rows(tab.locator("main pre >> nth=0"))
    for place in ("main h2", "main dl dd", "main > div > ol.list > li .line"):
        for found in tab.locator(place).all():
            assert found.evaluate(LOOSE) == [], place


@pytest.mark.promise(26)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("sign", SIGNS)
def test_no_sign_however_long_stands_outside_of_its_box(
    daemon: Daemon, token: str, tab: Any, sign: str, width: int
) -> None:
    """It would be approved unseen, and would hide what GoEx says beside it."""
    tab.set_viewport_size({"width": width, "height": 800})
    ask_for_update(daemon, token, SIGNS[sign])
    tab.click("li.item button.open")
    tab.wait_for_selector("article")
    assert SIGNS[sign] in tab.locator("article pre >> nth=0").text_content()  # nothing was put into it
    assert tab.evaluate(OUTSIDE) == []
    # The control: without what was put between its pieces it does.
    tab.evaluate(
        "() => { for (const one of document.querySelectorAll('main wbr')) one.remove(); document.body.normalize(); }"
    )
    assert tab.evaluate(OUTSIDE) != []
    tab.click("article button:has-text('Deny')")
    view(tab, "history")
    assert tab.evaluate(OUTSIDE) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
