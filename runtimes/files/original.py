"""The person's folder as something that is only looked at: where a dry run's copy comes from.

Rules: nothing in it is written, no mode is lifted, no time moves (where the system lets the owner read without that;
the access time of a symbolic link can't be kept, since no call reads a link without it); a content counts only if it is
the one that the walk saw.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from runtimes.files.content_ids import CHUNK, hasher, named
from runtimes.files.descriptors import Reading, moving
from runtimes.files.handles import Handles, Moved
from runtimes.files.large import share
from runtimes.files.restore import Copy
from runtimes.files.tree import KINDS, Entry, Manifest


class Untouched(Handles):
    """Folders reached from an open root, whose modes stay as they are."""

    def _lift(self, path: bytes, fd: int) -> None:
        return


class Original:
    """The folder open as `root`, as `manifest` describes it.

    `force` lets the owner read what a mode closes, as `Walk.force`: for copies, never for the person's own folder.
    """

    def __init__(self, root: int, manifest: Manifest, *, force: bool = False) -> None:
        self._root = root
        self._manifest = manifest
        self._force = force
        self._where: dict[str, bytes] = {}
        for path, entry in manifest.entries.items():
            if entry.oid:
                self._where.setdefault(entry.oid, path)
        self.clones = True  # until the file system says that it can't

    @contextmanager
    def contents(self) -> Iterator[Copy]:
        """Gives `copy(oid, write)`, as a snapshot does. It raises Conflict when the folder has changed since."""
        with self._handles() as handles:

            def copy(oid: str, write: Callable[[bytes], object]) -> None:
                path = self._where[oid]
                with self._opened(handles, path) as file:
                    left = self._manifest.entries[path].size
                    digest = hasher(oid, left)
                    while left > 0:
                        chunk = os.read(file, min(CHUNK, left))
                        if not chunk:
                            raise moving(path)
                        digest.update(chunk)
                        write(chunk)
                        left -= len(chunk)
                if not named(oid, digest):
                    raise moving(path)

            yield copy

    def clone(self, oid: str, file: int) -> bool:
        """Make `file` share that content's blocks. False where the file system can't. Raises Conflict as `contents`."""
        if not self.clones:
            return False
        path = self._where[oid]
        entry = self._manifest.entries[path]
        with self._handles() as handles, self._opened(handles, path) as source:
            if not share(source, file):
                self.clones = False
                return False
            at = os.fstat(source)  # what was shared is what was hashed if nothing has moved until now
            if (at.st_size, at.st_mtime_ns, at.st_ctime_ns) != (entry.size, entry.mtime, entry.ctime):
                raise moving(path)
        return True

    def read(self, path: bytes) -> bytes:
        """The content of a file. Raises Conflict when it isn't the one that the walk saw."""
        entry = self._manifest.entries[path]
        with self._handles() as handles, self._opened(handles, path) as file:
            data = b""
            while len(data) <= entry.size and (chunk := os.read(file, CHUNK)):
                data += chunk
        digest = hasher(entry.oid, len(data))
        digest.update(data)
        if not named(entry.oid, digest):
            raise moving(path)
        return data

    def sha256(self, path: bytes) -> str:
        """The plain SHA-256 of a file, as other tools say it. Raises Conflict as `read`."""
        entry = self._manifest.entries[path]
        plain, digest = hashlib.sha256(), hasher(entry.oid, entry.size)
        with self._handles() as handles, self._opened(handles, path) as file:
            while chunk := os.read(file, CHUNK):
                plain.update(chunk)
                digest.update(chunk)
        if not named(entry.oid, digest):
            raise moving(path)
        return plain.hexdigest()

    def _handles(self) -> Handles:
        return Handles(self._root) if self._force else Untouched(self._root)

    @contextmanager
    def _opened(self, handles: Handles, path: bytes) -> Iterator[int]:
        entry = self._manifest.entries[path]
        try:
            folder, name = handles.parent(path)
            at = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, Moved) as error:
            raise moving(path) from error
        if not _is(at, entry):
            raise moving(path)
        with Reading(folder, name, at, path, 0, force=self._force) as file:
            yield file


class Kept:
    """The contents of a state that a snapshot keeps, read as `Original` reads a folder's."""

    def __init__(self, contents: Callable[[], AbstractContextManager[Copy]], manifest: Manifest) -> None:
        self._contents = contents
        self._manifest = manifest

    def read(self, path: bytes) -> bytes:
        """The content of a file. Raises Unavailable when it is missing or damaged."""
        found: list[bytes] = []
        with self._contents() as copy:
            copy(self._manifest.entries[path].oid, found.append)
        return b"".join(found)

    def sha256(self, path: bytes) -> str:
        """The plain SHA-256 of a file."""
        digest = hashlib.sha256()
        with self._contents() as copy:
            copy(self._manifest.entries[path].oid, digest.update)
        return digest.hexdigest()


def _is(at: os.stat_result, entry: Entry) -> bool:
    return (at.st_ino, KINDS[at.st_mode & 0o170000], at.st_size) == (entry.inode, "f", entry.size)
