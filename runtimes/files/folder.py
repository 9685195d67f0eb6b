"""Which folders GoEx works on, and how one is opened.

Rules:

* A folder is named by its absolute path; its last part is never a link. What was resolved is what is shown, granted
  and mounted, and it is pinned by device and inode.
* System folders, whole homes, GoEx's own folders, and whatever contains one of these, are refused, by whichever path
  they are reached.
* Nobody but root, GoEx's user and the folder's owner may be able to swap a part of its path.
* Nothing may be mounted below it: what is mounted there is another folder.
* GoEx running without root works on its own user's folders alone.
"""

# Descriptors and bytes, which pathlib knows nothing of.
# ruff: noqa: PTH111, PTH120, S108

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Conflict, InvalidInput
from runtimes.files.location import Mount, elsewhere, inside, locate, mount_id, mounts, plain, written

# Inside these nothing is worked on.
_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)
_SYSTEM_VAR = ("/var/backups", "/var/cache", "/var/lib", "/var/lock", "/var/log", "/var/mail", "/var/run", "/var/spool")
# These themselves are not.
_TOPS = frozenset(
    {"/", "/home", "/lost+found", "/media", "/mnt", "/opt", "/root", "/snap", "/srv", "/tmp", "/var", "/var/tmp"}
)
# File systems that keep change times as the walk's shortcut needs it. tmpfs doesn't: a file that is mapped into
# memory can be written there without any of its times being moved.
_KEEPING = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "zfs", "bcachefs"})
# File systems that make up modes and owners as they are mounted (a fuseblk is nearly always ntfs-3g), and the options
# of others that do: what they show isn't kept, so it can't be put back, and no folder there can be closed to others.
_MODELESS = frozenset(
    {"vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "fuse.exfat", "hfs", "hpfs", "vboxsf", "fuse.vmhgfs-fuse"}
)
_MADE_UP = re.compile(r"(?:^|,)(?:fmask|dmask|file_mode|dir_mode)=|aname=drvfs")
_VM = Path("/proc/sys/vm")
_SOON = 5000  # hundredths of a second, in which what was written must be on the disk: the walk waits a minute for it
_UPPER = re.compile(r"(?:^|,)upperdir=((?:[^,\\]|\\.)*)")
_OF_THE_PATH = {
    *(errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM),
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ),  # a name that the file system takes no file by
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that was found fit to work on."""

    path: str
    device: int
    inode: int
    uid: int
    gid: int
    mode: int
    settles: bool  # its file system keeps change times
    mount: str  # where what it is reached by is mounted
    also: tuple[str, ...]  # by which other paths it is reached, through other mounts


def resolve(asked: str, *, protected: Sequence[Path] = (), closed: bool = False) -> Folder:
    """Find out which folder is meant and whether it is fit. `closed`: its mode may keep its own user out. Raises
    InvalidInput, saying why and what to do."""
    if (plain := os.path.normpath(asked)) != "/":
        _refuse_system(plain)  # what needs no look comes first
    path = _resolved(asked)
    _refuse_by_name(path, protected)
    fd = _open(path, closed=closed)
    try:
        at = os.fstat(fd)
    finally:
        os.close(fd)
    _refuse_by_owner(path, at)
    table = mounts()
    _refuse_by_mounts(path, table)
    _refuse_by_location(path, protected, table)
    mount, also = elsewhere(path, table)
    return Folder(
        path=path,
        device=at.st_dev,
        inode=at.st_ino,
        uid=at.st_uid,
        gid=at.st_gid,
        mode=stat.S_IMODE(at.st_mode),
        settles=_settles(path, table),
        mount=mount,
        also=also,
    )


def open_pinned(path: str, device: int, inode: int, *, closed: bool = False) -> int:
    """Open the folder that was assessed, and no other; where `closed` and its mode keeps its own user out, by O_PATH.
    Raises Conflict when it isn't there any more, OSError for what isn't the path's fault."""
    try:
        fd = _open(path, closed=closed)
    except InvalidInput as error:
        raise _swapped(path) from error
    at = os.fstat(fd)
    if (at.st_dev, at.st_ino) != (device, inode):
        os.close(fd)
        raise _swapped(path)
    return fd


def keeps_change_times(path: str) -> bool:
    """Whether the file system that holds this real path keeps change times as the walk's shortcut needs it."""
    return _settles(path, mounts())


def _settles(path: str, table: Mapping[str, Mount]) -> bool:
    if not _written_soon():
        return False
    kind, options = _file_system(path, table)
    if kind == "overlay" and (upper := _UPPER.search(options)):  # what is written there lies in this folder
        return _file_system(plain(upper[1]), table)[0] in _KEEPING
    return kind in _KEEPING


def _written_soon() -> bool:
    """Whether the kernel brings what was written to the disk as soon as the walk's shortcut needs it. Tools that save
    power have it wait for minutes, in which a program writes through a mapping without another change time."""
    try:
        age, pause = (int((_VM / f"dirty_{name}_centisecs").read_text()) for name in ("expire", "writeback"))
    except (OSError, ValueError):
        return False
    return pause > 0 and age + pause <= _SOON


def refuse_modeless(path: str) -> None:
    """Raise InvalidInput when the file system that holds this real path keeps no modes and owners."""
    kind, options = _file_system(path, mounts())
    if kind in _MODELESS or _MADE_UP.search(options):
        raise InvalidInput(
            f"The file system of {path} ({kind}) keeps no modes and owners: nothing could be restored exactly.",
            next_step="Copy the folder to another file system, and work there.",
        )


def others_may_write(folder: str, at: os.stat_result) -> bool:
    """Whether any user but root and its owner may write to a folder.

    A group that is numbered as the owner is taken for the owner's own. Under an ACL the mode's group bits say what the
    users and groups that it names have at most, so they are nobody's own.
    """
    if at.st_mode & stat.S_IWOTH:
        return True
    return bool(at.st_mode & stat.S_IWGRP) and (at.st_gid not in (0, at.st_uid) or _has_acl(folder))


def _has_acl(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access", follow_symlinks=False))
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return False
        raise


def mount_of(root: int) -> str:
    """By which mount an open folder is reached, and how: made read-only it is the same folder."""
    return f"{mount_id(root)} {os.fstatvfs(root).f_flag}"


def refuse_mounts(path: str) -> None:
    """Raise InvalidInput when something is mounted at or below `path`."""
    _refuse_by_mounts(path, mounts())


def _resolved(asked: str) -> str:
    if "\0" in asked or len(asked.encode("utf-8", "replace")) > 4000:
        raise InvalidInput("A folder's name holds no NUL and is at most 4000 bytes long.")
    try:
        asked.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "This folder's own name isn't UTF-8.", next_step="Rename it, or work on the one above."
        ) from error
    if not asked.startswith("/"):
        raise InvalidInput(f"{asked[:200]!r} isn't an absolute path.", next_step="Name the folder from / on.")
    trimmed = asked.rstrip("/")
    if not trimmed:
        raise _refused("/", "it is the whole system")
    above, _, name = trimmed.rpartition("/")
    if name in (".", ".."):
        raise InvalidInput(f"{asked[:200]!r} doesn't end in a folder's name.", next_step="Name the folder itself.")
    try:
        parent = os.path.realpath(above or "/", strict=True)
        path = f"{parent.rstrip('/')}/{name}"
        at = os.lstat(path)
    except OSError as error:
        if error.errno not in _OF_THE_PATH:
            raise
        raise InvalidInput(f"{asked[:200]!r} can't be found: {error.strerror}.", next_step="Check the name.") from error
    if stat.S_ISLNK(at.st_mode):
        real = os.path.realpath(path)
        raise InvalidInput(f"{asked[:200]!r} is a link.", next_step=f"Name the folder itself: {real}")
    if not stat.S_ISDIR(at.st_mode):
        raise InvalidInput(f"{asked[:200]!r} isn't a folder.", next_step="Name the folder that holds it.")
    return path


def _open(path: str, *, closed: bool) -> int:
    """Open a resolved path, one part after another, following nothing. Raises InvalidInput where it isn't there, or
    closed, OSError for what isn't the path's fault."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open("/", flags)
    try:
        parts = [part for part in path.split("/") if part]
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            try:
                inner = os.open(part, flags if last else (flags | os.O_PATH), dir_fd=fd)
            except PermissionError:
                if not (last and closed):
                    raise
                inner = os.open(part, flags | os.O_PATH, dir_fd=fd)
            os.close(fd)
            fd = inner
    except OSError as error:
        os.close(fd)
        if error.errno not in _OF_THE_PATH:
            raise
        raise InvalidInput(f"{path[:200]!r} can't be opened: {error.strerror}.", next_step="Check its mode.") from error
    return fd


def _refuse_by_name(path: str, protected: Sequence[Path]) -> None:
    _refuse_system(path)
    if (path.count("/") == 2 and path.startswith("/home/")) or path in _homes(path):
        raise _refused(path, "it is a whole home, with its keys", "Choose a folder in it.")
    for own in protected:
        real = os.path.realpath(own)
        if inside(path, real):
            raise _refused(path, "it is GoEx's own")
        if inside(real, path):
            raise _refused(path, f"GoEx's own folder {real} lies in it", "Choose a folder beside it.")


def _refuse_system(path: str) -> None:
    if path in _TOPS:
        raise _refused(path, "it is a top folder of the system")
    if any(inside(path, system) for system in (*_SYSTEM, *_SYSTEM_VAR)):
        raise _refused(path, "it belongs to the system")


def _homes(path: str) -> set[str]:
    homes = {os.path.realpath(os.path.expanduser("~"))}
    for uid in {os.geteuid(), os.lstat(path).st_uid} - {65534}:
        try:
            homes.add(os.path.realpath(pwd.getpwuid(uid).pw_dir))
        except KeyError:
            continue
    return homes


def _refuse_by_owner(path: str, at: os.stat_result) -> None:
    euid = os.geteuid()
    if euid != 0 and at.st_uid != euid:
        raise _refused(path, "it belongs to another user", "Run GoEx as that user, or choose a folder of your own.")
    trusted = {0, euid, at.st_uid}
    above = path
    while above != "/":
        above = os.path.dirname(above)
        found = os.lstat(above)
        if found.st_uid not in trusted:
            raise _refused(path, f"{above} belongs to another user, who could swap it")
        if not found.st_mode & stat.S_ISVTX and others_may_write(above, found):
            raise _refused(path, f"other users may write to {above}, and could swap it", f"chmod go-w {above}")


def _refuse_by_mounts(path: str, table: Mapping[str, Mount]) -> None:
    for mount in table.values():
        if mount.point != path and inside(mount.point, path):
            raise _refused(
                path, f"something else is mounted at {written(mount.point)}", "Unmount it, or choose another folder."
            )


def _refuse_by_location(path: str, protected: Sequence[Path], table: Mapping[str, Mount]) -> None:
    """What `_refuse_by_name` refuses, by another path: a bind mount of it is the same folder."""
    here = locate(path, table)
    for kept in (*_SYSTEM, *_SYSTEM_VAR, *map(os.path.realpath, protected)):
        if here.overlaps(locate(kept, table)):
            raise _refused(path, f"by another path it is {kept}, lies in it or holds it")
    for home in _homes(path):
        if here.ids[:1] == locate(home, table).ids[:1]:
            raise _refused(path, "by another path it is a whole home, with its keys", "Choose a folder in it.")


def _file_system(path: str, table: Mapping[str, Mount]) -> tuple[str, str]:
    """The kind of the file system that holds this real path, and its options."""
    best, kind, options = "", "", ""
    for mount in table.values():
        if inside(path, mount.point) and len(mount.point) >= len(best):
            best, kind, options = mount.point, mount.kind, mount.options
    return kind, options


def _refused(path: str, why: str, next_step: str = "Choose another folder.") -> InvalidInput:
    return InvalidInput(f"GoEx doesn't work on {path}: {why}.", next_step=next_step)


def _swapped(path: str) -> Conflict:
    return Conflict(
        f"{path} isn't the folder any more that was looked at.",
        next_step="Ask for the action again.",
        difference=(f"{path} was moved, replaced or removed",),
    )
