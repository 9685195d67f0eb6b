"""What standing grants were really used for: by how many actions, when last, and which methods were called.

Rules: a use is an action that was allowed on the grant; a method counts as called when its request went out through
the gateway. Where a request doesn't say whose it was (an older GoEx, a program in a folder), what the plan needed
counts, if the action ran at all: rather a method too many than one that is called unused.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from goex.journal.chain import Journal
from goex.journal.schema import actions, journal
from policies.grants import Grant

_MOST_NAMED = 500  # values in one query


@dataclass(slots=True)
class Use:
    """Of one grant."""

    uses: int = 0
    last: str = ""
    methods: set[str] = field(default_factory=set)  # without their service


def usage(journal_: Journal, grants: Iterable[Grant]) -> dict[str, Use]:
    """What each of these grants was used for, by its id. Reads every decision there was: may run in a thread."""
    wanted = {grant.id: grant for grant in grants}
    found = {id: Use() for id in wanted}
    used_by: dict[str, list[str]] = defaultdict(list)  # the grants, by action
    with journal_.read() as connection:
        allowed = select(journal.c.action_id, journal.c.at, journal.c.facts).where(journal.c.kind == "allow")
        for action_id, at, facts in connection.execute(allowed.order_by(journal.c.number)):
            for id in _listed(facts):
                if id in found:
                    found[id].uses += 1
                    found[id].last = at
                    used_by[action_id].append(id)
        ids = list(used_by)
        for start in range(0, len(ids), _MOST_NAMED):
            some = ids[start : start + _MOST_NAMED]
            sent = _sent(connection, some)
            ran = set(
                connection.execute(
                    select(journal.c.action_id).where(journal.c.action_id.in_(some), journal.c.kind == "run")
                ).scalars()
            )
            plans = select(actions.c.id, actions.c.plan).where(actions.c.id.in_(some))
            for action_id, plan in connection.execute(plans):
                for id in used_by[action_id] if action_id in ran else ():
                    found[id].methods |= _called(wanted[id], plan, sent.get(action_id))
    return found


def _sent(connection: Any, ids: list[str]) -> dict[str, set[str]]:
    """The methods whose requests went out, by action; an action whose requests don't all say theirs is left out."""
    found: dict[str, set[str]] = defaultdict(set)
    untold = set()
    query = select(journal.c.action_id, journal.c.facts)
    query = query.where(journal.c.action_id.in_(ids), journal.c.kind == "request")
    for action_id, facts in connection.execute(query):
        call = _object(facts).get("call")
        if isinstance(call, str):
            found[action_id].add(call)
        else:
            untold.add(action_id)
    return {id: calls for id, calls in found.items() if id not in untold}


def _called(grant: Grant, plan: str, sent: set[str] | None) -> set[str]:
    needed: set[str] = set()
    needs = _object(plan).get("needs")
    for need in (each for each in needs if isinstance(each, dict)) if isinstance(needs, list) else ():
        if (need.get("service"), need.get("account"), need.get("scope")) == (grant.service, grant.account, grant.scope):
            methods = need.get("methods")
            needed.update(name for name in (methods if isinstance(methods, list) else ()) if isinstance(name, str))
    return needed if sent is None else {name for name in needed if f"{grant.service}.{name}" in sent or name in sent}


def _listed(facts: str) -> list[str]:
    found = _object(facts).get("grants")
    return [id for id in found if isinstance(id, str)] if isinstance(found, list) else []


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
