"""Containers that wait for their job: made beforehand, each used once, thrown away afterwards.

Rules: one that waits holds nothing of any action: no socket, no file, no name but the state's. It gets the job's
files and socket through two folders of its own, which are empty until then, and the command over a connection that it
made at its start, to a place that has been removed since. It serves one job, and never a second. How many wait
follows what was asked for lately, between bounds. An engine that fails is tried again, later and later; meanwhile
none wait, and jobs start cold, with the engine's own error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policies.jsonvalue import parse
from runtimes.sandbox.contract import Job, Profile, SandboxFailed
from runtimes.sandbox.job_files import fill
from runtimes.sandbox.pool_bounds import PoolBounds, takes

log = logging.getLogger(__name__)

PROGRAM = ("/usr/bin/python3", "-I", "-S", "/goex/bin/wait.py")
NOBODY = 65534
JOB, GATEWAY = "job", "gateway"  # the two folders
ACTION = "action"  # beside them, not in the container: a link whose text is the action that it was given to
_WORKERS = 2  # containers that are being made at a time; on two processors more don't help
_IDLE = 60.0  # seconds without a miss, after which one less waits
BREATH = 0.1  # seconds for a job that began or ended, before the engine is asked for what can wait
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds after an engine's failure
_HEAD = 5
_LARGEST = 2**20  # bytes of one frame


class NotBound(Exception):
    """The container was gone before its job began, so the job can be run elsewhere."""


@dataclass(slots=True, eq=False)
class PooledContainer:
    """A container that waits; `folder` holds its two folders, `counter` counts kills at its memory limit."""

    name: str
    image_id: str
    folder: Path
    stream: socket.socket
    counter: Path | None

    @property
    def alive(self) -> bool:
        """Nothing comes from it while it waits: what can be read is its end."""
        poll = select.poll()
        poll.register(self.stream, select.POLLIN)
        return not poll.poll(0)

    def bind(self, job: Job) -> None:
        """Give it the job's files and socket, and note whose it is now, first of all. Raises NotBound where that can't
        be done, as across file systems, or when it was bound before."""
        try:
            (self.folder / ACTION).symlink_to(job.action_id)
            fill(self.folder / JOB, job.files)
            if job.socket_dir is not None:
                for entry in Path(job.socket_dir).iterdir():
                    os.link(entry, self.folder / GATEWAY / entry.name, follow_symlinks=False)
        except OSError as error:
            raise NotBound from error


def bound(folders: Path) -> dict[str, str]:
    """The action that each container was given to, by the container's name; `folders` holds those of all instances.
    One that still waits isn't among them."""
    found = {}
    for folder in folders.glob("*/*"):
        with contextlib.suppress(OSError):  # it has none, or went meanwhile
            found[folder.name] = str((folder / ACTION).readlink())
    return found


def serves(job: Job, profile: Profile) -> bool:
    """Whether a container that waits can be given this job. A person's folder is never bound late."""
    by_nobody = (job.uid, job.gid) == (NOBODY, NOBODY)
    return job.folder is None and not job.folders and by_nobody and profile.runtime == "runc"


def message(job: Job, environment: Mapping[str, str], seconds: float) -> bytes:
    """What the container is told: its deadline, how many words the command has, these, and its environment. None of
    them holds a NUL character."""
    variables = (f"{name}={value}" for name, value in environment.items())
    told = b"\0".join(map(os.fsencode, (f"{seconds:.3f}", str(len(job.argv)), *job.argv, *variables)))
    return struct.pack(">I", len(told)) + told


@dataclass(frozen=True, slots=True)
class End:
    """How the job's first process ended, as process 1 tells it; `late`: it was ended at its deadline."""

    code: int
    late: bool


