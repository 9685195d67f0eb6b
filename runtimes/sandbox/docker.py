"""The sandbox on Docker: one fresh container a job, thrown away when the job ends, however it ends.

Rules: a container's name is known before it exists, so whatever happens it can be removed; removal is never
interrupted, not even by cancelling; ending means SIGKILL, since a job's word on when it is ready to stop is worth
nothing; `run` returns when the container is gone. The engine refusing, hanging or dying is SandboxFailed; how the
command ended is a Result.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
import socket
import time
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from policies.actions import Ended
from runtimes.sandbox import container_pool, images, job_files, memory, pooled_container, spec
from runtimes.sandbox.container_pool import Kind, kind_of
from runtimes.sandbox.contract import Job, Profile, Result, SandboxFailed
from runtimes.sandbox.defences import Defence
from runtimes.sandbox.docker_sdk import APIClient, docker
from runtimes.sandbox.engine import (
    DOCTOR,
    ENDING_SECONDS,
    Engine,
    attach,
    hang_up,
    is_conflict,
    is_missing,
    receive,
    refused,
    remove,
)
from runtimes.sandbox.engine import create as create_container
from runtimes.sandbox.failure import Facts, classify
from runtimes.sandbox.output_frames import Collector, Frames, Output
from runtimes.sandbox.pool_bounds import NO_POOL, PoolBounds
from runtimes.uninterrupted import uninterrupted

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Run:
    """One container's life. `step` is the engine call under way: removal waits for it, so nothing is created late."""

    name: str
    done: asyncio.Event
    cause: Ended | None = None  # why we end it; the first cause stands
    began: bool = False
    memory_hit: bool = False
    step: asyncio.Future[Any] | None = None
    stream: socket.socket | None = None
    job_dir: Path | None = None
    pooled: bool = False

    async def through(self, call: Awaitable[T]) -> T:
        step = asyncio.ensure_future(call)
        self.step = step
        return await asyncio.shield(step)


