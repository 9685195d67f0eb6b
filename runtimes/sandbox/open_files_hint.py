"""What is said of a program that failed for want of open files: a container has fewer than programs are used to.

Rules: what a program prints is untrusted: it makes one fixed sentence be said, and no class of an end be another.
"""

from __future__ import annotations

from runtimes.sandbox.contract import OPEN_FILES, Result

_TAIL = 20_000  # bytes of what was printed that are looked at
_SAID = b"too many open files"  # by the C library, Node and Go alike


def told(result: Result) -> str:
    """The limit, and what to do, as a sentence; "" where that isn't why it failed."""
    if result.exit_code == 0 or not any(_SAID in out[-_TAIL:].lower() for out in (result.stderr, result.stdout)):
        return ""
    return f"A program may have {OPEN_FILES} files and sockets open at once here: open fewer at a time."
