"""Where a folder is, by whichever path it is reached: a bind mount or another spelling makes no other one.

Rules: two folders overlap when one is the other or lies in it, by their paths, by device and inode of one and of those
that the other lies in, or by where the two lie in one file system. The last finds what a bind mount takes out of the
middle of a folder. What can't be found out is an error.

That doesn't hold for file systems on a network. Of an NFS mount the kernel says that it begins at the root, wherever on
the server that is, and one folder of a server may have two devices here, where it is mounted with different options.
What lies in two such mounts may be one folder (`may_overlap`): one waits for the other, and they are no two folders of
one action.
"""

# Descriptors, which pathlib knows nothing of.
# ruff: noqa: PTH115, PTH116, PTH120, PTH123

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

_ESCAPE = re.compile(r"\\([0-7]{3})")
# With every `fuse.…`: most are on a network, and of the others nobody knows what they show.
_ON_A_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs", "vboxsf", "lustre", "glusterfs", "beegfs", "fuse"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """What is mounted at `point`, on the mount `parent`: `root`, a path in the file system that the kernel numbers
    `device`."""

    id: str
    parent: str = ""
    device: str
    root: str
    point: str
    kind: str
    options: str

    @property
    def on_a_network(self) -> bool:
        return self.kind in _ON_A_NETWORK or self.kind.startswith("fuse.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Of a folder or file: its path, the device and inode of itself and then of those that it lies in, its file system
    with its path in that, and by which mount it is reached. Of one that isn't there the path alone."""

    path: str
    ids: tuple[tuple[int, int], ...] = ()
    device: str = ""
    within: str = ""
    mount: Mount | None = None

    def overlaps(self, other: Location) -> bool:
        """Whether they are one folder, or one lies in the other."""
        return (
            _nested(self.path, other.path)
            or (self.device == other.device != "" and _nested(self.within, other.within))
            or not {*self.ids[:1]}.isdisjoint(other.ids)
            or not {*other.ids[:1]}.isdisjoint(self.ids)
        )

    def may_overlap(self, other: Location) -> bool:
        """Whether they overlap, or it can't be told."""
        found = [each.mount.id for each in (self, other) if each.mount and each.mount.on_a_network]
        return self.overlaps(other) or (len(found) == 2 and found[0] != found[1])


def locate(path: str, table: Mapping[str, Mount] | None = None) -> Location:
    """Where what is at `path` is now; `table` is what is mounted, where it was read already. Only looks; blocks. Raises
    OSError."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Location(path=path)
    try:
        at = os.fstat(fd)
        number = mount_id(fd)
        real = os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    mount = (mounts() if table is None else table).get(number)
    if mount is None or not inside(real, mount.point):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)  # moved or unmounted just now
    ids = [(at.st_dev, at.st_ino)]
    above = real
    while above != "/":
        above = os.path.dirname(above)
        found = os.stat(above)
        ids.append((found.st_dev, found.st_ino))
    within = _join(mount.root, real[len(mount.point) :])
    return Location(path=path, ids=tuple(ids), device=mount.device, within=within, mount=mount)


def elsewhere(path: str, table: Mapping[str, Mount], *, look: bool = True) -> tuple[str, tuple[str, ...]]:
    """Where the mount begins by which this real path leads, and by which other paths what is there is reached, or would
    be, through other mounts. The table tells, also where GoEx may not look, or nothing answers. `look`: at what is on a
    network, where the table may name more; blocks. Raises OSError."""
    below = {(each.parent, each.point): each for each in table.values() if each.parent in table}
    deep = max((each.point.count("/") for each in table.values()), default=0)
    top = next((each for each in table.values() if each.point == "/" and each.parent not in table), None)
    if top is None:  # as for a process whose root isn't a mount's
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)

    def reached(path: str) -> Mount:
        """By which mount, as the kernel finds it: from the topmost on, the last one over the others."""
        here, parts = top, path.split("/", deep + 1)[: deep + 1]
        for count in range(1, len(parts) + 1):
            while inner := below.get((here.id, "/".join(parts[:count]) or "/")):
                here = inner
        return here

    here = reached(path)
    within = _join(here.root, path[len(here.point) :])
    found = set()
    for each in table.values():
        if each.device == here.device and inside(within, each.root):
            other = _join(each.point, within[len(each.root) :])
            seen = other != path and reached(other) is each  # else something is mounted over it
            if seen and (not look or not each.on_a_network or _may_be_one(path, other)):
                found.add(written(other))
    return written(here.point), tuple(sorted(found))


def _may_be_one(path: str, other: str) -> bool:
    """Whether both lead to one device and inode, or it can't be told."""
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
    except PermissionError:
        return True
    except OSError:
        return False


def _join(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest.lstrip('/')}".rstrip("/") or "/"


def written(path: str) -> str:
    """A path in Unicode, as a plan and rules hold it: a byte that isn't UTF-8 as its escape, so that what is in a
    folder stays in it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def mount_id(fd: int) -> str:
    """The number of the mount by which an open file is reached."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as told:
        (number,) = re.findall(r"^mnt_id:\s*(\d+)$", told.read(), re.MULTILINE)
    return str(number)


def mounts() -> dict[str, Mount]:
    """What is mounted, by the kernel's numbers for it, in the order in which it was."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for line in lines:
            before, _, after = line.rstrip("\n").partition(" - ")
            id, parent, device, root, point, *_ = before.split(" ")
            kind, _, options = after.split(" ", 2)
            at, of = plain(point), plain(root)
            parent = "" if parent == id else parent
            found[id] = Mount(id=id, parent=parent, device=device, root=of, point=at, kind=kind, options=options)
    return found


def plain(written: str) -> str:
    """A path as it is, of what mountinfo writes for it."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), written)


def is_absolute(text: object) -> TypeGuard[str]:
    """Whether that can be the path of a folder, as what is read from a damaged disk may not be."""
    return isinstance(text, str) and text.startswith("/") and "\0" not in text


def _nested(one: str, other: str) -> bool:
    return inside(one, other) or inside(other, one)


def inside(path: str, folder: str) -> bool:
    """Whether a path is that of the folder, or of something in it."""
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")
