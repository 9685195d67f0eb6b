"""The facts of a short question: the worst that it lets happen, how it is taken back, what to be wary of. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mapper.catalog import Catalog
from policies.actions import ApiCalls, Code, Files, Mongo, Plan, Revert, Sql, UndoClass
from policies.decisions import filled_later
from policies.display_text import counted, escape, escape_name
from policies.reversions import Standing
from policies.rules.audience import recipients_of
from policies.services import Method, Risk, Service
from policies.tasks import Task

_TAIL = " Can't be taken back: "  # of a bundled method's description
_BY_RISK = {
    Risk.READ: "who asks learns the answer",
    Risk.WRITE: "what is shown, once",
    Risk.DELETE: "what is shown is deleted",
    Risk.ADMIN: "who has access changes as shown",
}
_LONGEST_NOTE = 12  # words
_MOST = 3  # kinds of rows that are named


def deed(method: Method) -> str:
    """Return what a bundled method does: the first clause that describes it, without the full stop."""
    return re.split(r"[.;:] ", method.description.partition(_TAIL)[0])[0].rstrip(".")


def worst(plan: Plan, catalog: Catalog) -> str:
    """Return the worst that a yes, once, lets happen."""
    match plan.action:
        case ApiCalls():
            if plan.risk in (Risk.WRITE, Risk.ADMIN) and _is_public(plan, catalog):
                return "anyone can get it"
            return _BY_RISK[plan.risk]
        case Files():
            if plan.action.reads:
                return "it reads everything there, and the answer goes to whoever asks; it changes nothing, no network"
            if plan.resolved.get("mode") == "preview":
                return "exactly the changes that are listed"
            shares = ", shares" if plan.resolved.get("mode") == "direct" else ""
            return f"it reads, changes{shares} and deletes everything there; nothing else, no network"
        case Sql():
            return _rows(plan)
        case Mongo():
            rows = plan.bounds.get("rows", 0)
            return f"at most {counted(rows, 'document')} change{'s' * (rows == 1)}" if rows else _BY_RISK[Risk.READ]
        case Code():
            times = plan.bounds.get("requests", 0)
            if not times:
                return "it calls nothing"
            return f"{counted(times, 'request')} in all, with whatever values aren't fixed above"
        case Revert():
            if plan.action.verb == "commit":
                return "it can't be undone any more"
            return "what is shown happens; later changes by others are left alone"
        case Task():
            return "each line, as often as it says, with any values that it leaves open"


def _is_public(plan: Plan, catalog: Catalog) -> bool:
    """Whether a call says of itself that anyone gets something by it."""
    changing = [step for step in plan.resolved.get("steps", ()) if step["role"] == "call" and not step["read"]]
    return any("anyone" in recipients_of(*method_of(step, catalog), step["arguments"]).names for step in changing)


def method_of(step: Mapping[str, Any], catalog: Catalog) -> tuple[Service | None, Method | None]:
    """Return the catalog's entries of a step; None where it has none any more."""
    service = catalog.services.get(step["service"])
    return service, service.methods.get(step["method"]) if service is not None else None


def _rows(plan: Plan) -> str:
    reached = plan.resolved.get("reached", ())
    if not reached:
        return _BY_RISK[Risk.READ] if plan.undo_class is UndoClass.NOTHING else "nothing changes"
    from runtimes.sql.contract import Reached  # loaded by the first question about a database
    from runtimes.sql.plan_text import bounded

    said = [
        bounded(Reached(table=one["table"], verb=one["verb"], rows=one["rows"], why=one["why"]))
        for one in reached[:_MOST]
    ]
    left = len(reached) - _MOST
    return escape_name(f"at most {', '.join(said)}{f' and {left} more kinds' if left > 0 else ''}")


def undo(plan: Plan, catalog: Catalog) -> str:
    """Return how it is taken back, in a few words."""
    if isinstance(plan.action, Task):
        return "what is done in it is undone together; it ends at once when you revoke it"
    match plan.undo_class:
        case UndoClass.NOTHING:
            return "not needed, it only reads"
        case UndoClass.IRREVERSIBLE if isinstance(plan.action, Revert) and plan.action.verb == "undo":
            return "ONCE UNDONE, IT CAN'T BE REDONE"
        case UndoClass.IRREVERSIBLE:
            why = _why_not(plan, catalog)
            return f"IT CAN'T BE UNDONE{f': {why}' if why else ''}"
        case UndoClass.EXACT:
            if hours := plan.undo.get("hold_hours"):
                return f"exactly; held, unseen by others, until you commit ({hours} h at most)"
            return "exactly, unless somebody changed it since"
    if isinstance(plan.action, ApiCalls):
        return _by_calls(plan)
    if isinstance(plan.action, Sql):
        return "by statements that a model wrote, not known to be exact"
    return "makes up for it; traces may remain"


def _why_not(plan: Plan, catalog: Catalog) -> str:
    """The reason, where GoEx's own description of the only call that changes something has one."""
    if not isinstance(plan.action, ApiCalls):
        return ""
    steps = [step for step in plan.resolved.get("steps", ()) if step["role"] == "call" and not step["read"]]
    service, method = method_of(steps[0], catalog) if len(steps) == 1 else (None, None)
    if service is None or method is None or service.source != "bundled":
        return ""
    return method.description.partition(_TAIL)[2].rstrip(".")


def _by_calls(plan: Plan) -> str:
    made = list(plan.undo.get("calls", ()))
    methods = dict.fromkeys(f"{one['service']}.{one['method']}" for each in made for one in each["calls"])
    notes = dict.fromkeys(each["note"].rstrip(".") for each in made if each["note"])
    sure = all(each["source"] == "bundled" or each["standing"] == Standing.PROVEN for each in made)
    said = f"by {', '.join(list(methods)[:2])}{f' and {len(methods) - 2} more' if len(methods) > 2 else ''}"
    remains = f". {_first(next(iter(notes)))}" if len(notes) == 1 else "; some of it remains" if notes else ""
    return escape(f"{said}{'' if sure else ' (unproven)'}{remains}")


def _first(note: str) -> str:
    """A short note as it is; of a long one its first clause: the rest is behind "more"."""
    first, *rest = re.split(r"[.:;] ", note)
    return note if len(note.split()) <= _LONGEST_NOTE or not rest else f"{first}…"


def notes(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """Return what else changes what a yes means."""
    said = [filled_later(plan.unseen)] if plan.unseen else []
    match plan.action:
        case ApiCalls():
            services = dict.fromkeys(step["service"] for step in plan.resolved.get("steps", ()))
            imported = [
                name for name in services if (known := catalog.services.get(name)) and known.source == "imported"
            ]
            said += [escape(f"{name} is imported: its document says what this does, not GoEx.") for name in imported]
        case Sql():
            from runtimes.sql.plan_text import warning_lines
            from runtimes.sql.plans import read_program

            said += warning_lines(read_program(plan.resolved["program"]))
            said += [escape(note) for note in plan.resolved.get("notes", ())]
        case Mongo():
            from runtimes.mongo import plan_text as mongo_text  # it loads the driver

            said += mongo_text.warning_lines(plan)
        case _:
            pass
    return tuple(said)
