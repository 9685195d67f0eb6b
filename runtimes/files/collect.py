"""Deleting what no snapshot needs, without ever needing twice the space.

Objects lie in packs, one or two for each snapshot, whole (no deltas between them). A pack of which nothing is needed
is deleted; one that is mostly waste is written anew without it, one pack at a time. What is written anew is always the
smaller part, so a collection needs at most half of one pack more, and only while it runs. Large contents are files of
their own, deleted one by one.

Needed are the commits that labels reach, with the manifests in them, and the contents that the labels' manifests name.
"""

from __future__ import annotations

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
    contents = _contents(repository)
    needed = set(_listed(repository.run("rev-list", "--all", "--objects"))) | contents
    repository.lfs.keep_only({oid for oid in contents if oid[:1] == LARGE})
    written: set[str] = set()
    for pack in sorted((repository.path / "objects" / "pack").glob("*.pack"), key=_age, reverse=True):
        if pack.stem in written:
            continue  # a collection that was cut off had made the very same one: it may be of any age
        sizes = _sizes(repository, pack)
        live = needed & sizes.keys()
        needed -= live  # a copy of it in an older pack isn't needed
        if not live:
            _delete(pack)
        elif sum(sizes[oid] for oid in live) * 2 <= pack.stat().st_size:
            written.add(f"pack-{_write(repository, live).decode('ascii')}")
            if pack.stem not in written:
                _delete(pack)


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


def _contents(repository: Git) -> set[str]:
    """What the labels' manifests name."""
    needed: set[str] = set()
    asked = repository.run("for-each-ref", "--format=%(objectname):manifest")
    if asked:
        for line in repository.run("cat-file", "--batch-check=%(objectname)", data=asked).decode("ascii").splitlines():
            manifest = repository.load(line)
            needed.update(entry.oid for entry in manifest.entries.values() if entry.oid)
    return needed


def _listed(output: bytes) -> list[str]:
    return [line[:_HASH] for line in output.decode("ascii", "replace").splitlines()]


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
