"""How contents are named: as git names them, by the SHA-256 of a header and the bytes; large ones, which Git LFS keeps,
by "L" and the plain SHA-256 that it knows them by."""

from __future__ import annotations

import hashlib
import os

CHUNK = 1 << 20
LARGE = "L"


def hash_file(fd: int, at: os.stat_result, path: bytes, *, large: int = 0) -> str:
    """A `Reader` that only hashes; from `large` bytes on (0: never) by the plain SHA-256. Returns "" when the file
    isn't as long as it was."""
    by_name = bool(large) and at.st_size >= large
    left = at.st_size
    if left <= CHUNK and not by_name:
        data = os.read(fd, left) if left else b""
        if len(data) == left:
            return object_id(data)
        os.lseek(fd, 0, os.SEEK_SET)
    digest = hasher(LARGE if by_name else "", left)
    while left > 0:
        chunk = os.read(fd, min(CHUNK, left))
        if not chunk:
            return ""
        digest.update(chunk)
        left -= len(chunk)
    return (LARGE if by_name else "") + digest.hexdigest()


def hasher(oid: str, size: int) -> hashlib._Hash:
    """What hashes a content of so many bytes as `oid` does; `named` compares."""
    return hashlib.sha256() if oid[:1] == LARGE else hashlib.sha256(b"blob %d\0" % size)


def named(oid: str, digest: hashlib._Hash) -> bool:
    """Whether that is the content's name."""
    return digest.hexdigest() == oid.removeprefix(LARGE)


def object_id(data: bytes, kind: bytes = b"blob") -> str:
    """The id under which git (with SHA-256) keeps `data`, an object of that kind."""
    return hashlib.sha256(b"%b %d\0%b" % (kind, len(data), data)).hexdigest()
