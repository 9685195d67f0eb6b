"""`catalog.import_s`: all of Google's documents into a new catalog, with its search index, in seconds.

Once a run, since it takes long: its p50 and p95 are the one time. The floor parses the same documents as JSON, nothing
more.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress

from tools.bench import catalogs
from tools.bench.catalogs import Built
from tools.bench.measure import Row, Timings, row

NAME = "catalog.import_s"


async def measure(built: Built | None = None) -> tuple[Row, ...]:
    built = built or catalogs.full()
    began = time.perf_counter()
    for file in sorted(built.documents.glob("*.json")):
        with suppress(ValueError):  # a broken one is a problem that the import reports
            json.loads(file.read_bytes())
    floor = time.perf_counter() - began
    return (row(NAME, Timings((built.seconds,)), "parse the same JSON", Timings((floor,)), unit="s"),)
