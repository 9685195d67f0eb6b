"""The short question: what a person must see before a yes, as one message for every front end. Pure.

Rules: it says nothing that the plan, which the digest binds, doesn't say; the payload is whole, and each foreign text
in a sentence of ours is escaped before it is put there, and in quotation marks where it could go on with it. What
isn't here is in the approval's other fields, whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from goex.daemon import question_facts
from goex.engine.grant_issue import Choice
from goex.journal.actions import ActionRow
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from policies.actions import MOVED, ApiCalls, Code, Files, Mongo, Need, Plan, Revert, Sql, UndoClass, folders_of
from policies.databases import SERVICE as DATABASE
from policies.decisions import Ask, Decision
from policies.display_text import counted, escape, escape_name, shorten
from policies.grants import ANONYMOUS, PERSON
from policies.rules.audience import recipients_of
from policies.services import Method, Service
from policies.tasks import OWN, Task

_NAMED = 3  # of several in a sentence; all of them stand in the payload
_LARGEST = 300_000  # characters of a payload
_LONGEST = 80  # characters of a name in a sentence; it stands whole in the payload
_DOES = {
    "select": "read",
    "find": "read",
    "insert": "add to",
    "update": "change",
    "delete": "delete from",
    "truncate": "empty",
    "create": "create",
    "alter": "redefine",
    "drop": "drop",
}
_ENDS = re.compile("[”‟〞〟❞＂″ˮ]")  # what a text might seem to end its quotation by
_SOCKET = ", on the "  # of a peer's description: the sentence says whether it is an agent or the person
_READS = frozenset({"select", "find"})
_KEYS = (
    (Choice.ONCE, "y", "once"),
    (Choice.ARGUMENTS, "a", "always so"),
    (Choice.SESSION, "s", "session"),
    (Choice.PERMANENT, "", "permanent"),
)
_OTHERS = (("n", "no", "no"), ("", "later", "later"), ("?", "more", "more"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How things stand when it is asked. `given` counts how often a permission was given to the agent before; `target`
    says what a revert is of, and `last` that it is the last action of who asks; `remarks` are said as they are."""

    decision: Decision
    given: Callable[[Need], int]
    duplicates: int = 0
    target: str = ""
    last: bool = False
    remarks: tuple[str, ...] = ()


def question(row: ActionRow, plan: Plan, offered: Sequence[str], catalog: Catalog, standing: Standing) -> pb.Question:
    """Return the short question about `plan`, with the answers that are offered; an empty one where its payload is so
    long that an approval wouldn't hold it twice: then all of it is shown at once."""
    answers = [
        *(pb.Answer(key=key, name=choice, label=label) for choice, key, label in _KEYS if choice in offered),
        *(pb.Answer(key=key, name=name, label=label) for key, name, label in _OTHERS),
    ]
    irreversible = plan.undo_class is UndoClass.IRREVERSIBLE
    if _is_own_last_undo(row, plan, standing):
        remains = "" if plan.undo_class is UndoClass.EXACT else " Traces may remain."
        said = f"You want to undo your last action: {_cut(escape(standing.target))}.{remains}"
        return pb.Question(sentence=said, answers=answers, alone=True)
    lines = [line for text in payload(plan) for line in text.split("\n")]
    if sum(len(line) for line in lines) > _LARGEST:
        return pb.Question()
    return pb.Question(
        sentence=sentence(row, plan, catalog, standing.target),
        payload=lines,
        asks=row.source.partition(_SOCKET)[0],
        worst=question_facts.worst(plan, catalog),
        undo=question_facts.undo(plan, catalog),
        fresh=_fresh(row, plan, standing),
        notes=[*question_facts.notes(plan, catalog), *_asked_often(standing.duplicates), *standing.remarks],
        irreversible=irreversible,
        answers=answers,
    )


def sentence(row: ActionRow, plan: Plan, catalog: Catalog, target: str) -> str:
    """Return who wants to do what, with which account, to whom; `target` says what a revert is of."""
    return f"{_who(row.agent)} to {_request_text(plan, catalog, target)}."


def payload(plan: Plan) -> tuple[str, ...]:
    """Return what will be sent or run, whole and escaped. Each kind's text is loaded when it is first asked for."""
    match plan.action:
        case ApiCalls():
            from runtimes.rest import plan_text as rest_text

            return rest_text.payload_lines(plan)
        case Files():
            from runtimes.files import plan_text as files_text

            return files_text.payload_lines(plan)
        case Sql():
            from runtimes.sql import plan_text as sql_text
            from runtimes.sql.plans import read_program

            return sql_text.payload_lines(read_program(plan.resolved["program"]))
        case Mongo():
            from runtimes.mongo import plan_text as mongo_text

            return mongo_text.payload_lines(plan)
        case Code():
            from runtimes.code import plan_text as code_text

            return code_text.payload_lines(plan)
        case Revert() | Task():
            return plan.lines


def _is_own_last_undo(row: ActionRow, plan: Plan, standing: Standing) -> bool:
    """Whether the person takes back what was last done for them, exactly or by known calls, and nothing beside it."""
    return (
        isinstance(plan.action, Revert)
        and plan.action.verb == "undo"
        and not plan.action.regardless
        and MOVED not in plan.resolved
        and row.agent == PERSON
        and standing.last
        and plan.undo_class is not UndoClass.IRREVERSIBLE
        and not plan.unseen
        and not standing.remarks
        and standing.duplicates == 0
        and not (isinstance(standing.decision, Ask) and standing.decision.rules)
    )


def _who(agent: str) -> str:
    if agent == PERSON:
        return "You want"
    return "An agent without a name wants" if agent in (ANONYMOUS, "") else f"“{_short(agent)}” wants"


