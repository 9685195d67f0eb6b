"""An independent look at a tree, sharing no code with the runtime: what undo must bring back, all of it."""

# By paths and os calls, as the runtime does not do it.
# ruff: noqa: PTH118, PTH123, PTH208, PTH115

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
    while todo:
        path = todo.pop()
        at = os.lstat(path)
        content: object = None
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
    return {
        path: (*facts[:6], tuple(sorted(names.get(facts[6], ()))))
        for path, facts in found.items()  # type: ignore[call-overload]
    }
