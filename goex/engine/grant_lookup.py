"""Which grants an action could stand on: those that weren't given to another action, and whose catalog is still theirs.

Rules: a once-grant is for the action that it was given to: not for a twin of it, and not for asking the same again
after that one was withdrawn. A standing grant on an imported service is for the methods that its scope opened when it
was given, by their entries in the catalog as they were then: an import (or whoever can write that file) can't put
another method, or another request, under what was allowed. Of calls that a document says just read, though they are
sent as a POST, only those that were shown are among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress

from goex.engine.catalog_entries import entry, is_as_planned, is_imported
from goex.engine.core import Core
from goex.journal.actions import ActionRow
from goex.journal.states import State
from mapper import least_scopes
from mapper.catalog import Catalog
from policies.actions import Need, Plan
from policies.errors import GoexError
from policies.grants import Grant, Width
from policies.jsonvalue import canonical
from policies.tasks import Task

_READS = ("GET", "HEAD")


def held(core: Core, row: ActionRow, plan: Plan) -> tuple[Grant, ...]:
    """The grants that the decision on `row` may be made on."""
    return tuple(
        grant
        for grant in core.grant_store.matching(row.agent, plan.required)
        if (grant.width is not Width.ONCE or grant.why == row.id) and not _stale(core.catalog, grant, plan)
    ) + of_tasks(core, row.agent, plan)


def of_tasks(core: Core, agent: str, plan: Plan) -> tuple[Grant, ...]:
    """The lines of the agent's tasks that have begun, whose methods are what the catalog said they are."""
    if not (found := core.grant_store.tasks(agent)):
        return ()
    begun = core.actions.those(grant.why for grant in found)
    same = is_as_planned(core.catalog, plan)
    return tuple(
        grant
        for grant in found
        if grant.why in begun
        and begun[grant.why].state is State.DONE
        and (same or not grant.entries)
        and all(grant.knows(method, entry(core.catalog, grant.service, method)) for method in grant.methods)
    )


def standing(core: Core, agent: str, plan: Plan) -> tuple[Grant, ...]:
    """The grants that any action of this plan could stand on: no once-grants, which have an action of their own."""
    return tuple(
        grant
        for grant in core.grant_store.matching(agent, plan.required)
        if grant.width is not Width.ONCE and not _stale(core.catalog, grant, plan)
    )


def changed(core: Core, row: ActionRow, plan: Plan) -> str:
    """Why grants that seem to be there aren't enough any more; "" where none is like that."""
    said: dict[str, None] = {}
    for grant in core.grant_store.matching(row.agent, plan.required):
        for need, method in _stale(core.catalog, grant, plan):
            why = "changed since then" if method in grant.entries else "wasn't among what it was given for"
            said[f"{need.service}.{method} {why} in the imported catalog, so grant {grant.id} doesn't hold for it."] = (
                None
            )
    trouble = core.catalog.trouble if said else None
    return " ".join(said) if trouble is None else str(trouble)


def entries(catalog: Catalog, need: Need) -> Mapping[str, str]:
    """What a standing grant on `need` is bound to, by method: {} for a service that comes with GoEx, whose manifest
    changes with GoEx alone."""
    if not is_imported(catalog, need.service):
        return {}
    service = catalog.services.get(need.service)
    if service is None:
        return {"": ""}  # which no method's entry is
    opened = set(need.methods)
    with suppress(GoexError):
        opens = [name for name, _, _ in least_scopes.opened(catalog, need.service, need.scope)]
        opened |= {name for name in opens if service.methods[name].http in _READS}
    return {name: entry(catalog, need.service, name) for name in sorted(opened)}


def standing_state(core: Core, plan: Plan) -> str:
    """What a yes that is wider than once would be for, hashed: where the accounts lead, and of imported services the
    catalog's generation with the entries that are shown, which whoever writes that file changes without another one."""
    lines = plan.resolved["task"] if isinstance(plan.action, Task) else ()
    named = {(need.service, need.account) for need in plan.required}
    named |= {(line["service"], line["account"]) for line in lines}
    found: dict[str, str] = {}
    for service, account in named:
        with suppress(GoexError):  # a folder, or an account that nobody has connected yet
            found[f"{service}/{account}"] = core.vault.resolve(service, account).base_url
    shown = [
        f"{need.service}.{name}"
        for need in plan.required
        if is_imported(core.catalog, need.service)
        for name in need.methods
    ]
    if shown:
        found["catalog"] = str(core.catalog.generation)
        with suppress(GoexError):
            found["entries"] = core.catalog.entry_hash(dict.fromkeys(shown))
    return hashlib.sha256(canonical(found)).hexdigest()


def _stale(catalog: Catalog, grant: Grant, plan: Plan) -> list[tuple[Need, str]]:
    """The methods of the plan for which the catalog isn't any more what it was when the grant was given."""
    if not grant.entries:
        return []
    other = not is_as_planned(catalog, plan)  # what would run isn't what is compared
    return [
        (need, method)
        for need in plan.required
        if (need.service, need.account, need.scope) == (grant.service, grant.account, grant.scope)
        for method in need.methods
        if other or not grant.knows(method, entry(catalog, need.service, method))
    ]
