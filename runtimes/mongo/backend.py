"""What the runtime needs of a MongoDB server, and no more: so that a stand-in can inject every fault.

Documents travel as BSON bytes, exactly as the server has them: equal bytes are equal documents, with every type and the
order of every key. All calls block. A `Unit` is a transaction where the server has them, else a plain run of
statements that take effect one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from policies.errors import Conflict, GoexError
from runtimes.mongo.operations import Filter, Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the server said of itself. `remarks` are for the person, in plain words."""

    transactions: bool
    version: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """`refusal`: why its documents can't be written so that it can be taken back; "" when they can be."""

    name: str
    kind: Literal["collection", "view", "other"] = "collection"
    refusal: str = ""
    stands_on: frozenset[str] = frozenset()  # of a view: the collections and views that it names
    script: bool = False  # of a view: whether its pipeline has the server run JavaScript
    rule: Filter = field(default_factory=dict)  # its validator, when the server refuses what breaks it
    expires: bool = False  # the server deletes documents of it by itself


class Duplicate(Conflict):
    """A unique index has that key already. `index` is its name, without any value."""

    def __init__(self, index: str) -> None:
        super().__init__(f"The unique index {index!r} has such a key already.")
        self.index = index


class Transient(GoexError):
    """The transaction was rolled back by no fault of its own, and may be tried again from its beginning."""

    code = "unavailable"


class CommitUnknown(GoexError):
    """Whether the transaction was committed isn't known. `commit` may be called again: it can't happen twice."""

    code = "unknown"


class Vanished(GoexError):
    """The connection was lost while a statement outside of a transaction was under way: it may have taken effect."""

    code = "unknown"


class Unit(Protocol):
    """Statements in one transaction, or without one. Each may raise Transient (in a transaction), Vanished (a write
    outside of one), Duplicate, Unavailable, and InvalidInput for what the server refuses; errors quote no data."""

    @property
    def session(self) -> bytes:
        """What `Backend.end` knows its transaction by; empty without one."""
        ...

    def find(
        self, collection: str, filter: Filter, *, sort: Mapping[str, Any] | None = None, limit: int = 0
    ) -> Iterator[bytes]: ...

    def read(self, read: Read, most: int) -> Iterator[bytes]:
        """What a reading operation finds, as documents: at most `most`. A count is `{"count": n}`, the values of a
        distinct are `{"values": […]}`."""
        ...

    def count(self, collection: str, filter: Filter, most: int) -> int:
        """How many documents a filter finds, `most` at most. Of an empty one, outside of a transaction, no document is
        looked at."""
        ...

    def insert(self, collection: str, documents: Sequence[bytes]) -> None:
        """Insert them in order, up to the first that can't be."""
        ...

    def update(
        self,
        collection: str,
        filter: Filter,
        change: Mapping[str, Any] | list[Any],
        *,
        array_filters: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Change all that the filter finds."""
        ...

    def replace(self, collection: str, filter: Filter, document: bytes) -> int:
        """Put the document in the place of the one that is found; how many were (0 or 1)."""
        ...

    def delete(self, collection: str, filter: Filter) -> int: ...

    def change(
        self,
        collection: str,
        filter: Filter,
        change: Mapping[str, Any] | list[Any] | bytes,
        *,
        array_filters: Sequence[Mapping[str, Any]] = (),
        upsert: bool = False,
    ) -> bytes | None:
        """Change one document, or put one in its place (bytes), and return it as it is then; None: none was found.
        `upsert`: then one is made."""
        ...

    def commit(self) -> None:
        """Raises Transient (rolled back), CommitUnknown. Nothing to do without a transaction."""
        ...

    def abort(self) -> None:
        """Idempotent; never raises."""
        ...


class Backend(Protocol):
    """One database, as one user."""

    @property
    def facts(self) -> Facts: ...

    def collections(self, looked_into: Sequence[str] = ()) -> Mapping[str, Collection]:
        """The collections that are there; the indexes of those that are `looked_into`."""
        ...

    def make(self, collection: str) -> None:
        """Make a collection that isn't there. Idempotent."""
        ...

    def begin(self) -> Unit:
        """A transaction, where the server has them; else a unit without one."""
        ...

    def plain(self, *, through: bool = False) -> Unit:
        """A unit without a transaction, whatever the server has. `through`: `interrupt` doesn't end it, since it brings
        to an end what can't be left as it is."""
        ...

    def end(self, session: bytes) -> None:
        """End a transaction that an earlier process left open, if it isn't being committed. Never raises: whether it
        helped shows by what is there."""
        ...

    def interrupt(self) -> None:
        """From another thread: no statement begins any more (Conflict)."""
        ...

    def close(self) -> None:
        """Idempotent; never raises."""
        ...
