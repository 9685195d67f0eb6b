"""The journal as lines of JSON, for whoever keeps it elsewhere or checks it without GoEx. docs/audit.md has the format.

    {"goex":"journal","format":1, …}              what is in it
    {"number":1, …, "previous":…, "hash":…}       one row, oldest first
    {"end":true,"rows":…,"head":…,"sha256":…}     how many there are, where the chain ends, a hash over all lines before

Rules: plain ASCII, one object a line, whatever a row holds; each row has the hash before it and its own, so that it can
be recomputed alone; constant memory; nothing is left out but what wasn't wanted, and that is said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from goex import __version__
from goex.journal.chain import Journal, Row, stamp
from goex.journal.errors import JournalBroken
from goex.journal.head import Mark
from goex.journal.search import Wanted, walk_rows

FORMAT = 1


def export(journal: Journal, wanted: Wanted) -> Iterator[tuple[bytes, int]]:
    """Lines, some at a time, and how many rows they and those before them hold.

    Raises JournalBroken for a row that can't be read at all.
    """
    head, authenticated = journal.head()
    total, rows = hashlib.sha256(), 0

    def lines(*values: dict[str, Any]) -> bytes:
        made = b"".join(json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n" for value in values)
        total.update(made)
        return made

    yield lines(_first(journal, wanted, head, authenticated)), 0
    for portion in walk_rows(journal, wanted, head.count):
        rows += len(portion)
        yield lines(*(line(row, previous) for row, previous in portion)), rows
    last = {"end": True, "rows": rows, "head": _head(head), "authenticated": authenticated, "sha256": total.hexdigest()}
    yield lines(last), rows


def line(row: Row, previous: bytes) -> dict[str, Any]:
    """One row. `facts` is an object; where its text isn't the canonical one, that text stands beside it.

    Raises JournalBroken for a row whose columns aren't of our types.
    """
    texts = (row.at, row.action_id, row.agent, row.kind, row.from_state, row.to_state, row.facts)
    if not all(isinstance(text, str) for text in texts) or not isinstance(row.hash, bytes):
        raise JournalBroken(f"Row {row.number} isn't what was written.", next_step="goex log --verify")
    value: dict[str, Any] = {
        "number": row.number,
        "at": row.at,
        "action": row.action_id,
        "agent": row.agent,
        "kind": row.kind,
        "from": row.from_state,
        "to": row.to_state,
    }
    try:
        value["facts"] = json.loads(row.facts)
        plain = json.dumps(value["facts"], sort_keys=True, separators=(",", ":"), ensure_ascii=False) == row.facts
    except ValueError:
        value["facts"], plain = None, False
    if not plain:
        value["facts_text"] = row.facts
    return value | {"previous": previous.hex(), "hash": row.hash.hex()}


def _first(journal: Journal, wanted: Wanted, head: Mark, authenticated: bool) -> dict[str, Any]:
    asked = {
        name: stamp(value) if name in ("since", "until") else value.word if name == "risk" else value
        for name, value in asdict(wanted).items()
        if value and name not in ("before", "limit")
    }
    return {
        "goex": "journal",
        "format": FORMAT,
        "made": stamp(journal.clock()),
        "by": __version__,
        "wanted": asked,
        "whole": not asked,
        "head": _head(head),
        "authenticated": authenticated,
    }


def _head(head: Mark) -> dict[str, Any]:
    return {"number": head.count, "hash": head.hash.hex()}
