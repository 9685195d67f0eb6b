"""Large contents, kept as Git LFS keeps them: beside git's packs, one file each, under their plain SHA-256.

Rules: a content is streamed, in constant memory, and hashed in the same pass; where the file system can, it shares the
blocks of the person's file instead, and the share is what is hashed. It counts once it is under its name, and is on
disk by then. There must be room for it before the first byte is written.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue
from threading import Thread

from policies.errors import Unavailable
from policies.regular_file import open_regular
from runtimes.files.content_ids import CHUNK, LARGE

# linux/fs.h: make a file share another one's blocks.
_FICLONE = 0x40049409
NO_CLONES = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM, errno.EBADF}
_MARGIN = 16 << 20  # bytes that stay free
_PIECE = 2 << 20
_ZEROS = bytes(_PIECE)
_AHEAD = 8  # pieces
_SYNC_FILE_RANGE_WRITE = 2  # linux/fs.h: begin to bring it to the disk, wait for nothing
_libc = ctypes.CDLL(None, use_errno=True)
_NAME = re.compile(r"[0-9a-f]{64}")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n"
ATTRIBUTES = b"large/** filter=lfs diff=lfs merge=lfs -text\n"


def share(source: int, file: int) -> bool:
    """Make `file` share the blocks of `source`. False where the file system can't."""
    try:
        fcntl.ioctl(file, _FICLONE, source)
    except OSError as error:
        if error.errno not in NO_CLONES:
            raise
        return False
    return True


