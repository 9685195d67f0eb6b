"""A shell on a terminal, with a command in it: what is typed and not read by the command, the shell gets."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

from tests.support.daemon import GOEX, Daemon
from tests.support.terminal import Terminal

PROMPT = "READY> "


class Shell(Terminal):
    """`sh` with a prompt of its own. Lines that reach it are told as `sh: …: not found`."""

    def __init__(self, daemon: Daemon) -> None:
        env = {**daemon.env, "PS1": PROMPT, "ENV": "", "PATH": f"{GOEX.parent}:{daemon.env['PATH']}"}
        super().__init__(["/bin/sh", "-i"], env=env, cwd=daemon.home)
        self.expect(PROMPT)

    def goex(self, *arguments: str) -> None:
        self.type(shlex.join(["goex", *arguments]))

    def back(self) -> str:
        """Wait for the shell's prompt, and that the terminal echoes; returns what came since."""
        begin = self._at
        self.expect(PROMPT)
        self.type("echo 'is' 'heard'")
        self.expect("echo 'is' 'heard'")
        self.expect("is heard")
        self.expect(PROMPT)
        return self.text[begin:]

    def press(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command that runs in the shell."""
        os.kill(self.child(), number)

    def child(self) -> int:
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()[0])
