"""Whether rows of actions are what the chain says of them.

Rules: whoever can write the state database can write any state, name and plan into the table of actions, with a digest
that fits. So before such a row is acted on without asking anew (after a restart) or is taken for the past (undo), all
that it says (who asked for what, in which session and words, the plan, the state, what came of it) is compared with
rows of the chain, recomputed up to its head.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import astuple

from goex.journal.actions import ActionRow
from goex.journal.chain import Journal
from goex.journal.errors import JournalBroken
from goex.journal.walk import Walk

log = logging.getLogger("goex.engine")


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
    walk, wanted = Walk(), {row.id for row in rows}
    for row in chain:
        if row.action_id in wanted and row.to_state:
            walk.step(astuple(row))
    return frozenset(row.id for row in rows if walk.describes(row))
