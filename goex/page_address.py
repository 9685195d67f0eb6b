"""Where the person's page runs, for whoever may only know that: the file of its key is locked for as long as it does.

The key itself is never read here.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

KEY_BYTES = 32  # before the port's two


def page_port(key_file: Path) -> int | None:
    """Return the port of the page that runs; None when none does, whoever may listen there."""
    try:
        handle = os.open(key_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        held = os.pread(handle, 2, KEY_BYTES)
        return int.from_bytes(held) if len(held) == 2 else None
    finally:
        os.close(handle)
    return None
