"""The decision: a pure function from what is asked to Allow, Ask or Deny.

Order: a rule that forbids wins over everything; then every need must be covered by a grant, or the person is
asked; a rule may insist on asking whatever was granted. Absence denies: an action without needs, a plan without
a digest, a rule that fails. Decisions are values, not exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol

from policies.actions import Need, Plan, Revert, UndoClass
from policies.catalog import Risk
from policies.grants import ANONYMOUS, Grant, Width


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be decided: a plan, bound to its digest, and who asks in which session."""

    agent: str
    session: str
    digest: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Allow:
    """Go ahead, on these grants (each of them is named in the journal; once-grants are consumed)."""

    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """The person must decide. `needs` aren't covered yet; `presence` says that a passphrase is due."""

    needs: tuple[Need, ...]
    widths: tuple[Width, ...]
    presence: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    """No. The reason is one that the agent may read."""

    reason: str


Decision = Allow | Ask | Deny


class Verdict(Enum):
    """What one rule says. PASS has no opinion."""

    FORBID = "forbid"
    ASK_ALWAYS = "ask always"
    PASS = "pass"  # noqa: S105  a verdict, not a password


class Rule(Protocol):
    """One rule. It must be pure; one that raises is a denial."""

    @property
    def name(self) -> str: ...

    def judge(self, request: Request, now: datetime) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class IrreversibleAsks:
    """What can't be taken back, and giving up the way back, is asked for each time: no standing grant is enough."""

    name: str = "irreversible-asks"

    def judge(self, request: Request, now: datetime) -> Verdict:
        plan = request.plan
        if isinstance(plan.action, Revert) and plan.action.verb == "commit":
            return Verdict.ASK_ALWAYS
        if plan.undo_class is UndoClass.IRREVERSIBLE and plan.risk > Risk.READ:
            return Verdict.ASK_ALWAYS
        return Verdict.PASS


DEFAULT_RULES: tuple[Rule, ...] = (IrreversibleAsks(),)


def decide(request: Request, grants: Iterable[Grant], rules: Sequence[Rule], now: datetime) -> Decision:
    """Decide `request` under `grants` and `rules` at `now`. Pure: no clock, no store, no I/O.

    The grants that an Allow carries are the narrowest that cover each need: permanent before session before
    once, so that a once-grant isn't spent where a standing one already suffices.
    """
    if not request.digest:
        return Deny("The action has no digest, so nothing can be bound to it.")
    if not request.plan.required:
        return Deny("The action needs no known permission, and what is unmapped doesn't run.")

    asking = ""
    for rule in rules:
        try:
            verdict = rule.judge(request, now)
        except Exception as error:  # noqa: BLE001  a rule that fails must not let anything through
            return Deny(f"Rule {rule.name} failed ({type(error).__name__}), and a failed rule denies.")
        if verdict is Verdict.FORBID:
            return Deny(f"Rule {rule.name} forbids it.")
        if verdict is Verdict.ASK_ALWAYS:
            asking = asking or f"Rule {rule.name} wants each such action to be asked for."

    known = tuple(grants)
    used: list[Grant] = []
    missing: list[Need] = []
    for need in request.plan.required:
        covering = [
            grant
            for grant in known
            if grant.covers(need, agent=request.agent, digest=request.digest, session=request.session, now=now)
            and (not asking or grant.width is Width.ONCE)
        ]
        if covering:
            used.append(min(covering, key=_breadth_first))
        else:
            missing.append(need)
    if not missing:
        return Allow(tuple({grant.id: grant for grant in used}.values()))

    once_only = bool(asking) or request.agent == ANONYMOUS
    return Ask(
        needs=tuple(missing),
        widths=(Width.ONCE,) if once_only else (Width.ONCE, Width.SESSION, Width.PERMANENT),
        presence=request.plan.risk > Risk.READ,
        reason=asking or _ungranted(missing, request.agent),
    )


def _ungranted(missing: Sequence[Need], agent: str) -> str:
    names = ", ".join(dict.fromkeys(f"{need.service}:{need.scope}" for need in missing))
    return f"{names} {'is' if ',' not in names else 'are'} not granted to {agent}."


def _breadth_first(grant: Grant) -> tuple[int, str]:
    order = {Width.PERMANENT: 0, Width.SESSION: 1, Width.ONCE: 2}
    return order[grant.width], grant.id
