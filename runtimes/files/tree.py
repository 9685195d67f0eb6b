"""What a folder holds, and how it is walked.

Rules:

* Everything is reached by descriptor (`dir_fd`) with O_NOFOLLOW and O_NONBLOCK, never by path: a link that appears
  half way leads nowhere, a FIFO doesn't block.
* Another file system is never entered. A folder that holds one is refused.
* Names are bytes; a path is names joined by "/", the root is b"".
* Contents are named by git's SHA-256 object id, so that a manifest is also the list of what a snapshot stores; those
  of `large` bytes and more, which Git LFS keeps, by "L" and their plain SHA-256.
* A content hash is taken from an earlier manifest only where the inode, both times, size, mode, owner and link count
  are the same *and* the change time was long past when that manifest was taken (`_settled`). The change time can't be
  set by anybody, so only file systems that are known to keep it are trusted.
"""

# Descriptors and bytes, which pathlib knows nothing of.
# ruff: noqa: PTH101

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from policies.errors import InvalidInput
from runtimes.files.descriptors import PROC, Reading, beside, moving, opened, same
from runtimes.files.path_text import shown

_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_MOST_LISTED = 300_000
_SETTLED_NS = 60_000_000_000  # by then what was written through a mapping is on the disk: see `_settled`
_CHANGE_CLOCK = 5  # CLOCK_REALTIME_COARSE: the kernel takes change times from it, and it stands still where ticks wait
_NO_ATTRIBUTES = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_NOT_FOR_US = _NO_ATTRIBUTES | {errno.ENODATA, errno.EACCES, errno.EPERM}
# The kernel lists 64 KiB of names, while some file systems take more. No attribute has a name without a dot.
UNLISTED = ("more attributes than can be listed", b"")
_HASHED_ATTRIBUTES = ("security.ima", "security.evm", "trusted.overlay.")  # made by the kernel from the rest

KINDS = {
    stat.S_IFREG: "f",
    stat.S_IFDIR: "d",
    stat.S_IFLNK: "l",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "s",
    stat.S_IFCHR: "c",
    stat.S_IFBLK: "b",
}


class Entry(NamedTuple):
    """One name in the tree. `group` is the first path of the hard links that it belongs to (b"": it is alone).

    Times are nanoseconds. `inode`, `ctime` and `links` tell whether something may have changed; they are no part of
    the equality that undo promises.
    """

    kind: str  # f, d, l, p (FIFO), s (socket), c, b (devices)
    mode: int
    uid: int
    gid: int
    mtime: int
    size: int = 0  # of files
    oid: str = ""  # of files
    target: bytes = b""  # of links
    rdev: int = 0  # of devices
    xattrs: tuple[tuple[str, bytes], ...] = ()
    group: bytes = b""
    inode: int = 0
    ctime: int = 0
    links: int = 1

    @property
    def essence(self) -> tuple[object, ...]:
        """What makes two entries equal."""
        return self[:11]

    @property
    def body(self) -> tuple[object, ...]:
        """What can only be replaced as a whole: everything but mode, owner, time and attributes."""
        return (self.kind, self.oid, self.target, self.rdev)


# Whatever changes a file, its owner or its mode moves its change time, which nobody can set.
_marks = attrgetter("st_ctime_ns", "st_ino", "st_size", "st_mtime_ns", "st_mode", "st_nlink")


@dataclass(frozen=True, slots=True)
class Listing:
    """How one folder looked to a walk, for the next one to see at a glance that it looks so still.

    `names` are as the system listed them, `marks` theirs. `files` are those whose entries are good while the marks
    are the same, `size` what they hold; `rest` the places of all others in `names`.
    """

    names: list[str]
    marks: list[tuple[int, ...]]
    files: dict[bytes, Entry]
    size: int
    rest: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A tree at one moment. `taken` is when the walk began; `settled` whether its change times can be trusted.

    `listings` are its folders as the walk saw them; a manifest that was read has none.
    """

    entries: Mapping[bytes, Entry]  # by path, parents first
    taken: int
    settled: bool
    listings: Mapping[bytes, Listing] = field(default_factory=dict, compare=False, repr=False)

    @property
    def files(self) -> int:
        return sum(1 for entry in self.entries.values() if entry.kind != "d")

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large a folder may be: entries, bytes, levels."""

    files: int = 200_000
    bytes: int = 20 * 10**9
    depth: int = 200

    def grown(self) -> Bounds:
        """What the same folder may have become: what is more than this isn't recorded."""
        return Bounds(files=self.files * 2 + 1000, bytes=self.bytes * 2, depth=self.depth + 20)


