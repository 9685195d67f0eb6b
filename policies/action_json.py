"""Actions and plans to JSON and back, for the journal. Reading is strict: a missing or unknown field is an error."""

from __future__ import annotations

from typing import Any, get_args

from policies.actions import (
    LANGUAGES,
    Action,
    ApiCalls,
    Call,
    Code,
    Files,
    Mongo,
    Need,
    Plan,
    Revert,
    Sql,
    UndoClass,
    UndoPolicy,
)
from policies.errors import InvalidInput
from policies.services import Risk
from policies.tasks import task_from_json


def action_from_json(value: Any) -> Action:
    """The action that `Action.to_json` wrote. Raises InvalidInput for anything else."""
    try:
        match value["kind"]:
            case "calls":
                return ApiCalls(
                    calls=tuple(
                        Call(
                            service=_text(call["service"]),
                            method=_text(call["method"]),
                            arguments=dict(call["arguments"]),
                            account=_text(call["account"]),
                            filled=tuple(_text(name) for name in call.get("filled", ())),
                        )
                        for call in value["calls"]
                    )
                )
            case "files":
                if value["language"] not in ("shell", "python"):
                    raise InvalidInput(
                        f"{value['language']!r} isn't a language that runs on files.", next_step="Use shell or python."
                    )
                return Files(
                    folder=_text(value["folder"]),
                    language=value["language"],
                    program=_text(value["program"]),
                    undo=_text(value.get("undo", "")),
                    preview=_text(value.get("preview", "")),
                    more=tuple(_text(folder) for folder in value.get("more", ())),
                    reads=value.get("reads", False) is True,
                )
            case "sql":
                if value["policy"] not in get_args(UndoPolicy):
                    raise InvalidInput(
                        f"{value['policy']!r} isn't a way to take back.",
                        next_step="versioning, reversal and pairs are.",
                    )
                return Sql(
                    database=_text(value["database"]),
                    statements=_text(value["statements"]),
                    policy=value["policy"],
                    undo=_text(value["undo"]),
                )
            case "mongo":
                return Mongo(
                    database=_text(value["database"]),
                    operations=tuple(_text(operation) for operation in value["operations"]),
                )
            case "code":
                if value["language"] not in LANGUAGES:
                    raise InvalidInput(
                        f"{value['language']!r} isn't a language that code runs in.",
                        next_step=f"Use one of: {', '.join(LANGUAGES)}.",
                    )
                return Code(
                    language=value["language"],
                    program=_text(value["program"]),
                    services=tuple(_text(service) for service in value["services"]),
                    methods=tuple(_text(method) for method in value["methods"]),
                    profile=_text(value["profile"]),
                )
            case "revert":
                if value["verb"] not in ("undo", "redo", "commit"):
                    raise InvalidInput(f"{value['verb']!r} can't be asked for.", next_step="undo, redo or commit can.")
                also = tuple(_text(id) for id in value.get("also", ()))
                if also and value["verb"] != "commit":
                    raise InvalidInput("Only a commit is of several actions at once.", next_step="Name one.")
                return Revert(
                    verb=value["verb"],
                    target=_text(value["target"]),
                    also=also,
                    regardless=value.get("regardless", False) is True,
                )
            case "task":
                return task_from_json(value)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"This isn't an action: {error!r}.") from error
    raise InvalidInput(f"{str(value['kind'])[:40]!r} isn't a kind of action.")


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Everything in a plan, as JSON."""
    return {
        "action": plan.action.to_json(),
        "needs": [
            {
                "service": need.service,
                "account": need.account,
                "scope": need.scope,
                "risk": int(need.risk),
                "methods": list(need.methods),
                "arguments": [dict(arguments) for arguments in need.arguments],
                "why": need.why,
                **({"filled": list(need.filled)} if need.filled else {}),
            }
            for need in plan.needs
        ],
        "undo_class": plan.undo_class.value,
        "undo_text": plan.undo_text,
        "resolved": dict(plan.resolved),
        "bounds": dict(plan.bounds),
        "catalog_hash": plan.catalog_hash,
        "image_id": plan.image_id,
        "limits": dict(plan.limits),
        "lines": list(plan.lines),
        "undo": dict(plan.undo),
    }


def plan_from_json(value: Any) -> Plan:
    """The plan that `plan_to_json` wrote. The caller compares its digest with the journal's."""
    try:
        return Plan(
            action=action_from_json(value["action"]),
            needs=tuple(
                Need(
                    service=need["service"],
                    account=need["account"],
                    scope=need["scope"],
                    risk=Risk(need["risk"]),
                    methods=tuple(need["methods"]),
                    arguments=tuple(need["arguments"]),
                    why=need["why"],
                    filled=tuple(need.get("filled", ())),
                )
                for need in value["needs"]
            ),
            undo_class=UndoClass(value["undo_class"]),
            undo_text=value["undo_text"],
            resolved=value["resolved"],
            bounds=value["bounds"],
            catalog_hash=value["catalog_hash"],
            image_id=value["image_id"],
            limits=value["limits"],
            lines=tuple(value["lines"]),
            undo=value["undo"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"This isn't a plan: {error!r}.") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{type(value).__name__} stands where text belongs.")
    return value
