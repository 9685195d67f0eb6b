"""The page's process: listens on localhost until it is ended, and says where it is by one-time links."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn

from goex.loopback import listening_on_localhost
from goex.paths import Paths
from goex.web.access import Access, KeyFile, link_code
from goex.web.app import Page
from goex.web.daemon_calls import DaemonCalls


def link(port: int, key: bytes) -> str:
    """Return a link that opens the page once, within a minute."""
    return f"http://localhost:{port}/#{link_code(key, time.time())}"


def running_link(paths: Paths) -> str:
    """Return a link to this person's page that runs already; "" when none does."""
    found = KeyFile(paths.web_key).of_running()
    return link(port=found[1], key=found[0]) if found else ""


async def serve(paths: Paths, port: int, public_url: str, say: Callable[[str], None]) -> None:
    """Serve the page until the process is ended. `say` is told the first link. Raises Unavailable."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(one) for one in listening_on_localhost(port)]
        port = listeners[0].getsockname()[1]
        key = KeyFile(paths.web_key).take(port)
        origins = (f"http://localhost:{port}", *([public_url] if public_url else ()))
        calls = DaemonCalls(paths.user_socket)
        config = uvicorn.Config(
            Page(origins, Access(key), calls).app(),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,  # a tab that listens doesn't keep the process from ending
        )
        say(link(port, key))
        try:
            await uvicorn.Server(config).serve(sockets=listeners)
        finally:
            await calls.close()
