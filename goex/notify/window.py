"""What runs in the window that a click opens: one `goex` command, and then a pause, so that its last words are read."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command in sys.argv and wait for Enter. Ends with the command's exit status."""
    from goex.cli.main import main as goex

    status: int | str | None = 0
    try:
        goex()
    except SystemExit as ended:
        status = ended.code
    with suppress(OSError, KeyboardInterrupt):
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        os.write(fd, b"\nEnter closes this window. ")
        os.read(fd, 1024)
    sys.exit(status)
