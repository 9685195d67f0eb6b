"""Containers that wait for their job: made beforehand, each used once, thrown away afterwards.

Rules: one that waits holds nothing of any action: no socket, no file, no name but the state's. It gets the job's
files and socket through folders of its own, which are empty until then, and the command over a connection that was
made at its start. It serves one job, and never a second. How many wait
follows what was asked for lately, between bounds. An engine that fails is tried again, later and later; meanwhile
none wait, and jobs start cold, with the engine's own error.

Where a program ran on a person's folder, one more waits for the next one there, for a minute: with that folder, as
its owner, and for no other; process 1 says which folder it has. It can reach no socket, as no program on a folder can;
so it is told its job over its standard input, and tells on its standard output.
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

from policies.errors import GoexError
from policies.jsonvalue import parse
from runtimes.sandbox.contract import ImageGone, Job, Profile, SandboxFailed
from runtimes.sandbox.job_files import fill
from runtimes.sandbox.output_frames import Frames
from runtimes.sandbox.pool_bounds import PoolBounds, takes

log = logging.getLogger(__name__)

PROGRAM = ("/usr/bin/python3", "-I", "-S", "/goex/bin/wait.py")
NOBODY = 65534
STREAMS = "streams"  # the argument that has it told over its standard input
JOB, GATEWAY = "job", "gateway"  # the two folders
ACTION = "action"  # beside them, not in the container: a link whose text is the action that it was given to
_WORKERS = 2  # containers that are being made at a time; on two processors more don't help
_IDLE = 60.0  # seconds without a miss, after which one less waits
FOLDER_SECONDS = 60.0  # for which one waits with a person's folder, after the last program there
_FOLDERS = 4  # for which one waits at a time
BREATH = 0.1  # seconds for a job that began or ended, before the engine is asked for what can wait
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds after an engine's failure
_HEAD = 5
_LARGEST = 2**20  # bytes of one frame


class NotBound(Exception):
    """The container was gone before its job began, so the job can be run elsewhere."""


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """A person's folder, and the user whose programs run there; `mount` is how it is reached (`Job.folder_mount`)."""

    path: str
    id: tuple[int, int]  # device, inode
    uid: int
    gid: int
    mount: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a container that waits is made for: jobs of that profile, without a folder or on that one."""

    profile: Profile
    folder: WorkFolder | None = None


@dataclass(slots=True, eq=False)
class PooledContainer:
    """A container that waits; `folder` holds its two folders, `counter` counts kills at its memory limit. `frames`
    takes apart what comes on `stream` where that is the engine's, and not the container's own."""

    name: str
    image_id: str
    folder: Path
    stream: socket.socket
    counter: Path | None
    frames: Frames | None = None

    @property
    def alive(self) -> bool:
        """Nothing comes from it while it waits: what can be read is its end."""
        poll = select.poll()
        poll.register(self.stream, select.POLLIN)
        return not poll.poll(0)

    def bind(self, job: Job) -> None:
        """Give it the job's files and socket, and note whose it is now, first of all. Raises NotBound where that can't
        be done, as across file systems, or when it was bound before."""
        if not claim(self.folder, job.action_id):
            raise NotBound
        try:
            fill(self.folder / JOB, job.files)
            if job.socket_dir is not None:
                for entry in Path(job.socket_dir).iterdir():
                    os.link(entry, self.folder / GATEWAY / entry.name, follow_symlinks=False)
        except OSError as error:
            raise NotBound from error


def claim(folder: Path, action: str) -> bool:
    """Note in a container's folder whose it is now. False: it is somebody's already, or can't be noted."""
    try:
        (folder / ACTION).symlink_to(action)
    except OSError:
        return False
    return True


def is_claimed(folder: Path) -> bool:
    """Whether somebody has noted that it is theirs."""
    return (folder / ACTION).is_symlink()


def bound(folders: Path) -> dict[str, str]:
    """The action that each container was given to, by the container's name; `folders` holds those of all instances.
    One that still waits isn't among them."""
    found = {}
    for folder in folders.glob("*/*"):
        with contextlib.suppress(OSError):  # it has none, or went meanwhile
            found[folder.name] = str((folder / ACTION).readlink())
    return found


