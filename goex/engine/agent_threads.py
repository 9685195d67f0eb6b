"""Threads for slow work: a few for what agents ask for, so that neither the person nor the daemon waits in their line.

Agents take turns at these. asyncio's own threads are asked for from everywhere, so they look themselves at whose work
it is: a task knows that, and so do those that it begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from policies.grants import PERSON
from runtimes.turns import Turns, asking

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 2  # of all agents together: each that works takes its share of the interpreter from everybody else


def work_for(agent: str, source: str, session: str) -> None:
    """What this task does from now on is done for this agent, in its turns. `source`: the process that asks, as the
    journal names it."""
    asking.set((agent, source, session) if agent != PERSON else ())


class Threads(ThreadPoolExecutor):
    """What asyncio runs slow work in. To be set as a loop's default executor."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="goex")
        self._agents = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="goex-agents")
        self._turns = Turns(AT_ONCE)
        self._lock = threading.Lock()  # a turn ends in the thread that had it

    def submit(self, work: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        if not (who := asking.get()):
            return super().submit(work, *arguments, **named)
        future: Future[T] = Future()

        def run() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(work(*arguments, **named))
            except BaseException as error:  # noqa: BLE001 – as any executor does: it is told to whoever waits
                future.set_exception(error)
            finally:
                with self._lock:
                    end()

        def begin() -> None:
            try:
                self._agents.submit(run)
            except RuntimeError:  # they were shut down
                future.cancel()

        with self._lock:
            end = self._turns.ask(who, begin)
        return future

    def shutdown(self, wait: bool = True, **how: Any) -> None:
        self._agents.shutdown(wait, **how)
        super().shutdown(wait, **how)
