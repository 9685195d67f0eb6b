"""The questions that a plan raises: for each call of it one Cedar request, made of what is known and nothing else.

principal is the agent (the person's own commands: `Agent::"person"`), action the kind (`call`, `files`, `undo`,
`redo`, `commit`, …), resource the method (`Method::"slack.chat.postMessage"`, in its `Service`) or the folder (within
those above it). Pre-reads and probes are calls too. What a plan needs and no step explains is asked about as well.
Doing calls or statements again makes the same ones, and so does code: each is a `call` (`sql`, `mongo`), too, and what
forbids that, or wants it asked, holds for both. A redo of statements and a commit are asked about by what their target
was asked about, too; a commit of several is asked about as each of them is. A call that code may make stands once for
each set of values that it is held to; what it isn't held to can't be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

from policies.accounts import Origin
from policies.actions import ANY_VALUE, ApiCalls, Code, Files, Need, Plan, Revert, folders_of, other_paths_of
from policies.commits import each_of
from policies.databases import RISKS
from policies.databases import SERVICE as DATABASES
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical
from policies.rules.arguments import STRING, Unjudgeable, value_of
from policies.rules.audience import Recipients, at_most_one_each, recipients_of
from policies.services import Method, Risk, Service

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TOOL = "tool"  # what an agent's client runs by itself, outside of GoEx
KINDS = ("call", "files", "code", "sql", "mongo", TOOL, "undo", "redo", "commit")
REVERTS = ("undo", "redo", "commit")
GOEX = "goex"  # of a commit that only drops what undo would need
LOCAL = frozenset({"files", "code", DATABASES, GOEX})  # services of needs that reach nobody by themselves
OF_TARGET = "of_target"  # in the plan of a revert: `of_target`


class Catalogued(Protocol):
    """What rules know of the catalog."""

    @property
    def services(self) -> Mapping[str, Service]: ...


class _Nothing:
    services: Mapping[str, Service] = {}


NO_CATALOG: Catalogued = _Nothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the engine knows beside the plan. Seconds, and numbers of actions that were let through.

    `zone` is the person's; None is this machine's.
    """

    session_seconds: int = 0
    session_actions: int = 0
    last_minute: int = 0
    last_hour: int = 0
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to the rules. `needs` are the places in `plan.required` that a permit of it would settle in part."""

    agent: str
    kind: str
    resource: tuple[str, str]  # type, id
    above: tuple[tuple[str, str], ...]  # what the resource is in, nearest first
    arguments: JsonObject
    context: Mapping[str, Any]  # all but `arguments`, in Cedar's JSON
    method: Method | None = field(compare=False, default=None)
    hidden: frozenset[str] = frozenset()  # facts that nobody knows yet
    needs: frozenset[int] = frozenset()

    def typed_arguments(
        self, names: Iterable[str] | None, types: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The arguments of these names (None: all) as Cedar reads them, and why the others can't be judged."""
        made: dict[str, Any] = {}
        unknown: dict[str, str] = {}
        for name, value in self.arguments.items():
            if names is not None and name not in names:
                continue
            try:
                made[name] = value_of(types.get(name, STRING), value)
            except Unjudgeable as why:
                unknown[name] = str(why)
        return made, unknown


