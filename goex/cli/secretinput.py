"""How a secret gets into a command.

Rules: from the controlling terminal without echo, from stdin when that is a pipe or a file, or from a descriptor that
the caller opened; never from argv or the environment, which other processes can read. One final newline isn't part of
a secret.
"""

from __future__ import annotations

import os
import sys

from goex.cli.prompt import Line, Terminal
from policies.errors import InvalidInput
from vault.secret import Secret

MAX_SECRET = 1_000_000


def read_secret(question: str, *, what: str) -> Secret:
    """All of stdin when it is piped, else one line typed without echo. Raises InvalidInput when it is empty."""
    if sys.stdin.isatty():
        value = _terminal(what).secret(question).encode("utf-8")
    else:
        value = sys.stdin.buffer.read(MAX_SECRET + 1)
        value = value.removesuffix(b"\n").removesuffix(b"\r")
    return _checked(value, what)


def read_passphrase(
    question: str, *, what: str, confirm: bool = False, empty: bool = False, descriptor: int = -1
) -> str:
    """The next line of `descriptor` where one is given, or of stdin when it is piped; else typed without echo (twice
    with `confirm`). `empty` allows none. Raises InvalidInput.
    """
    if descriptor >= 0:
        value = _line(descriptor, what)
    elif not sys.stdin.isatty():
        value = sys.stdin.buffer.readline(MAX_SECRET + 1).removesuffix(b"\n").removesuffix(b"\r")
    else:
        terminal = _terminal(what)
        value = terminal.secret(question).encode("utf-8")
        if confirm and value and terminal.secret("The same again: ").encode("utf-8") != value:
            terminal.write(Line("These differ.", "warn"))
            raise InvalidInput(f"{what} was typed in two different ways.", next_step="Run it again.")
    if empty and not value:
        return ""
    try:
        return _checked(value, what).reveal().decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} isn't UTF-8.", next_step="Use another one.") from None


def _line(descriptor: int, what: str) -> bytes:
    """The descriptor's next line. Byte by byte, so that the next line stays for the next question."""
    line = bytearray()
    try:
        if os.isatty(descriptor):
            raise InvalidInput(
                f"{what} isn't read from a terminal that way: it would show.", next_step="Leave --passphrase-fd out."
            )
        while len(line) <= MAX_SECRET and (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
            line += byte
    except OSError as error:
        raise InvalidInput(
            f"{what} can't be read from descriptor {descriptor}: {error.strerror}.",
            next_step="Open it for reading, like: --passphrase-fd 3 3< FILE",
        ) from None
    return bytes(line).removesuffix(b"\r")


def _terminal(what: str) -> Terminal:
    terminal = Terminal.controlling()
    if terminal is None:
        raise InvalidInput(f"{what} can't be asked for: there is no terminal.", next_step="Pipe it to stdin instead.")
    return terminal


def _checked(value: bytes, what: str) -> Secret:
    if not value:
        raise InvalidInput(f"{what} is empty.", next_step="Type it, or pipe it to stdin.")
    if len(value) > MAX_SECRET:
        raise InvalidInput(f"{what} is longer than {MAX_SECRET} bytes.", next_step="That can't be the right thing.")
    return Secret(value)
