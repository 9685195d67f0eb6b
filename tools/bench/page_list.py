"""`web.first_paint_ms`: from following a link to the page until its list of 1,000 questions is on the screen, in a
headless Chromium. The floor is a bare page with as many lines, from a static server.

`web.update_p50_ms`: from asking for one more action until its question is in that list. The floor is the same at a gRPC
client that watches.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from goex.client import Client
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from goex.web.access import KeyFile
from goex.web.server import link
from policies.errors import Unavailable
from tests.support.daemon import Daemon
from tests.support.page import CHROMIUM, add_shop, ask_for_update, page_of
from tools.bench.measure import Row, in_turn, row

NAME = "web.first_paint_ms"
UPDATE = "web.update_p50_ms"
_AGENTS = 10


async def measure(questions: int = 1000, rounds: int = 10) -> tuple[Row, ...]:
    """Measure both. Raises Unavailable without Chromium."""
    if not CHROMIUM:
        raise Unavailable("There is no Chromium.", next_step="Install the package chromium-headless-shell.")
    from playwright.async_api import async_playwright

    with (
        Daemon(config="[ask]\nseconds = 3600\n") as daemon,
        page_of(daemon),
        _bare(daemon.home, questions) as bare,
    ):
        paths = Paths.from_env(daemon.env)
        add_shop(daemon)
        tokens = [daemon.add_agent(f"agent-{number}") for number in range(_AGENTS)]
        for number in range(questions):
            await asyncio.to_thread(ask_for_update, daemon, tokens[number % _AGENTS], f"v{number}")
        running = KeyFile(paths.web_key).of_running()
        assert running is not None
        key, origin = running
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])

            async def shown(address: str) -> Any:
                tab = await (await browser.new_context()).new_page()
                await tab.goto(address)
                await _count(tab, questions)
                return tab

            async def ours() -> None:
                await (await shown(link(origin, key))).context.close()

            async def theirs() -> None:
                await (await shown(bare)).context.close()

            paints = await in_turn(ours, theirs, rounds=rounds, seconds=60)
            tab = await shown(link(origin, key))
            updates = await _updates(daemon, tokens[0], tab, questions, rounds)
            await browser.close()
    return (row(NAME, paints[0], "a bare page", paints[1]), row(UPDATE, updates[0], "a gRPC client", updates[1]))


async def _updates(daemon: Daemon, token: str, tab: Any, questions: int, rounds: int) -> tuple[Any, Any]:
    number = 0

    async def asked() -> str:
        nonlocal number
        number += 1
        return await asyncio.to_thread(ask_for_update, daemon, token, f"more{number}")

    async def gone(action: str) -> None:
        await asyncio.to_thread(daemon.actions, "Cancel", pb.ActionId(id=action), token=token)
        await _count(tab, questions)

    async def ours() -> None:
        action = await asked()
        await _count(tab, questions + 1)
        await gone(action)

    with Client(daemon.user_socket) as client:
        watched = client.stream("Person/WatchApprovals", pb.ApprovalsRequest(brief=True), pb.Approval)
        for _ in range(questions):
            next(watched)

        async def theirs() -> None:
            action = await asked()
            while (await asyncio.to_thread(next, watched)).action_id != action:
                pass
            await gone(action)

        timings = await in_turn(ours, theirs, rounds=rounds, seconds=60)
        watched.cancel()
    return timings


async def _count(tab: Any, wanted: int) -> None:
    await tab.wait_for_selector(f"li.item >> nth={wanted - 1}")
    await tab.wait_for_selector(f"li.item >> nth={wanted}", state="detached")


@contextmanager
def _bare(folder: Path, lines: int) -> Iterator[str]:
    """A page with as many lines, served from a folder of its own."""
    place = folder / "bare"
    place.mkdir()
    items = "".join(
        f"<li class=item>agent wants to change orders in the database shop, {n}.</li>" for n in range(lines)
    )
    (place / "index.html").write_text(f"<!doctype html><title>bare</title><ol>{items}</ol>")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(place)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
