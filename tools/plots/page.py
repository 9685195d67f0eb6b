"""Takes docs/page.png (1280 pixels wide) and docs/page-narrow.png (390): the page with a question that waits.

`python -m tools.plots.page`: needs Chromium.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.page import add_shop, ask_for_update, chromium, page_of

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main() -> int:
    """Take both pictures."""
    with Daemon() as daemon, page_of(daemon) as page, chromium() as browser:
        add_shop(daemon)
        for agent, value, order in (("claude-code", "sent", 1), ("claude-code", "returned", 2), ("reports", "new", 2)):
            ask_for_update(daemon, daemon.add_agent(f"{agent}-{value}"), value, order)
        for name, width, height in (("page.png", 1280, 720), ("page-narrow.png", 390, 780)):
            context = browser.new_context(viewport={"width": width, "height": height})
            tab = context.new_page()
            tab.goto(page.link())
            tab.click("li.item button.open >> nth=0")
            tab.wait_for_selector("article button.yes:not([disabled])")
            tab.screenshot(path=str(DOCS / name))
            context.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
