"""A full-screen command on a real pseudo-terminal, read through a terminal emulator (pyte)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from tests.support.terminal import Terminal, TerminalError


class Glass:
    """What a person sees of a command, and the keys that they press. A context manager."""

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, size: tuple[int, int] = (24, 80)
    ) -> None:
        self.raw = ""
        self._screen = pyte.Screen(size[1], size[0])
        self._stream = pyte.Stream(self._screen)
        self.terminal = Terminal(argv, env=env, cwd=cwd, size=size, shown=self._shown)

    def _shown(self, piece: str) -> None:
        self.raw += piece
        # Not known to the emulator, which would print what follows: requests of modes and of the terminal's name.
        self._stream.feed(re.sub(r"\x1b\[[>=<?][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1bP.*?\x1b\\", _kept, piece))

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def until(self, wanted: str | Callable[[str], bool], *, seconds: float = 30.0) -> str:
        """Wait until that stands on the screen; returns the screen."""
        deadline = time.monotonic() + seconds
        while True:
            self.terminal._read(time.monotonic() + 0.1)
            if wanted in self.text if isinstance(wanted, str) else wanted(self.text):
                return self.text
            if time.monotonic() > deadline or not self.terminal._open:
                raise TerminalError(f"{wanted!r} never stood on the screen:\n{self.text}")

    def rest(self, seconds: float) -> str:
        """Look on for a while; returns the screen."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.terminal._read(time.monotonic() + 0.1)
        return self.text

    def press(self, keys: str) -> None:
        os.write(self.terminal._screen, keys.encode())

    def __enter__(self) -> Glass:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminal.close()


def _kept(found: re.Match[str]) -> str:
    return found[0] if re.fullmatch(r"\x1b\[\?[0-9;]*[hl]", found[0]) else ""
