"""Drives a command on a pseudo-terminal of its own, as a person would: waits for words, types lines.

Rules: every wait has a time-out, and what was on the screen is in the error. The command is
the leader of a session whose controlling terminal this is, so that getpass and /dev/tty work. Colours and cursor
movements are taken out before anything is compared.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support import command

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>()])")
_CUT_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$")


class TerminalError(AssertionError):
    """What was waited for didn't come. The text holds the screen."""


class Terminal:
    """One command on its terminal. A context manager: killed on exit when it still runs.

    `shown` gets every piece of output as it comes (with its escapes), for somebody who watches.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        size: tuple[int, int] = (60, 160),  # rows, columns
        shown: Callable[[str], None] | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._shown = shown
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._raw = ""
        self._at = 0  # how much of `text` earlier calls of `expect` have passed
        self._open = True
        self._screen, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        try:
            self._process = command.start(
                self._argv, (terminal, terminal, terminal), env=env or os.environ, folder=cwd or Path.cwd()
            ) or subprocess.Popen(
                # Not preexec_fn: code between fork and exec, in a process with gRPC's threads, may hang.
                ["setsid", "--ctty", *self._argv],
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                env=dict(env) if env is not None else None,
                cwd=cwd,
            )
        except BaseException:
            os.close(self._screen)
            raise
        finally:
            os.close(terminal)

    @property
    def text(self) -> str:
        """Everything that was on the screen so far, without escapes."""
        return _CUT_ESCAPE.sub("", _ESCAPES.sub("", self._raw)).replace("\r\n", "\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    def expect(self, pattern: str, *, seconds: float = 300.0) -> re.Match[str]:
        """Wait until `pattern` (a regular expression) comes after what was expected before. Raises TerminalError."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + seconds
        while True:
            found = wanted.search(self.text, self._at)
            if found:
                self._at = found.end()
                return found
            if not self._open:
                raise TerminalError(f"{self._name} ended and never said {pattern!r}. Its screen:\n{self.text}")
            if not self._read(deadline):
                raise TerminalError(f"{self._name} didn't say {pattern!r} in {seconds:g} s. Its screen:\n{self.text}")

    def type(self, line: str = "") -> None:
        """Type a line and press enter."""
        os.write(self._screen, line.encode() + b"\n")

    def wait(self, *, seconds: float = 300.0) -> int:
        """Wait for the end and return the exit status (negative: a signal). Raises TerminalError."""
        deadline = time.monotonic() + seconds
        while self._open:
            if not self._read(deadline):
                raise TerminalError(f"{self._name} didn't end in {seconds:g} s. Its screen:\n{self.text}")
        try:
            return self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TerminalError(f"{self._name} let go of its terminal and didn't end.") from None

    def hang_up(self) -> None:
        """Close the terminal's other end, as when its window is closed."""
        if self._screen >= 0:
            os.close(self._screen)
            self._screen, self._open = -1, False

    def close(self) -> None:
        """End the command, if it still runs. Idempotent."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self.hang_up()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _name(self) -> str:
        return " ".join((Path(self._argv[0]).name, *self._argv[1:]))

    def _read(self, deadline: float) -> bool:
        """Take in what there is. False: the deadline passed."""
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self._screen], [], [], left)[0]:
            return False
        data = b""
        with contextlib.suppress(OSError):  # EIO: nobody holds the terminal any more
            data = os.read(self._screen, 65536)
        self._open = bool(data)
        piece = self._decode(data, final=not data)
        self._raw += piece
        if self._shown is not None and piece:
            self._shown(piece)
        return True
