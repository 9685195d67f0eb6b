"""Deleting what no snapshot needs, without ever needing twice the space.

Objects lie in packs, one for each snapshot, whole (no deltas between them). A pack of which nothing is needed is
deleted; one that is mostly waste is written anew without it, one pack at a time. What is written anew is always the
smaller part, so a collection needs at most half of one pack more, and only while it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

_HASH = 64  # hexadecimal digits


class Git(Protocol):
    """What a collection needs of a repository."""

    path: Path

    def run(self, *arguments: str, data: bytes = b"") -> bytes: ...


def collect(repository: Git) -> None:
    """Delete unneeded objects. A crash half way leaves an object twice at most; the next collection mends that."""
    needed = set(_listed(repository.run("rev-list", "--all", "--objects")))
    for pack in sorted((repository.path / "objects" / "pack").glob("*.pack"), key=_age, reverse=True):
        sizes = _sizes(repository, pack)
        live = needed & sizes.keys()
        needed -= live  # a copy of it in an older pack isn't needed
        if not live:
            _delete(pack)
        elif sum(sizes[oid] for oid in live) * 2 <= pack.stat().st_size:
            names = "".join(f"{oid}\n" for oid in sorted(live)).encode("ascii")
            # Written beside, under the name that its contents give it.
            repository.run("pack-objects", "--quiet", "--window=0", str(pack.with_name("pack")), data=names)
            _delete(pack)


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
