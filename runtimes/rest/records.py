"""What an action sent and what was answered: the record that undo and a restart stand on.

Rules: a request that can change something is written down as sent before it leaves, its answer before anything that
follows it. The record holds what the gateway saw (redacted already), never what the container printed. It is sealed
and dropped by a commit. A large answer keeps only the fields that the undo asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, MissingValue, canonical, parse
from policies.typed_json import SPARSE, from_json, to_json
from runtimes.base import Records
from runtimes.gateway.plan import Exchange
from runtimes.rest.references import look

RECORD = "answers"
MAX_KEPT = 256_000  # bytes of one answer that are kept whole
MAX_RECORD = 64_000_000
_FORGOTTEN = b"forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. `captured` maps a path to its value where the body was too large to keep (`whole` False)."""

    status: int
    well: bool
    failed: str
    body: JsonValue
    text: str
    whole: bool = True
    captured: Mapping[str, JsonValue] = field(default_factory=dict)
    sha256: str = ""
    # It isn't well, and doesn't say that nothing was done.
    unsure: bool = field(default=False, metadata=SPARSE)

    @classmethod
    def of(cls, exchange: Exchange, wanted: Iterable[str]) -> Answer:
        """Take from `exchange` what is kept; `wanted` are the paths that an undo asks for."""
        data = canonical(exchange.body)
        kept = cls(
            status=exchange.status,
            well=exchange.well,
            failed=exchange.failed[:500],
            body=exchange.body,
            text=exchange.text[:4000],
            sha256=hashlib.sha256(data).hexdigest(),
        )
        if len(data) <= MAX_KEPT:
            return kept
        captured: dict[str, JsonValue] = {}
        for path in wanted:
            try:
                captured[path] = look(exchange.body, path)
            except InvalidInput:
                continue  # the undo that wants it says so when it is planned
        return replace(kept, body=None, whole=False, captured=captured)

    @property
    def doubtful(self) -> bool:
        """Whether it leaves open if the request had its effect: the server (or one before it) broke down over it, or
        what it said of something other than a refusal can't be read."""
        if self.well:
            return False
        unread = 100 <= self.status < 400 and self.body is None and self.whole
        return unread or self.unsure or self.status == 408 or self.status >= 500

    def value(self, path: str) -> Any:
        """The value at `path`. Raises MissingValue."""
        if self.whole:
            return look(self.body, path)
        if path not in self.captured:
            raise MissingValue(f"There is nothing at {path}, as far as the answer was kept.")
        return self.captured[path]

    def result(self) -> dict[str, JsonValue]:
        """As it stands in an outcome."""
        made: dict[str, JsonValue] = {"status": self.status or None, "body": self.body}
        if self.text:
            made["text"] = self.text
        if not self.whole:
            made["cut"] = True
        return made


@dataclass(slots=True)
class CallRecord:
    """The record of one run. `turn` counts how often the action was done again (a redo is another turn)."""

    turn: int = 0
    sent: list[str] = field(default_factory=list)  # ids of requests that aren't reads, in order
    answers: dict[str, Answer] = field(default_factory=dict)
    undone: list[int] = field(default_factory=list)  # calls that were taken back since
    doubtful: list[int] = field(default_factory=list)  # calls whose undo was sent and not confirmed
    undo: JsonValue = None  # the undo of a later turn; None: the plan's own

    @property
    def unsettled(self) -> tuple[str, ...]:
        """What left this machine without it being known whether it had its effect."""
        return tuple(id for id in self.sent if id not in self.answers or self.answers[id].doubtful)

    def done(self, id: str) -> bool:
        """Whether a request was answered well."""
        return id in self.answers and self.answers[id].well

    def save(self, records: Records) -> None:
        """Write it durably."""
        records.put(RECORD, canonical(to_json(self)))

    @classmethod
    def load(cls, records: Records) -> CallRecord | None:
        """The record of an action; None when nothing was sent yet, or it was forgotten."""
        data = records.get(RECORD)
        if not data or data == _FORGOTTEN:
            return None
        value = parse(data, limit=MAX_RECORD, what="The record of this action")
        return from_json(cls, value, "The record of this action")


def forget(records: Records) -> None:
    """Drop what was recorded. Idempotent."""
    if records.get(RECORD) != _FORGOTTEN:
        records.put(RECORD, _FORGOTTEN)


def is_forgotten(records: Records) -> bool:
    """Whether a commit dropped the record."""
    return records.get(RECORD) == _FORGOTTEN
