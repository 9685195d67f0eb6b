"""Opening an address in the person's browser, where its command line shows the address to nobody."""

from __future__ import annotations

import html
import os
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