class TooLarge(InvalidInput):
    """The folder is larger than the bounds."""

    code = "too-large"


Reader = Callable[[int, os.stat_result, bytes], str]  # an open file, what it is, its path; returns its object id


@dataclass(slots=True, kw_only=True)
class Walk:
    """One walk over a tree.

    `read` gives a file's object id (None: contents are not looked at). `known` is an earlier manifest whose hashes
    may be used again. `skip` is a name directly below the root that isn't looked at. `force` lets the owner open
    what its mode forbids, putting the mode back afterwards. `strip` drops set-user-id and set-group-id bits of
    files unless it returns True. With `only`, all else than these paths, as folders or as anything else, isn't looked
    at, nor what can't be read: `unknown` is where it is. Nor is a file of another size read, which may never end.
    """

    bounds: Bounds
    read: Reader | None = None
    known: Manifest | None = None
    skip: bytes = b""
    force: bool = False
    strip: Callable[[bytes, os.stat_result], bool] | None = None
    progress: Callable[[int], None] = lambda seen: None
    trusted: bool = False  # the file system keeps change times
    only: Mapping[bytes, Entry] | None = None
    unknown: list[bytes] = field(default_factory=list)
    _entries: dict[bytes, Entry] = field(default_factory=dict)
    _inodes: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)
    _bytes: int = 0
    _device: int = 0
    _old: Mapping[bytes, Entry] = field(default_factory=dict)
    _looked: list[bytes] = field(default_factory=lambda: [b""])  # at more than whether they are as they were
    _known_listings: Mapping[bytes, Listing] = field(default_factory=dict)
    _kept: dict[bytes, Listing] = field(default_factory=dict)
    _seen: dict[bytes, tuple[list[str], list[tuple[int, ...]]]] = field(default_factory=dict)
    _told: int = 0
    _since: int = 0  # when the known manifest was taken, where its change times can be trusted

    def run(self, root: int) -> Manifest:
        """Walk the folder open as `root`. Raises TooLarge, InvalidInput (unreadable, another file system in it),
        Conflict (something changed while it was read)."""
        taken = time.clock_gettime_ns(_CHANGE_CLOCK)
        if self.known is not None:
            self._old = self.known.entries
            if self.known.settled and self.trusted:
                self._since = self.known.taken
                self._known_listings = self.known.listings
        at = os.fstat(root)
        self._device = at.st_dev
        try:
            with Reading(root, b".", at, b"", os.O_DIRECTORY, force=self.force) as fd:
                self._entries[b""] = self._entry(at, xattrs=read_xattrs(fd))
                self._folder(fd, b"", 1)
        except PermissionError as error:
            if self.force:
                raise
            raise _unreadable(b"") from error
        for found in self._inodes.values():
            paths = [path for path in found if path in self._entries]
            if len(paths) > 1:
                first = min(paths)
                for path in paths:
                    self._entries[path] = self._entries[path]._replace(group=first)
        return Manifest(entries=self._shared(), taken=taken, settled=self.trusted, listings=self._listings(taken))

    def _shared(self) -> Mapping[bytes, Entry]:
        """The entries, in order. What is as it was is the very same object, so that manifests are compared fast."""
        entries, old = self._entries, self._old
        for path in self._looked:
            if (was := old.get(path)) is not None and was == entries.get(path):
                entries[path] = was
        return old if entries == old else dict(sorted(entries.items()))

    def _folder(self, fd: int, prefix: bytes, depth: int) -> None:
        if depth > self.bounds.depth:
            raise self._too_large(f"{shown(prefix)} lies deeper than {self.bounds.depth} levels.")
        names = os.listdir(fd)
        if not prefix and self.skip:
            names = [listed for listed in names if listed.encode(_ENCODING, _ERRORS) != self.skip]
        try:
            found = [os.stat(listed, dir_fd=fd, follow_symlinks=False) for listed in names]
        except FileNotFoundError as error:
            raise moving(prefix) from error
        marks = list(map(_marks, found))
        above = prefix + b"/" if prefix else b""
        todo: Iterable[int] = range(len(names))
        listing = self._known_listings.get(prefix)
        if (
            listing is not None
            and marks == listing.marks
            and names == listing.names
            and len(self._entries) + len(names) <= self.bounds.files
        ):
            # The most that a small change costs in a large folder is to look at all the rest: so whole folders at once.
            self._entries.update(listing.files)
            self._weigh(listing.size, prefix)
            todo = listing.rest
            self._kept[prefix] = listing
        else:
            self._seen[prefix] = names, marks
        for number in todo:
            name = names[number].encode(_ENCODING, _ERRORS)
            path = above + name
            if self.only is not None and not _meant(self.only.get(path), found[number]):
                self.unknown.append(path)
                continue
            try:
                self._one(fd, name, path, depth, found[number])
            except FileNotFoundError as error:
                raise moving(path) from error
            except PermissionError as error:
                if self.only is None:
                    raise _unreadable(path) from error
                self._entries.pop(path, None)
                self.unknown.append(path)

    def _listings(self, taken: int) -> dict[bytes, Listing]:
        """What the next walk can go by: nothing in a folder that is larger than is worth holding twice."""
        if not self.trusted or self.only is not None or len(self._entries) > _MOST_LISTED:
            return {}
        made = dict(self._kept)
        for prefix, (names, marks) in self._seen.items():
            above = prefix + b"/" if prefix else b""
            files: dict[bytes, Entry] = {}
            rest: list[int] = []
            for number, (listed, mark) in enumerate(zip(names, marks, strict=True)):
                path = above + listed.encode(_ENCODING, _ERRORS)
                entry = self._entries[path]
                if entry.oid and _settled(entry.ctime, taken) and _lone(entry) == mark:
                    files[path] = entry
                else:
                    rest.append(number)
            made[prefix] = Listing(names, marks, files, sum(entry.size for entry in files.values()), rest)
        return made

    def _one(self, fd: int, name: bytes, path: bytes, depth: int, at: os.stat_result) -> None:
        self._count(path, at)
        self._looked.append(path)
        kind = KINDS[stat.S_IFMT(at.st_mode)]
        if kind == "d":
            if at.st_dev != self._device:
                raise InvalidInput(
                    f"Another file system is mounted at {shown(path)}.",
                    next_step="Unmount it, or choose another folder.",
                )
            with Reading(fd, name, at, path, os.O_DIRECTORY, force=self.force) as inner:
                self._entries[path] = self._entry(at, xattrs=read_xattrs(inner))
                self._folder(inner, path, depth + 1)
            return
        if at.st_nlink > 1:
            self._inodes.setdefault((at.st_dev, at.st_ino), []).append(path)
        if kind == "f":
            self._entries[path] = self._file(fd, name, at, path)
        elif kind == "l":
            target = os.readlink(name, dir_fd=fd)
            self._entries[path] = self._entry(at, target=target, xattrs=read_xattrs(beside(fd, name), follow=False))
        else:
            rdev = at.st_rdev if kind in "cb" else 0
            self._entries[path] = self._entry(at, rdev=rdev, xattrs=read_xattrs(beside(fd, name), follow=False))

    def _file(self, fd: int, name: bytes, at: os.stat_result, path: bytes) -> Entry:
        if self.strip is not None and at.st_mode & 0o6000 and not self.strip(path, at):
            with opened(fd, name, os.O_PATH) as file:
                same(os.fstat(file), at, path)  # who owns the folder may have put another file's name there
                os.chmod(f"{PROC}/{file}", stat.S_IMODE(at.st_mode) & 0o1777)
            at = os.stat(name, dir_fd=fd, follow_symlinks=False)
        cached = self._cached(path, at)
        if cached is not None:
            return cached
        if self.only is not None and at.st_size != self.only[path].size:
            return self._entry(at, size=at.st_size)
        if self.read is None:
            if os.geteuid() != 0 and not os.access(name, os.R_OK, dir_fd=fd, effective_ids=True, follow_symlinks=False):
                raise _unreadable(path)
            return self._entry(at, size=at.st_size)
        for _ in range(3):
            with (opening := Reading(fd, name, at, path, 0, force=self.force)) as file:
                oid = self.read(file, at, path)
                xattrs = read_xattrs(file)
                after = os.fstat(file)
            if opening.lifted:  # lifting a mode has moved the change time
                after = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if _key(after)[:3] == _key(at)[:3] and after.st_mode == at.st_mode:
                    at = after
            if oid and _key(after) == _key(at):
                return self._entry(at, size=at.st_size, oid=oid, xattrs=xattrs)
            at = os.stat(name, dir_fd=fd, follow_symlinks=False)
        raise moving(path)

    def _cached(self, path: bytes, at: os.stat_result) -> Entry | None:
        entry = self._old.get(path)
        if entry is None or not entry.oid or not _settled(entry.ctime, self._since):
            return None
        same = (entry.inode, entry.size, entry.mtime, entry.ctime, entry.mode, entry.uid, entry.gid, entry.links)
        if same != (*_key(at), stat.S_IMODE(at.st_mode), at.st_uid, at.st_gid, at.st_nlink):
            return None
        return entry._replace(group=b"") if entry.group else entry

    def _count(self, path: bytes, at: os.stat_result) -> None:
        seen = len(self._entries)
        if seen >= self.bounds.files:
            raise self._too_large(f"There are more than {self.bounds.files} files in this folder.", "max_entries")
        if seen - self._told >= 2000:
            self._told = seen
            self.progress(seen)
        if stat.S_ISREG(at.st_mode):
            self._weigh(at.st_size, path)

    def _weigh(self, size: int, path: bytes) -> None:
        self._bytes += size
        if self._bytes > self.bounds.bytes:
            said = f"There are more than {self.bounds.bytes} bytes in this folder (at {shown(path)})."
            raise self._too_large(said, "max_bytes")

    def _too_large(self, said: str, setting: str = "") -> TooLarge:
        """What is said of the person's own folder; of what a program left (`force`) there is nothing to choose."""
        raised = f", or raise [files] {setting}" if setting else ""
        return TooLarge(said, next_step="" if self.force else f"Choose a folder in it{raised}.")

    def _entry(
        self,
        at: os.stat_result,
        *,
        size: int = 0,
        oid: str = "",
        target: bytes = b"",
        rdev: int = 0,
        xattrs: tuple[tuple[str, bytes], ...] = (),
    ) -> Entry:
        return Entry(
            KINDS[stat.S_IFMT(at.st_mode)],
            stat.S_IMODE(at.st_mode),
            at.st_uid,
            at.st_gid,
            at.st_mtime_ns,
            size,
            oid,
            target,
            rdev,
            xattrs,
            b"",
            at.st_ino,
            at.st_ctime_ns,
            1 if stat.S_ISDIR(at.st_mode) else at.st_nlink,
        )


