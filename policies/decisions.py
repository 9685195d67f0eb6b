"""The decision: a pure function from what is asked to Allow, Ask or Deny.

Order: a rule that forbids wins over everything; a rule may insist on asking, whatever was granted or permitted; then
every need must be permitted by a rule or covered by a grant, or all of it is within a task, or the person is asked.
What an answer fills in nobody has seen yet: neither a rule nor a standing grant covers it, and it is asked for each
time. Absence denies: an action without needs, a plan without a digest, a rule that can't be evaluated. Decisions are
values, not exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from policies.actions import Need, Plan
from policies.grants import ANONYMOUS, Grant, Width
from policies.rules.facts import Situation
from policies.services import Risk
from policies.task_cover import covering_task


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be decided: a plan, bound to its digest, who asks in which session, and how things stand."""

    agent: str
    session: str
    digest: str
    plan: Plan
    situation: Situation = field(default_factory=Situation)


@dataclass(frozen=True, slots=True)
class Allow:
    """Go ahead, on these grants (each of them is named in the journal; once-grants are consumed) and rules. A task's
    grant is named once for each call that it is used for."""

    grants: tuple[Grant, ...]
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """The person must decide. `needs` aren't covered yet; `presence` says that a passphrase is due; `rules` are those
    that want it asked."""

    needs: tuple[Need, ...]
    widths: tuple[Width, ...]
    presence: bool
    reason: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deny:
    """No. The reason is one that the agent may read; `rules` are those that forbid it; `code` is the problem's."""

    reason: str
    rules: tuple[str, ...] = ()
    code: Literal["denied", "busy"] = "denied"  # busy: too much waits for the person, which is no opinion


Decision = Allow | Ask | Deny


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the rules say of a plan: the names of those that forbid it and that want it asked for; for each required
    need (by its place) those that permit all of it. `problem` is why it can't be judged, which denies; `refusal` and
    `reason` are the whole text of a denial or of a question that no rule's name would explain."""

    forbid: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    permits: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""
    refusal: str = ""
    reason: str = ""


class Rules(Protocol):
    """All rules. Judging is pure; one that raises is a denial."""

    def judge(self, request: Request, now: datetime) -> Ruling: ...


def decide(request: Request, grants: Iterable[Grant], rules: Rules, now: datetime) -> Decision:
    """Decide `request` under `grants` and `rules` at `now`. Pure: no clock, no store, no I/O.

    The grants that an Allow carries are the narrowest that cover each need: permanent before session before
    once, so that a once-grant isn't spent where a standing one already suffices.
    """
    if not request.digest:
        return Deny("The action has no digest, so nothing can be bound to it.")
    if not request.plan.required:
        return Deny("The action needs no known permission, and what is unmapped doesn't run.")
    try:
        said = rules.judge(request, now)
    except Exception as error:  # noqa: BLE001  rules that fail must not let anything through
        return Deny(f"The rules failed ({type(error).__name__}), and what can't be judged is denied.")
    if said.refusal:
        return Deny(said.refusal, said.forbid)
    if said.problem:
        which = f"By {_names(said.forbid)}: " if said.forbid else ""
        return Deny(f"{which}{said.problem[:1].upper()}{said.problem[1:]} What can't be judged is denied.", said.forbid)
    if said.forbid:
        return Deny(f"{_names(said.forbid)} forbid{'s' if len(said.forbid) == 1 else ''} it.", said.forbid)

    known = tuple(grants)
    used: list[Grant] = []
    permitting: dict[str, None] = {}
    missing: list[Need] = []
    for index, need in enumerate(request.plan.required):
        # An agent without a name gets once-grants only, whatever a rule says of everybody.
        may_be_permitted = not said.ask and request.agent != ANONYMOUS and not need.unseen
        permitted = said.permits.get(index, ()) if may_be_permitted else ()
        covering = [
            grant
            for grant in known
            if grant.covers(need, agent=request.agent, digest=request.digest, session=request.session, now=now)
            and (not said.ask or grant.width is Width.ONCE)
        ]
        if permitted:
            permitting.update(dict.fromkeys(permitted))
        elif covering:
            used.append(min(covering, key=_breadth_first))
        else:
            missing.append(need)
    if not missing:
        return Allow(tuple({grant.id: grant for grant in used}.values()), said.ask or tuple(permitting))

    if not said.ask and request.agent != ANONYMOUS:
        inside = covering_task(request.plan, known, agent=request.agent, session=request.session, now=now)
        if inside:
            return Allow(inside)

    once_only = bool(said.ask) or request.agent == ANONYMOUS or bool(request.plan.unseen)
    asking = f"{_names(said.ask)} want{'s' if len(said.ask) == 1 else ''} each such action to be asked for."
    return Ask(
        needs=tuple(missing),
        widths=(Width.ONCE,) if once_only else (Width.ONCE, Width.SESSION, Width.PERMANENT),
        presence=request.plan.risk > Risk.READ,
        reason=(said.reason or asking) if said.ask else _uncovered(missing, request.agent),
        rules=said.ask,
    )


def _names(rules: Sequence[str]) -> str:
    """Rules by name, and no more of them: their text is the person's."""
    shown = ", ".join(rules[:3]) + (f" and {len(rules) - 3} more" if len(rules) > 3 else "")
    return f"Rule {shown}" if len(rules) == 1 else f"Rules {shown}"


def filled_later(needs: Sequence[Need]) -> str:
    """What answers fill in of these needs, in words; "" where that is nothing."""
    known = _of_calls([(need, need.filled) for need in needs])
    later = _of_calls([(need, tuple(name for name in need.unseen if name not in need.filled)) for need in needs])
    said = [f"The values of {known} came from an answer, so it is asked each time."] if known else []
    if later:
        said.append(f"An answer that nobody has seen yet fills in {later}, so it is asked each time.")
    return " ".join(said)


def _of_calls(named: Sequence[tuple[Need, tuple[str, ...]]]) -> str:
    said = (f"{', '.join(names)} of {need.service}.{' or '.join(need.methods)}" for need, names in named if names)
    return " and ".join(dict.fromkeys(said))


def _uncovered(missing: Sequence[Need], agent: str) -> str:
    seen = [need for need in missing if not need.unseen]
    said = (_ungranted(seen, agent) if seen else "", filled_later(missing))
    return " ".join(text for text in said if text)


def _ungranted(missing: Sequence[Need], agent: str) -> str:
    names = ", ".join(dict.fromkeys(f"{need.service}:{need.scope}" for need in missing))
    return f"{names} {'is' if ',' not in names else 'are'} not granted to {agent}."


def _breadth_first(grant: Grant) -> tuple[int, str]:
    order = {Width.PERMANENT: 0, Width.SESSION: 1, Width.ONCE: 2, Width.TASK: 3}
    return order[grant.width], grant.id
