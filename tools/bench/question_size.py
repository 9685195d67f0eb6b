"""`prompt.words`, `prompt.lines`: how long the short question is, over the corpus of `tools.prompts`.

The words are those beside the payload, the lines those on a terminal of 80 columns, with the payload and the answers.
The value is the median, beside the 95th percentile; the floor's place has the whole text, which is behind `?`.
"""

from __future__ import annotations

from mapper.catalog import Catalog
from tools import prompts
from tools.bench.measure import Row, Timings

NAME = "prompt.words"


async def measure() -> tuple[Row, ...]:
    catalog = Catalog.bundled()
    sizes = [prompts.size(case, catalog) for case in prompts.corpus()]
    return (
        _row(NAME, "words", [one.words for one in sizes], [one.words_whole for one in sizes]),
        _row("prompt.lines", "lines", [one.lines for one in sizes], [one.lines_whole for one in sizes]),
    )


def _row(name: str, unit: str, short: list[int], whole: list[int]) -> Row:
    value, beside = Timings(tuple(map(float, short))), Timings(tuple(map(float, whole)))
    return Row(
        name=name, value=value.p50, floor_name="the whole text", floor=beside.p50, p95=value.p95,
        floor_p95=beside.p95, rounds=len(short), unit=unit,
    )  # fmt: skip
