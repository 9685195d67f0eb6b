"""`journal.append.p50_ms`: one row of the chain in a transaction of its own, on disk when it returns.

The floor is the same row, with the same index, by plain sqlite3 in WAL with `synchronous=FULL` in the same folder:
one sync. The journal syncs twice, since its head says where the chain is about to be before the row is committed.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from goex.journal.chain import Journal
from tools.bench.measure import Row, in_turn, row

NAME = "journal.append.p50_ms"
_ACTION, _AGENT = "a-0123456789ab", "agent-1"
_FACTS = {"request": "call-0", "text": "POST https://slack.com/api/chat.postMessage"}


async def measure() -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        journal = Journal(Path(folder) / "state.db", Path(folder) / "journal.head")
        journal.unlock(b"j" * 32)
        journal.append("request", action_id=_ACTION, agent=_AGENT, facts=_FACTS)
        same = journal.rows(limit=1)[0]
        plain = sqlite3.connect(Path(folder) / "plain.db", isolation_level=None)
        plain.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE journal (number INTEGER PRIMARY KEY, at TEXT, action_id TEXT, agent TEXT, kind TEXT,"
            " from_state TEXT, to_state TEXT, facts TEXT, hash BLOB);"
            "CREATE INDEX by_action ON journal (action_id);"
        )
        columns = (same.at, same.action_id, same.agent, same.kind, same.from_state, same.to_state, same.facts)

        async def value() -> None:
            journal.append("request", action_id=_ACTION, agent=_AGENT, facts=_FACTS)

        async def floor() -> None:
            plain.execute("BEGIN IMMEDIATE")
            plain.execute("INSERT INTO journal VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", (*columns, same.hash))
            plain.execute("COMMIT")

        timings = await in_turn(value, floor, rounds=400, seconds=10, warm=10)
        assert journal.verify().good
        plain.close()
        journal.close()
    return (row(NAME, timings[0], "the row by sqlite3, FULL, WAL", timings[1]),)
