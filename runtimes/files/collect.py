"""Deleting what no snapshot needs, without ever needing twice the space.

Objects lie in packs, one or two for each snapshot, whole (no deltas between them). A pack of which nothing is needed
is deleted; one that is mostly waste is written anew without it, one pack at a time. What is written anew is always the
smaller part, so a collection needs at most half of one pack more, and only while it runs. Large contents are files of
their own, deleted one by one.

Needed are the commits that labels reach, with the manifests in them, and the contents that the labels' manifests name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Protocol

from policies.errors import GoexError
from runtimes.files.content_ids import LARGE
from runtimes.files.large import Large
from runtimes.files.tree import Manifest

_HASH = 64  # hexadecimal digits
_MANY = 48  # packs; from there on the small ones become one
_SMALL = 4 << 20


class Git(Protocol):
    """What a collection needs of a repository."""

    path: Path
    lfs: Large

    def run(self, *arguments: str, data: bytes = b"") -> bytes: ...

    def load(self, oid: str) -> Manifest: ...

    def clean(self) -> None: ...


def collect(repository: Git) -> None:
    """Delete unneeded objects. A crash half way leaves an object twice at most; the next collection mends that.

    Raises Unavailable, having deleted nothing, when a manifest can't be read: what it needs isn't known then.
    """
    needed = _needed(repository, repository.run("for-each-ref", "--format=%(objectname)").decode("ascii").split())
    repository.lfs.keep_only({oid for oid in needed if oid[:1] == LARGE})
    written: set[str] = set()
    for pack, live, size in _packs(repository, needed):
        if pack.stem in written:
            continue  # a collection that was cut off had made the very same one: it may be of any age
        if not live:
            _delete(pack)
        elif _is_waste(pack, size):
            written.add(f"pack-{_write(repository, live).decode('ascii')}")
            if pack.stem not in written:
                _delete(pack)


def reclaimable(repository: Git, commits: Sequence[str], contents: Set[str]) -> int:
    """How many bytes a collection would free at least if of all commits and contents only these were needed. Only
    looks. Raises Unavailable as `collect`."""
    needed = _needed(repository, commits) | contents
    freed = repository.lfs.size_without({oid for oid in needed if oid[:1] == LARGE})
    return freed + sum(
        pack.stat().st_size - size for pack, _, size in _packs(repository, needed) if _is_waste(pack, size)
    )


def tidy(repository: Git) -> None:
    """Make one pack of many small ones: each git process opens all of them. Crash-safe as `collect`."""
    packs = list((repository.path / "objects" / "pack").glob("*.pack"))
    if len(packs) < _MANY:
        return
    small = [pack for pack in packs if pack.stat().st_size <= _SMALL]
    if len(small) > _MANY // 2:
        made = _write(repository, {oid for pack in small for oid in _sizes(repository, pack)})
        for pack in small:
            if pack.stem.encode("ascii") != b"pack-" + made:
                _delete(pack)


def _write(repository: Git, oids: set[str]) -> bytes:
    """A pack of these objects, beside the others, under the name that it gets from its contents."""
    names = "".join(f"{oid}\n" for oid in sorted(oids)).encode("ascii")
    beside = str(repository.path / "objects" / "pack" / "pack")
    try:
        return repository.run("pack-objects", "--quiet", "--window=0", beside, data=names).strip()
    except GoexError:
        repository.clean()  # on a full disk half a pack would take what is left
        raise


def _packs(repository: Git, needed: Set[str]) -> Iterator[tuple[Path, set[str], int]]:
    """Each pack, the youngest first, with what is needed of it, and how many bytes that takes: a copy of it in an older
    pack isn't needed."""
    left = set(needed)
    for pack in sorted((repository.path / "objects" / "pack").glob("*.pack"), key=_age, reverse=True):
        sizes = _sizes(repository, pack)
        live = left & sizes.keys()
        left -= live
        yield pack, live, sum(sizes[oid] for oid in live)


def _is_waste(pack: Path, size: int) -> bool:
    """Whether a pack is mostly waste, when so many bytes of it are needed."""
    return size * 2 <= pack.stat().st_size


def _needed(repository: Git, commits: Sequence[str]) -> set[str]:
    """What these commits reach, and the contents that their manifests name."""
    if not commits:
        return set()
    named = "".join(f"{commit}\n" for commit in commits).encode("ascii")
    reached = repository.run("rev-list", "--objects", "--stdin", data=named).decode("ascii", "replace").splitlines()
    needed = {line[:_HASH] for line in reached}
    asked = "".join(f"{commit}:manifest\n" for commit in commits).encode("ascii")
    for line in repository.run("cat-file", "--batch-check=%(objectname)", data=asked).decode("ascii").splitlines():
        needed.update(entry.oid for entry in repository.load(line).entries.values() if entry.oid)
    return needed


def _sizes(repository: Git, pack: Path) -> dict[str, int]:
    """Object ids in a pack, and how many bytes each takes there."""
    rows = repository.run("show-index", "--object-format=sha256", data=pack.with_suffix(".idx").read_bytes())
    found = sorted(
        (int(offset), oid) for offset, oid, *_ in (line.split() for line in rows.decode("ascii").splitlines())
    )
    ends = [offset for offset, _ in found[1:]] + [pack.stat().st_size]
    return {oid: end - offset for (offset, oid), end in zip(found, ends, strict=True)}


def _age(pack: Path) -> int:
    return pack.stat().st_mtime_ns


def _delete(pack: Path) -> None:
    # The index first: without it the pack is nothing to git, without the pack the index would be an error.
    for suffix in (".idx", ".rev", ".bitmap", ".pack"):
        pack.with_suffix(suffix).unlink(missing_ok=True)