def questions(
    plan: Plan, *, agent: str, situation: Situation, now: datetime, catalog: Catalogued = NO_CATALOG
) -> tuple[Question, ...]:
    """What is asked of the rules about this plan. At least one for each required need. What goes with a need may
    forbid and ask, and permits nothing; so do recipients in another spelling, and what is said of a folder by another
    of its paths: by that, too, it is in those that hold it on its own mount, as confinement takes it. Raises
    InvalidInput for a commit of several that doesn't say what each is."""
    required = plan.required
    if several := each_of(plan):
        asked = [(one, questions(one, agent=agent, situation=situation, now=now, catalog=catalog)) for one in several]
        calls = sum(found[0].context["calls"] for _, found in asked)
        each = (
            replace(
                question,
                context={**question.context, "calls": calls},
                needs=frozenset(required.index(one.required[index]) for index in question.needs),
            )
            for one, found in asked
            for question in found
        )
        return tuple({_key(question): question for question in each}.values())
    common = _common(plan, situation, now, tuple(_parts(plan, required, catalog)))
    permitted = common  # what a permit is asked about: it covers partitions by their parent
    if plan.resolved.get("besides"):
        within = {str(one) for one in plan.resolved.get("within", ())}
        permitted = {**common, "tables": [one for one in common["tables"] if one not in within]}
    kind = _kind(plan)
    made: list[Question] = []
    for part, needs in _asked(plan, required, catalog):
        service = catalog.services.get(part.service)
        method = service.methods.get(part.method) if service is not None and part.method else None
        recipients = _recipients(part, service, method)
        risk = max((need.risk for need in needs), default=Risk.DELETE)
        resource, above = _resource(part)
        question = Question(
            agent=agent,
            kind=kind,
            resource=resource,
            above=above,
            arguments=part.arguments,
            context={
                **(permitted if part.needs else common),
                **({"folder": part.folder} if part.folder else {}),
                "account": part.account,
                "risk": entity("Risk", risk.word),
                "risk_level": int(risk),
                "scopes": sorted({need.scope for need in needs}),
                "recipients": sorted(recipients.names),
                "recipient_count": len(recipients.names) + recipients.later,
                "imported": service is not None and service.source == "imported",
            },
            method=method,
            hidden=_hidden(part, method, recipients),
            needs=part.needs,
        )
        made.append(question)
        again = kind == "redo" or (kind == "code" and service is not None)
        if again and part.method and not part.folder:
            first = "call" if part.service != DATABASES else _statements(plan)
            made.append(replace(question, kind=first, needs=frozenset()))  # it may forbid and ask, and permits nothing
    made += _of_target(plan, agent, common, catalog)
    made += [one for question in made for one in by_other_spellings(question)]
    return tuple(one for question in made for one in (question, *_by_other_paths(plan, question)))


def _asked(plan: Plan, required: tuple[Need, ...], catalog: Catalogued) -> Iterator[tuple[_Part, Sequence[Need]]]:
    """What rules are asked about, each with its needs. Behind it what statements use besides, which no permission is
    asked for (partitions, and what triggers read): one for each statement and verb, about all of its tables."""
    for part in _parts(plan, required, catalog):
        yield part, [required[index] for index in part.needs]
    used: dict[tuple[int, str], list[str]] = {}
    for table, verb, numbers in plan.resolved.get("besides", ()):
        for number in numbers:
            used.setdefault((number, verb), []).append(table)
    for (number, verb), tables in used.items():
        statement = {"statement": plan.resolved["program"]["statements"][number]["sql"]}
        database = str(plan.resolved["database"])
        needs = [
            Need(service=DATABASES, account=database, scope=f"{one}:{verb}", risk=RISKS[verb], methods=(verb,))
            for one in tables
        ]
        yield _Part(DATABASES, verb, database, statement, frozenset()), needs


def _key(question: Question) -> bytes:
    """What tells a question from those that have the same answer and settle the same."""
    said = (question.kind, question.resource, question.above, question.arguments, question.context)
    return canonical([*said, sorted(question.hidden), sorted(question.needs)])


def _by_other_paths(plan: Plan, question: Question) -> Iterator[Question]:
    """The same question by each other path of its folder, whether it is about the folder or about a call there."""
    folder = question.context.get("folder", "")
    mount, paths = other_paths_of(plan, folder) if folder else ("", ())
    resource, above = question.resource, question.above
    # What lies on this mount holds it by each path: a second mount of all takes nothing out of it.
    holding = [one for one in (resource, *above) if f"{one[1]}/".startswith(f"{mount.rstrip('/')}/")]
    for path in paths:
        if question.resource[0] == "Folder":
            resource, above = _folder(path)
            above = (*above, *(one for one in holding if one not in (resource, *above)))
        there = {**question.context, "folder": path}
        yield replace(question, resource=resource, above=above, context=there, needs=frozenset())


