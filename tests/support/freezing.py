"""A process that is held: it neither goes on nor ends, until it gets SIGCONT or is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.waiting import until


def freeze(pid: int) -> None:
    """Stop the process, and wait for it: on a busy machine its threads go on for a while after the signal was sent."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: all(_state(task) in "TtZX" for task in Path(f"/proc/{pid}/task").iterdir()), "its stop")


def _state(task: Path) -> str:
    """The state of a thread, one letter (proc(5)); a thread that ended meanwhile is dead."""
    try:
        return task.joinpath("stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
