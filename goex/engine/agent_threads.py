"""Threads for slow work: a few for what agents ask for, so that neither the person nor the daemon waits in their line.

asyncio's own threads are asked for from everywhere, so they look themselves at whose work it is: a task knows that, and
so do those that it begins.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from policies.grants import PERSON

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 2  # of all agents together: each that works takes its share of the interpreter from everybody else
_of_agent: ContextVar[bool] = ContextVar("of_agent", default=False)


def work_for(agent: str) -> None:
    """What this task does from now on is done for this agent."""
    _of_agent.set(agent != PERSON)


class Threads(ThreadPoolExecutor):
    """What asyncio runs slow work in. To be set as a loop's default executor."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="goex")
        self._agents = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="goex-agents")

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        if _of_agent.get():
            return self._agents.submit(work, *arguments, **named)
        return super().submit(work, *arguments, **named)

    def shutdown(self, wait: bool = True, **how: Any) -> None:
        self._agents.shutdown(wait, **how)
        super().shutdown(wait, **how)
