"""What a person does at a terminal: reads what is asked, answers, types a passphrase when it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.support.terminal import Terminal

QUESTION = r"[^\n]*\? more[^\n]*\[no\]: "
_MORE = r"Enter shows more[^:]*: "
_PASSPHRASE = r"Approval passphrase: "
_SETTLED = r"Allowed\.|Denied\.|Left open\.|settled elsewhere|goex: .*"


def answer(terminal: Terminal, said: str, passphrase: str, *, seconds: float = 300.0) -> str:
    """Answer one question on `terminal` and return everything that it showed. Pages are paged through."""
    asked = False
    while True:
        found = terminal.expect(
            "|".join((QUESTION, _MORE, _PASSPHRASE, *([_SETTLED] if asked else []))), seconds=seconds
        )
        if found[0].endswith("[no]: "):
            asked = True
            terminal.type(said)
        elif found[0].startswith("Enter shows"):
            terminal.type()
        elif found[0].startswith("Approval passphrase"):
            terminal.type(passphrase)
        else:
            return terminal.text


def approve(
    goex: Sequence[str],
    approval: str,
    passphrase: str,
    *,
    env: Mapping[str, str],
    said: str = "once",
    shown: Callable[[str], None] | None = None,
) -> str:
    """Run `goex approve ID` on a terminal of its own and give one answer. Returns the screen."""
    with Terminal([*goex, "approve", approval], env=env, shown=shown) as terminal:
        answer(terminal, said, passphrase)
        terminal.wait()
        return terminal.text
