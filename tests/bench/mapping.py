"""`map.embedded.p50_ms`: one request in words mapped by the embedded proposer, in process, over the bundled catalog.

The floor ranks the same methods for the same request by nothing but shared words: split, intersect, sort. It fills no
argument, checks nothing against a schema and chooses no scope, so a mapping can't be had for less.
"""

from __future__ import annotations

from itertools import cycle

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.mapper import Mapper
from policies.actions import Intent
from tests.bench.measure import Row, in_turn, row

NAME = "map.embedded.p50_ms"

# Fixed: another list would be another measure.
REQUESTS = (
    'send slack msg "deploy is done" to #ops',
    "read the last 20 messages in channel C0ABCDEF12",
    'open an issue in acme/site titled "The menu is gone" with the body "Since this morning."',
    "close issue 12 in acme/site",
    "who is in the room #kitchen:example.org",
    'comment "looks good" on pull request 7 of acme/site',
    "create a slack channel called project-falcon",
    'set the topic of !kitchen:example.org to "Lunch at noon"',
)


async def measure() -> tuple[Row, ...]:
    catalog = Catalog.bundled()
    mapper = Mapper(catalog, EmbeddedProposer(catalog))
    texts = {
        method.id: frozenset(f"{method.id} {method.description} {' '.join(method.words)}".lower().split())
        for method in catalog.methods()
    }
    asked, ranked = cycle(REQUESTS), cycle(REQUESTS)

    async def value() -> None:
        await mapper.map(Intent(text=next(asked)))

    async def floor() -> None:
        words = set(next(ranked).lower().split())
        sorted(texts, key=lambda id: -len(words & texts[id]))

    timings = await in_turn(value, floor, rounds=40 * len(REQUESTS), seconds=10, warm=len(REQUESTS))
    return (row(NAME, timings[0], "rank by shared words", timings[1]),)
