"""What the processes of one run of tests share: each thing is made once, by whichever of them needs it first."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` has filled. Whoever changes what is in it copies it first."""
    place = run_folder()
    place.mkdir(mode=0o700, exist_ok=True)
    folder = place / name
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = place / f"{name}.making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(mode=0o700)
            make(making)
            making.rename(folder)
    return folder


def run_folder() -> Path:
    """Where it lies; `tests/conftest.py` removes it with the run."""
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return Path(tempfile.gettempdir()) / f"goex-run-{run}"
