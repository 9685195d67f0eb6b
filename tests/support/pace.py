"""A measure of this machine at this moment, for tests of what a hostile text costs."""

from __future__ import annotations

import time


def pace() -> float:
    """Processor seconds that a small fixed loop takes now: 5 to 10 ms on an idle machine, more on a busy one.

    A bound that is a multiple of it holds wherever the tests run. How fast something is, a benchmark tells.
    """
    best = 60.0
    for _ in range(3):
        began, kept = time.process_time(), {}
        for number in range(60_000):
            kept[number & 1023] = f"{number}"
        best = min(best, time.process_time() - began)
    return best