def kind_of(job: Job, profile: Profile) -> Kind | None:
    """The containers that can be given this job; None when none that waits can. A person's folder is never bound late:
    one that waits for a job there has it from the beginning."""
    if profile.runtime != "runc" or job.folders or job.read_only:
        return None
    if job.folder is None:
        return Kind(profile) if (job.uid, job.gid) == (NOBODY, NOBODY) else None
    if job.socket_dir is not None or job.folder_id is None:
        return None
    return Kind(profile, WorkFolder(job.folder, job.folder_id, job.uid, job.gid, job.folder_mount))


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
    """The containers that wait, by their kind. `make` makes one, `drop` removes one; both are the sandbox's."""

    def __init__(
        self,
        bounds: PoolBounds,
        make: Callable[[Kind], Awaitable[PooledContainer]],
        drop: Callable[[PooledContainer], Awaitable[None]],
    ) -> None:
        self._bounds, self._make, self._drop = bounds, make, drop
        self._ready: dict[Kind, deque[PooledContainer]] = {}
        self._wanted: dict[Kind, int] = {}
        self._missed: dict[Kind, float] = {}
        self._until: dict[Kind, float] = {}  # when none waits for a folder any more; the longest unused comes first
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._hurried = 0
        self._closed = False

    def want(self, kind: Kind) -> None:
        """Have containers of that kind wait from now on; one, and for a while, where it is on a folder."""
        if self._bounds.most == 0 or self._closed:
            return
        if kind.folder is None:
            self._wanted.setdefault(kind, min(self._bounds.least, self._bounds.most))
        else:
            self._wanted[kind] = 1
            self._until.pop(kind, None)
            self._until[kind] = asyncio.get_running_loop().time() + FOLDER_SECONDS
            asyncio.get_running_loop().call_later(FOLDER_SECONDS, self._wake.set)
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())
        self._wake.set()

    def take(self, kind: Kind, image_id: str | None) -> PooledContainer | None:
        """One that waits, of that image (None: of any); None when there is none. Its place is filled meanwhile."""
        if self._closed:
            return None
        if kind.folder is not None and self._until.get(kind, 0.0) <= asyncio.get_running_loop().time():
            self._forget(kind)
        pooled = self._ready.get(kind)
        while pooled:
            found = pooled.popleft()
            if found.alive and image_id in (None, found.image_id):
                # The engine takes all there is of the machine for a while: most jobs are done before it begins.
                wait = BREATH if pooled or kind.folder is not None else 0.0
                asyncio.get_running_loop().call_later(wait, self._wake.set)
                return found
            self._spawn(self._drop(found))
        if kind.folder is None:
            self.want(kind)
            if kind in self._wanted:
                self._wanted[kind] = min(self._wanted[kind] + 1, self._bounds.most)
                self._missed[kind] = asyncio.get_running_loop().time()
        return None

    def pooled(self, kind: Kind) -> int:
        """How many of that kind wait."""
        return len(self._ready.get(kind, ()))

    def image_id(self, kind: Kind) -> str | None:
        """The image of those that wait; None when none does."""
        return next((one.image_id for one in self._ready.get(kind, ()) if one.alive), None)

    def serves(self, kind: Kind) -> bool:
        """Whether containers of that kind are made to wait at all."""
        return kind in self._wanted and not self._closed

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
        """Let one less wait of what wasn't missed for a while; drop what has died, is too many, or waited too long."""
        now = asyncio.get_running_loop().time()
        for kind in tuple(self._until):
            if self._until[kind] <= now or len(self._until) > _FOLDERS:
                self._forget(kind)
        for kind, wanted in self._wanted.items():
            if kind.folder is None and wanted > self._bounds.least and now - self._missed.get(kind, 0.0) > _IDLE:
                self._wanted[kind], self._missed[kind] = wanted - 1, now
            ready = self._ready.setdefault(kind, deque())
            for one in tuple(ready):
                if not one.alive or len(ready) > self._wanted[kind]:
                    ready.remove(one)
                    self._spawn(self._drop(one))

    def _forget(self, kind: Kind) -> None:
        """None of that kind waits any more, until a job asks for one."""
        self._until.pop(kind, None)
        self._wanted.pop(kind, None)
        for one in self._ready.pop(kind, ()):
            self._spawn(self._drop(one))

    async def _fill(self) -> bool:
        """Make what is missing, a few at a time. Returns whether the engine failed."""
        missing = [
            kind for kind, wanted in self._wanted.items() for _ in range(wanted - len(self._ready.get(kind, ())))
        ]
        room = self._bounds.memory - sum(takes(each.profile.image) * len(ready) for each, ready in self._ready.items())
        missing = [each for each in missing if (room := room - takes(each.profile.image)) >= 0]
        missing.sort(key=lambda each: each.folder is None)  # from the end: those for folders come last
        failed = False

        async def worker() -> None:
            nonlocal failed
            while missing and not failed and not self._hurried and not self._closed:
                kind = missing.pop()
                try:
                    made = await self._make(kind)
                except GoexError as error:
                    # Its folder or its image may be gone: that is no failure of the engine's.
                    if kind.folder is not None or isinstance(error, ImageGone) or not isinstance(error, SandboxFailed):
                        log.info("No container waits any more: %s", error)
                        self._forget(kind)
                        continue
                    failed = True
                    log.warning("No container can be made to wait: %s", error)
                    return
                except Exception:
                    failed = True
                    log.exception("No container can be made to wait")
                    return
                if kind in self._wanted:
                    self._ready.setdefault(kind, deque()).append(made)
                else:  # its time ended meanwhile
                    self._spawn(self._drop(made))

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
