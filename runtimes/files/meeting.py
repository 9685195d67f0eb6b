"""The one run that the parts of an action on several folders share: it begins when all of them have arrived at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from runtimes.files.run import SAME_FOLDER
from runtimes.sandbox.contract import WORK, Job, Profile, Result, Sandbox, SandboxFailed

# The folders' paths and what they must be, up to --, and then the program.
_SAME_FOLDERS = (
    "sh",
    "-c",
    'while [ "$1" != -- ]; do if [ "$(stat -c %d:%i "$1/.")" != "$2" ]; then '
    'echo "goex: $1 isn\'t the folder that was meant" >&2; exit 126; fi; shift 2; done; shift; exec "$@"',
    "sh",
)


class Meeting:
    """A sandbox for the parts of one action: their jobs become one, which sees all their folders."""

    def __init__(self, sandbox: Sandbox, action_id: str, names: Sequence[str]) -> None:
        self._sandbox = sandbox
        self._action_id = action_id
        self._names = names
        self._jobs: dict[str, Job] = {}
        self._result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._off = False

    async def image_id(self, profile: Profile) -> str:
        return await self._sandbox.image_id(profile)

    def prepare(self, profile: Profile) -> None:
        """Jobs on folders start cold."""

    async def run(self, job: Job, profile: Profile, output: Callable[[str, bytes], None] | None = None) -> Result:
        """Wait for the others, and for the end of the one run. Raises SandboxFailed when one of them won't come."""
        if self._off:
            raise SandboxFailed("Another folder of this action isn't ready.", began=False)
        result = self._result
        self._jobs[job.action_id] = job
        if len(self._jobs) == len(self._names):
            jobs = [self._jobs[id] for id in sorted(self._jobs, key=_number)]
            self._jobs, self._result = {}, asyncio.get_running_loop().create_future()
            try:
                result.set_result(await self._sandbox.run(self._together(jobs), profile, output))
            except BaseException as error:
                result.set_exception(
                    error if isinstance(error, Exception) else SandboxFailed("It was left.", began=True)
                )
                result.exception()  # it may be that nobody else waits
                raise
        return await asyncio.shield(result)

    def call_off(self) -> None:
        """One part won't come: whoever waits for it gets away with nothing begun."""
        self._off = True
        if self._jobs and not self._result.done():
            self._result.set_exception(SandboxFailed("Another folder of this action isn't ready.", began=False))
            self._result.exception()

    def _together(self, jobs: Sequence[Job]) -> Job:
        first = jobs[0]
        checks: list[str] = []
        argv = list(first.argv)
        for name, job in zip(self._names, jobs, strict=True):
            if tuple(job.argv[:3]) == SAME_FOLDER:
                checks += [f"{WORK}/{name}", job.argv[3]]
                argv = list(job.argv[4:])
        if checks:
            argv = [*_SAME_FOLDERS, *checks, "--", *argv]
        folders = {name: str(job.folder) for name, job in zip(self._names, jobs, strict=True)}
        undo = "-undo" if first.action_id.endswith("-undo") else ""
        return replace(first, action_id=self._action_id + undo, argv=argv, folder=None, folders=folders)

    async def kill(self, action_id: str) -> None:
        await self._sandbox.kill(self._action_id + ("-undo" if action_id.endswith("-undo") else ""))

    async def reap(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        return None


def _number(id: str) -> int:
    return int(id.removesuffix("-undo").rpartition("-")[2])
