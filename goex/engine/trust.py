"""Whether rows of actions are what the chain says of them.

Rules: whoever can write the state database can write any state, name and plan into the table of actions, with a digest
that fits. So before such a row is acted on without asking anew (after a restart) or is taken for the past (undo), who
asked, in which session, the digest and the state are compared with rows of the chain, recomputed up to its head.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from goex.journal.actions import ActionRow
from goex.journal.chain import Journal, JournalBroken
from policies.jsonvalue import parse

log = logging.getLogger("goex.engine")

_LIMIT = 64 * 2**20  # our own rows come back whole


def confirmed(journal: Journal, rows: Iterable[ActionRow]) -> frozenset[str]:
    """The ids of those that the chain confirms; none when the chain itself was altered. May run in a thread."""
    rows = tuple(rows)
    received = [row.number for each in rows for row in journal.rows(action_id=each.id, kind="receive", limit=1)]
    if not received:
        return frozenset()
    try:
        chain = journal.authentic(min(received))
    except JournalBroken as error:
        log.error("no action is believed: %s", error)
        return frozenset()
    said: dict[str, tuple[str, str, str, str]] = {}  # agent, session, digest, state
    wanted = {row.id for row in rows}
    for row in chain:
        if row.action_id not in wanted or not row.to_state:
            continue
        agent, session, digest, _ = said.get(row.action_id, ("", "", "", ""))
        facts = parse(row.facts, limit=_LIMIT) if row.kind in ("receive", "assess") else {}
        if row.kind == "receive":
            agent, session = row.agent, facts["session"]
        elif row.kind == "assess":
            digest = facts["digest"]
        said[row.action_id] = (agent, session, digest, row.to_state)
    return frozenset(row.id for row in rows if said.get(row.id) == (row.agent, row.session, row.digest, str(row.state)))