class Large:
    """The large contents of one repository, below `folder` (`lfs`, as git-lfs calls it)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects = folder / "objects"

    def path(self, oid: str) -> Path:
        """Where that content lies, or would."""
        plain = oid.removeprefix(LARGE)
        if not _NAME.fullmatch(plain):
            raise Unavailable("A snapshot names a content that can't be one.")
        return self._objects / plain[:2] / plain[2:4] / plain

    def store(
        self,
        source: int,
        size: int,
        room: Callable[[int], None] = lambda size: None,
        kept: set[str] | None = None,
    ) -> str:
        """Keep what the open file holds. Durable on return. Returns its name, "" when it isn't as long as it was.

        `room` hears of a copy's size before it is made, and gets it back where the content was here before; else its
        name goes into `kept`. Raises Unavailable when there is no room on the disk, or what `room` raises.
        """
        taken = 0
        temporary = self._folder / "tmp"
        temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = temporary / f"{os.getpid()}-{os.urandom(6).hex()}"
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if share(source, file):
                digest, whole = _digest(file, size), os.fstat(file).st_size == size
            else:
                try:
                    self._require_room(size)
                    room(taken := os.fstat(source).st_blocks * 512)
                except Unavailable:
                    alike = {path.name for path in self._others(set()) if path.stat().st_size == size}
                    if alike and (name := _digest(source, size).hexdigest()) in alike:
                        return LARGE + name  # what is kept already needs no room
                    raise
                digest, whole = self._copied(source, file, size)
            if not whole:
                room(-taken)
                return ""
            oid = LARGE + digest.hexdigest()
            goal = self.path(oid)
            if goal.exists():
                room(-taken)
                return oid
            if kept is not None:
                kept.add(oid)
            os.fchmod(file, 0o400)
            os.fsync(file)
            goal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.rename(goal)
            for above in (goal.parent, goal.parent.parent, self._objects, self._folder, self._folder.parent):
                fsync(above)
            return oid
        finally:
            os.close(file)
            path.unlink(missing_ok=True)

    def takes(self, source: int) -> int:
        """How many bytes `store` of the open file asks room for: none where the blocks are shared."""
        size = os.fstat(source).st_blocks * 512
        try:
            file = os.open(self._folder.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:  # there are file systems without
            return size
        try:
            return 0 if share(source, file) else size
        finally:
            os.close(file)

    def _copied(self, source: int, file: int, size: int) -> tuple[hashlib._Hash, bool]:
        """Read and hash here, write in another thread, which has the disk begin at once."""
        digest, left = hashlib.sha256(), size
        waiting: Queue[tuple[bytearray, int]] = Queue()
        free: Queue[bytearray] = Queue()
        for _ in range(_AHEAD):
            free.put(bytearray(_PIECE))
        failed: list[OSError] = []
        writer = Thread(target=_write, args=(file, waiting, free, failed))
        writer.start()
        try:
            while left > 0 and not failed:
                buffer = free.get()
                count = os.readv(source, [memoryview(buffer)[: min(left, _PIECE)]])
                if not count:
                    break
                waiting.put((buffer, count))
                digest.update(memoryview(buffer)[:count])
                left -= count
        finally:
            waiting.put((bytearray(), 0))
            writer.join()
        if failed:
            raise failed[0]
        os.ftruncate(file, size)
        return digest, not left

    def copy(self, oid: str, write: Callable[[bytes], object]) -> None:
        """Hand a content on piece by piece. Raises Unavailable when it is missing or, at the end, damaged."""
        file = self._open(oid)
        try:
            digest = hashlib.sha256()
            for chunk in _pieces(file, os.fstat(file).st_size):
                digest.update(chunk)
                write(chunk)
        finally:
            os.close(file)
        self._check(oid, digest)

    def clone(self, oid: str, file: int) -> bool:
        """Make `file` share that content's blocks. False where it can't. Raises Unavailable as `copy`."""
        source = self._open(oid)
        try:
            if not share(source, file):
                return False
            digest = _digest(file, os.fstat(source).st_size)
            os.lseek(file, 0, os.SEEK_SET)
        finally:
            os.close(source)
        self._check(oid, digest)
        return True

    def there(self, oid: str) -> bool:
        """Whether it is kept."""
        return self.path(oid).is_file()

    def keep_only(self, needed: set[str]) -> None:
        """Delete every other content, one at a time. Idempotent."""
        for path in self._others(needed):
            path.unlink(missing_ok=True)
            for above in (path.parent, path.parent.parent):
                with suppress(OSError):
                    above.rmdir()

    def size_without(self, needed: set[str]) -> int:
        """How many bytes every other content takes on the disk."""
        return sum(path.stat().st_blocks * 512 for path in self._others(needed))

    def _others(self, needed: set[str]) -> list[Path]:
        return [path for path in self._objects.glob("??/??/*") if LARGE + path.name not in needed]

    def _open(self, oid: str) -> int:
        try:
            return open_regular(self.path(oid))
        except FileNotFoundError as error:
            raise Unavailable(f"The snapshot lacks the content {oid[:17]}….") from error

    def _check(self, oid: str, digest: hashlib._Hash) -> None:
        if LARGE + digest.hexdigest() != oid:
            raise Unavailable(f"The snapshot's content {oid[:17]}… is damaged.")

    def _require_room(self, size: int) -> None:
        at = os.statvfs(self._folder)
        if at.f_bavail * at.f_frsize < size + _MARGIN:
            raise Unavailable(
                f"The disk is full: a file of {size} bytes has to be kept.",
                next_step="Free some space, then try again.",
            )


def _write(file: int, waiting: Queue[tuple[bytearray, int]], free: Queue[bytearray], failed: list[OSError]) -> None:
    """Write what comes until it is empty. After a failure the rest is taken and dropped, so that nobody waits."""
    at = 0
    while True:
        buffer, count = waiting.get()
        if not count:
            return
        try:
            if failed:
                pass
            elif buffer == _ZEROS and count == _PIECE:  # stays a hole
                os.lseek(file, count, os.SEEK_CUR)
            else:
                done = 0
                while done < count:
                    done += os.write(file, memoryview(buffer)[done:count])
                _libc.sync_file_range(file, ctypes.c_int64(at), ctypes.c_int64(count), _SYNC_FILE_RANGE_WRITE)
            at += count
        except OSError as error:
            failed.append(error)
        free.put(buffer)


def _digest(file: int, size: int) -> hashlib._Hash:
    digest = hashlib.sha256()
    for chunk in _pieces(file, size):
        digest.update(chunk)
    return digest


def _pieces(file: int, size: int) -> Iterator[bytes]:
    """At most `size` bytes from where the file stands."""
    while size > 0 and (chunk := os.read(file, min(CHUNK, size))):
        size -= len(chunk)
        yield chunk


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file beside `path`, then give it that name: what is there isn't written to, nor followed."""
    new = path.with_name(f"{path.name}.lock")  # as git calls one; `clean` removes what is left of it
    new.unlink(missing_ok=True)
    with new.open("xb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    new.rename(path)


def fsync(path: Path) -> None:
    """Bring a file or folder to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
