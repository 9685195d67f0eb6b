"""The page's process: listens on localhost until it is ended, and says where it is by one-time links."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn

from goex.http_connections import BACKLOG, Connection
from goex.loopback import listening_on_localhost
from goex.page_address import OLD_HOST, fresh_origin
from goex.paths import Paths
from goex.web.access import Access, KeyFile, link_code
from goex.web.app import Page
from goex.web.daemon_calls import DaemonCalls

# Others may have set 180 cookies of 4 KiB for `goex.localhost`, which is all that a browser keeps, and it sends them.
LARGEST_HEAD = 3 * 2**18


def link(origin: str, key: bytes) -> str:
    """Return a link that opens the page there once, within a minute."""
    return f"{origin}/#{link_code(key, time.time(), origin)}"


async def serve(
    paths: Paths, port: int, public: str, say: Callable[[str], None], *, at: str = "", old: bool = False
) -> None:
    """Serve the page until the process is ended. `port`: on this machine (0: a free one is taken). `public`: where else
    it is reached, or "". `say` is told the first link, to the origin `at` or to this machine's: with `old`, plain
    localhost. Raises Unavailable."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(one) for one in listening_on_localhost(port)]
        port = listeners[0].getsockname()[1]
        here = f"http://{OLD_HOST}:{port}" if old else fresh_origin(port)
        key = KeyFile(paths.web_key).take(here)
        calls = DaemonCalls(paths.user_socket)
        config = uvicorn.Config(
            Page(here, public, Access(key), calls).app(),
            http=Connection,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            backlog=BACKLOG,
            ws="none",
            lifespan="off",
            log_config=None,  # what uvicorn says goes the way of all that libraries say
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,  # a tab that listens doesn't keep the process from ending
        )
        say(link(at or here, key))
        try:
            await uvicorn.Server(config).serve(sockets=listeners)
        finally:
            await calls.close()
