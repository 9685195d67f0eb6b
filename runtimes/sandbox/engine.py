"""The edge to the Docker engine: one client, opened late and kept; every library error leaves as SandboxFailed.

Rules: the engine is on this machine (folders and sockets are mounted by path, so another machine's engine would
mount something else); what an error says comes from outside and is escaped and shortened before it is repeated;
each message names what mends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import requests.exceptions

from policies.display_text import counted, escape, shorten
from runtimes.sandbox.contract import SandboxFailed
from runtimes.sandbox.docker_sdk import APIClient, docker

T = TypeVar("T")

DOCTOR = "Run `goex doctor`: it shows the command that mends this."
_SECONDS = 60  # for one answer of the engine; a step that takes longer means that it hangs
ENDING_SECONDS = 10  # for the engine to tell of a container's end
_CHUNK = 65536
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


def create(client: APIClient, name: str, config: dict[str, Any]) -> None:
    """Make a container. Raises SandboxFailed where the engine can't keep one of its limits."""
    made = client.create_container_from_config(config, name=name)  # type: ignore[no-untyped-call] # the stubs lack it
    _require_limits(made.get("Warnings") or [])


def attach(client: APIClient, name: str, *streams: str) -> socket.socket:
    """These streams of the container; without any, its output."""
    attached = client.attach_socket(name, params=dict.fromkeys(streams or ("stdout", "stderr"), 1) | {"stream": 1})
    # A descriptor of our own, which asyncio reads without a thread. The library's would stay open until its
    # garbage is collected, since the response behind it holds it too.
    stream = socket.socket(fileno=os.dup(attached.fileno()))
    stream.setblocking(False)
    attached._response.close()
    return stream


def remove(client: APIClient, name: str) -> None:
    """Kill and remove; returns when it is gone. Idempotent."""
    until = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            client.remove_container(name, force=True, v=True)
            return
        except docker.errors.APIError as error:
            if is_missing(error):
                return
            # Someone else is removing it at this moment: wait for that.
            if not is_conflict(error) or time.monotonic() > until:
                raise
            time.sleep(0.05)


def hang_up(stream: socket.socket) -> None:
    """Close the connection itself, not only our descriptor: the engine waits for a reader as long as it is open."""
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)
    stream.close()


async def receive(loop: asyncio.AbstractEventLoop, stream: socket.socket) -> bytes:
    """What comes next on it; b"" at its end."""
    await asyncio.sleep(0)  # sock_recv doesn't wait where something is there, and a container may write without end
    try:
        return await loop.sock_recv(stream, _CHUNK)
    except ConnectionError:  # the engine went away: what follows will say so
        return b""


def _require_limits(warnings: list[str]) -> None:
    """The engine warns, and goes on, where the kernel can't keep a limit. A job doesn't go on without one."""
    for warning in warnings:
        about_swap = "swap" in warning.lower() and not _machine_swaps()
        if ("discarded" in warning or "not support" in warning) and not about_swap:
            raise SandboxFailed(f"This machine can't keep a limit of the sandbox: {warning}", next_step=DOCTOR)


def _machine_swaps() -> bool:
    try:
        return len(Path("/proc/swaps").read_text().splitlines()) > 1
    except OSError:
        return True


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
    return f"{text}… ({counted(cut, 'more character')})" if cut else text


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
