"""The pairs that failed: each is wrong at most once. A file of their keys, one a line, only ever added to."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FailedPairs:
    """Kept in `path`, mode 0600. All calls block."""

    path: Path

    def has(self, key: str) -> bool:
        """Whether a pair failed. A file that can't be read says so of none: what it names is tried again before use."""
        with suppress(FileNotFoundError):
            return key in self.path.read_text(encoding="utf-8", errors="replace").split()
        return False

    def add(self, key: str) -> None:
        """On disk when it returns. Idempotent."""
        if self.has(key):
            return
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