class DockerSandbox:
    """`Sandbox` on the Docker engine of this machine.

    `state_id` names the daemon's state: `reap` destroys what an earlier daemon of the same state left, and no
    other's. `scratch_dir` is a private folder for the files of jobs (made when it is missing; without one a private
    folder of this user's is taken), `profiles_dir` holds the person's own profiles. `unsafe_without` takes defences
    away and is for tests' controls alone.
    """

    def __init__(
        self,
        state_id: str,
        *,
        scratch_dir: Path | None = None,
        pool_dir: Path | None = None,
        profiles_dir: Path | None = None,
        bounds: PoolBounds = NO_POOL,
        engine: Engine | None = None,
        unsafe_without: frozenset[Defence] = frozenset(),
    ) -> None:
        self._engine = engine or Engine()
        self._identity = spec.Identity(state_id=state_id, instance=secrets.token_hex(8))
        self._scratch = job_files.Scratch(scratch_dir, state_id, self._identity.instance)
        self._missing = unsafe_without
        self._profiles = profiles_dir
        self._seen: dict[str, str] = {}  # the id that each image had when it was looked at last,
        self._tags: dict[str, str] = {}  # and its name, which says what is in it
        self._maker = pooled_container.ContainerMaker(
            self._engine,
            job_files.Scratch(pool_dir, f"{state_id}-waiting", self._identity.instance),
            self._identity,
            self.image_id,
            unsafe_without,
        )
        self._pool = container_pool.Pool(bounds, self._maker.make, self._maker.drop)
        self._running: dict[str, set[_Run]] = {}
        self._removals: set[asyncio.Task[None]] = set()

    async def image_id(self, profile: Profile) -> str:
        tag = images.tag(profile.image, self._profiles)
        pooled = self._pool.image_id(Kind(profile))
        if pooled is not None and (tag, pooled) == (self._tags.get(profile.image), self._seen[profile.image]):
            return pooled  # a job would run in that one, whatever the engine says meanwhile
        found = await self._engine.call(
            "look at the image", lambda client: images.find(client, profile.image, self._profiles)
        )
        self._seen[profile.image], self._tags[profile.image] = found, tag
        return found

    def prepare(self, profile: Profile) -> None:
        """Have containers of that profile wait for jobs from now on, as many as the bounds say."""
        if profile.runtime == "runc":  # another runtime's jobs always start cold
            self._pool.want(Kind(profile))

    def pooled(self, profile: Profile, job: Job | None = None) -> int:
        """How many containers of that profile wait: for that job, or for any without a folder."""
        kind = Kind(profile) if job is None else kind_of(job, profile)
        return self._pool.pooled(kind) if kind is not None else 0

    async def run(self, job: Job, profile: Profile, output: Output | None = None) -> Result:
        spec.check(job, profile)
        kind = kind_of(job, profile)
        if kind is None:
            return await self._run_cold(job, profile, output)
        try:
            pooled = self._pool.take(kind, self._seen.get(profile.image))
            with contextlib.suppress(container_pool.NotBound):
                if pooled is not None:
                    return await self._run_pooled(pooled, job, profile, output)
                if kind.folder is None and self._pool.serves(kind):
                    return await self._run_made(kind, job, output)
            return await self._run_cold(job, profile, output)
        finally:
            if kind.folder is not None:
                asyncio.get_running_loop().call_later(container_pool.BREATH, self._pool.want, kind)

    async def _run_cold(self, job: Job, profile: Profile, output: Output | None) -> Result:
        """Run the job in a container that is made for it alone."""
        image_id = await self.image_id(profile)
        await self._require_runtime(job, profile)
        run = _Run(f"goex-{secrets.token_hex(8)}", asyncio.Event())
        self._running.setdefault(job.action_id, set()).add(run)
        try:
            await run.through(self._create(run, job, profile, image_id))
            return await self._follow(run, profile, output)
        finally:
            await uninterrupted(self._removed(self._remove(run, job.action_id)))

    async def kill(self, action_id: str) -> None:
        for run in tuple(self._running.get(action_id, ())):
            run.cause = run.cause or Ended.KILLED
            if run.name:  # else its container is being made, and goes at once
                await self._kill(run)
            await run.done.wait()
        await self._remove_labelled({spec.ACTION_LABEL: action_id}, own=True)

    async def reap(self) -> tuple[str, ...]:
        found = await self._remove_labelled({}, own=False)
        await asyncio.to_thread(self._scratch.reap)
        await asyncio.to_thread(self._maker.folders.reap)
        return found

    async def close(self) -> None:
        await self._pool.close()
        for action_id in tuple(self._running):
            await self.kill(action_id)
        if self._removals:
            await asyncio.wait(tuple(self._removals))
        await asyncio.to_thread(self._scratch.close)
        await asyncio.to_thread(self._maker.folders.close)
        self._engine.close()

    async def _run_made(self, kind: Kind, job: Job, output: Output | None) -> Result:
        """Run the job in a container of the kind that waits, made for it: that takes less than the other kind."""
        run = _Run("", asyncio.Event())
        self._running.setdefault(job.action_id, set()).add(run)
        try:
            with self._pool.hurry():
                pooled = await self._maker.make(kind)
            if run.cause is not None:  # killed meanwhile
                await uninterrupted(self._removed(self._maker.drop(pooled)))
                return Collector(0).result(run.cause, None, 0.0)
        finally:
            self._ended_run(run, job.action_id)
        return await self._run_pooled(pooled, job, kind.profile, output)

    async def _run_pooled(
        self, pooled: container_pool.PooledContainer, job: Job, profile: Profile, output: Output | None
    ) -> Result:
        """Run the job in a container that waits. Returns when the job and all that it started has ended, as process 1
        says; the container goes while the caller goes on. Raises NotBound when the job never began."""
        run = _Run(pooled.name, asyncio.Event(), stream=pooled.stream, pooled=True)
        self._running.setdefault(job.action_id, set()).add(run)
        ended = False
        try:
            result = await pooled_container.follow(run, pooled, job, profile, output)
            ended = run.cause is None and result.ended is Ended.EXITED
            return result
        finally:
            removed = self._removed(self._remove(run, job.action_id, after=container_pool.BREATH if ended else 0.0))
            if not ended:  # then something of the job may still run, also where process 1 itself was killed
                await uninterrupted(removed)

    async def _create(self, run: _Run, job: Job, profile: Profile, image_id: str) -> None:
        def create(client: APIClient) -> None:
            if job.files:
                run.job_dir = self._scratch.put(run.name, job.files)
            job_dir = str(run.job_dir) if run.job_dir else None
            config = spec.container(job, profile, image_id, self._identity, job_dir, self._missing)
            create_container(client, run.name, config)
            run.stream = attach(client, run.name)

        await self._engine.call("make the container", create)

    async def _follow(self, run: _Run, profile: Profile, output: Output | None) -> Result:
        collector = Collector(profile.limits.output, output)
        started = time.monotonic()
        if run.cause is None:
            await run.through(self._start(run))
            watch = asyncio.create_task(self._watch_memory(run))
            try:
                await self._read(run, profile, collector)
            finally:
                watch.cancel()
        seconds = time.monotonic() - started
        exit_code, memory_hit = (None, False) if not run.began else await run.through(self._ended(run))
        ended, exit_code = classify(
            Facts(
                cause=run.cause,
                exit_code=exit_code,
                memory_hit=memory_hit or run.memory_hit,
                seconds=seconds,
                allowed=profile.limits.seconds,
            )
        )
        return collector.result(ended, exit_code, seconds)

    async def _start(self, run: _Run) -> None:
        try:
            await self._engine.call("start the container", lambda client: client.start(run.name))
        except SandboxFailed as error:
            # An engine that said no didn't start it; one that fell silent may have.
            error.began = not refused(error)
            raise
        run.began = True
        if run.cause is not None:  # killed while it was starting
            await self._kill(run)

    async def _read(self, run: _Run, profile: Profile, collector: Collector) -> None:
        """Read until the container closes its output, which it does by ending. Ends it at the cap or the deadline."""
        frames = Frames()

        async def read(stop_at_cap: bool) -> bool:
            assert run.stream is not None
            loop = asyncio.get_running_loop()
            while data := await receive(loop, run.stream):
                for stream, chunk in frames.feed(data):
                    collector.add(stream, chunk)
                if collector.cut and stop_at_cap:
                    return False
            return True

        try:
            async with asyncio.timeout(profile.limits.seconds + pooled_container.GRACE) as deadline:
                if await read(stop_at_cap=True):
                    return
        except TimeoutError:
            if not deadline.expired():
                raise
        run.cause = run.cause or (Ended.OUTPUT_CAP if collector.cut else Ended.TIMEOUT)
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                # Both at once: the engine tells of no end while nobody takes the output.
                await asyncio.gather(self._kill(run), read(stop_at_cap=False))
        except TimeoutError as error:
            raise SandboxFailed("Docker didn't end a container in time.", next_step=DOCTOR, began=True) from error

    async def _watch_memory(self, run: _Run) -> None:
        try:
            state = await self._engine.call(
                "look at the job", lambda client: client.inspect_container(run.name)["State"]
            )
            file = memory.counter(int(state["Pid"]))
            while file is not None and not run.memory_hit:
                run.memory_hit = memory.hit(file)
                await asyncio.sleep(memory.PAUSE)
        except (SandboxFailed, OSError):
            return  # it has ended; what the engine saw counts

    async def _ended(self, run: _Run) -> tuple[int, bool]:
        """The exit code, and whether the kernel killed something at the memory limit."""

        def ask(client: APIClient) -> tuple[int, bool]:
            client.wait(run.name, timeout=ENDING_SECONDS)
            state = client.inspect_container(run.name)["State"]
            return int(state["ExitCode"]), bool(state["OOMKilled"])

        return await self._engine.call("tell how the job ended", ask, began=True)

    async def _kill(self, run: _Run) -> None:
        def kill(client: APIClient) -> None:
            try:
                client.kill(run.name)
            except docker.errors.APIError as error:
                if not (is_missing(error) or is_conflict(error)):  # it has ended, or hasn't begun
                    raise

        await self._engine.call("end the container", kill, began=run.began)

    async def _remove(self, run: _Run, action_id: str, *, after: float = 0.0) -> None:
        try:
            await asyncio.sleep(after)
            if run.step is not None:
                await asyncio.wait((run.step,))
                run.step.exception()  # looked at, whoever waits for it
            if run.stream is not None:
                hang_up(run.stream)
            await self._engine.call("remove the container", lambda client: remove(client, run.name))
        except SandboxFailed as error:
            log.warning("A container stays until the next start of the daemon: %s", error)
        finally:
            if run.job_dir is not None:
                await asyncio.to_thread(shutil.rmtree, run.job_dir, ignore_errors=True)
            if run.pooled:
                await asyncio.to_thread(self._maker.forget, run.name)
            self._ended_run(run, action_id)

    def _removed(self, removing: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
        """Have it removed, whether or not anybody waits for it."""
        removal = asyncio.create_task(removing)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        return asyncio.shield(removal)

    def _ended_run(self, run: _Run, action_id: str) -> None:
        runs = self._running[action_id]
        runs.discard(run)
        if not runs:
            del self._running[action_id]
        run.done.set()

    async def _remove_labelled(self, labels: dict[str, str], *, own: bool) -> tuple[str, ...]:
        """Remove the containers of this state with these labels; without `own` none that this object made."""
        wanted = {spec.STATE_LABEL: self._identity.state_id} | labels

        def remove_all(client: APIClient) -> tuple[str, ...]:
            filters = {"label": [f"{name}={value}" for name, value in wanted.items()]}
            removed, bound = [], self._maker.bound()
            for container in client.containers(all=True, filters=filters):
                found = container.get("Labels") or {}
                mine = found.get(spec.INSTANCE_LABEL) == self._identity.instance
                if (own or not mine) and all(found.get(name) == value for name, value in wanted.items()):
                    remove(client, container["Id"])
                    names = [name.lstrip("/") for name in container.get("Names") or ()]
                    removed.append(found.get(spec.ACTION_LABEL) or next(filter(None, map(bound.get, names)), ""))
            return tuple(sorted(filter(None, removed)))

        return await self._engine.call("remove what an earlier run left", remove_all)

    async def _require_runtime(self, job: Job, profile: Profile) -> None:
        """Refuse a runtime that the engine doesn't have. runc needs no look: the engine refuses it by itself."""
        if profile.runtime == "runc":
            return
        info = await self._engine.call("list its runtimes", lambda client: client.info())
        require_runtime(profile.runtime, info.get("Runtimes") or {}, with_socket=job.socket_dir is not None)


def require_runtime(name: str, known: dict[str, Any], *, with_socket: bool) -> None:
    """Raise SandboxFailed unless the engine knows the runtime, set up as a job needs it."""
    if name not in known:
        raise SandboxFailed(
            f"This profile asks for the runtime {name}, which Docker doesn't have; it isn't run with another one.",
            next_step=f"Install {name} and register it in /etc/docker/daemon.json, then restart Docker.",
        )
    arguments = known[name].get("runtimeArgs") or []
    if not {"--oci-seccomp", "--oci-seccomp=true"} & set(arguments):
        raise SandboxFailed(
            f"The runtime {name} would leave our system call allow-list out.",
            next_step=f'Add "--oci-seccomp" to the runtimeArgs of {name} in /etc/docker/daemon.json, restart Docker.',
        )
    if with_socket and not {"--host-uds=open", "--host-uds=all"} & set(arguments):
        raise SandboxFailed(
            f"The runtime {name} isn't allowed to open the gateway's socket.",
            next_step=f'Add "--host-uds=open" to the runtimeArgs of {name} in /etc/docker/daemon.json, restart Docker.',
        )
