"""The ways to say yes to one request, in words of that request. Pure.

Rules: each says who could then do what without being asked, on which account, with which arguments, and until when; a
grant is for what a scope opens, not for a plan, and that is said wherever it makes a difference. Nothing is promised
that `policies.grants.Grant.covers` doesn't hold to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from goex.daemon import code_scope_text
from goex.daemon.code_scope_text import is_code
from goex.daemon.database_scope_text import doing, is_database
from goex.engine.grant_issue import Choice, bindable, bounds, own
from goex.journal.actions import ActionRow
from goex.journal.chain import stamp
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from mapper.least_scopes import opened, risk_of
from policies.actions import ApiCalls, Code, Need, Plan, Revert
from policies.decisions import filled_later
from policies.display_text import counted, escape_name, escape_value
from policies.grants import PERSON
from policies.services import Risk
from policies.tasks import Task
from runtimes.code.scopes import PROGRAM

_LONGEST_VALUE = 60  # characters of a value that is said again here
_WORST = {
    Risk.WRITE: "change things",
    Risk.DELETE: "delete things",
    Risk.ADMIN: "change who has access",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked, as the words are made of it: `needs` aren't granted yet, `duplicates` of it wait, too."""

    row: ActionRow
    plan: Plan
    needs: tuple[Need, ...]
    duplicates: int
    now: datetime
    unused: timedelta | None


def widths(asked: Asked, offered: Sequence[str], catalog: Catalog) -> list[pb.WidthView]:
    """One for each width that is offered."""
    return [_width(Choice(name), asked, catalog) for name in offered]


def _width(choice: Choice, asked: Asked, catalog: Catalog) -> pb.WidthView:
    if choice is Choice.ONCE:
        return pb.WidthView(name=choice, words=_once(asked))
    until = asked.now + choice.longest
    return pb.WidthView(
        name=choice,
        words=[
            *(_unasked(choice, need, asked, catalog) for need in asked.needs),
            *_beyond(choice, asked),
            _ending(choice, asked, until),
        ],
        until=stamp(until),
        warning=_warning(choice, asked, catalog),
    )


def _once(asked: Asked) -> list[str]:
    if isinstance(asked.plan.action, Task):
        return [
            "What its lines say, as often as they say, until its time is over or you revoke it (goex revoke --task).",
            "Narrower: y 2=1 3=0 10m is line 2 once, line 3 not at all, all of it for 10 minutes.",
        ]
    said = ["This very action, a single time. Whatever differs from what is shown here is asked for again."]
    if asked.duplicates:
        more = "another identical one waits" if asked.duplicates == 1 else f"{asked.duplicates} identical ones wait"
        said.append(f"Of the identical requests it is for one: {more}, and will be asked for after it.")
    if why := filled_later(asked.plan.unseen):
        said.append(why)
    return said


def _unasked(choice: Choice, need: Need, asked: Asked, catalog: Catalog) -> str:
    """What could then be done with one scope."""
    who, account = _who(asked.row.agent), escape_name(need.account)
    if need.service == "files":
        if choice is Choice.ARGUMENTS:
            action = asked.plan.action
            which = f"the program of {action.target} again" if isinstance(action, Revert) else "this very program"
            return f"{who} may run {which} in {account}, and undo and redo it, without asking."
        if need.risk is Risk.READ:
            return f"{who} may read everything in {account} by any program, without asking."
        return (
            f"{who} may run any program in {account}, which can read, change and delete everything there, and"
            " undo and redo what such programs did, without asking."
        )
    if is_database(need):
        if choice is not Choice.ARGUMENTS:
            return f"{who} may {doing(need.scope, need.account)} without asking, whichever statement it is by."
        own_ones = own(need)
        if "statement" not in own_ones:
            return f"{who} may do this very thing again ({escape_name(need.scope)} in {account}) without asking."
        which = "this very statement" if len(need.arguments) == 1 else "these very statements"
        return f"{who} may {doing(need.scope, need.account)} without asking, by {which} alone."
    if is_code(need):
        which = "this very program, one" if choice is Choice.ARGUMENTS else "any program"
        return f"{who} may {code_scope_text.doing(need.scope, which)} without asking."
    start = f"{who} may use {need.service}:{need.scope} on account {account} without asking:"
    used = ", ".join(need.methods)
    if choice is Choice.ARGUMENTS and isinstance(asked.plan.action, Code):
        return f"{start} only {used}, only from this very program{_held_in_code(need)}."
    if choice is Choice.ARGUMENTS:
        return f"{start} only {used}{_held_to(need)}."
    known = need.service in catalog.services
    opens = {name for name, _, _ in opened(catalog, need.service, need.scope)} if known else set()
    more = len(opens - set(need.methods))
    rest = f", and whatever else the scope allows ({more} other method{'s' if more != 1 else ''})" if more else ""
    return f"{start} {used}{rest}, whatever the arguments are."


