"""What a program read and wrote, by the requests that left. Pure.

Rules: what only read isn't recorded one by one, so all that it may call counts as read; what it changed is the whole
service at that host. Wide, so that nothing which stands on it is missed.
"""

from __future__ import annotations

from urllib.parse import quote

from mapper.catalog import Catalog
from policies.actions import Code, Plan
from runtimes.base import Footprint
from runtimes.code.record import Record, permits_of


def footprint(plan: Plan, kept: Record | None, catalog: Catalog) -> Footprint:
    """The footprint of a program. `kept` None: nothing of it is recorded any more."""
    if not isinstance(plan.action, Code):
        return Footprint(reads=frozenset({"calls"}), writes=frozenset({"calls"}))
    permits = permits_of(plan)
    place = [f"calls/{quote(each.service, safe='')}/{quote(each.rule.origin.host, safe='')}" for each in permits]
    if kept is None:
        writes = {place[at] for at, permit in enumerate(permits) if not permit.read}
        return Footprint(reads=frozenset(place), writes=frozenset(writes))
    wrote = frozenset(place[one.permit] for one in kept.sent if kept.done(one.number) or one in kept.unsettled)
    return Footprint(reads=frozenset(place), writes=wrote)
