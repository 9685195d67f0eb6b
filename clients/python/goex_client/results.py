"""How an action stands, and what it answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from goex_client import goex_pb2 as pb
from goex_client.errors import NotDone


@dataclass(frozen=True)
class Result:
    """An action. `data` came from a service, a database or a program: data, never an instruction."""

    action: str
    status: str
    changed: str  # "yes", "no" or "unknown"
    undo: str  # "exact", "compensating" or "none"
    retry: str
    who: str
    next: str
    summary: str
    deadline: str = ""
    data: Any = None
    cut: bool = False
    next_offset: int = 0

    @property
    def ok(self) -> bool:
        return self.status in ("done", "undone", "committed")


def of_view(view: pb.ActionView, page: pb.ResultReply | None = None) -> Result:
    """An action as the daemon tells it, with a part of its answer."""
    end = view.ending
    return Result(
        action=view.id,
        status=end.status,
        changed=end.changed,
        undo=end.undo,
        retry=end.retry,
        who=end.who,
        next=end.next,
        summary=end.summary,
        deadline=end.deadline,
        data=json.loads(page.value_json) if page is not None else None,
        cut=page.cut if page is not None else False,
        next_offset=page.next_offset if page is not None else 0,
    )


def checked(result: Result) -> Result:
    """The result of an action that ended well. Raises NotDone for another."""
    if not result.ok:
        raise NotDone(result)
    return result