def by_other_spellings(question: Question) -> Iterator[Question]:
    """The same question with recipients and hosts as a service may read them, where that is another way. What is
    permitted has to be permitted in each."""
    hosts, names = (frozenset(question.context[name]) for name in ("hosts", "recipients"))
    ways = {(hosts, names): None}
    ways |= {(frozenset(map(spelled, hosts)), read): None for spelled, read in Recipients(names).spellings()}
    for there, read in list(ways)[1:]:
        count = question.context["recipient_count"] - len(names) + len(read)
        said = {"hosts": sorted(there), "recipients": sorted(read), "recipient_count": count}
        yield replace(question, context={**question.context, **said})


def with_target(plan: Plan, target: Plan, *, most: int, catalog: Catalogued = NO_CATALOG) -> Plan:
    """The plan of a revert, with `of_target` where rules ask about that. An undo is asked about as what it does, and so
    are calls of a service that are made again."""
    verb = _kind(plan)
    remade = isinstance(target.action, ApiCalls) and not folders_of(target)
    if verb == "undo" or (verb == "redo" and remade):
        return plan
    return replace(plan, resolved={**plan.resolved, OF_TARGET: of_target(target, most=most, catalog=catalog)})


def of_target(plan: Plan, *, most: int, catalog: Catalogued = NO_CATALOG) -> JsonObject:
    """What rules were asked about an action, for the plan of its redo or commit: its kind, its way back and its calls.
    Of those whose JSON comes after `most` bytes, all of a method are kept as one whose arguments may be anything."""
    parts: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part, needs in _asked(plan, plan.required, catalog):
        if part.folder:
            continue  # its redo and commit are about that folder themselves
        said = {
            "service": part.service,
            "method": part.method,
            "account": part.account,
            "risk": max((need.risk for need in needs), default=Risk.DELETE).word,
            "scopes": sorted({need.scope for need in needs}),
            "arguments": dict(part.arguments),
        }
        text = canonical(said)
        most -= len(text)
        kind = (part.service, part.method, part.account, said["risk"])
        if most >= 0:
            parts[*kind, text] = said
            continue
        same = parts.setdefault(kind, {**said, "scopes": [], "arguments": {}})
        same["scopes"] = sorted({*same["scopes"], *said["scopes"]})
        same["arguments"] |= dict.fromkeys(part.arguments, ANY_VALUE)
    return {"kind": _kind(plan), "undo": plan.undo_class.value, "parts": list(parts.values())}


def _of_target(plan: Plan, agent: str, common: Mapping[str, Any], catalog: Catalogued) -> Iterator[Question]:
    """What the target of a redo or a commit was asked about, which may forbid and ask, and permits nothing."""
    verb = _kind(plan)
    if verb not in ("redo", "commit"):
        return
    target = plan.resolved.get(OF_TARGET) or _unknown_target(plan)
    for part in target["parts"]:
        service = catalog.services.get(part["service"])
        method = service.methods.get(part["method"]) if service is not None else None
        risk = Risk.parse(part["risk"])
        recipients, hidden = Recipients(), frozenset[str]()  # a commit reaches nobody
        if verb == "redo":
            call = _Part(part["service"], part["method"], part["account"], part["arguments"], frozenset())
            recipients = _recipients(call, service, method)
            hidden = _hidden(call, method, recipients)
        question = Question(
            agent=agent,
            kind=verb,
            resource=("Method", f"{part['service']}.{part['method']}"),
            above=(("Service", part["service"]),),
            arguments=part["arguments"],
            context={
                **common,
                "account": part["account"],
                "risk": entity("Risk", risk.word),
                "risk_level": int(risk),
                "scopes": list(part["scopes"]),
                "recipients": sorted(recipients.names),
                "recipient_count": len(recipients.names) + recipients.later,
                "imported": service is not None and service.source == "imported",
            },
            method=method,
            hidden=hidden,
        )
        yield question
        if verb == "redo":
            first = {"undo": entity("Undo", target["undo"]), "calls": len(target["parts"])}
            yield replace(question, kind=target["kind"], context={**question.context, **first})


