"""Opening an address in the person's browser, where its command line shows the address to nobody."""

from __future__ import annotations

import html
import os
import queue
import secrets
import threading
from contextlib import ExitStack, suppress
from pathlib import Path


def open_in_browser(file: Path, address: str) -> bool:
    """Open an address in the person's browser by `file`, which is made anew. Returns whether a browser was started.

    The browser is given a file that only this person can read and that leads there: its command line, which each user
    of the machine can see, would show a one-time code before it is used.
    """
    import webbrowser

    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={html.escape(address)}">\n'
    try:
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as made:
            made.write(page.encode())
        return webbrowser.open(file.as_uri())
    except (webbrowser.Error, OSError):
        return False


def lead_browser(file: Path, address: str, ending: ExitStack, wait: float = 0) -> bool:
    """Open an address as `open_in_browser` does, also in a browser from snap or Flatpak, which can't read such a file:
    it is led there once by an address of this machine, until `ending`. Only where the system doesn't say whose a
    connection is, a file is used. `wait`: seconds that it may take to come, for whoever ends when this returns.

    The path keeps out those who share the network with the person, and not their processes' list.
    """
    import webbrowser

    from vault.oauth.loopback import Listener, Page, tells_users

    if not tells_users():
        if not wait:  # else it may be read after that
            ending.callback(file.unlink, missing_ok=True)
        return open_in_browser(file, address)
    left = [Page(status=302, heading="Going on", text="Your browser is led on.", location=address)]
    visits: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()

    def answer(_query: str) -> Page:
        try:
            page = left.pop()
        except IndexError:
            return Page(status=410, heading="Opened already", text="The address is where you started this, too.")
        visits.put(threading.current_thread())
        return page

    try:
        listener = Listener(f"/{secrets.token_urlsafe(16)}", answer, own_alone=True)
        ending.callback(listener.close)
        opened = webbrowser.open(listener.url)
    except (webbrowser.Error, OSError):
        return False
    if opened and wait:
        with suppress(queue.Empty):
            visits.get(timeout=wait).join(wait)  # until it was told, too
    return opened
