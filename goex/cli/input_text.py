"""Text that a command takes from its arguments, a file or stdin, within the bounds of a request."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from policies.errors import InvalidInput

MAX_TEXT = 1_000_000  # bytes


def read_file(path: Path, most: int) -> bytes:
    """At most `most` bytes of a file, or of a pipe that something writes to. Raises InvalidInput."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISFIFO(mode):
                os.set_blocking(file.fileno(), True)  # opened, it isn't waited for; what is written to it is
            elif not stat.S_ISREG(mode):
                raise InvalidInput(f"{path} isn't a file.", next_step="Name a file.")
            data = file.read(most)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.", next_step="Name another file.") from error
    if not data and stat.S_ISFIFO(mode):
        raise InvalidInput(f"{path} is a pipe, and nothing was written to it.", next_step="Name a file.")
    return data


def read_text(path: Path, what: str) -> str:
    """UTF-8 text from a file, or from stdin for "-". Raises InvalidInput."""
    try:
        data = sys.stdin.buffer.read(MAX_TEXT + 1) if str(path) == "-" else read_file(path, MAX_TEXT + 1)
        return input_text(data.decode("utf-8"), what)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what} isn't UTF-8 text.", next_step="Save it as UTF-8.") from error


def input_text(text: str, what: str) -> str:
    """`text`, when a request can hold it. Raises InvalidInput, which names it as `what`."""
    if len(text.encode("utf-8", "surrogateescape")) > MAX_TEXT:
        raise InvalidInput(f"{what} is longer than {MAX_TEXT} bytes.", next_step="Make it shorter.")
    if "\0" in text:
        raise InvalidInput(f"{what} holds a NUL byte.", next_step="Remove it.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} isn't UTF-8 text.", next_step="Write it in UTF-8.") from None
    return text
