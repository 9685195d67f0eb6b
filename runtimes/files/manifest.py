"""Manifests as bytes, and how two of them compare.

The written form is a line of JSON and then columns: one for all kinds, one for all modes, and so on, which is read and
written many times faster than a row for each file. It is whole, or says only what differs from an earlier one, its
`base`. It is kept as a blob beside the contents, and its object id is kept in the sealed records: since it names its
base by object id too, a manifest that was tampered with isn't read.
"""

from __future__ import annotations

import json
import sys
from array import array
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from threading import Lock
from typing import Any

from policies.errors import Unavailable
from runtimes.files.content_ids import LARGE
from runtimes.files.tree import Entry, Manifest

_VERSION = 2
# Columns by the field of an entry, each with the type of its numbers.
_NUMBERS = ((1, "H"), (2, "I"), (3, "I"), (4, "q"), (5, "Q"), (11, "Q"), (12, "q"), (13, "I"))
_HASH = 64
_KINDS = {LARGE: "f"}  # in its column


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A manifest as it was read: whole, or what differs from `base`, which has `depth` - 1 bases of its own."""

    base: str
    depth: int
    entries: dict[bytes, Entry]
    removed: tuple[bytes, ...]
    taken: int
    settled: bool

    def on(self, base: Manifest | None) -> Manifest:
        """The manifest that this makes of its base."""
        if base is None:
            return Manifest(entries=self.entries, taken=self.taken, settled=self.settled)
        made = {**base.entries, **self.entries}
        for path in self.removed:
            del made[path]
        if any(path not in base.entries for path in self.entries):
            made = dict(sorted(made.items()))
        return Manifest(entries=made, taken=self.taken, settled=self.settled)


def encode(manifest: Manifest) -> bytes:
    """The written form of a whole manifest."""
    return _encode(manifest, manifest.entries, (), "", 0)


def encode_on(manifest: Manifest, base: Manifest, oid: str, depth: int) -> bytes | None:
    """What differs from `base`, which is written as `oid`; None where that isn't worth it."""
    changed, removed = apart(base.entries, manifest.entries)
    new = manifest.entries
    if (len(changed) + len(removed)) * 4 > len(new):
        return None
    return _encode(manifest, changed, tuple(sorted(removed)), oid, depth)


def _encode(
    manifest: Manifest, entries: Mapping[bytes, Entry], removed: tuple[bytes, ...], base: str, depth: int
) -> bytes:
    paths = sorted(entries)
    rows = [entries[path] for path in paths]
    fields = list(zip(*rows, strict=True)) if rows else [()] * len(Entry._fields)
    kinds = "".join(
        "L" if kind == "f" and oid[:1] == LARGE else kind for kind, oid in zip(fields[0], fields[6], strict=True)
    )
    columns: list[bytes] = [b"\0".join(paths), b"\0".join(removed), kinds.encode("ascii")]
    wide: dict[str, list[int]] = {}
    for number, letter in _NUMBERS:
        try:
            columns.append(_column(letter, fields[number]))
        except OverflowError:  # a time after the year 2262
            columns.append(b"")
            wide[str(number)] = list(fields[number])
    columns.append(bytes.fromhex("".join(oid[-_HASH:] for oid in fields[6])))
    rare = [
        [number, row.target.decode("latin-1"), row.rdev, _xattrs(row), row.group.decode("latin-1")]
        for number, row in enumerate(rows)
        if row.target or row.rdev or row.xattrs or row.group
    ]
    head = {
        "version": _VERSION,
        "taken": manifest.taken,
        "settled": manifest.settled,
        "base": base,
        "depth": depth,
        "count": len(rows),
        "removed": len(removed),
        "sizes": [len(column) for column in columns],
        "wide": wide,
        "rare": rare,
    }
    return json.dumps(head, separators=(",", ":"), sort_keys=True).encode("ascii") + b"\n" + b"".join(columns)


