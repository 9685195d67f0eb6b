"""Properties with as many examples as a run has time for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings


def sized(some: int, many: int, *strategies: Any, **named: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `given`: that many examples in `make test`, and `many` in `make thorough`."""

    def of(test: Callable[..., None]) -> Callable[..., None]:
        def run(thorough: bool) -> None:
            settings(max_examples=many if thorough else some)(given(*strategies, **named)(test))()

        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        return run

    return of
