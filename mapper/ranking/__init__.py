"""Which services and methods a request may mean: ranking over everything that is imported or bundled.

`build` makes the index in the catalog's file; `mapper.ranking.index.Index` answers from it. Both need numpy, which is
loaded by the first of them that is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def build(path: Path, progress: Callable[..., None] | None = None) -> None:
    """Make the index of the catalog at `path` anew, in one transaction. About 15 s for all of Google's services.

    `progress` is called with the number of steps done, of all steps, and the name of the next. Raises StoreUnreadable.
    """
    from mapper.ranking import tables

    tables.rebuild(path, progress)
