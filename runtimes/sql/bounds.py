"""Rows in steps of 1, 2, 5, 10, 20, 50, …: what is planned with says no exact number.

A count is an answer of the database to whoever chose the WHERE. The person is told a bound, the action is held to it,
and nobody learns more from either.
"""

from __future__ import annotations

MOST = 10**15


def stepped(rows: int) -> int:
    """The first step that isn't below `rows`; at least 1, since "none" is an answer too."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if rows <= factor * step or factor * step >= MOST:
                return factor * step
        step *= 10