def _request_text(plan: Plan, catalog: Catalog, target: str) -> str:
    action = plan.action
    match action:
        case ApiCalls():
            return _calls(plan, catalog)
        case Files():
            how = "apply a dry run" if plan.resolved.get("mode") == "preview" else f"run a {action.language} program"
            where = _listed([_apart(folder) for folder in folders_of(plan)])
            return f"read {where} by a {action.language} program" if action.reads else f"{how} in {where}"
        case Sql() | Mongo():
            return _on_database(plan)
        case Code():
            methods = dict.fromkeys(
                f"{one['service']}.{one['method']} as {one['account']}" for one in plan.resolved.get("steps", ())
            )
            named = _listed([_short(name) for name in methods]) if methods else "nothing"
            return f"run a {action.language} program that may call {named}"
        case Revert():
            named = _short(action.target) + (f" ({_quoted(escape(target))})" if target else "")
            named += f" and {len(action.also)} earlier" if action.also else ""
            return {
                "undo": f"undo {named}",
                "redo": f"do {named} again",
                "commit": f"keep {named} for good, without an undo",
            }[action.verb]
        case Task():
            return _task(action, plan)


def _task(task: Task, plan: Plan) -> str:
    """What a task allows, in short: each line of it stands in the payload."""
    if task.allows[0].service == OWN:
        return f"take back {counted(sum(line.times for line in task.allows), 'action')}"
    minutes = -(-task.seconds // 60)
    whom = f"let “{_short(task.agent)}”" if task.agent else "be free to"
    lines = "this line allows" if len(task.allows) == 1 else f"these {len(task.allows)} lines allow"
    return f"{whom} do what {lines} for {counted(minutes, 'minute')}, unasked"


def _calls(plan: Plan, catalog: Catalog) -> str:
    steps = [step for step in plan.resolved.get("steps", ()) if step["role"] == "call"]
    if len(steps) != 1:
        places = dict.fromkeys(_place(catalog.services.get(one["service"]), one) for one in steps)
        changing = sum(not step["read"] for step in steps)
        which = f", {changing} of which change something," if changing else " that only read"
        return f"make {len(steps)} calls{which} on {_listed(list(places))}"
    step = steps[0]
    service, method = question_facts.method_of(step, catalog)
    said = f"{_does(service, method, step)} on {_place(service, step)}"
    names = recipients_of(service, method, step["arguments"]).names if not step["read"] else frozenset()
    spelled = _spellings(step["arguments"])
    return f"{said}: {_listed([_apart(spelled.get(name, name)) for name in sorted(names)])}" if names else said


def _does(service: Service | None, method: Method | None, step: Mapping[str, str]) -> str:
    """What a call does: in GoEx's own words, where it has some; of an imported service its name alone."""
    if service is None or method is None or service.source != "bundled":
        return f"call {_short(step['service'] + '.' + step['method'])}"
    said = question_facts.deed(method)
    return said[:1].lower() + said[1:]


def _place(service: Service | None, step: Mapping[str, str]) -> str:
    known = service is not None and service.source == "bundled"
    name = service.title if service is not None and known else f"{_short(step['service'])}"
    return f"{name} ({_short(step['account'])})"


def _on_database(plan: Plan) -> str:
    verbs: dict[str, list[str]] = {}
    needs = [need for need in plan.required if need.service == DATABASE and ":" in need.scope]
    writes = [need for need in needs if need.methods[0] not in _READS] or needs
    for need in writes:
        table, _, verb = need.scope.rpartition(":")
        verbs.setdefault(_DOES.get(verb, verb), []).append(_apart(table))
    said = "; ".join(f"{verb} {_listed(list(dict.fromkeys(tables)))}" for verb, tables in verbs.items())
    return f"{said or 'run statements'} in the database {_short(str(plan.resolved['database']))}"


def _fresh(row: ActionRow, plan: Plan, standing: Standing) -> str:
    decision = standing.decision
    if not isinstance(decision, Ask) or plan.unseen or isinstance(plan.action, Task):
        return ""
    if decision.rules:
        several = len(decision.rules) > 1
        names = _listed([_short(name) for name in decision.rules])
        return f"nothing; the rule{'s' if several else ''} {names} ask{'' if several else 's'} each time"
    if isinstance(plan.action, Revert):
        return ""
    missing = {f"{need.service}:{need.scope}": standing.given(need) for need in decision.needs}
    never = [_apart(name) for name, times in missing.items() if not times]
    if never:
        return f"first {never[0]}" + (f" and {len(never) - 1} more" if len(never) > 1 else "")
    before = min(missing.values(), default=0)
    return f"nothing; allowed {'once' if before == 1 else f'{before} times'} before, each by itself"


def _asked_often(duplicates: int) -> tuple[str, ...]:
    if not duplicates:
        return ()
    return (f"Asked {duplicates + 1} times: a yes is for one of them, a no for all.",)


def _spellings(value: object) -> dict[str, str]:
    """The texts in some arguments by their lower-case form: recipients are compared in that, and shown as written."""
    found: dict[str, str] = {}
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, str):
            found.setdefault(item.strip().lower(), item.strip())
    return found


def _listed(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _short(name: str) -> str:
    return _cut(escape_name(name))


def _apart(name: str) -> str:
    """A name that anybody may have made up: in quotation marks where it is more than a word."""
    return _quoted(escape_name(name)) if re.search(r"\s", name) else _short(name)


def _quoted(shown: str) -> str:
    """A foreign text in quotation marks that it can't end."""
    apart = _ENDS.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", shown)
    return f"“{_cut(apart)}”"


def _cut(shown: str) -> str:
    kept, cut = shorten(shown, _LONGEST)
    return f"{kept}…" if cut else kept
