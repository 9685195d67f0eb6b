"""An independent look at a tree, sharing no code with the runtime: what undo must bring back, all of it."""

# By paths and os calls, as the runtime does not do it.
# ruff: noqa: PTH101, PTH118, PTH123, PTH208, PTH115

from __future__ import annotations

import os
import stat
from pathlib import Path

Photo = dict[bytes, tuple[object, ...]]


def photo(top: Path) -> Photo:
    """Path -> type and mode, owner, group, mtime, content, attributes, the names of the same inode."""
    found: Photo = {}
    names: dict[int, list[bytes]] = {}
    root = os.fsencode(top)
    todo = [root]
    opened: list[tuple[bytes, int]] = []
    while todo:
        path = todo.pop()
        at = os.lstat(path)
        content: object = None
        # An owner who isn't root can't read what its mode closes. A change of mode leaves the times.
        if os.geteuid() == at.st_uid != 0 and _closed(at.st_mode):
            os.chmod(path, stat.S_IMODE(at.st_mode) | 0o700)
            opened.append((path, stat.S_IMODE(at.st_mode)))
        if stat.S_ISDIR(at.st_mode):
            todo += [os.path.join(path, name) for name in os.listdir(path)]
        elif stat.S_ISREG(at.st_mode):
            with open(path, "rb") as file:
                content = file.read()
        elif stat.S_ISLNK(at.st_mode):
            content = os.readlink(path)
        else:
            content = at.st_rdev
        try:
            attributes = {
                name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)
            }
        except OSError:
            attributes = {}
        if not stat.S_ISDIR(at.st_mode):
            names.setdefault(at.st_ino, []).append(path[len(root) :])
        found[path[len(root) :]] = (at.st_mode, at.st_uid, at.st_gid, at.st_mtime_ns, content, attributes, at.st_ino)
    for path, mode in reversed(opened):
        os.chmod(path, mode)
    return {
        path: (*facts[:6], tuple(sorted(names.get(facts[6], ()))))  # type: ignore[call-overload]
        for path, facts in found.items()
    }


def without_left(top: Path) -> Photo:
    """`photo`, without what an undo moved aside."""
    return {path: facts for path, facts in photo(top).items() if not path.startswith(b"/.goex-left-")}


def _closed(mode: int) -> bool:
    needed = 0o500 if stat.S_ISDIR(mode) else 0o400
    return (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and mode & needed != needed
