"""`map.embedded.p50_ms`: one request in words mapped by the embedded proposer, in process, over the full catalog: all
of Google's services in every version beside those that come with GoEx, 28,000 methods.

(Before the mapper could import, this name stood for eight requests over the three services that it had then.)

The floor ranks the same methods for the same request by nothing but shared words, rare ones counting more, from
postings that are in memory. It fills no argument, checks nothing against a schema and chooses no scope, so a mapping
can't be had for less.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.mapper import Mapper
from mapper.store.catalog_reader import Store
from policies.actions import Intent
from tools.bench import catalogs
from tools.bench.catalogs import Built
from tools.bench.measure import Row, in_turn, row

NAME = "map.embedded.p50_ms"
LIMIT = 20


async def measure(built: Built | None = None, rounds: int = 600) -> tuple[Row, ...]:
    path = (built or catalogs.full()).path
    catalog = Catalog.open(path)
    mapper = Mapper(catalog, EmbeddedProposer(catalog))
    ranked = by_shared_words(path)
    asked, looked = cycle(catalogs.requests()), cycle(catalogs.requests())

    async def value() -> None:
        await mapper.map(Intent(text=next(asked)))

    async def floor() -> None:
        ranked(next(looked))

    timings = await in_turn(value, floor, rounds=rounds, seconds=20, warm=20)
    if catalog.store is not None:
        catalog.store.close()
    return (row(NAME, timings[0], "rank by shared words", timings[1]),)


def by_shared_words(path: Path) -> Callable[[str], Any]:
    """A function that gives the numbers of the methods that share most with a text."""
    lists: dict[str, list[int]] = defaultdict(list)
    store = Store(path)
    count = 0
    for number, method in enumerate(store.entries(main=False)):
        count = number + 1
        for word in _words(f"{method.service} {method.name} {method.description}"):
            lists[word].append(number)
    store.close()
    postings = {word: np.array(numbers) for word, numbers in lists.items()}

    def ranked(text: str) -> Any:
        shared = np.zeros(count, np.float32)
        for word in _words(text):
            found = postings.get(word)
            if found is not None:
                shared[found] += 1 / len(found)
        best = np.argpartition(-shared, min(LIMIT, count - 1))[:LIMIT]
        return best[np.argsort(-shared[best])]

    return ranked


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