def decode(data: bytes) -> Written:
    """Read what `encode` or `encode_on` wrote. Raises Unavailable for anything else."""
    try:
        line, _, rest = data.partition(b"\n")
        head = json.loads(line)
        if head["version"] != _VERSION:
            raise ValueError("another version")
        columns, start = [], 0
        for size in head["sizes"]:
            columns.append(rest[start : start + size])
            start += size
        if start != len(rest) or len(columns) != len(_NUMBERS) + 4:
            raise ValueError("it is cut")
        return Written(
            base=str(head["base"]),
            depth=int(head["depth"]),
            entries=_entries(head, columns),
            removed=tuple(columns[1].split(b"\0")) if head["removed"] else (),
            taken=int(head["taken"]),
            settled=bool(head["settled"]),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise Unavailable(f"A snapshot's manifest can't be read: {error}.") from error


def _entries(head: dict[str, Any], columns: list[bytes]) -> dict[bytes, Entry]:
    count = int(head["count"])
    if not count:
        return {}
    paths = columns[0].split(b"\0")
    kinds = columns[2].decode("ascii")
    made: dict[int, list[Any]] = {}
    for (number, letter), column in zip(_NUMBERS, columns[3:-1], strict=True):
        made[number] = head["wide"].get(str(number)) or _numbers(letter, column)
        if len(made[number]) != count:
            raise ValueError("a column is cut")
    text = columns[-1].hex()
    hashes = iter([text[start : start + _HASH] for start in range(0, len(text), _HASH)])
    made[0] = [_KINDS.get(kind, kind) for kind in kinds]
    made[6] = [next(hashes) if kind == "f" else LARGE + next(hashes) if kind == LARGE else "" for kind in kinds]
    fields = [made.get(number, repeat(default, count)) for number, default in enumerate(_DEFAULTS)]
    rows = list(map(_made, zip(*fields, strict=True)))
    for number, target, rdev, xattrs, group in head["rare"]:
        rows[number] = rows[number]._replace(
            target=target.encode("latin-1"),
            rdev=rdev,
            xattrs=tuple((name, b64decode(value)) for name, value in xattrs),
            group=group.encode("latin-1"),
        )
    if not len(paths) == len(rows) == count or next(hashes, ""):
        raise ValueError("the columns don't fit")
    return dict(zip(paths, rows, strict=True))


_DEFAULTS: tuple[Any, ...] = (None, 0, 0, 0, 0, 0, "", b"", 0, (), b"", 0, 0, 1)
_made: Callable[[Iterable[Any]], Entry] = partial(tuple.__new__, Entry)


def _column(letter: str, values: Iterable[int]) -> bytes:
    made = array(letter, values)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()


def _numbers(letter: str, data: bytes) -> list[int]:
    made = array(letter)
    made.frombytes(data)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tolist()


def _xattrs(entry: Entry) -> list[list[str]]:
    return [[name, b64encode(value).decode("ascii")] for name, value in entry.xattrs]


def apart(old: Mapping[bytes, Entry], new: Mapping[bytes, Entry]) -> tuple[dict[bytes, Entry], set[bytes]]:
    """What is new or another entry in `new`, and the paths that it lacks. Entries that both share cost little."""
    if old is new:
        return {}, set()
    changed = {path: entry for path, entry in new.items() if (was := old.get(path)) is not entry and was != entry}
    return changed, old.keys() - new.keys()


def equal(one: Manifest, other: Manifest) -> bool:
    """Whether two trees are the same by the equality that undo promises."""
    changed, gone = apart(one.entries, other.entries)
    there = one.entries
    return not gone and all(path in there and there[path].essence == entry.essence for path, entry in changed.items())


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
        any(now.mode & 0o777 in (side.mode & 0o777, 0o600) for side in whole)  # 0600: while its attributes are set
        and any(now.uid == side.uid for side in whole)
        and any(now.gid == side.gid for side in whole)
        and any(now.mtime == side.mtime for side in whole)
        and all(pair in known for pair in now.xattrs)
    )


_CACHED = 300_000  # entries


class Cache:
    """Manifests that were read or written last, by their object ids, up to a number of entries in all."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[Manifest, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, oid: str) -> tuple[Manifest, int] | None:
        """A manifest, and how many it is made of."""
        with self._lock:
            found = self._held.get(oid)
            if found is not None:
                self._held.move_to_end(oid)
            return found

    def put(self, oid: str, manifest: Manifest, depth: int) -> None:
        with self._lock:
            self._held[oid] = manifest, depth
            self._held.move_to_end(oid)
            while sum(len(kept.entries) for kept, _ in self._held.values()) > _CACHED:
                self._held.popitem(last=False)
