"""The names in a folder, for a prompt that may hold nothing else of it.

By file descriptors, following no link and entering no repository's inside; bounded, and what is left out is counted.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from policies.display_text import escape
from runtimes.files.folder import open_pinned, resolve

MAX_NAMES = 2_000
MAX_DEPTH = 8
MAX_OPEN = 200  # folders that wait to be read
_INSIDES = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})


def names(folder: str, protected: Sequence[Path]) -> tuple[tuple[str, ...], int]:
    """Paths from the folder, folders with a slash behind them, nearest first; and how many more there are at least.
    Blocks. Raises InvalidInput for a folder that GoEx doesn't work on, Conflict when it is swapped meanwhile."""
    found = resolve(folder, protected=protected)
    waiting = deque([(open_pinned(found.path, found.device, found.inode), "", 0)])
    kept: list[str] = []
    more = 0
    try:
        while waiting:
            fd, prefix, depth = waiting.popleft()
            try:
                for entry in sorted(os.scandir(fd), key=lambda entry: entry.name):
                    below = entry.is_dir(follow_symlinks=False)
                    if len(kept) >= MAX_NAMES:
                        more += 1
                        continue
                    kept.append(escape(prefix + entry.name) + ("/" if below else ""))
                    if not below or entry.name in _INSIDES:
                        continue
                    inside = _opened(fd, entry.name) if depth < MAX_DEPTH and len(waiting) < MAX_OPEN else None
                    if inside is None:
                        more += 1
                    else:
                        waiting.append((inside, f"{prefix}{entry.name}/", depth + 1))
            except OSError:
                more += 1  # a folder that can't be read, or went meanwhile
            finally:
                os.close(fd)
    finally:
        for fd, _, _ in waiting:
            os.close(fd)
    return tuple(kept), more


def _opened(fd: int, name: str) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return None
