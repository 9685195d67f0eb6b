"""`log.verify.rows_per_s`: rows of a journal of 100,000 that `goex log --verify` checks in a second: each row's hash
recomputed, the end compared with the head and its MAC, each action with what its rows say.

The floor reads the same rows by plain sqlite3 and hashes the bytes of their texts, one hash over all: what no check can
do without. Both are rates: more is better, the 95th percentile is that of the slower rounds, and the ratio is below 1.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from pathlib import Path

from goex.journal.chain import Journal
from tools.bench import journals
from tools.bench.measure import Row, in_turn

NAME = "log.verify.rows_per_s"


async def measure(rows: int = journals.ROWS, rounds: int = 10) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        journal = Journal(Path(folder) / "state.db", Path(folder) / "journal.head")
        journal.unlock(b"j" * 32)
        journals.fill(journal, rows)
        plain = sqlite3.connect(Path(folder) / "state.db")

        async def value() -> None:
            found = journal.verify()
            assert found.good and found.authenticated and found.rows == rows, found

        async def floor() -> None:
            total, count = hashlib.sha256(), 0
            columns = "at, action_id, agent, kind, from_state, to_state, facts"
            for texts in plain.execute(f"SELECT {columns} FROM journal ORDER BY number"):
                total.update("".join(texts).encode())
                count += 1
            assert count == rows

        values, floors = await in_turn(value, floor, rounds=rounds, seconds=30)
        plain.close()
        journal.close()
    return (
        Row(
            name=NAME,
            value=_rate(rows, values.p50),
            floor_name="the rows read by sqlite3 and hashed",
            floor=_rate(rows, floors.p50),
            p95=_rate(rows, values.p95),
            floor_p95=_rate(rows, floors.p95),
            rounds=len(values.each),
            unit="rows/s",
        ),
    )


def _rate(rows: int, milliseconds: float) -> float:
    return rows / (milliseconds / 1e3)
