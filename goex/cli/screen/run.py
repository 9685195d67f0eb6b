"""Opening the screen on a terminal.

Rules: only on the controlling terminal, with a person at it. Nothing of the environment can press a key, load a driver
or log what is typed (`TEXTUAL_*`), and what was typed before the screen opened is thrown away.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from goex.cli.output import fold
from goex.cli.prompt import Terminal, with_presence
from goex.cli.question_text import Line
from policies.errors import Denied, GoexError

if TYPE_CHECKING:
    from goex.client import Client
    from goex.paths import Paths

T = TypeVar("T")


def run(client: Client, paths: Paths) -> None:
    """Show the screen until the person leaves it. Raises Denied without a terminal."""
    terminal = own_terminal()
    for name in [name for name in os.environ if name == "TEXTUAL" or name.startswith("TEXTUAL_")]:
        del os.environ[name]  # read when textual is imported, which is only now
    from goex.cli.screen.app import ApproveScreen
    from goex.client import running

    def back() -> bool:
        return running(paths.user_socket)

    def present(call: Callable[[str], T], what: str) -> T:
        failed: GoexError | None = None
        with app.suspend(), _interruptible():  # which doesn't come back by itself when something is raised in it
            try:
                terminal.write(Line(""))
                for piece in fold(what, terminal.size[0]):
                    terminal.write(Line(piece, "bold"))
                return with_presence(call, terminal)
            except GoexError as error:
                failed = error
            except KeyboardInterrupt:
                failed = Denied("It was interrupted, so nothing was decided.")
            except Exception as error:  # noqa: BLE001  the screen must come back, whatever it was
                failed = GoexError(f"Internal error: {type(error).__name__}.", next_step="See: goex log")
            finally:
                # What was typed while the daemon looked at it would press keys of the screen.
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        raise failed

    app = ApproveScreen(client, present=present, back=back)
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    app.run()
    if app.return_code:
        raise GoexError("Internal error: the screen was closed.", next_step="Decide with: goex approve")


def own_terminal() -> Terminal:
    """The controlling terminal, when input, output and errors all are it. Raises Denied otherwise."""
    terminal = Terminal.find()
    try:
        for fd in (0, 1, 2):
            os.tcgetpgrp(fd)  # fails for a terminal that isn't this process's own
    except OSError:
        terminal = None
    if terminal is None or os.environ.get("TERM", "dumb") == "dumb":
        raise Denied(
            "The screen needs a terminal with a person at it.",
            next_step="Run it in a terminal of your own, or see what waits with: goex approve",
        )
    return terminal


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C interrupts at once, as it does for every other question, and not when the screen gets to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
