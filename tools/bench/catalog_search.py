"""`catalog.search.p50_ms`: the twenty methods that fit a request best, of the full catalog (28,000), ranked.

The requests are those of tests/vectors/requests.jsonl, longer than what people type into a search. Beside it stands no
floor but a peer: SQLite's FTS5 with its bm25 over the same methods' names and descriptions, any word of the request
sufficing, as a ranking needs it. It reads every method that has one of the words.
"""

from __future__ import annotations

import re
import sqlite3
from itertools import cycle
from pathlib import Path

from mapper.ranking.index import Index
from tools.bench import catalogs
from tools.bench.catalogs import Built
from tools.bench.measure import Row, in_turn, row

NAME = "catalog.search.p50_ms"
LIMIT = 20


async def measure(built: Built | None = None, rounds: int = 300) -> tuple[Row, ...]:
    path = (built or catalogs.full()).path
    index, peer = Index.open(path), _fts5(path)
    asked, looked = cycle(catalogs.requests()), cycle(catalogs.requests())

    async def value() -> None:
        index.search(next(asked), limit=LIMIT)

    async def floor() -> None:
        words = dict.fromkeys(re.findall(r"\w+", next(looked).lower()))
        wanted = " OR ".join(f'"{word}"' for word in words)
        peer.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", (wanted, LIMIT)).fetchall()

    timings = await in_turn(value, floor, rounds=rounds, seconds=25, warm=20)
    peer.close()
    return (row(NAME, timings[0], "a peer: SQLite FTS5, bm25", timings[1]),)


def _fts5(path: Path) -> sqlite3.Connection:
    """Names and descriptions of the catalog's methods, in memory."""
    peer = sqlite3.connect(":memory:")
    peer.execute("CREATE VIRTUAL TABLE said USING fts5(name, description, content='')")
    catalog = sqlite3.connect(path)
    rows = catalog.execute(
        "SELECT s.name || '.' || m.name, m.description FROM method m JOIN document d ON d.id = m.document_id"
        " JOIN service s ON s.id = d.service_id"
    )
    peer.executemany("INSERT INTO said (name, description) VALUES (?, ?)", rows)
    catalog.close()
    return peer