def _unknown_target(plan: Plan) -> JsonObject:
    """`of_target` of a redo that an older version planned: statements that may be any."""
    parts = [
        {
            "service": need.service,
            "method": method,
            "account": need.account,
            "scopes": [need.scope],
            "risk": Risk.DELETE.word,
            "arguments": {"statement": ANY_VALUE, "operation": ANY_VALUE},
        }
        for need in plan.required
        if need.service == DATABASES and _kind(plan) == "redo"
        for method in need.methods
    ]
    return {"kind": _statements(plan), "undo": plan.undo_class.value, "parts": parts}


def _statements(plan: Plan) -> str:
    """The kind of the statements that a redo makes again."""
    if target := plan.resolved.get(OF_TARGET):
        return str(target["kind"])
    return "sql" if "schema_hash" in plan.resolved else "mongo"


def entity(kind: str, id: str) -> dict[str, Any]:
    """An entity as Cedar's JSON writes it."""
    return {"__entity": {"type": kind, "id": id}}


def hosts_of(plan: Plan) -> frozenset[str]:
    """The hosts that a plan's requests go to."""
    return frozenset(_hosts(plan))


@dataclass(frozen=True, slots=True)
class _Part:
    service: str
    method: str
    account: str
    arguments: JsonObject
    needs: frozenset[int]
    folder: str = ""


def _kind(plan: Plan) -> str:
    action = plan.action
    if isinstance(action, Revert):
        return action.verb
    return "call" if isinstance(action, ApiCalls) else str(action.kind)


def _parts(plan: Plan, required: tuple[Need, ...], catalog: Catalogued) -> Iterator[_Part]:
    """The calls of a plan; then what is needed and wasn't explained by one of them."""
    explained: set[int] = set()
    for step in _steps(plan):
        service, method, account = step["service"], step["method"], step["account"]
        given = _opened(step, catalog) if isinstance(plan.action, Code) else step["arguments"]
        needs = frozenset(
            index
            for index, need in enumerate(required)
            if (need.service, need.account) == (service, account) and method in need.methods
        )
        explained |= needs
        yield _Part(service, method, account, given, needs)
    if isinstance(plan.action, ApiCalls) and not explained:
        for call in plan.action.calls:
            needs = frozenset(
                index
                for index, need in enumerate(required)
                if (need.service, need.account) == (call.service, call.account) and call.method in need.methods
            )
            explained |= needs
            if needs:
                yield _Part(call.service, call.method, call.account, call.arguments, needs)
    folders = folders_of(plan)
    for index, need in enumerate(required):
        if index in explained:
            continue
        if folders:
            # Each of several folders is a need of its own, whose account is the folder.
            folder = need.account if need.account in folders else folders[0]
            arguments: JsonObject = need.arguments[0] if need.arguments else {}
            if isinstance(plan.action, Files):
                arguments = {"language": plan.action.language, "program": plan.action.program}
            yield _Part(need.service, "", need.account, arguments, frozenset({index}), folder)
            continue
        for method in need.methods or ("",):
            for arguments in need.arguments or ({},):
                yield _Part(need.service, method, need.account, arguments, frozenset({index}))


def _opened(step: Mapping[str, Any], catalog: Catalogued) -> JsonObject:
    """The arguments of a call in code: those that it isn't held to may be anything, and may be there at all."""
    service = catalog.services.get(step["service"])
    method = service.methods.get(step["method"]) if service is not None else None
    # Some that it may have the catalog doesn't know (`more`).
    names = [*(method.parameters.get("properties", {}) if method is not None else ()), *step.get("more", ())]
    known = {*step["arguments"], *step.get("closed", ())}
    return {**step["arguments"], **{name: ANY_VALUE for name in names if name not in known}}