def _held_in_code(need: Need) -> str:
    """The values that a program's calls of this permission all have."""
    held = [f"{name} is {_value(value)}" for name, value in own(need).items() if name != PROGRAM]
    return f", where {'; '.join(held)}" if held else ""


def _held_to(need: Need) -> str:
    """The arguments that a grant on `need` is bound to, and whether there may be others."""
    limits = bounds(need, tuple(own(need)))
    said = "; ".join(f"{name} is {_value(value)}" for name, value in limits["constraints"].items())
    if not limits["free"]:
        return f" with exactly these arguments: {said}" if said else " without arguments"
    return f" where {said}; {', '.join(limits['free'])} may be anything"


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return escape_value(text) if len(text) <= _LONGEST_VALUE else f"the {len(text)} characters shown above"


def _beyond(choice: Choice, asked: Asked) -> list[str]:
    """Where a grant is for more than the plan that is shown, or for less than it seems."""
    action, said = asked.plan.action, []
    if any(is_database(need) for need in asked.needs):
        if len(asked.needs) > 1:
            said.append("It isn't for these permissions together: each of them holds for any statement that needs it.")
    elif isinstance(action, Revert) and asked.needs and asked.needs[0].service != "files":
        said.append(f"It isn't for this {action.verb} alone: it is for these calls in whatever is asked for.")
    elif isinstance(action, Code) and len(asked.needs) > 1 and choice is not Choice.ARGUMENTS:
        said.append("It isn't for this program: each of these permissions holds for whatever else needs it, too.")
    calls = len(action.calls) if isinstance(action, ApiCalls) else 1
    if calls > 1:
        said.append(
            f"It isn't for these {calls} calls together: each of them may then run alone, in any order, any number of"
            " times."
        )
    said.append("What can't be taken back, and what a rule of yours wants asked, is still asked for each time.")
    return said


def _ending(choice: Choice, asked: Asked, until: datetime) -> str:
    if choice is Choice.SESSION:
        if asked.row.agent == PERSON:
            return "It ends with this terminal's session: 30 idle minutes, or 8 hours."
        return "It ends with the agent's session: when it leaves, after 30 idle minutes, or after 8 hours."
    unused = f", earlier when it isn't used for {counted(asked.unused.days, 'day')}" if asked.unused else ""
    return f"It ends on {until:%Y-%m-%d}{unused}, or when you revoke it (goex revoke)."


def _warning(choice: Choice, asked: Asked, catalog: Catalog) -> str:
    if choice is Choice.ARGUMENTS:
        return ""
    said = []
    if choice is Choice.PERMANENT and asked.needs and not bindable(asked.plan):
        said.append(
            "NOTHING BINDS THIS TO WHAT IS SHOWN: no argument has one value that it could be bound to, so it holds for"
            " any arguments, for each call by itself."
        )
    worst = max((_worst(need, catalog) for need in asked.needs), default=Risk.READ)
    if worst in _WORST and asked.needs[0].service != "files":
        said.append(f"{_who(asked.row.agent)} can then {_WORST[worst]} that you haven't seen.")
    return " ".join(said)


def _worst(need: Need, catalog: Catalog) -> Risk:
    known = catalog.services.get(need.service)
    if known is None or need.scope not in known.scopes:
        return need.risk
    return max(need.risk, risk_of(catalog, need.service, need.scope))


def _who(agent: str) -> str:
    return "Your own command line" if agent == PERSON else f"The agent “{escape_name(agent)}”"
