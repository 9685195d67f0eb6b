"""Manifests as bytes, and how two of them compare.

The written form is JSON, one row an entry, names as Latin-1 text (which any bytes are). It is kept as a blob beside
the contents, and its object id is kept in the sealed records: a manifest that was tampered with isn't read.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping

from policies.errors import Unavailable
from runtimes.files.tree import Entry, Manifest

_VERSION = 1


def encode(manifest: Manifest) -> bytes:
    """The one written form of a manifest."""
    rows = [[path.decode("latin-1"), *_row(entry)] for path, entry in sorted(manifest.entries.items())]
    head = {"version": _VERSION, "taken": manifest.taken, "settled": manifest.settled, "entries": rows}
    return json.dumps(head, separators=(",", ":"), sort_keys=True).encode("ascii")


def decode(data: bytes) -> Manifest:
    """Read what `encode` wrote. Raises Unavailable for anything else."""
    try:
        head = json.loads(data)
        if head["version"] != _VERSION:
            raise ValueError("another version")
        entries = {row[0].encode("latin-1"): _entry(row[1:]) for row in head["entries"]}
        return Manifest(entries=entries, taken=int(head["taken"]), settled=bool(head["settled"]))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise Unavailable(f"A snapshot's manifest can't be read: {error}.") from error


def _row(entry: Entry) -> list[object]:
    return [
        *entry[:7],
        entry.target.decode("latin-1"),
        entry.rdev,
        [[name, b64encode(value).decode("ascii")] for name, value in entry.xattrs],
        entry.group.decode("latin-1"),
        *entry[11:],
    ]


def _entry(row: list[object]) -> Entry:
    made = list(row)
    made[7] = str(row[7]).encode("latin-1")
    made[9] = tuple((name, b64decode(value)) for name, value in row[9])  # type: ignore[attr-defined]
    made[10] = str(row[10]).encode("latin-1")
    return Entry(*made)  # type: ignore[arg-type]


def equal(one: Manifest, other: Manifest) -> bool:
    """Whether two trees are the same by the equality that undo promises."""
    return one.entries.keys() == other.entries.keys() and all(
        entry.essence == other.entries[path].essence for path, entry in one.entries.items()
    )


def between(now: Manifest, one: Manifest, other: Manifest) -> list[bytes]:
    """The paths of `now` that are in neither state, nor half way between the two.

    This is what a restore that was cut off may have left: an entry is replaced as a whole, but mode, owner, time
    and attributes are set one after another, a folder's own time moves with its names, and it may have been made
    accessible to its owner meanwhile.
    """
    strange = [path for path, entry in now.entries.items() if not _between(path, entry, one.entries, other.entries)]
    for path in one.entries.keys() & other.entries.keys() - now.entries.keys():
        # What both states have is only ever missing while a folder takes a file's place, or the other way round.
        if (one.entries[path].kind == "d") == (other.entries[path].kind == "d"):
            strange.append(path)
    return sorted(strange)


def _between(path: bytes, now: Entry, one: Mapping[bytes, Entry], other: Mapping[bytes, Entry]) -> bool:
    sides = [side[path] for side in (one, other) if path in side and side[path].body == now.body]
    if not sides:
        return False
    if now.kind == "d":
        return True
    whole = [side[path] for side in (one, other) if path in side]
    known = {pair for side in whole for pair in side.xattrs}
    return (
        any(now.mode & 0o777 == side.mode & 0o777 for side in whole)
        and any(now.uid == side.uid for side in whole)
        and any(now.gid == side.gid for side in whole)
        and any(now.mtime == side.mtime for side in whole)
        and all(pair in known for pair in now.xattrs)
    )
