"""`map.memory_mb` and `map.memory_peak_mb`: all the memory of a fresh process that has opened the full catalog and
mapped a hundred requests, after the last of them and at its highest.

That is more than what the mapper adds: it is the process as a whole (resident, libraries that others share counted in
full), in MB of 1,000,000 bytes. The floor is an interpreter with numpy and sqlite3 imported, which does nothing.
"""

from __future__ import annotations

from tools.bench import catalogs, fresh
from tools.bench.catalogs import Built
from tools.bench.measure import Row, Timings, row

NAME = "map.memory_mb"
REQUESTS = 100
_KINDS = {NAME: "mb", "map.memory_peak_mb": "peak_mb"}


async def measure(built: Built | None = None, rounds: int = 5, requests: int = REQUESTS) -> tuple[Row, ...]:
    path = (built or catalogs.full()).path
    values = [fresh.run("map", path, requests) for _ in range(rounds)]
    floors = [fresh.run("libraries") for _ in range(rounds)]
    return tuple(
        row(
            name,
            Timings(tuple(each[kind] for each in values)),
            "numpy and sqlite3 imported",
            Timings(tuple(each[kind] for each in floors)),
            unit="MB",
        )
        for name, kind in _KINDS.items()
    )
