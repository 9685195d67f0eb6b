"""The catalogs that are measured: all of Google's services beside those that come with GoEx, or a part of them.

Rules: a catalog is imported in a process of its own, so that what an import leaves in memory burdens no measurement;
the full one is imported once a run, by the first group that needs it, into a folder that ends with the run.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mapper.importing.google import package_folder
from tools.bench import fresh

_REQUESTS = Path(__file__).resolve().parents[2] / "tests" / "vectors" / "requests.jsonl"


@dataclass(frozen=True, slots=True)
class Built:
    """A catalog with its search index. `documents`: the folder that it was imported from; `seconds`: how long that
    took, with the index, without the start of the process; `methods`: all that are ranked, bundled ones too."""

    path: Path
    documents: Path
    seconds: float
    methods: int


def requests() -> tuple[str, ...]:
    """Requests in everyday words, a hundred Google services among them, in the file's order."""
    return tuple(json.loads(line)["prompt"] for line in _REQUESTS.read_text(encoding="utf-8").splitlines())


def build(path: Path, documents: Path) -> Built:
    """Import a folder of discovery documents into a new catalog at `path`. Raises Unavailable when that fails."""
    done = fresh.run("import", path, documents)
    return Built(path, documents, done["seconds"], int(done["methods"]))


@cache
def full() -> Built:
    """The whole catalog. Raises Unavailable where google-api-python-client isn't installed."""
    documents = package_folder()
    folder = tempfile.TemporaryDirectory(prefix="goex-bench-")
    atexit.register(folder.cleanup)
    return build(Path(folder.name) / "catalog.db", documents)
