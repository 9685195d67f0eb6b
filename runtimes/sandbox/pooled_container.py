"""Docker's side of containers that wait for their job: how one is made, and how a job in one is followed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from policies.actions import Ended
from runtimes.sandbox import container_pool, control, engine, memory, spec
from runtimes.sandbox.contract import ImageGone, Job, Profile, Result, SandboxFailed
from runtimes.sandbox.defences import Defence
from runtimes.sandbox.docker_sdk import APIClient
from runtimes.sandbox.failure import Facts, classify
from runtimes.sandbox.job_files import Scratch
from runtimes.sandbox.output_frames import Collector, Frames, Output
from runtimes.uninterrupted import uninterrupted

log = logging.getLogger(__name__)

READY_SECONDS = 20.0  # until one that was started says that it waits
_LOOK = 2.0  # seconds between two looks whether it still runs
HEARD = b"\x01"
GRACE = 2.0  # seconds after the deadline inside, before the one outside
_SIGKILLED = 128 + 9


class ContainerMaker:
    """Makes containers that wait, and removes them. `folders` holds theirs; it must be on the file system of the
    gateway's sockets, which are linked into them."""

    def __init__(
        self,
        docker: engine.Engine,
        folders: Scratch,
        identity: spec.Identity,
        image_id: Callable[[Profile], Awaitable[str]],
        missing: frozenset[Defence],
    ) -> None:
        self.folders = folders
        self._engine, self._identity, self._image_id, self._missing = docker, identity, image_id, missing

    async def make(self, kind: container_pool.Kind) -> container_pool.PooledContainer:
        """One that says that it waits. Raises SandboxFailed, Unavailable; then nothing is left."""
        image_id = await self._image_id(kind.profile)
        name = f"goex-{secrets.token_hex(8)}"

        folder = self.folders.empty(name, container_pool.JOB, container_pool.GATEWAY)
        place = self._place(folder) if kind.folder is None else None
        stream: socket.socket | None = None

        def start(client: APIClient) -> tuple[socket.socket | None, int]:
            engine.create(client, name, spec.pooled(kind, image_id, self._identity, str(folder), self._missing))
            if place is not None:
                client.start(name)
                return None, 0
            attached = engine.attach(client, name, "stdin", "stdout")
            try:
                client.start(name)
                return attached, int(client.inspect_container(name)["State"]["Pid"])
            except BaseException:
                engine.hang_up(attached)
                raise

        step = asyncio.ensure_future(self._engine.call("make a container", start))
        try:
            stream, process = await asyncio.shield(step)
            if stream is None:
                assert place is not None
                stream = await self._connected(place, name)
                place.close()  # before anybody could give it a job
                process = control.peer(stream)
            made = container_pool.PooledContainer(
                name=name,
                image_id=image_id,
                folder=folder,
                stream=stream,
                counter=memory.counter(process),
                frames=Frames() if place is None else None,
            )
            async with asyncio.timeout(READY_SECONDS):
                said = await _first_word(made)
            if said is None:
                raise SandboxFailed("A container ended before it had a job.", next_step=engine.DOCTOR)
            if kind.folder is not None and said != b"%d:%d" % kind.folder.id:
                raise SandboxFailed("Another folder was put in the place of the one that a container was made for.")
        except BaseException as error:
            elsewhere = container_pool.is_claimed(folder)
            await uninterrupted(self._clear(name, step, place, stream))
            if elsewhere and isinstance(error, Exception):
                raise ImageGone(
                    f"The image {kind.profile.image!r} is being removed.", next_step=engine.DOCTOR
                ) from error
            if isinstance(error, TimeoutError):
                raise SandboxFailed("A container didn't come up in time.", next_step=engine.DOCTOR) from error
            raise
        return made

    def _place(self, folder: Path) -> control.Place:
        try:
            return control.Place(folder / container_pool.JOB)
        except OSError as error:
            self.folders.drop(folder.name)
            raise SandboxFailed(
                f"No socket can be made in {folder}: {error.strerror}.", next_step=engine.DOCTOR
            ) from error

    async def _connected(self, place: control.Place, name: str) -> socket.socket:
        """The connection that process 1 makes. Raises SandboxFailed when it has ended, TimeoutError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(READY_SECONDS):
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        return (await loop.sock_accept(place.listener))[0]
                state = await self._engine.call("look at a container", lambda client: client.inspect_container(name))
                if not state["State"]["Running"]:
                    raise SandboxFailed("A container ended before it had a job.", next_step=engine.DOCTOR)

    async def drop(self, pooled: container_pool.PooledContainer) -> None:
        """Remove one that isn't needed, or has died."""
        engine.hang_up(pooled.stream)
        await self._removed(pooled.name)

    def bound(self) -> dict[str, str]:
        """The action that each container was given to, by the container's name. Blocks."""
        return container_pool.bound(self.folders.root)

    def forget(self, name: str) -> None:
        """Remove the folders of one whose container is gone. Idempotent; blocks."""
        self.folders.drop(name)

    async def _clear(
        self,
        name: str,
        step: asyncio.Future[tuple[socket.socket | None, int]],
        place: control.Place | None,
        stream: socket.socket | None,
    ) -> None:
        await asyncio.wait((step,))
        if step.exception() is None:  # looked at, whoever waits for it
            stream = stream or step.result()[0]
        if place is not None:
            place.close()
        if stream is not None:
            engine.hang_up(stream)
        await self._removed(name)

    async def _removed(self, name: str) -> None:
        try:
            await self._engine.call("remove a container", lambda client: engine.remove(client, name))
        except SandboxFailed as error:
            log.warning("A container stays until the next start of the daemon: %s", error)
        await asyncio.to_thread(self.forget, name)


