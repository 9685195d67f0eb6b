"""The edge to the Docker engine: one client, opened late and kept; every library error leaves as SandboxFailed.

Rules: the engine is on this machine (folders and sockets are mounted by path, so another machine's engine would
mount something else); what an error says comes from outside and is escaped and shortened before it is repeated;
each message names what mends it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import docker.errors
import requests.exceptions
from docker import APIClient

from policies.text import escape, shorten
from runtimes.sandbox.contract import SandboxFailed

T = TypeVar("T")

DOCTOR = "Run `goex doctor`: it shows the command that mends this."
_SECONDS = 60  # for one answer of the engine; a step that takes longer means that it hangs
_WORKERS = 16  # calls in flight; a running job holds none of them

LIBRARY_ERRORS = (docker.errors.DockerException, requests.exceptions.RequestException, OSError)


def connect(seconds: int = _SECONDS) -> APIClient:
    """A client of the engine on this machine: DOCKER_HOST where it names a Unix socket, else the usual socket.

    Raises SandboxFailed when there is none, or it doesn't answer within `seconds`.
    """
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not address.startswith("unix://"):
        raise SandboxFailed(
            "DOCKER_HOST doesn't name a Unix socket, and GoEx works with the Docker engine of this machine alone.",
            next_step="Unset DOCKER_HOST, or set it to unix:///path/to/docker.sock.",
        )
    try:
        client: APIClient = APIClient(base_url=address, version="auto", timeout=seconds)
    except LIBRARY_ERRORS as error:
        raise translate(error, "reach Docker") from error
    return client


class Engine:
    """A shared connection for asyncio: each call runs in a thread of this object's own small pool."""

    def __init__(self, open_client: Callable[[], APIClient] = connect) -> None:
        self._open = open_client
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="goex-docker")
        self._lock = threading.Lock()
        self._client: APIClient | None = None

    async def call(self, what: str, function: Callable[[APIClient], T], *, began: bool = False) -> T:
        """Run `function(client)` in a thread. `what` completes "Docker couldn't …" in the error."""

        def work() -> T:
            try:
                return function(self._connected())
            except LIBRARY_ERRORS as error:
                raise translate(error, what, began=began) from error

        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _connected(self) -> APIClient:
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def close(self) -> None:
        """Let go of the connection and the threads, without waiting for an engine that hangs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()
            self._client = None


def is_missing(error: BaseException) -> bool:
    """Whether the engine said that there is no such container or image."""
    return any(isinstance(cause, docker.errors.NotFound) for cause in _causes(error))


def is_conflict(error: BaseException) -> bool:
    """Whether the engine said 409: the object isn't in a state for that, or is being removed already."""
    return any(isinstance(cause, docker.errors.APIError) and cause.status_code == 409 for cause in _causes(error))


def refused(error: BaseException) -> bool:
    """Whether the engine answered, and the answer was no. (Without an answer nobody knows what it did.)"""
    return any(isinstance(cause, docker.errors.APIError) for cause in _causes(error))


def translate(error: BaseException, what: str, *, began: bool = False) -> SandboxFailed:
    """The error that a person gets for a library's error: what is wrong, and the command that mends it."""
    causes = tuple(_causes(error))
    if any(isinstance(cause, PermissionError) for cause in causes):
        return SandboxFailed("This user may not speak to Docker's socket.", next_step=DOCTOR, began=began)
    if any(isinstance(cause, FileNotFoundError) for cause in causes):
        return SandboxFailed(
            "Docker isn't there: its socket doesn't exist, so it isn't installed or isn't running.",
            next_step=DOCTOR,
            began=began,
        )
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return SandboxFailed("Docker isn't running: nobody listens on its socket.", next_step=DOCTOR, began=began)
    if any(isinstance(cause, requests.exceptions.Timeout | TimeoutError) for cause in causes):
        return SandboxFailed(f"Docker didn't answer in time: it couldn't {what}.", next_step=DOCTOR, began=began)
    if any(isinstance(cause, ConnectionError | requests.exceptions.ConnectionError) for cause in causes):
        return SandboxFailed(f"The connection to Docker broke: it couldn't {what}.", next_step=DOCTOR, began=began)
    return SandboxFailed(f"Docker couldn't {what}: {said(error)}.", next_step=DOCTOR, began=began)


def said(error: BaseException) -> str:
    """What the engine itself said, escaped and shortened."""
    detail: Any = next(
        (cause.explanation for cause in _causes(error) if isinstance(cause, docker.errors.APIError)), None
    )
    text, cut = shorten(escape(str(detail or error).strip().rstrip(".")), 400)
    return f"{text}… ({cut} more characters)" if cut else text


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and everything that it was raised from or holds in its arguments (urllib3 nests them there)."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        nested = [current.__cause__, current.__context__, getattr(current, "reason", None), *_flat(current.args)]
        waiting.extend(item for item in nested if isinstance(item, BaseException))


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value
