"""One job in a fresh process: what it took is printed as JSON. `run` starts it, and knows what came of it.

Rules: this file imports nothing that a job doesn't need, so that its memory and its times are the job's own; the times
are taken after the modules are imported; memory is that of the whole process, interpreter and libraries too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def run(job: str, *values: object) -> dict[str, float]:
    """What a job took: `JOBS` says what. Raises Unavailable when it fails."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, job, *map(str, values)], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        from policies.errors import Unavailable

        last = (done.stderr.strip().splitlines() or ["no word of why"])[-1]
        raise Unavailable(f"The process that was to {job} failed: {last}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def imported(path: str, documents: str) -> dict[str, float]:
    """A folder of discovery documents into a new catalog, with its search index."""
    from mapper.catalog import Catalog
    from mapper.importing.install import import_google

    began = time.perf_counter()
    import_google(Path(path), Path(documents))
    seconds = time.perf_counter() - began
    methods = sum(len(service.methods) for service in Catalog.open(Path(path)).services.values())
    return {"seconds": seconds, "methods": methods, **memory()}


def opened(path: str) -> dict[str, float]:
    """A catalog with its ranking, ready for the first request."""
    from mapper.catalog import Catalog
    from mapper.embedded import EmbeddedProposer

    with _unchanged(path):
        began = time.perf_counter()
        _ = EmbeddedProposer(Catalog.open(Path(path))).index
        took = time.perf_counter() - began
    return {"ms": took * 1e3, **memory()}


def read(path: str) -> dict[str, float]:
    """The floor of opening: SQLite opens the file, and reads how many methods there are."""
    import sqlite3

    began = time.perf_counter()
    sqlite3.connect(path).execute("SELECT sum(methods) FROM service").fetchone()
    return {"ms": (time.perf_counter() - began) * 1e3, **memory()}


def mapped(path: str, count: str) -> dict[str, float]:
    """So many requests, by the embedded proposer, over a catalog that is opened for them."""
    import asyncio

    from mapper.catalog import Catalog
    from mapper.embedded import EmbeddedProposer
    from mapper.mapper import Mapper
    from policies.actions import Intent
    from tools.bench.catalogs import requests

    catalog = Catalog.open(Path(path))
    mapper = Mapper(catalog, EmbeddedProposer(catalog))

    async def all_of_them() -> None:
        for text in requests()[: int(count)]:
            await mapper.map(Intent(text=text))

    with _unchanged(path):
        began = time.perf_counter()
        asyncio.run(all_of_them())
        took = time.perf_counter() - began
    return {"ms": took * 1e3, **memory()}


def libraries() -> dict[str, float]:
    """The floor of memory: an interpreter with the two libraries that a ranking can't do without."""
    import sqlite3

    import numpy

    assert numpy.__version__ and sqlite3.sqlite_version
    return memory()


@contextmanager
def _unchanged(path: str) -> Iterator[None]:
    """An index that doesn't fit the lexicon any more is made anew by whoever opens it, which isn't what is measured."""
    before = Path(path).stat().st_mtime_ns
    yield
    if Path(path).stat().st_mtime_ns != before:
        raise SystemExit("the catalog's index was made anew; was the lexicon edited meanwhile?")


def memory() -> dict[str, float]:
    """This process's resident memory now and at its highest, in MB (of 1,000,000 bytes)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(fields[field].split()[0]) * 1024 / 1e6 for name, field in (("mb", "VmRSS"), ("peak_mb", "VmHWM"))}


JOBS: Mapping[str, Callable[..., dict[str, float]]] = {
    "import": imported,
    "open": opened,
    "read": read,
    "map": mapped,
    "libraries": libraries,
}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
