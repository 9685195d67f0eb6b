"""What a yes gives: the four widths, which of them may be chosen, and the grants that each makes. Pure but for ids.

Rules: a grant is for the needs that weren't covered when the person was asked, and for no other. One that is bound to
arguments holds for the methods and with the arguments that were shown alone. Where an answer fills in an argument there
is no width but once: a reference says where a value comes from, not what it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from goex.engine.peers import LONGEST
from goex.journal.actions import ActionRow
from policies.actions import Need, Plan
from policies.decisions import Ask, filled_later
from policies.errors import InvalidInput
from policies.grants import Grant, Width
from policies.jsonvalue import canonical
from policies.rules.arguments import is_open

ONCE_LASTS = timedelta(minutes=10)  # from the approval to its use
PERMANENT_LASTS = timedelta(days=365)
# What names a whole program or statement: a grant with it freed would be for any.
_WHOLE = frozenset({"program_sha256", "language", "statement", "operation"})


class Choice(StrEnum):
    """How far a yes reaches."""

    ONCE = "once"
    SESSION = "session"
    ARGUMENTS = "arguments"  # for good, with these arguments
    PERMANENT = "permanent"

    @property
    def width(self) -> Width:
        return Width.PERMANENT if self is Choice.ARGUMENTS else Width(self.value)

    @property
    def longest(self) -> timedelta:
        return {Width.ONCE: ONCE_LASTS, Width.SESSION: LONGEST, Width.PERMANENT: PERMANENT_LASTS}[self.width]


@dataclass(frozen=True, slots=True, kw_only=True)
class Yes:
    """What the person chose. `lasts` None is the usual time; `bound` are names of arguments, () all or none of them:
    all for `Choice.ARGUMENTS`, none for the wider ones. `narrowed` are a task's lines, by number, and how often each is
    used then (0: not at all). `proof` is a passkey's assertion over it, for the journal."""

    choice: Choice
    by: str
    lasts: timedelta | None = None
    bound: tuple[str, ...] = ()
    narrowed: Mapping[int, int] = field(default_factory=dict)
    proof: Mapping[str, str] | None = None


def choices(plan: Plan, ask: Ask) -> tuple[Choice, ...]:
    """What can be chosen, the narrowest first."""
    offered = [Choice(width.value) for width in ask.widths]
    if plan.unseen:
        return tuple(one for one in offered if one is Choice.ONCE)
    if Choice.PERMANENT in offered and bindable(plan):
        offered.insert(offered.index(Choice.PERMANENT), Choice.ARGUMENTS)
    return tuple(offered)


def bindable(plan: Plan) -> tuple[str, ...]:
    """The arguments that a standing grant can be bound to; () unless each need has some with one value, and where there
    can be no standing grant."""
    if plan.unseen:
        return ()
    names = [own(need) for need in plan.required]
    return tuple(sorted(set().union(*names))) if names and all(names) else ()


def freeable(plan: Plan) -> tuple[str, ...]:
    """Of the arguments that a standing grant can be bound to, those that the person may let go."""
    return tuple(name for name in bindable(plan) if name not in _WHOLE)


def own(need: Need) -> Mapping[str, Any]:
    """The arguments that have one value in all that this need is for."""
    if not need.arguments:
        return {}
    first = need.arguments[0]
    return {
        name: value
        for name, value in first.items()
        if not is_open(value)
        and all(name in other and canonical(other[name]) == canonical(value) for other in need.arguments)
    }


def made(
    row: ActionRow,
    plan: Plan,
    needs: tuple[Need, ...],
    yes: Yes,
    now: datetime,
    entries: Callable[[Need], Mapping[str, str]],
) -> tuple[Grant, ...]:
    """The grants of a yes to `row`. Raises InvalidInput for an argument that nothing can be bound to, and for more than
    once where an answer fills one in."""
    if yes.choice is not Choice.ONCE and plan.unseen:
        raise InvalidInput(filled_later(plan.unseen), next_step="Allow it once.")
    known = bindable(plan)
    for name in yes.bound:
        if name not in known:
            raise InvalidInput(
                f"A standing grant can't be bound to {name[:60]!r}: it isn't used with one value.",
                next_step="Grant it once, or bind it to another argument.",
            )
    width = yes.choice.width
    bound = yes.bound or (known if yes.choice is Choice.ARGUMENTS else ())
    if yes.choice is Choice.ARGUMENTS:
        bound = tuple(dict.fromkeys((*bound, *(name for name in known if name in _WHOLE))))
    lasts = ONCE_LASTS if width is Width.ONCE else min(yes.lasts or yes.choice.longest, yes.choice.longest)
    found: dict[bytes, Grant] = {}
    for need in needs:
        limits = bounds(need, bound) if bound else {}
        key = canonical([need.service, need.account, need.scope, limits])
        found[key] = Grant(
            id=f"g-{secrets.token_hex(6)}",
            agent=row.agent,
            service=need.service,
            account=need.account,
            scope=need.scope,
            width=width,
            created=now,
            expires=now + lasts,
            by=yes.by,
            why=row.id,
            constraints=limits.get("constraints", {}),
            methods=tuple(limits.get("methods", ())),
            only=bool(limits),
            free=tuple(limits.get("free", ())),
            entries={} if width is Width.ONCE else entries(need),
            digest=row.digest if width is Width.ONCE else "",
            session=row.session if width is Width.SESSION else "",
        )
    return tuple(found.values())


def bounds(need: Need, bound: tuple[str, ...]) -> dict[str, Any]:
    """What a grant on `need` is held to when these arguments are bound: their values, its methods, and no arguments but
    these and the `free` ones, which were shown too."""
    constraints = {name: value for name, value in own(need).items() if name in bound}
    free = sorted(set().union(*need.arguments) - constraints.keys())
    return {"constraints": constraints, "methods": list(need.methods), "free": free}
