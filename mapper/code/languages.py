"""Reading a program in whichever language it is written."""

from __future__ import annotations

from typing import Literal

from mapper.code.sent_requests import Seen


def read(language: Literal["python", "shell"], program: str, seen: Seen | None = None) -> Seen:
    """What the program sends, as far as it can be known: added to `seen`, by default to one that is empty. Never
    raises for what the program holds."""
    seen = Seen() if seen is None else seen
    if language == "python":
        from mapper.code.python import read_python

        read_python(program, seen)
    else:
        from mapper.code.shell import read_shell

        read_shell(program, seen)
    return seen