def _settled(ctime: int, taken: int) -> bool:
    """Whether a change after `taken` leaves another change time than this one, which was there then.

    The clock that change times are taken from must have moved on, by a second where a file system keeps no less. And
    what is written through a mapping into a page that waits for the disk moves no time at all: so that wait, 35 s as
    the kernel comes, must be over.
    """
    return ctime <= taken - _SETTLED_NS


def _meant(entry: Entry | None, at: os.stat_result) -> bool:
    return entry is not None and (entry.kind == "d") == stat.S_ISDIR(at.st_mode)


def _lone(entry: Entry) -> tuple[int, ...]:
    """The marks of a file that has one name, and whose mode lends nobody's rights: else they match none."""
    if entry.mode & 0o6000:
        return ()
    return entry.ctime, entry.inode, entry.size, entry.mtime, entry.mode | stat.S_IFREG, 1


def read_xattrs(path: int | str | bytes, *, follow: bool = True) -> tuple[tuple[str, bytes], ...]:
    """The extended attributes of what a descriptor, or its path, names, sorted; () where the file system has none,
    UNLISTED alone where the system can't list them."""
    try:
        names = os.listxattr(path, follow_symlinks=follow)
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return ()
        if error.errno == errno.E2BIG:
            return (UNLISTED,)
        raise
    if not names:
        return ()
    found = []
    for name in sorted(names):
        if not name.startswith(_HASHED_ATTRIBUTES):
            try:
                found.append((name, os.getxattr(path, name, follow_symlinks=follow)))
            except OSError as error:
                if error.errno == errno.E2BIG:
                    return (UNLISTED,)
                if error.errno not in _NOT_FOR_US:
                    raise
    return tuple(found)


def _key(at: os.stat_result) -> tuple[int, int, int, int]:
    return at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns


def _unreadable(path: bytes) -> InvalidInput:
    return InvalidInput(
        f"{shown(path)} can't be read, so it couldn't be restored.",
        next_step="Make it readable for the user that GoEx runs as, or choose another folder.",
    )
