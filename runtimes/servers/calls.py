"""Calls of one MCP server that works on no folder: planned, recorded and taken back as calls of any service are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from policies.actions import Action, ApiCalls, Plan, Revert
from policies.display_text import escape
from policies.errors import InvalidInput
from runtimes.base import Context
from runtimes.rest.plans import assess_calls
from runtimes.rest.runtime import RestRuntime
from runtimes.servers.definition import Server, Servers
from runtimes.servers.run import ServerRunner


@dataclass(frozen=True, slots=True)
class ServerCalls(RestRuntime):
    """`RestRuntime` whose calls an MCP server answers, each in a container of its own. `reach`: the origins that it may
    send something to."""

    server: Server = field(kw_only=True)
    servers: Servers = field(kw_only=True)
    reach: tuple[str, ...] = ()

    async def assess(self, action: Action, context: Context) -> Plan:
        """See `RestRuntime.assess`. No container is made to wait: each server has an image of its own."""
        if not isinstance(action, ApiCalls):
            raise InvalidInput(f"An action of kind {action.kind!r} isn't made of calls.")
        image = await self.sandbox.image_id(self.profile)
        return self._told(assess_calls(action, context, self.catalog, self.profile, image, self.reversions))

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """See `RestRuntime.assess_revert`."""
        return self._told(await RestRuntime.assess_revert(self, revert, plan, context))

    def _told(self, plan: Plan) -> Plan:
        return replace(
            plan,
            resolved={**plan.resolved, "server": self.server.version, "reach": list(self.reach)},
            lines=(*plan.lines, *lines(self.server, self.reach)),
        )

    @property
    def _runner(self) -> ServerRunner:  # type: ignore[override]  # it runs steps in the same way
        return ServerRunner(self.server, self.servers, self.sandbox, self.gateway, self.catalog, self.profile)


def lines(server: Server, reach: tuple[str, ...]) -> tuple[str, ...]:
    """What answers the calls, and what it can do by itself, in words."""
    where = f"nowhere but {', '.join(reach)}" if reach else "nowhere: it has no network"
    if server.url:
        return (
            escape(f"{server.name} is an MCP server at {server.url}, asked from a container of each call's own."),
            "What its tools do is its own claim, and what it does with what it gets is its own affair.",
        )
    return (
        escape(f"{server.name} is an MCP server, run in a container for each call: {server.way}"),
        escape(f"It may send something {where}. What its tools do is its own claim."),
    )
