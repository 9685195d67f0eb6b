"""How a time is measured, and what a row of the result holds.

Rules: a value and its floor are measured in turn, so that whatever else the machine does falls on both alike; the
first rounds are thrown away; what is reported is the median and the 95th percentile, never a mean or a best case.
Short operations are repeated within one round, and the round's time is divided.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Once = Callable[[], Awaitable[object]]

LEAST_ROUNDS = 5
_MOMENT, _MOSTLY = 0.1, 0.1  # seconds, and the share of them in which what is idle may work


@dataclass(frozen=True, slots=True)
class Timings:
    """The times of one operation, in milliseconds (or other measurements, in their row's unit)."""

    each: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """The smallest time that `share` (0 to 1) of all times don't exceed."""
        ordered = sorted(self.each)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    @property
    def p50(self) -> float:
        return self.percentile(0.5)

    @property
    def p95(self) -> float:
        return self.percentile(0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. Medians and 95th percentiles are in `unit`; `ratio` is value over floor."""

    name: str
    value: float
    floor_name: str
    floor: float
    p95: float
    floor_p95: float
    rounds: int
    unit: str = "ms"

    @property
    def ratio(self) -> float:
        return self.value / self.floor

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": _digits(self.value),
            "unit": self.unit,
            "floor_name": self.floor_name,
            "floor": _digits(self.floor),
            "ratio": _digits(self.ratio),
            "p95": _digits(self.p95),
            "floor_p95": _digits(self.floor_p95),
            "rounds": self.rounds,
        }


@contextmanager
def timed(into: list[float], operations: int = 1) -> Iterator[None]:
    """Append the milliseconds that one of `operations` took in this block."""
    began = time.perf_counter_ns()
    yield
    into.append((time.perf_counter_ns() - began) / 1e6 / operations)


async def in_turn(
    value: Once, floor: Once, *, rounds: int, seconds: float, operations: int = 1, warm: int = 2
) -> tuple[Timings, Timings]:
    """Measure `value` and `floor` in turn: up to `rounds` of each, fewer when `seconds` are over (never fewer than
    LEAST_ROUNDS). Each call of them does `operations` operations."""
    values: list[float] = []
    floors: list[float] = []
    until = time.monotonic() + seconds
    for number in range(warm + rounds):
        if number >= warm + LEAST_ROUNDS and time.monotonic() > until:
            break
        with timed(values, operations):
            await value()
        with timed(floors, operations):
            await floor()
    return Timings(tuple(values[warm:])), Timings(tuple(floors[warm:]))


async def quiet(longest: float = 5.0) -> None:
    """Returns when this machine's processors have been idle for a tenth of a second, or mostly; or it never is."""
    until = time.monotonic() + longest
    before = _processors()
    while time.monotonic() < until:
        await asyncio.sleep(_MOMENT)
        now = _processors()
        if now[0] - before[0] <= _MOSTLY * (now[1] - before[1]):
            return
        before = now


def _processors() -> tuple[int, int]:
    """How long all processors have worked, and how long they have been there: in ticks."""
    fields = [int(field) for field in Path("/proc/stat").read_text().partition("\n")[0].split()[1:]]
    return sum(fields) - fields[3] - fields[4], sum(fields)  # what waits for a disk is idle too


def row(name: str, value: Timings, floor_name: str, floor: Timings, *, unit: str = "ms") -> Row:
    """The medians of both, side by side."""
    return Row(
        name=name,
        value=value.p50,
        floor_name=floor_name,
        floor=floor.p50,
        p95=value.p95,
        floor_p95=floor.p95,
        rounds=len(value.each),
        unit=unit,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of plain text."""
    heads = ("name", "p50", "p95", "floor", "unit", "ratio", "rounds", "floor is")
    lines = [heads] + [
        (
            each.name,
            *(_short(number) for number in (each.value, each.p95, each.floor)),
            each.unit,
            _short(each.ratio),
            str(each.rounds),
            each.floor_name,
        )
        for each in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 0 < column < len(heads) - 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _digits(number: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{number:.4g}")


def _short(number: float) -> str:
    return f"{number:.5f}" if abs(number) < 0.01 else f"{number:.3f}" if abs(number) < 10 else f"{number:.1f}"
