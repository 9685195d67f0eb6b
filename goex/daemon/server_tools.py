"""Asking an MCP server at an address for its tools, before or after the person agreed to them.

Rules: it is asked as its account, by the gateway, at its own address; a lease is taken and the journal says so first.
What it answers is shown to the person, and nothing of it may be called before they agree.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from goex.daemon.credential_broker import CredentialBroker
from goex.daemon.entries import DEFAULT, record
from goex.daemon.person_context import PersonContext
from goex.engine.peers import Peer
from goex.engine.records import SealedRecords
from policies.accounts import Account, Origin
from policies.errors import InvalidInput
from policies.grants import PERSON
from policies.jsonvalue import JsonObject
from policies.services import Service
from runtimes.base import Context
from runtimes.servers.definition import HOST

_SECONDS = 300


async def tools_of(
    person: PersonContext, broker: CredentialBroker, service: Service, peer: Peer
) -> tuple[JsonObject, ...]:
    """The tools that it lists. Raises InvalidInput, Conflict, VaultError, Unavailable."""
    from runtimes.servers.runtime import CallsRuntime  # loaded by the first action of this kind

    core = person.engine.core
    runtime = core.runtimes["calls"]
    assert isinstance(runtime, CallsRuntime)
    key = (service.name, DEFAULT)
    account = record(person, *key).account
    id = f"tools-{secrets.token_hex(8)}"
    facts: JsonObject = {"account": account.id, "by": peer.describe()}

    def note(kind: str, what: JsonObject) -> None:
        core.journal.append(f"server-{kind}", facts={**facts, **what})

    note("asked", {})
    expires = core.clock() + timedelta(seconds=_SECONDS)
    lease = await broker.lease(*key, action_id=id, expires=expires, scopes=())
    context = Context(
        action_id=id,
        agent=PERSON,
        accounts={key: account},
        granted=frozenset(),
        leases=(lease,),
        records=SealedRecords(core.journal, core.vault, id, PERSON),
        note=note,
        progress=lambda text: None,
        output=lambda stream, data: None,
    )
    try:
        return await runtime.look(service.name, context)
    finally:
        person.vault_state.end_leases(id)


def agreed(account: Account, marks: Iterable[str]) -> Account:
    """The account with these marks (`Server.mark`) in the place of those that it has: what the person agreed to of its
    MCP server changes, and nothing else. Raises InvalidInput for an origin that isn't such a mark."""
    made = tuple(Origin.parse(mark) for mark in marks)
    own = f".{account.service}{HOST}"
    if not made or not all(one.host.endswith(own) for one in made):
        raise InvalidInput("A credential that stays goes where it went before, and nowhere else.")
    places = tuple(one for one in account.origins if not one.host.endswith(own))
    at_mark = Origin.parse(account.base_url).host.endswith(own)
    return replace(account, origins=(*places, *made), base_url=str(made[0]) if at_mark else account.base_url)
