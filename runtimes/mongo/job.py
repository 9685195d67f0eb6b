"""One action on one database, and what it did. Here is also what both ways of running it share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from policies.errors import Conflict, Unsupported
from policies.jsonvalue import JsonValue
from runtimes.base import Records
from runtimes.mongo.backend import Unit
from runtimes.mongo.extjson import decode, has_unset
from runtimes.mongo.operations import Filter, Program, Write, equal_id
from runtimes.mongo.records import Change, Touched, by_collection, id_key, id_of
from runtimes.sql.contract import Limits

T = TypeVar("T")
CHUNK = 500  # documents that are asked for at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`program` has its ids; `rows` is how many documents it may change at most."""

    id: str
    program: Program
    rows: int
    limits: Limits
    records: Records
    progress: Callable[[str], None] = lambda text: None
    rules: Mapping[str, Filter] = field(default_factory=dict)  # by collection: its validator, where it has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program, its trial or a revert did. `whole` False: it stopped part of the way."""

    counts: tuple[tuple[str, str, int], ...]  # (collection, "inserted" …, documents)
    changes: tuple[Change, ...] = ()
    results: tuple[JsonValue, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = True


@dataclass(slots=True)
class Budget:
    """How many documents, and how many bytes of them (`most`), one action may change, and of which kind."""

    rows: int
    most: int
    rules: Mapping[str, Filter]
    touched: Touched = field(default_factory=Touched)
    last: Change | None = None  # that was made

    @classmethod
    def of(cls, job: Job) -> Budget:
        return cls(rows=job.rows, most=job.limits.image_bytes, rules=job.rules)

    def matched(self, unit: Unit, write: Write) -> list[bytes]:
        """The documents that a write would change now. Raises Conflict when that is beyond a bound, Unsupported for
        documents that the server wouldn't take again."""
        found: list[bytes] = []
        size = self.touched.size
        limit = self.rows + 1 if write.many else 1
        for document in unit.find(write.collection, write.filter, sort=write.sort, limit=limit):
            found.append(document)
            size += len(document)
            if size > self.most:
                raise too_large(self.most)
        keys = {(write.collection, id_key(id_of(one))) for one in found}
        if len(keys) < len(found):
            raise _twice(write.collection)
        self.check(len(keys - self.touched.changes.keys()))
        for document in found:
            refuse_unset(document)
        if rule := self.rules.get(write.collection):
            for part in chunks(found):
                broken = pinned(ids_filter(map(id_of, part)), {"$nor": [rule]})
                if next(iter(unit.find(write.collection, broken, limit=1)), None) is not None:
                    raise Unsupported(
                        f"A document of {write.collection} is older than the rules of its collection (its validator), "
                        "which would refuse to have it back.",
                        next_step="Bring such documents in line with the rules by hand, outside of GoEx.",
                    )
        return found

    def add(self, change: Change, how: str) -> None:
        """Note one change that was made. Raises as `matched` does, after that."""
        self.touched.add(change, how)
        self.last = change
        if self.touched.size > self.most:
            raise too_large(self.most)
        if change.after is not None:
            refuse_unset(change.after)

    def check(self, new: int) -> None:
        """Raise Conflict when `new` documents more are too many."""
        if len(self.touched.changes) + new > self.rows:
            raise Conflict(
                f"It would change more documents than were planned with ({self.rows}).",
                next_step="Ask again: the plan is then made with the documents that are there now.",
            )


def refuse_unset(document: bytes) -> None:
    """Raise Unsupported for a document that comes back otherwise when it is put back."""
    if has_unset(decode(document)):
        raise Unsupported(
            "A document holds an empty timestamp, which the server fills in whenever the document is put back.",
            next_step="Give it a time first, or leave that document out.",
        )


def too_large(most: int) -> Conflict:
    return Conflict(
        f"What undo needs of this is larger than {most // 2**20} MB.",
        next_step="Change fewer documents at a time, or raise [databases] image_mb in config.toml.",
    )


def _twice(collection: str) -> Conflict:
    return Conflict(
        f"An _id of {collection} was found twice: somebody changes that document just now, or several have it, as a "
        "sharded collection allows. Those couldn't be told apart when this is taken back.",
        next_step="Ask again; or give each document an _id of its own, outside of GoEx.",
    )


def changed_meanwhile() -> Conflict:
    return Conflict("Somebody changed the documents while this ran.", next_step="Ask again.")


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def ids_filter(ids: Iterable[bytes]) -> dict[str, Any]:
    """Finds the documents with these ids alone."""
    return {"_id": {"$in": [decode(id)["_id"] for id in ids]}}


def pinned(condition: Filter, filter: Filter) -> Filter:
    """Both conditions. Side by side where they can be: operators that speak of "the element that was found" look into
    the filter's own fields."""
    if not condition.keys() & filter.keys():
        return {**condition, **filter}
    return {"$and": [condition, filter]}


def upserting(write: Write) -> Filter:
    """The filter of an upsert that found nothing: what it inserts has the `_id` that was made for it."""
    return write.filter if equal_id(write.filter) is not None else pinned({"_id": write.upsert_id}, write.filter)


def now(unit: Unit, changes: Iterable[Change]) -> Mapping[tuple[str, bytes], bytes]:
    """The documents of these changes as they are now; those that aren't there are left out. Raises Conflict where an
    `_id` doesn't name one document."""
    found: dict[tuple[str, bytes], bytes] = {}
    for collection, listed in by_collection(changes):
        for part in chunks(listed):
            for document in unit.find(collection, ids_filter(change.id for change in part)):
                key = (collection, id_key(id_of(document)))
                if key in found:
                    raise _twice(collection)
                found[key] = document
    return found


def counts_of(changes: Iterable[Change]) -> tuple[tuple[str, str, int], ...]:
    """What changes of documents come to."""
    found: dict[tuple[str, str], int] = {}
    for change in changes:
        how = "inserted" if change.before is None else "deleted" if change.after is None else "changed"
        found[change.collection, how] = found.get((change.collection, how), 0) + 1
    return tuple((collection, how, number) for (collection, how), number in found.items())
