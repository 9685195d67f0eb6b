"""The comparison that a write carries where there are no transactions: it finds a document only while it is unchanged.

Where the server can, it compares the document as a whole, with the order of its fields, and its size, which tells a
32-bit number from others. Servers that only speak MongoDB's protocol often can't: then plain fields are compared one by
one. Either comes after GoEx's own comparison of every byte; it closes the moment in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bson.datetime_ms import DatetimeMS

from policies.errors import InvalidInput, Unsupported
from runtimes.mongo.backend import Unit
from runtimes.mongo.extjson import decode
from runtimes.mongo.operations import Filter

_PLAIN = (str, bool, int, float, DatetimeMS)


@dataclass(slots=True)
class Guards:
    """Made for one run; the first document that is guarded shows what the server can."""

    unit: Unit
    whole: bool | None = None

    def of(self, collection: str, document: bytes) -> Filter:
        """Finds this document alone, while it is as in these bytes."""
        if self.whole is None:
            self.whole = self._can(collection, document)
        return whole_guard(document) if self.whole is not False else plain_guard(document)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the person is told of a server that can't."""
        if self.whole is not False:
            return ()
        return (
            "This server can't compare whole documents while it writes: what somebody changed in the moment between "
            "was noticed in plain fields (text, numbers, dates) alone",
        )

    def _can(self, collection: str, document: bytes) -> bool | None:
        try:
            if next(iter(self.unit.find(collection, whole_guard(document), limit=1)), None) is not None:
                return True
        except (InvalidInput, Unsupported):
            return False
        id = {"_id": {"$eq": decode(document)["_id"]}}
        unchanged = next(iter(self.unit.find(collection, id, limit=1)), None) == document
        return False if unchanged else None  # None: somebody changed it, which says nothing of the server


def whole_guard(document: bytes) -> Filter:
    whole = decode(document)
    same: list[dict[str, Any]] = [
        {"$eq": ["$$ROOT", {"$literal": whole}]},
        {"$eq": [{"$bsonSize": "$$ROOT"}, len(document)]},
    ]
    return {"_id": {"$eq": whole["_id"]}, "$expr": {"$and": same}}


def plain_guard(document: bytes) -> Filter:
    """By the fields whose values every server compares alike."""
    whole = decode(document)
    fields = {
        key: {"$eq": value}
        for key, value in whole.items()
        if key != "_id" and isinstance(value, _PLAIN) and "." not in key and not key.startswith("$")
    }
    return {"_id": {"$eq": whole["_id"]}, **fields}