class Life(Protocol):
    """What whoever ends the container and whoever follows it tell each other."""

    cause: Ended | None
    began: bool


async def follow(
    life: Life, pooled: container_pool.PooledContainer, job: Job, profile: Profile, output: Output | None
) -> Result:
    """Give the container its job and follow it to the end that process 1 tells, the output's cap or the deadline.
    Raises NotBound when it had ended before."""
    pooled.bind(job)  # a few small files: a thread would take longer
    collector = Collector(profile.limits.output, output)
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    told = container_pool.message(job, spec.environment(job), profile.limits.seconds)
    words, end, late = container_pool.Told(), None, False
    try:
        async with asyncio.timeout(profile.limits.seconds + GRACE) as deadline:
            with contextlib.suppress(ConnectionError):  # it has ended, which reading tells
                await loop.sock_sendall(pooled.stream, told)
            while end is None and not collector.cut and (data := await _heard(pooled)):
                for word in words.feed(data):
                    if isinstance(word, container_pool.End):
                        end = word
                    elif word[0] == "B":
                        life.began = True
                        if pooled.frames is not None:
                            await _heard_back(pooled)
                    else:
                        collector.add(*word)
    except TimeoutError:
        if not deadline.expired():
            raise
        late = True
    if not life.began and life.cause is None and not late:  # at the deadline, that it has begun may be on its way
        raise container_pool.NotBound
    seconds = time.monotonic() - started
    if life.cause is None and (end is None or collector.cut):
        # Process 1 said nothing more: it was ended from outside, or by the kernel when memory ran out.
        life.cause = Ended.OUTPUT_CAP if collector.cut else Ended.TIMEOUT if late else None
    memory_hit = _counted(pooled.counter)
    ended, exit_code = classify(
        Facts(
            cause=life.cause or (Ended.KILLED if end is None and not memory_hit else None),
            exit_code=_SIGKILLED if end is None or end.late else end.code,
            memory_hit=memory_hit,
            seconds=seconds,
            allowed=profile.limits.seconds,
        )
    )
    return collector.result(ended, exit_code, seconds)


async def _heard_back(pooled: container_pool.PooledContainer) -> None:
    """Tell process 1 that its word has come, for which it waits before it begins where the engine is in between."""
    with contextlib.suppress(ConnectionError):
        await asyncio.get_running_loop().sock_sendall(pooled.stream, HEARD)


async def _heard(pooled: container_pool.PooledContainer) -> bytes:
    """What process 1 says next; b"" at the end."""
    loop = asyncio.get_running_loop()
    while data := await engine.receive(loop, pooled.stream):
        if pooled.frames is None:
            return data
        if said := b"".join(part for _, part in pooled.frames.feed(data)):
            return said
    return b""


async def _first_word(made: container_pool.PooledContainer) -> bytes | None:
    """What process 1 says with "R", that it waits; None where it ends before or says anything else."""
    told = container_pool.Told()
    while data := await _heard(made):
        for word in told.feed(data):
            return None if isinstance(word, container_pool.End) or word[0] != "R" else word[1]
    return None


def _counted(counter: Path | None) -> bool:
    try:
        return counter is not None and memory.hit(counter)
    except OSError:
        return False  # gone with the container
