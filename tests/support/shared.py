"""What the processes of one run of tests share: each thing is made once, by whichever of them needs it first."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

RUN = "GOEX_TEST_RUN"
"""The variable that names the run's folder. `tests/conftest.py` makes it and removes it; who is started inherits it."""


def once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the run that `make` has filled. Whoever changes what is in it copies it first."""
    place = Path(os.environ[RUN])
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
