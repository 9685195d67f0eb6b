"""What an agent is shown of actions: as the person is, but nothing that answers a question to a database by itself.

Rules: how many rows a WHERE would reach, or which row isn't as recorded, is data; an agent learns it by an action that
was allowed and ran, never from a plan, a question or a refusal.
"""

from __future__ import annotations

from goex.daemon.views import action_view
from goex.engine.core import Asker, Core
from goex.journal.actions import ActionRow
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from policies.errors import GoexError

_KINDS = frozenset({"sql", "mongo"})
_RAN = frozenset({State.DONE, State.PARTIAL, State.UNDONE, State.COMMITTED})
_OF_THE_PLAN = ("lines", "undo_text", "digest")


def asks_data(core: Core, row: ActionRow) -> bool:
    """Whether an action, or what it takes back, is one on a database."""
    if row.kind != "revert":
        return row.kind in _KINDS
    try:
        return core.actions.get(row.target).kind in _KINDS
    except GoexError:
        return True


def shown_action(core: Core, row: ActionRow, asker: Asker) -> pb.ActionView:
    """An action as `asker` may see it."""
    view = action_view(row)
    if not asker.owns_all and row.state not in _RAN and asks_data(core, row):
        for name in _OF_THE_PLAN:
            view.ClearField(name)
    return view


def shown_event(core: Core, event: pb.Event, row: ActionRow, asker: Asker) -> pb.Event:
    """A question or an end as `asker` may see it: an agent isn't told how many others wait, either."""
    if asker.owns_all:
        return event
    if event.HasField("asking"):
        event.asking.ClearField("place")
        event.asking.ClearField("waiting")
        if asks_data(core, row):
            for name in (*_OF_THE_PLAN, "choices", "arguments"):
                event.asking.ClearField(name)
    elif asks_data(core, row):
        event.finished.action.CopyFrom(shown_action(core, row, asker))
        if event.finished.HasField("problem"):
            event.finished.problem.ClearField("details")
    return event
