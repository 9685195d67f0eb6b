"""Calls: of services over REST, or of the tools of one MCP server. One action has one kind of them.

Rules: which it is says the catalog; how a server is started say the files of `definition`, whose hash the catalog has.
A server that isn't known, or was altered, is never called. Its methods' address is one that leads nowhere, so that no
request could be sent in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.actions import Action, ApiCalls, Outcome, Plan, Revert
from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import JsonObject
from policies.reversions import NoReversions, ReversionSet
from runtimes.base import Context, DryRun, Footprint, Runtime, Settlement
from runtimes.files.runtime import FilesRuntime
from runtimes.gateway.contract import Gateway
from runtimes.rest.runtime import RestRuntime
from runtimes.sandbox.contract import Profile, Sandbox
from runtimes.servers import packages, session
from runtimes.servers.calls import ServerCalls
from runtimes.servers.definition import PROVIDER, Server, Servers, digest
from runtimes.servers.folder import FolderCalls
from runtimes.servers.listing import tools_at
from runtimes.servers.way_out import reach


@dataclass(frozen=True, slots=True)
class CallsRuntime:
    """`runtimes.base.Runtime` for `ApiCalls`: hands each on to whoever makes such calls."""

    rest: RestRuntime
    files: FilesRuntime
    servers: Servers
    sandbox: Sandbox
    gateway: Gateway
    catalog: Catalog
    profiles: Callable[[str], Profile]
    reversions: ReversionSet = field(default_factory=NoReversions)
    kind: str = "calls"

    async def assess(self, action: Action, context: Context) -> Plan:
        runtime, context = self._for(action, context)
        return await runtime.assess(action, context)

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        runtime, context = self._for(plan.action, context)
        return await runtime.dry_run(plan, context)

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        runtime, target = self._for(plan.action, target)
        return await runtime.dry_revert(revert, revert_plan, plan, target)

    async def reap(self) -> None:
        await self.rest.reap()

    async def prepare(self, plan: Plan, context: Context) -> None:
        runtime, context = self._for(plan.action, context)
        await runtime.prepare(plan, context)

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        runtime, context = self._for(plan.action, context)
        return await runtime.execute(plan, context)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        runtime, context = self._for(plan.action, context)
        return await runtime.settle(plan, context)

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        runtime, context = self._for(plan.action, context)
        return await runtime.assess_revert(revert, plan, context)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        runtime, target = self._for(plan.action, target)
        _, context = self._for(plan.action, context)
        return await runtime.execute_revert(revert, revert_plan, plan, target, context)

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        runtime, context = self._for(plan.action, context)
        return await runtime.footprint(plan, context)

    async def forget(self, plan: Plan, context: Context) -> None:
        runtime, context = self._for(plan.action, context)
        await runtime.forget(plan, context)

    async def look(self, name: str, context: Context) -> tuple[JsonObject, ...]:
        """Ask a server at an address for its tools, and keep them for the person to review, unless they are what was
        agreed to. Raises InvalidInput, Conflict, SandboxFailed, GatewayFailed."""
        service = self.catalog.service(name)
        server = self.servers.get(name, service.version)
        if not server.url:
            raise InvalidInput(f"{name} isn't at an address.", next_step="It is looked at with each call.")
        # Also where the account was sealed for another version of it: the review is the way out of that.
        profile = session.profile_of(server, self.profiles(packages.IMAGE))
        tools = await tools_at(server, service, self.sandbox, self.gateway, profile, context)
        if digest(tools) == server.agreed and not _unsealed(server, context):
            self.servers.forget_seen(name)
        else:
            self.servers.note_seen(name, tools)
        return tools

    def on_folder(self, action: Action | None) -> bool:
        """Whether an MCP server would make these calls in a folder of the person's; also where that can't be known."""
        for call in action.calls if isinstance(action, ApiCalls) else ():
            if self._is_server(call.service):
                try:
                    if self.servers.get(call.service).folder:
                        return True
                except Conflict:
                    return True
        return False

    # ---- inside

    def _check_agreed(self, server: Server, context: Context) -> None:
        """Raise Conflict where the person didn't agree to the server as it is."""
        for account in _unsealed(server, context):
            raise Conflict(
                f"The account {account.id} wasn't sealed for the MCP server {server.name} as it is now.",
                next_step=f"See what it is, and agree to it: goex mcp review {server.name}",
            )

    def _for(self, action: Action, context: Context) -> tuple[Runtime, Context]:
        """Who makes these calls, and the context with the address that the calls of a server have. Raises InvalidInput
        for calls of several kinds, Conflict for a server that was altered."""
        called = sorted({call.service for call in action.calls}) if isinstance(action, ApiCalls) else []
        own = [name for name in called if self._is_server(name)]
        if not own:
            return self.rest, context
        if len(called) > 1:
            raise InvalidInput(
                f"The calls of an MCP server ({own[0]}) are an action of their own.",
                next_step="Ask for the others by themselves.",
            )
        server = self.servers.get(own[0], self.catalog.service(own[0]).version)
        self._check_agreed(server, context)
        base = Origin.parse(server.base_url)
        inside = {
            key: replace(account, base_url=server.base_url, origins=(base,))
            for key, account in context.accounts.items()
        }  # fmt: skip
        origins = (reach(account) for account in context.accounts.values())
        return self._of(server, (origin for each in origins for origin in each)), replace(context, accounts=inside)

    def _of(self, server: Server, origins: Iterable[str]) -> Runtime:
        profile = session.profile_of(server, self.profiles(packages.IMAGE))
        if server.folder:
            # Only programs' snapshots are given up after some days.
            files = self.files.at(self.sandbox, profile, keep_days=0)
            return FolderCalls(server, self.servers, self.catalog, profile, files)
        return ServerCalls(
            self.sandbox,
            self.gateway,
            self.catalog,
            profile,
            self.reversions,
            server=server,
            servers=self.servers,
            reach=tuple(dict.fromkeys(origins)),
        )

    def _is_server(self, name: str) -> bool:
        service = self.catalog.services.get(name)
        return service is not None and service.provider == PROVIDER


def _unsealed(server: Server, context: Context) -> list[Account]:
    """The accounts that weren't sealed for the server as it is."""
    mark = Origin.parse(server.mark)
    return [account for account in context.accounts.values() if mark not in account.origins]
