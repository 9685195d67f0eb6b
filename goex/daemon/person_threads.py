"""Threads for what the person does: never behind work that an agent asked for, which has asyncio's own."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_AT_ONCE = 8

_threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="goex-person")


async def in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run `work` in a thread and return what it returns, as `asyncio.to_thread` does."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads, partial(context.run, work, *arguments, **named))
