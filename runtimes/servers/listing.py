"""What a server says of its tools before anybody agreed to it: asked in a container without a network or a folder; one
at an address is asked there, as its account."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from dataclasses import replace
from pathlib import Path

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject
from policies.services import Service
from runtimes.base import Context
from runtimes.gateway.contract import Gateway
from runtimes.sandbox.contract import Profile, Sandbox
from runtimes.sandbox.docker import DockerSandbox
from runtimes.servers import session
from runtimes.servers.definition import Server
from runtimes.servers.way_out import WayOut

MOST = 500  # tools


def tools_of(server: Server, profile: Profile) -> tuple[JsonObject, ...]:
    """The tools that a server lists. Raises InvalidInput when it lists none, or can't be spoken to."""
    return _checked(server, asyncio.run(_listed(server, session.profile_of(server, profile))))


async def tools_at(
    server: Server, service: Service, sandbox: Sandbox, gateway: Gateway, profile: Profile, context: Context
) -> tuple[JsonObject, ...]:
    """The tools that a server at its address lists, to the account whose lease `context` has. Raises InvalidInput,
    SandboxFailed, GatewayFailed."""
    ((_, account),) = context.accounts
    way = WayOut(server, service, gateway, context, account)
    what = session.told(server, (), profile.limits, agreed="", env={}, headers=way.headers)
    async with way.opened(profile.limits.seconds) as socket_dir:
        job = session.job(context.action_id, what, socket_dir=socket_dir, ca_pem=way.ca_pem)
        found = session.read(await sandbox.run(job, session.profile_of(server, profile)))
    return _checked(server, replace(found, failed=way.hidden(found.failed)))


def _checked(server: Server, found: session.Said) -> tuple[JsonObject, ...]:
    if found.tools is None:
        raise InvalidInput(
            f"{server.name} didn't list its tools: {found.failed or 'it said nothing'}.",
            next_step="See that the package is an MCP server, and which arguments and variables it wants.",
        )
    if not 0 < len(found.tools) <= MOST:
        raise InvalidInput(f"{server.name} lists {len(found.tools)} tools; 1 to {MOST} are taken.")
    return found.tools


async def _listed(server: Server, profile: Profile) -> session.Said:
    with tempfile.TemporaryDirectory(prefix="goex-mcp-") as scratch:
        sandbox = DockerSandbox(secrets.token_hex(8), scratch_dir=Path(scratch))
        try:
            # Some servers don't start without a credential; what they get is worth nothing.
            env = {server.variable: f"goex-{secrets.token_hex(8)}"} if server.variable else {}
            alone = replace(server, folder="")
            what = session.told(alone, (), profile.limits, agreed="", env=env)
            return session.read(await sandbox.run(session.job("mcp-add", what), profile))
        finally:
            await sandbox.close()
