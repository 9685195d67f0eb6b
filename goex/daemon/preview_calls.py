"""Previews for agents: what calls would send.

Rules: a preview of calls is made of their arguments and the catalog alone. That of an undo says where values come from,
not what was read there, which the agent may not be allowed to read. A dry run of a program, of statements or of
an MCP server that works on a folder shows what lies in a folder or a database, so an agent gets none of them, whatever
it asks; that is said before anything is looked at.
"""

from __future__ import annotations

from goex.daemon.agent_views import calls_on_folder
from goex.engine.core import Principal, Request
from goex.engine.dryrun import DryRuns
from goex.engine.engine import Engine
from goex.journal.actions import ActionRow
from goex.rpc import goex_pb2 as pb
from policies.actions import Action, ApiCalls, Revert
from policies.errors import InvalidInput, Unsupported
from runtimes.base import DryRun


async def preview(
    engine: Engine, action: Action | None, target: ActionRow | None, principal: Principal
) -> pb.DryRunReply:
    """What it would send. `target`: of a revert, what it takes back. Raises what planning raises; Unsupported."""
    calls = action if target is None else target.action()
    if not isinstance(calls, ApiCalls) or calls_on_folder(engine.core, calls):
        raise Unsupported(
            "Only calls have a preview: a program's or a database's would show what is there.",
            next_step="Ask for the action itself; the person sees its dry run.",
        )
    plan, found = await DryRuns(engine).of_request(
        Request(action=action), principal, by=principal.source, progress=lambda _: None
    )
    if target is not None and isinstance(action, Revert) and action.verb == "undo":
        from runtimes.rest.dryrun import dry_undo  # loaded by its first call

        return dry_run_reply(dry_undo(target.the_plan()))
    return dry_run_reply(found, plan.lines)


def asked_for(row: ActionRow) -> Action:
    """What an earlier action was asked to do. Raises InvalidInput."""
    action = row.the_plan().action if row.plan else row.action()
    if not isinstance(action, ApiCalls | Revert):
        raise InvalidInput(f"{row.id} has no preview: it isn't calls.", next_step="Get says how it stands.")
    return action


def dry_run_reply(found: DryRun, plan: tuple[str, ...] = ()) -> pb.DryRunReply:
    return pb.DryRunReply(
        ok=found.ok,
        summary=found.summary,
        lines=[pb.DryLine(kind=line.kind, text=line.text) for line in found.lines],
        plan=plan,
        preview=found.preview,
    )
