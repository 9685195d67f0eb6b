"""Where the person's page runs, for whoever may only know that: the file of its key is locked for as long as it does.

Rules: each page that starts has an origin of its own, at a new name below `goex.localhost`, so that no browser has kept
anything there of what others served at its port before. Passkeys are for the name that all of these have in common. The
key itself is never read here.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from policies.regular_file import open_regular

KEY_BYTES = 32  # before the origin
HOST = "goex.localhost"  # browsers take any name below localhost for this machine, and ask nobody
OLD_HOST = "localhost"  # where every page was at first, for passkeys from then
TERMINAL = "terminal://"  # with such a host the origin of who has a security key at the terminal, as no page has
_LONGEST = 300


def fresh_origin(port: int) -> str:
    """Return the origin of a page that starts now."""
    return f"http://{secrets.token_hex(8)}.{HOST}:{port}"


def passkey_host(origin: str) -> str:
    """Return the host that passkeys at an origin are for."""
    host = urlsplit(origin).hostname or ""
    return HOST if host.endswith(f".{HOST}") else host


def page_origin(key_file: Path) -> str:
    """Return the origin of the page that runs; "" when none does, whoever may listen there."""
    try:
        handle = open_regular(key_file)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        held = os.pread(handle, _LONGEST, KEY_BYTES).decode(errors="replace")
        return held if held.startswith("http://") else ""  # an earlier version's page wrote its port
    finally:
        os.close(handle)
    return ""
