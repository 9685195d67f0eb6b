"""A program that only reads a folder: it is mounted read-only, or a copy is made that is thrown away.

Rules: nothing is written at the folder, no snapshot is taken, and nothing is there to be taken back. A folder that a
program would get as a copy (root's, or one with sockets, pipes or devices in it, which a read-only mount leaves open)
is copied here too.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.actions import Ended, Files, Outcome
from policies.errors import Conflict, InvalidInput
from runtimes.files import plans, workcopy
from runtimes.files.dryrun import Dry
from runtimes.files.folder import refuse_mounts
from runtimes.files.run import SAME_FOLDER
from runtimes.files.tree import Walk
from runtimes.files.workers import in_thread
from runtimes.sandbox.contract import Job, Result, SandboxFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnly:
    """A run of `dry`'s plan, which only reads."""

    dry: Dry

    async def go(self, root: int) -> Outcome:
        """Run the program on the folder open as `root`. Raises Conflict, Unavailable, and what the sandbox raises
        before the program began."""
        if self.dry.plan.resolved["mode"] == "direct":
            return plans.read_outcome(await self._mounted(root))
        try:
            await self.dry.copied(root)
            result, why = await self.dry.run()
        finally:
            await self.dry.clear()
        outcome = plans.read_outcome(result)
        return outcome if not why else Outcome(ok=False, summary=f"{why}.", ended=Ended.KILLED, touched=False)

    async def _mounted(self, root: int) -> Result:
        plan = self.dry.plan
        action = plan.action
        if not isinstance(action, Files):
            raise InvalidInput("This isn't an action on files.")
        name, argv = plans.command(action)

        def look() -> None:
            found = Walk(bounds=self.dry.bounds).run(root)
            if why := workcopy.special(found):
                raise Conflict(f"The folder isn't as it was when it was looked at: {why}.", difference=(why,))
            refuse_mounts(str(plan.resolved["folder"]))

        await in_thread(look)
        job = Job(
            action_id=self.dry.context.action_id,
            argv=(*SAME_FOLDER, f"{plan.resolved['device']}:{plan.resolved['inode']}", *argv),
            files={name: action.program.encode("utf-8")},
            env={"HOME": "/tmp"},  # noqa: S108 (the container's own tmpfs)
            folder=str(plan.resolved["folder"]),
            read_only=True,
            uid=plan.resolved["uid"],
            gid=plan.resolved["gid"],
        )
        try:
            return await self.dry.sandbox.run(job, self.dry.profile, self.dry.context.output)
        except SandboxFailed as error:
            if not error.began:
                raise
            said = str(error).encode("utf-8", "replace")
            return Result(ended=Ended.KILLED, exit_code=None, stdout=b"", stderr=said, cut=0, seconds=0.0)
