"""Calls of one MCP server that works on a folder of the person's: a program of the files runtime, with exact undo.

Rules: the server gets the folder that was named when it was added, no other, and no way out at all; all calls of an
action are made of one process of it; the folder's snapshot is on disk before it begins.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from mapper.catalog import Catalog
from policies.actions import Action, ApiCalls, Files, Outcome, Plan, Revert
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonValue
from runtimes.base import Context, DryLine, DryRun, Footprint, Settlement
from runtimes.files.runtime import FilesRuntime
from runtimes.rest.outcomes import MAX_RESULTS
from runtimes.rest.plans import assess_calls
from runtimes.rest.references import refs_in
from runtimes.rest.undo import planned_steps
from runtimes.sandbox.contract import Profile
from runtimes.servers import session
from runtimes.servers.calls import lines
from runtimes.servers.definition import Server, Servers
from runtimes.servers.run import changed

_PROGRAM = """\
import json, sys
sys.path.insert(0, "/goex/mcp")
import drive
sys.exit(drive.run(json.loads({what!r})))
"""


@dataclass(frozen=True, slots=True)
class FolderCalls:
    """`runtimes.base.Runtime` for calls of one such server. `files` runs programs in the server's image."""

    server: Server
    servers: Servers
    catalog: Catalog
    profile: Profile
    files: FilesRuntime
    kind: str = "calls"

    async def assess(self, action: Action, context: Context) -> Plan:
        """Plan the calls, and look at the folder. Raises InvalidInput, Unavailable without an image."""
        if not isinstance(action, ApiCalls):
            raise InvalidInput(f"An action of kind {action.kind!r} isn't made of calls.")
        plan = assess_calls(action, context, self.catalog, self.profile, "")
        if any(refs_in(step.arguments) for step in planned_steps(plan)):
            raise Unsupported(
                f"The calls of {self.server.name} are made in one go, so none takes a value from another's answer.",
                next_step="Make them one by one.",
            )
        inner = await self.files.assess(self._program(action), context)
        return replace(
            plan,
            image_id=inner.image_id,
            undo_class=inner.undo_class,
            undo_text=inner.undo_text,
            needs=tuple(need for need in plan.needs if need.why == "action"),
            resolved={**inner.resolved, **plan.resolved, "server": self.server.version, "reach": []},
            bounds={**inner.bounds, **plan.bounds},
            limits=inner.limits,
            undo={**inner.undo, "calls": []},
            lines=(
                *(line for line in plan.lines if not line.startswith("    undo")),
                *lines(self.server, ()),
                f"It works on the folder {inner.resolved['folder']}, which it can read, change and delete.",
            ),
        )

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """See `Runtime.dry_run`: the server works on a copy of the folder."""
        found = await self.files.dry_run(self._inner(plan), replace(context, keep=False))
        shown = (line for line in found.lines if line.kind != "output")
        return replace(found, lines=(DryLine("note", f"{self.server.name} worked on a copy."), *shown))

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        return await self.files.dry_revert(revert, revert_plan, self._inner(plan), target)

    async def reap(self) -> None:
        """See `Runtime.reap`: the files runtime does it."""

    async def prepare(self, plan: Plan, context: Context) -> None:
        await self.files.prepare(self._inner(plan), context)

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """Have the server make the calls. Raises only when nothing was touched."""
        return self._answered(plan, await self.files.execute(self._inner(plan), replace(context, output=_unheard)))

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        found = await self.files.settle(self._inner(plan), context)
        return found if found.outcome is None else replace(found, outcome=self._answered(plan, found.outcome))

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        return await self.files.assess_revert(revert, self._inner(plan), context)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        return await self.files.execute_revert(revert, revert_plan, self._inner(plan), target, context)

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        return await self.files.footprint(self._inner(plan), context)

    async def forget(self, plan: Plan, context: Context) -> None:
        await self.files.forget(self._inner(plan), context)

    # ---- inside

    def _program(self, action: ApiCalls) -> Files:
        calls = [session.call_of(call.method, call.arguments) for call in action.calls]
        what = session.told(self.server, calls, self.profile.limits, agreed=self.server.agreed, env={})
        program = _PROGRAM.format(what=json.dumps(what, sort_keys=True))
        return Files(folder=self.server.folder, language="python", program=program)

    def _inner(self, plan: Plan) -> Plan:
        """The same as the files runtime planned it. Of a revert it is that already."""
        if not isinstance(plan.action, ApiCalls):
            return plan
        return replace(plan, action=self._program(plan.action))

    def _answered(self, plan: Plan, outcome: Outcome) -> Outcome:
        """The outcome of the calls, from what the program that made them printed."""
        assert isinstance(plan.action, ApiCalls)
        found = session.said(outcome.stdout.encode(), "it sent more than is read" if outcome.cut else "")
        results: list[JsonValue] = []
        for number in range(len(plan.action.calls)):
            answer = found.answers.get(number)
            if answer is None:
                if found.failed:  # in a stranger's words: data, as an answer is
                    results.append(_unanswered(found.failed, begun=number in found.begun))
                break
            status, body = session.body_of(answer)
            results.append({"status": status, "body": body})
        size = sum(len(json.dumps(one)) for one in results)
        if size > MAX_RESULTS:
            results = [{"status": _status(one), "body": None, "cut": True} for one in results]
        well = len(results) == len(plan.action.calls) and all(200 <= _status(one) < 300 for one in results)
        why = ""
        if found.tools is not None:
            self.servers.note_seen(self.server.name, found.tools)
            why = changed(self.server.name)
        done = outcome.summary.partition(": ")[2]
        calls = ", ".join(call.id for call in plan.action.calls[:5])
        said = "went well" if well else f"failed{f': {why}' if why else ''}"
        return replace(
            outcome,
            ok=well and outcome.ok,
            summary=f"{calls} {said.rstrip('.')}." + (f" In the folder: {done}" if done else ""),
            exit_code=None,
            results=tuple(results),
            stdout="",
            stderr="",
            cut=0,
            details=(found.failed,) if found.failed and not well else (),
        )


def _unheard(stream: str, data: bytes) -> None:
    """What the program prints are its answers, which are told by the outcome."""


def _unanswered(why: str, *, begun: bool) -> JsonValue:
    """What stands where a call's answer would, as `servers.run` has it. Status 0: none is known."""
    said = "it gave no answer" if begun else "the server didn't get as far as the call"
    return {"status": 0 if begun else 424, "body": {"goex": f"{said}: {why}"}}


def _status(result: Any) -> int:
    return int(result["status"])
