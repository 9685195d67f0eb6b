"""A sandbox that isn't one: the job runs on this machine, as the job's user, in the folder itself.

For tests of what GoEx does around a run (snapshots, undo, crashes), many thousand times in seconds. Whether a program
is contained is tested with the real sandbox only.
"""

# Folders of a test are small: blocking calls are fine.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import inspect
import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from policies.actions import Ended
from runtimes.sandbox.contract import Job, Profile, Result, SandboxFailed

Deed = Callable[[Path], Awaitable[None] | object]


class UnsafeNoSandbox:
    """Runs jobs unprotected. `deed` is done in the folder instead of the job's own program, by this process;
    `fail` is raised instead of running."""

    def __init__(self, deed: Deed | None = None, fail: SandboxFailed | None = None) -> None:
        self.deed = deed
        self.fail = fail
        self.jobs: list[Job] = []
        self.passed: tuple[int, ...] = ()

    async def image_id(self, profile: Profile) -> str:
        return "sha256:none"

    def prepare(self, profile: Profile) -> None:
        """There is nothing to make ready."""

    async def run(self, job: Job, profile: Profile, output: Callable[[str, bytes], None] | None = None) -> Result:
        self.jobs.append(job)
        if self.fail is not None:
            raise self.fail
        if job.folders:
            return await self._on_several(job, profile, output)
        if self.deed is not None:
            assert job.folder is not None
            waiting = self.deed(Path(job.folder))
            if inspect.isawaitable(waiting):
                await waiting
            return Result(ended=Ended.EXITED, exit_code=0, stdout=b"", stderr=b"", cut=0, seconds=0.0)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            for name, data in job.files.items():
                (Path(folder) / name).write_bytes(data)
            argv = [part.replace("/goex/job", folder) for part in job.argv]
            root = os.geteuid() == 0
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=job.folder,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", **job.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                user=job.uid if root else None,
                group=job.gid if root else None,
                extra_groups=[] if root else None,
                pass_fds=self.passed,
            )
            try:
                stdout, stderr = await asyncio.wait_for(process.communicate(), profile.limits.seconds)
            except TimeoutError:
                process.kill()
                return Result(ended=Ended.TIMEOUT, exit_code=None, stdout=b"", stderr=b"", cut=0, seconds=0.0)
        if output is not None:
            output("stdout", stdout)
        return Result(
            ended=Ended.EXITED, exit_code=process.returncode, stdout=stdout, stderr=stderr, cut=0, seconds=0.0
        )

    async def _on_several(self, job: Job, profile: Profile, output: Callable[[str, bytes], None] | None) -> Result:
        """Each folder by its name in one; by descriptors, since the way to a copy is closed to the job's user."""
        self.jobs.pop()
        opened = {name: os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for name, folder in job.folders.items()}
        self.passed = tuple(opened.values())
        try:
            with tempfile.TemporaryDirectory() as work:
                Path(work).chmod(0o755)
                for name, fd in opened.items():
                    (Path(work) / name).symlink_to(f"/proc/self/fd/{fd}")
                argv = [part.replace("/work/", f"{work}/") for part in job.argv]
                return await self.run(replace(job, folder=work, folders={}, argv=argv), profile, output)
        finally:
            self.passed = ()
            for fd in opened.values():
                os.close(fd)

    async def kill(self, action_id: str) -> None:
        return None

    async def reap(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        return None
