"""Shell programs."""

from __future__ import annotations

from mapper.code.sending import Seen


def read_shell(program: str, seen: Seen) -> None:
    """Add to `seen` what a shell program sends."""
    seen.note("The shell program isn't read.")