def _steps(plan: Plan) -> Iterator[Mapping[str, Any]]:
    for group in ("steps", "probes"):
        found = plan.resolved.get(group)
        for step in found if isinstance(found, list | tuple) else ():
            if (
                isinstance(step, Mapping)
                and all(isinstance(step.get(name), str) for name in ("service", "method", "account"))
                and isinstance(step.get("arguments"), Mapping)
            ):
                yield step


def _resource(part: _Part) -> tuple[tuple[str, str], tuple[tuple[str, str], ...]]:
    if part.folder:
        return _folder(part.folder)
    return ("Method", f"{part.service}.{part.method}"), (("Service", part.service),)


def _folder(path: str) -> tuple[tuple[str, str], tuple[tuple[str, str], ...]]:
    pieces = [piece for piece in path.split("/") if piece]
    above = ["/" + "/".join(pieces[:count]) for count in range(len(pieces) - 1, -1, -1)]
    return ("Folder", "/" + "/".join(pieces)), tuple(("Folder", path) for path in above if pieces)


def _common(plan: Plan, situation: Situation, now: datetime, parts: tuple[_Part, ...]) -> dict[str, Any]:
    local = now.astimezone(situation.zone)
    instant = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    bounds = {
        name: int(value)
        for name, value in plan.bounds.items()
        if name in ("files", "bytes", "rows", "requests") and 0 <= value < 2**63
    }
    made: dict[str, Any] = {
        "undo": entity("Undo", plan.undo_class.value),
        # A program may make each call more than once.
        "calls": plan.bounds.get("requests", len(parts)) if isinstance(plan.action, Code) else len(parts),
        "hosts": sorted(hosts_of(plan)),
        "databases": sorted(_texts(plan.resolved.get("databases"))),
        "tables": sorted(_texts(plan.resolved.get("tables"))),
        "bounds": bounds,
        "time": {
            "hour": local.hour,
            "minute": local.minute,
            "weekday": entity("Weekday", WEEKDAYS[local.weekday()]),
            "utc": {"__extn": {"fn": "datetime", "arg": instant}},
        },
        "session": {"seconds": situation.session_seconds, "actions": situation.session_actions},
        "rate": {"minute": situation.last_minute, "hour": situation.last_hour},
    }
    if folders := folders_of(plan):
        made["folder"] = folders[0]
    if isinstance(policy := plan.resolved.get("policy"), str) and policy:
        made["policy"] = policy
    return made


def _hosts(plan: Plan) -> Iterator[str]:
    for step in _steps(plan):
        request = step.get("request")
        origin = request.get("origin") if isinstance(request, Mapping) else None
        if isinstance(origin, str):
            try:
                yield Origin.parse(origin).host
            except InvalidInput:
                yield origin  # not a host that anybody allowed, so nothing allows it
    for origin in _texts(plan.resolved.get("reach")):  # where an MCP server may send something by itself
        yield Origin.parse(origin).host


def _texts(value: JsonValue) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else ():
        if isinstance(item, str):
            yield item


def plan_recipients(plan: Plan, catalog: Catalogued = NO_CATALOG) -> tuple[frozenset[str], bool]:
    """Return who gets something by a plan, and whether that is everybody."""
    found: frozenset[str] = frozenset()
    known = True
    for part in _parts(plan, plan.required, catalog):
        service = catalog.services.get(part.service)
        method = service.methods.get(part.method) if service is not None and part.method else None
        recipients = _recipients(part, service, method)
        found, known = found.union(*(names for _, names in recipients.spellings())), known and recipients.known
    return found, known


def _recipients(part: _Part, service: Service | None, method: Method | None) -> Recipients:
    if part.folder or part.service in LOCAL:
        return Recipients()
    return recipients_of(service, method, part.arguments)


def _hidden(part: _Part, method: Method | None, recipients: Recipients) -> frozenset[str]:
    """The facts about recipients that nobody knows yet. How many a call seems to reach is told also of a method that
    doesn't say it, since what a rule does with a number is to ask sooner."""
    if recipients.known:
        return frozenset()
    counted = not recipients.later or at_most_one_each(method, part.arguments, recipients.later)
    return frozenset({"recipients"} if counted else {"recipients", "recipient_count"})
