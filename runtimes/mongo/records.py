"""What the runtime writes down about one action and reads back: documents as they were and as they are, which undo and
redo restore and compare with, and `db.state`, which says how far the action came, as far as GoEx knows.

    prepared   nothing was done
    writing    one by one (a server without transactions): `step` is the operation that is under way
    done       as the action left it
    moving     an undo or redo has begun, one by one; `was` is where it began
    undone     as it was before the action
    nothing    it was rolled back, or never ran
    forgotten  committed: what undo needs is gone
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bson.decimal128 import Decimal128

from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse
from runtimes.base import Records
from runtimes.mongo.extjson import decode, encode
from runtimes.sql.records import has_image, read_image, write_image

At = Literal["prepared", "writing", "done", "moving", "undone", "nothing", "forgotten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`written`: how many documents of the step were, for certain; None: an older version, which noted nothing. `whole`
    False: it ended part of the way; `doubts` documents were being written then. `counts` are (collection, what,
    documents)."""

    at: At
    step: int = 0
    written: int | None = None
    was: At = "prepared"
    whole: bool = True
    doubts: int = 0
    counts: tuple[tuple[str, str, int], ...] = ()


def read_state(records: Records) -> State:
    """The state as it was last written; `prepared` when none was."""
    data = records.get("db.state")
    if data is None:
        return State(at="prepared")
    try:
        found = parse(data)
        return State(
            at=found["at"],
            step=found["step"],
            written=found.get("written"),
            was=found["was"],
            whole=found["whole"],
            doubts=found["doubts"],
            counts=tuple((name, how, number) for name, how, number in found["counts"]),
        )
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise Conflict("What GoEx noted of this action can't be read.", next_step="goex log --verify") from error


def write_state(records: Records, state: State) -> None:
    noted = {"at": state.at, "step": state.step, "was": state.was, "whole": state.whole, "doubts": state.doubts}
    counts = [list(one) for one in state.counts]
    records.put("db.state", canonical({**noted, "written": state.written, "counts": counts}))


DOCUMENTS = "docs"  # the image of what an action changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One document: `id` is `{"_id": …}` as BSON."""

    collection: str
    id: bytes
    before: bytes | None
    after: bytes | None

    @property
    def filter(self) -> dict[str, Any]:
        return {"_id": {"$eq": decode(self.id)["_id"]}}

    @property
    def key(self) -> tuple[str, bytes]:
        return self.collection, id_key(self.id)

    @property
    def size(self) -> int:
        return len(self.before or b"") + len(self.after or b"")

    @property
    def reversed(self) -> Change:
        return replace(self, before=self.after, after=self.before)


def id_of(document: bytes) -> bytes:
    """`{"_id": …}` of a document, as BSON."""
    return encode({"_id": decode(document).get("_id")})


def id_key(id: bytes) -> bytes:
    """The same for ids that the server holds to be equal: 1, 1.0 and NumberDecimal("1") are. Never written down."""
    value = decode(id)["_id"]
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        if number.is_finite() and number == int(number):
            return b"number %x" % int(number)
    elif isinstance(value, float):
        if value.is_integer():
            return b"number %x" % int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return b"number %x" % int(value)
    return id


@dataclass(slots=True)
class Touched:
    """What a program changed so far. A document that is changed twice has its first side and its last."""

    changes: dict[tuple[str, bytes], Change] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # (collection, "inserted" …): documents
    size: int = 0  # bytes

    def add(self, change: Change, how: str) -> None:
        """Note one change that was made."""
        known = self.changes.get(change.key)
        if known is not None:
            self.size -= known.size
            change = replace(change, id=known.id, before=known.before)
        self.changes[change.key] = change
        self.size += change.size
        self.count(change.collection, how, 1)

    def count(self, collection: str, how: str, number: int) -> None:
        self.counts[collection, how] = self.counts.get((collection, how), 0) + number

    def changed(self) -> tuple[Change, ...]:
        """The documents that are another now, in the order in which they were first changed."""
        return tuple(change for change in self.changes.values() if change.before != change.after)


def keep(records: Records, name: str, changes: Iterable[Change], *, most: int | None) -> None:
    """Write the changes down, durably. Raises Conflict when they are more than `most` bytes; None, for what has taken
    effect already: all are kept."""
    write_image(records, name, (_packed(change) for change in changes), most=most)


def is_kept(records: Records, name: str) -> bool:
    return has_image(records, name)


def kept(records: Records, name: str) -> tuple[Change, ...]:
    """The changes that were written down. Raises Conflict when they aren't as they were written."""
    waiting = bytearray()
    found: list[Change] = []
    for piece in read_image(records, name):
        waiting += piece
        while len(waiting) >= 4 and len(waiting) >= (size := struct.unpack_from("<i", waiting)[0]):
            found.append(_unpacked(bytes(waiting[:size])))
            del waiting[:size]
    if waiting:
        raise Conflict("What undo needs isn't as it was written.", next_step="goex log --verify")
    return tuple(found)


def _packed(change: Change) -> bytes:
    return encode({"c": change.collection, "i": change.id, "b": change.before, "a": change.after})


def _unpacked(packed: bytes) -> Change:
    found: Mapping[str, Any] = decode(packed)
    return Change(collection=found["c"], id=found["i"], before=found["b"], after=found["a"])


class Lifted:
    """The documents that a move has taken out and not put back yet. Each is written down by itself: a list of them
    would be written anew for every one."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._names: dict[tuple[str, bytes], str] = {}  # of their records
        self._count = 0
        while (noted := records.get(f"db.lifted.{self._count}")) is not None:
            if noted:
                self._names[_unpacked(noted).key] = f"db.lifted.{self._count}"
            self._count += 1
        if is_kept(records, "lifted"):  # the list of an older version
            for change in kept(records, "lifted"):
                if change.key not in self._names:  # taken over before a crash
                    self.out(change)
            keep(records, "lifted", (), most=None)

    @property
    def keys(self) -> frozenset[tuple[str, bytes]]:
        return frozenset(self._names)

    def out(self, change: Change) -> None:
        """Before it is taken out."""
        name = f"db.lifted.{self._count}"
        self._records.put(name, _packed(replace(change, before=None, after=None)))
        self._names[change.key] = name
        self._count += 1

    def back(self, *keys: tuple[str, bytes]) -> None:
        """They are there again: somebody who takes them out from now on isn't this move."""
        for key in keys:
            if name := self._names.pop(key, ""):
                self._records.put(name, b"")


def by_collection(changes: Iterable[Change]) -> Iterator[tuple[str, list[Change]]]:
    """The changes of each collection, in order."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.collection, []).append(change)
    yield from found.items()