class Told:
    """What process 1 tells: ("R", b""), ("B", b""), ("stdout", data), ("stderr", data), End."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes] | End]:
        """Raises SandboxFailed for what process 1 never says."""
        self._left += data
        while len(self._left) >= _HEAD:
            size = int.from_bytes(self._left[1:_HEAD], "big")
            if size > _LARGEST:
                raise _garbled()
            if len(self._left) < _HEAD + size:
                return
            kind, told = chr(self._left[0]), bytes(self._left[_HEAD : _HEAD + size])
            del self._left[: _HEAD + size]
            yield _told(kind, told)


def _told(kind: str, told: bytes) -> tuple[str, bytes] | End:
    names = {"R": "R", "B": "B", "O": "stdout", "E": "stderr"}
    if kind in names:
        return names[kind], told
    try:
        if kind == "X":
            facts = parse(told)
            return End(int(facts["code"]), facts["late"] is True)
    except Exception as error:
        raise _garbled() from error
    raise _garbled()


def _garbled() -> SandboxFailed:
    return SandboxFailed("A container said something that none of ours says.", began=True)


class Pool:
    """The containers that wait, by profile. `make` makes one, `drop` removes one; both are the sandbox's."""

    def __init__(
        self,
        bounds: PoolBounds,
        make: Callable[[Profile], Awaitable[PooledContainer]],
        drop: Callable[[PooledContainer], Awaitable[None]],
    ) -> None:
        self._bounds, self._make, self._drop = bounds, make, drop
        self._ready: dict[Profile, deque[PooledContainer]] = {}
        self._wanted: dict[Profile, int] = {}
        self._missed: dict[Profile, float] = {}
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._hurried = 0
        self._closed = False

    def want(self, profile: Profile) -> None:
        """Have containers of that profile wait from now on."""
        if self._bounds.most == 0 or self._closed:
            return
        self._wanted.setdefault(profile, min(self._bounds.least, self._bounds.most))
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())
        self._wake.set()

    def take(self, profile: Profile, image_id: str | None) -> PooledContainer | None:
        """One that waits, of that image (None: of any); None when there is none. Its place is filled meanwhile."""
        if self._closed:
            return None
        pooled = self._ready.get(profile)
        while pooled:
            found = pooled.popleft()
            if found.alive and image_id in (None, found.image_id):
                # The engine takes all there is of the machine for a while: most jobs are done before it begins.
                asyncio.get_running_loop().call_later(BREATH if pooled else 0.0, self._wake.set)
                return found
            self._spawn(self._drop(found))
        self.want(profile)
        if profile in self._wanted:
            self._wanted[profile] = min(self._wanted[profile] + 1, self._bounds.most)
            self._missed[profile] = asyncio.get_running_loop().time()
        return None

    def pooled(self, profile: Profile) -> int:
        """How many wait for a job of that profile."""
        return len(self._ready.get(profile, ()))

    def image_id(self, profile: Profile) -> str | None:
        """The image of those that wait; None when none does."""
        return next((one.image_id for one in self._ready.get(profile, ()) if one.alive), None)

    def serves(self, profile: Profile) -> bool:
        """Whether containers of that profile are made to wait at all."""
        return profile in self._wanted and not self._closed

    @contextlib.contextmanager
    def hurry(self) -> Iterator[None]:
        """While a job's container is made at its caller's wish: none is made to wait meanwhile."""
        self._hurried += 1
        try:
            yield
        finally:
            self._hurried -= 1
            if not self._hurried:
                self._wake.set()

    async def close(self) -> None:
        """Remove all that wait, and those that are being made."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
        left = [one for ready in self._ready.values() for one in ready]
        self._ready.clear()
        for one in left:
            await self._drop(one)

    async def _keep(self) -> None:
        pause = 0.0
        while True:
            self._wake.clear()
            self._shrink()
            failed = await self._fill()
            pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE) if failed else 0.0
            try:
                if pause:
                    await asyncio.sleep(pause)
                else:
                    async with asyncio.timeout(_IDLE / 4):
                        await self._wake.wait()
            except TimeoutError:
                pass

    def _shrink(self) -> None:
        """Let one less wait of what wasn't missed for a while; drop what has died, or is too many."""
        now = asyncio.get_running_loop().time()
        for profile, wanted in self._wanted.items():
            if wanted > self._bounds.least and now - self._missed.get(profile, 0.0) > _IDLE:
                self._wanted[profile], self._missed[profile] = wanted - 1, now
            ready = self._ready.setdefault(profile, deque())
            for one in tuple(ready):
                if not one.alive or len(ready) > self._wanted[profile]:
                    ready.remove(one)
                    self._spawn(self._drop(one))

    async def _fill(self) -> bool:
        """Make what is missing, a few at a time. Returns whether the engine failed."""
        missing = [
            profile
            for profile, wanted in self._wanted.items()
            for _ in range(wanted - len(self._ready.get(profile, ())))
        ]
        room = self._bounds.memory - sum(takes(each.image) * len(ready) for each, ready in self._ready.items())
        missing = [each for each in missing if (room := room - takes(each.image)) >= 0]
        failed = False

        async def worker() -> None:
            nonlocal failed
            while missing and not failed and not self._hurried:
                profile = missing.pop()
                try:
                    made = await self._make(profile)
                except SandboxFailed as error:
                    failed = True
                    log.warning("No container can be made to wait: %s", error)
                    return
                except Exception:
                    failed = True
                    log.exception("No container can be made to wait")
                    return
                self._ready.setdefault(profile, deque()).append(made)

        workers = [asyncio.create_task(worker()) for _ in range(_WORKERS)]
        self._tasks.update(workers)
        for each in workers:
            each.add_done_callback(self._tasks.discard)
        await asyncio.wait(workers)
        return failed

    def _spawn(self, dropping: Awaitable[None]) -> None:
        task = asyncio.ensure_future(dropping)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
