"""What an agent can find: what is connected, methods, and its own actions."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from goex.mcp import results
from goex.mcp.daemon_link import Caller, DaemonLink
from goex.mcp.tools import MAX_TOKENS, readable
from goex.rpc import goex_pb2 as pb
from policies.display_text import escape
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, canonical, parse

MOST_METHODS = 128  # that are tools of their own


async def find(link: DaemonLink, arguments: JsonObject, caller: Caller) -> types.CallToolResult:
    """What is connected, or the methods that fit."""
    found = await link.call("Find", pb.FindRequest(**arguments), pb.FindReply, caller)
    methods = [_method(each) for each in found.methods]
    there: dict[str, Any] = {}
    if found.services:
        there["services"] = [
            {"name": each.name, "accounts": list(each.accounts), "methods": each.methods} for each in found.services
        ]
    if found.next_offset:
        there["next_offset"] = found.next_offset
    if not arguments or "query" in arguments:
        there |= {
            "databases": list(found.databases),
            "folders": list(found.folders) or "any that the person allows",
            "more_services_known": found.unconnected,
        }
    if found.vault != "unsealed":
        there["next"] = f"The vault is {found.vault}; only the person can open it. Tell them, and stop."
    room = results.bytes_of(MAX_TOKENS)
    if "query" in arguments:
        fitting = results.fitted({"methods": methods}, room - len(canonical(there)))
        return results.of_facts({**fitting, **there})
    facts = {**({"methods": methods} if methods else {}), **there}
    return results.of_facts(results.fitted(facts, room, arguments.get("offset", 0)))


async def actions(link: DaemonLink, arguments: JsonObject, caller: Caller) -> types.CallToolResult:
    """The agent's latest actions."""
    request = pb.ListRequest(limit=50 if "state" in arguments else arguments.get("limit", 10), brief=True)
    reply = await link.call("List", request, pb.ListReply, caller)
    wanted = arguments.get("state", "")
    shown = [each for each in reply.actions if not wanted or each.ending.status == wanted]
    listed = [
        {
            "action": each.id,
            "kind": each.kind,
            "status": each.ending.status,
            "changed": each.ending.changed,
            "undo": each.ending.undo,
            "created": each.created,
            "summary": each.ending.summary[:120],
        }
        for each in shown[: arguments.get("limit", 10)]
    ]
    return results.of_facts({"actions": listed})


def _method(found: pb.FoundMethod) -> dict[str, Any]:
    made: dict[str, Any] = {"method": found.id, "description": escape(found.description), "risk": found.risk}
    made |= {"undo": found.undo, "accounts": list(found.accounts)}
    if found.lacks:
        made["lacks"] = found.lacks
    if found.parameters_json:
        made["arguments"] = readable(parse(found.parameters_json))
    return made


async def methods_of(link: DaemonLink, services: list[str], caller: Caller) -> dict[str, pb.FoundMethod]:
    """The methods of these services that can be called, whole, by name. Raises GoexError."""
    names: list[str] = []
    for service in services:
        offset = 0
        while True:
            request = pb.FindRequest(service=service, offset=offset, limit=200)
            reply = await link.call("Find", request, pb.FindReply, caller)
            names += [each.id for each in reply.methods if not each.lacks]
            if not (offset := reply.next_offset) or len(names) > MOST_METHODS:
                break
    if len(names) > MOST_METHODS:
        raise InvalidInput(
            f"These services have more than {MOST_METHODS} methods.",
            next_step="Name fewer; goex_call calls all of them.",
        )
    made = {}
    for name in names:
        found = await link.call("Find", pb.FindRequest(method=name), pb.FindReply, caller)
        made[name] = found.methods[0]
    return made
