"""How a secret gets into a command.

Rules: from the controlling terminal without echo, from stdin when that is a pipe or a file, or from a descriptor that
the caller opened; never from argv or the environment, which other processes can read. One final newline isn't part of
a secret.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from goex.cli.grant_bounds import TRIES
from goex.cli.prompt import Terminal
from goex.cli.question_text import Line
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


Rule = Callable[[str], None]  # raises InvalidInput for a passphrase that isn't taken


def new_passphrase(name: str, *, other: str = "", of: str = "") -> Rule:
    """The rules of a new passphrase, as the vault has them; it must also differ from `other`, which is `of`'s."""

    def check(value: str) -> None:
        from vault.keys import check_passphrase, normal_passphrase

        check_passphrase(Secret(value), name)
        if other and normal_passphrase(Secret(value)) == normal_passphrase(Secret(other)):
            raise InvalidInput(f"The {name} must differ from {of}.", next_step="Choose two different ones.")

    return check


def typed_twice(terminal: Terminal, question: str, what: str, rule: Rule = lambda _: None) -> str:
    """A new passphrase, typed twice. What breaks the rule is said before the second time, and that and two that differ
    are asked for again. Raises InvalidInput after three times."""
    for left in reversed(range(TRIES)):
        value = terminal.secret(question)
        failed = InvalidInput(f"{what} was typed in two different ways.", next_step="Type it again.")
        try:
            if not value:
                raise InvalidInput(f"{what} is empty.", next_step="Type it.")
            rule(value)
        except InvalidInput as error:
            failed = error
        else:
            if terminal.secret("The same again: ") == value:
                return value
        if left:
            terminal.write(Line(str(failed), "warn"))
    raise failed


def read_passphrase(
    question: str,
    *,
    what: str,
    confirm: bool = False,
    descriptor: int = -1,
    rule: Rule = lambda _: None,
) -> str:
    """The next line of `descriptor` where one is given, or of stdin when it is piped; else typed without echo: with
    `confirm` twice, a new one that keeps `rule`. Raises InvalidInput.
    """
    if descriptor >= 0:
        value = _line(descriptor, what)
    elif not sys.stdin.isatty():
        value = sys.stdin.buffer.readline(MAX_SECRET + 1).removesuffix(b"\n").removesuffix(b"\r")
    else:
        terminal = _terminal(what)
        if confirm:
            return typed_twice(terminal, question, what, rule)
        value = terminal.secret(question).encode("utf-8")
    try:
        said = _checked(value, what).reveal().decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} isn't UTF-8.", next_step="Use another one.") from None
    if confirm:
        rule(said)
    return said


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
        raise InvalidInput(
            f"{what} is needed, and there is no terminal to type it at.", next_step="Pipe it to stdin instead."
        )
    return terminal


def _checked(value: bytes, what: str) -> Secret:
    if not value:
        raise InvalidInput(f"{what} is empty.", next_step="Type it, or pipe it to stdin.")
    if len(value) > MAX_SECRET:
        raise InvalidInput(f"{what} is longer than {MAX_SECRET} bytes.", next_step="That can't be the right thing.")
    return Secret(value)
