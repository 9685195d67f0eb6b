"""Reading a program in whichever language it is written."""

from __future__ import annotations

from mapper.code.sent_requests import Seen
from policies.actions import Language


def read(language: Language, program: str, seen: Seen | None = None) -> Seen:
    """What the program sends, as far as it can be known: added to `seen`, by default to one that is empty. Never
    raises for what the program holds."""
    seen = Seen() if seen is None else seen
    if language == "python":
        from mapper.code.python import read_python

        read_python(program, seen, ())
    elif language == "javascript":
        from mapper.code.javascript import read_javascript

        read_javascript(program, seen)
    else:
        from mapper.code.shell import read_shell

        read_shell(program, seen)
    return seen
