"""Questions as lists show them: texts cut, and no digest, so that none can be approved from.

Rules: what was cut is said. A list may be of a thousand, and its questions hardly change while they wait: each is made
once, and only its place among the others is filled in anew.
"""

from __future__ import annotations

from collections.abc import Iterable

from goex.daemon.approval_views import escaped
from goex.daemon.audit_views import runs, what
from goex.daemon.question import sentence
from goex.daemon.question_facts import undo
from goex.engine.core import Core
from goex.engine.events import Approval
from goex.journal.actions import ActionRow
from goex.rpc import goex_pb2 as pb
from policies.actions import Plan, Revert
from policies.display_text import counted, shorten

_BRIEF = 200  # characters of a text in a list
_WHERE_FIRST = frozenset({"files", "code", "sql", "mongo"})  # the first line of their plans says only where
_KEPT = 1000  # beside as many as wait


class BriefViews:
    """The questions of one daemon as lists show them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._made: dict[str, pb.Approval] = {}

    def missing(self, found: Iterable[Approval]) -> list[str]:
        """The actions that have to be read before these can be shown."""
        queue = self._core.approvals.queue
        if len(self._made) > _KEPT + 2 * len(queue):
            self._made = {id: made for id, made in self._made.items() if queue.get(id) is not None}
        return [one.action_id for one in found if one.state != "pending" or one.id not in self._made]

    def view(self, approval: Approval, row: ActionRow | None) -> pb.Approval:
        """One of them; `row` None where `missing` didn't name its action."""
        made = self._made.get(approval.id)
        if row is not None or made is None:
            row = row or self._core.actions.get(approval.action_id)
            made = brief_view(self._core, approval, row, row.readable_plan())
            if approval.state == "pending":
                self._made[approval.id] = made
            else:
                self._made.pop(approval.id, None)
        shown = pb.Approval()
        shown.CopyFrom(made)
        return _placed(self._core, shown)


def brief_view(core: Core, approval: Approval, row: ActionRow, plan: Plan | None) -> pb.Approval:
    """A question as a list shows it; of a settled one whose plan wasn't kept, what is left."""
    lines = plan.lines if plan is not None else ("Its plan was too long to be kept, or is another version's.",)
    first = lines[0] if lines else ""
    if plan is not None and row.kind in _WHERE_FIRST:
        first = runs(row)
    more = len(lines) - 1
    made = escaped(
        pb.Approval(
            id=approval.id,
            action_id=approval.action_id,
            agent=_cut(row.agent),
            lines=[
                _cut(first.split("\n")[0]),
                *([f"… and {more} more line{'s' if more > 1 else ''}"] if more > 0 else []),
            ],
            undo_class=plan.undo_class if plan is not None else "",
            risk=plan.risk.word if plan is not None else "",
            presence=approval.presence,
            created=approval.created,
            deadline=approval.deadline,
            intent=_cut(row.intent),
            state=approval.state,
            settled_by=approval.settled_by,
            source=row.source,
            session=row.session,
            kind=row.kind,
            brief=True,
            question=_brief_question(core, row, plan),
        )
    )
    return _placed(core, made)


def _placed(core: Core, made: pb.Approval) -> pb.Approval:
    """With where it stands now."""
    queue = core.approvals.queue
    duplicates = queue.duplicates(made.id)
    made.place, made.waiting, made.count = queue.place(made.id), len(queue), max(len(duplicates), 1)
    made.same_as[:] = [id for id in duplicates if id != made.id]
    return made


def _brief_question(core: Core, row: ActionRow, plan: Plan | None) -> pb.Question | None:
    if plan is None:
        return None
    if not isinstance(plan.action, Revert):
        return pb.Question(sentence=sentence(row, plan, core.catalog, ""))
    target = what(core.actions.get(plan.action.target))
    return pb.Question(sentence=sentence(row, plan, core.catalog, target), undo=undo(plan, core.catalog))


def _cut(value: str) -> str:
    kept, cut = shorten(value, _BRIEF)
    return f"{kept}… ({counted(cut, 'more character')})" if cut else kept
