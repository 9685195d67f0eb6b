"""`catalog.open.p50_ms`: the full catalog and its ranking, opened in a fresh process, ready for the first request.

The file is in the page cache, and the modules are imported, before the clock runs. The floor is SQLite opening the
same file and reading one row, in a fresh process as well.
"""

from __future__ import annotations

from tools.bench import catalogs, fresh
from tools.bench.catalogs import Built
from tools.bench.measure import Row, Timings, row

NAME = "catalog.open.p50_ms"


async def measure(built: Built | None = None, rounds: int = 15) -> tuple[Row, ...]:
    path = (built or catalogs.full()).path
    values, floors = [], []
    for _ in range(rounds):
        values.append(fresh.run("open", path)["ms"])
        floors.append(fresh.run("read", path)["ms"])
    return (row(NAME, Timings(tuple(values)), "SQLite opens it, reads a row", Timings(tuple(floors))),)
