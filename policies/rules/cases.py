"""Tables of cases: a request, and what is to come of it. What a person tries their rules with.

A case names an agent and a call (`call`, `arguments`), several (`calls`), a folder (`folder`) or a database
(`database`, with the `scopes` that a statement there needs, like "orders:update"); what it leaves out is as it would
be: the method's risk, its own scope and undo, the default account, noon on an ordinary Monday.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from policies.actions import Action, ApiCalls, Call, Files, Need, Plan, Revert, Sql, UndoClass
from policies.databases import RISKS, SERVICE
from policies.decisions import Allow, Ask, Decision, Deny, Request, Rules, decide
from policies.digest import digest
from policies.errors import InvalidInput
from policies.grants import Grant, Width
from policies.jsonvalue import JsonObject, JsonValue
from policies.rules.facts import REVERTS, Catalogued, Situation, with_target
from policies.rules.rule_errors import close
from policies.services import Method, Risk

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
MOST = 20_000
MOST_BYTES = 2**20  # of what a target was asked about
_DROPPING = Need(
    service="goex",
    account="a-case",
    scope="commit",
    risk=Risk.WRITE,
    methods=("commit",),
    arguments=({"action": "a-case"},),
)
_KEYS = (
    "name", "agent", "call", "arguments", "calls", "folder", "program", "kind", "account", "scope", "risk", "undo",
    "at", "hosts", "bounds", "databases", "tables", "database", "scopes", "policy",
    "session", "rate", "granted", "expect", "rule",
)  # fmt: skip
OUTCOMES = ("allow", "ask", "deny")

ScopeOf = Callable[[Method], str]


class BadCase(InvalidInput):
    """A table of cases can't be read."""

    code = "cases"


@dataclass(frozen=True, slots=True)
class Result:
    """One case: what was expected and what came."""

    name: str
    expected: str
    wanted_rule: str
    came: str
    rules: tuple[str, ...]
    reason: str

    @property
    def good(self) -> bool:
        return self.came == self.expected and (not self.wanted_rule or self.wanted_rule in self.rules)


def own_scope(method: Method) -> str:
    """The first scope that suffices for a method."""
    return method.scopes[0] if method.scopes else method.risk.word


def run(table: Any, rules: Rules, catalog: Catalogued, scope_of: ScopeOf = own_scope) -> tuple[Result, ...]:
    """Every case of a table, decided. Raises BadCase for one that can't be read, naming it."""
    found = table.get("case") if isinstance(table, Mapping) else table
    if not isinstance(found, list) or not found:
        raise BadCase("There are no cases in this file.", next_step="Begin each with [[case]].")
    if len(found) > MOST:
        raise BadCase(f"At most {MOST} cases are read.", next_step="Make several files of it.")
    return tuple(_run(case, index, rules, catalog, scope_of) for index, case in enumerate(found, 1))


def _run(case: Any, index: int, rules: Rules, catalog: Catalogued, scope_of: ScopeOf) -> Result:
    name = str(case.get("name") or f"case {index}") if isinstance(case, Mapping) else f"case {index}"
    try:
        if not isinstance(case, Mapping):
            raise BadCase("It isn't a table of its own.")
        expected = case.get("expect")
        if expected not in OUTCOMES:
            raise BadCase("It doesn't say what to expect.", next_step='Write expect = "allow", "ask" or "deny".')
        request, grants, now = read(case, catalog, scope_of)
        came, used, reason = outcome(decide(request, grants, rules, now))
        return Result(name, str(expected), str(case.get("rule", "")), came, used, reason)
    except InvalidInput as error:
        raise BadCase(f"Case {name[:80]!r}: {error.message}", next_step=error.next_step) from error


def outcome(decision: Decision) -> tuple[str, tuple[str, ...], str]:
    """A decision as its word, the rules that made it, and the reason."""
    match decision:
        case Allow():
            return (
                "allow",
                decision.rules,
                f"granted by {', '.join(g.id for g in decision.grants)}" if decision.grants else "",
            )
        case Ask():
            return "ask", decision.rules, decision.reason
        case Deny():
            return "deny", decision.rules, decision.reason


def read(
    case: Mapping[str, Any], catalog: Catalogued, scope_of: ScopeOf = own_scope
) -> tuple[Request, tuple[Grant, ...], datetime]:
    """The request that a case speaks of, the grants that there are, and when. Raises InvalidInput."""
    for key in case:
        if key not in _KEYS:
            raise BadCase(f"{str(key)[:60]!r} isn't part of a case.", next_step=close(str(key), _KEYS))
    try:
        return _read(case, catalog, scope_of)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as error:
        raise BadCase(f"It can't be read: {error}.", next_step="Compare it with the README's cases.") from error


def _read(
    case: Mapping[str, Any], catalog: Catalogued, scope_of: ScopeOf
) -> tuple[Request, tuple[Grant, ...], datetime]:
    now = _moment(case.get("at", NOON))
    agent = str(case.get("agent", "bot"))
    session, rate = case.get("session", {}), case.get("rate", {})
    situation = Situation(
        session_seconds=int(session.get("seconds", 0)),
        session_actions=int(session.get("actions", 0)),
        last_minute=int(rate.get("minute", 0)),
        last_hour=int(rate.get("hour", rate.get("minute", 0))),
        zone=now.tzinfo,
    )
    plan = _plan(case, catalog, scope_of)
    request = Request(
        agent=agent,
        session=f"case-{int(now.timestamp())}",
        digest=digest(plan, agent=agent),
        plan=plan,
        situation=situation,
    )
    granted = [str(scope) for scope in case.get("granted", ())]
    grants = tuple(
        Grant(
            id=f"g-{need.scope}",
            agent=agent,
            service=need.service,
            account=need.account,
            scope=need.scope,
            width=Width.PERMANENT,
            created=now - timedelta(days=1),
            expires=None,
            by="the table",
            why="",
        )
        for need in plan.required
        if need.scope in granted or f"{need.service}:{need.scope}" in granted
    )
    return request, grants, now


def plan_of_calls(
    calls: tuple[Call, ...], catalog: Catalogued, scope_of: ScopeOf = own_scope, kind: str = "call"
) -> Plan:
    """The plan that these calls would have as far as rules look at it. Raises InvalidInput for an unknown method."""
    found = [(call, _method(call, catalog)) for call in calls]
    undos = {_undo(method) for _, method in found}
    order = (UndoClass.IRREVERSIBLE, UndoClass.COMPENSATING, UndoClass.EXACT, UndoClass.NOTHING)
    action: Action = ApiCalls(calls=calls)
    if kind in REVERTS:
        action = Revert(verb=kind, target="a-case")  # type: ignore[arg-type]
    return _made(
        action,
        needs=tuple(
            Need(
                service=call.service,
                account=call.account,
                scope=scope_of(method),
                risk=method.risk,
                methods=(call.method,),
                arguments=(call.arguments,),
            )
            for call, method in found
        ),
        undo=next(one for one in order if one in undos),
        resolved={
            "steps": [
                {
                    "service": call.service,
                    "method": call.method,
                    "account": call.account,
                    "arguments": dict(call.arguments),
                    "request": {"origin": catalog.services[call.service].base_url},
                }
                for call, _ in found
            ]
        },
    )


def _plan(case: Mapping[str, Any], catalog: Catalogued, scope_of: ScopeOf) -> Plan:
    own = "files" if "folder" in case else "sql" if "database" in case else "call"
    kind = str(case.get("kind", own))
    if kind not in (own, *REVERTS):
        raise BadCase(f"{kind[:60]!r} isn't what can be done with it.", next_step=f"It is {own}, {', '.join(REVERTS)}.")
    plan = _of_kind(case, kind, catalog, scope_of)
    if own == "files" or kind not in ("redo", "commit"):
        return plan
    # As the engine does it: what the target was asked about, too. Most commits only drop what undo would need.
    target = replace(plan, action=_of_kind(case, own, catalog, scope_of).action)
    if kind == "commit" and plan.resolved.get("policy") != "versioning":
        resolved = {name: value for name, value in plan.resolved.items() if name != "steps"}
        undo = plan.undo_class if "undo" in case else UndoClass.IRREVERSIBLE
        plan = replace(plan, needs=(_DROPPING,), undo_class=undo, resolved=resolved)
    return with_target(plan, target, most=MOST_BYTES, catalog=catalog)


def _of_kind(case: Mapping[str, Any], kind: str, catalog: Catalogued, scope_of: ScopeOf) -> Plan:
    account = str(case.get("account", "default"))
    if "folder" in case:
        plan = _files(case, kind)
    elif "database" in case:
        plan = _sql(case, kind)
    else:
        several = case.get("calls") or [{"call": case.get("call", ""), "arguments": case.get("arguments", {})}]
        calls = tuple(
            Call(
                service=str(one["call"]).partition(".")[0],
                method=str(one["call"]).partition(".")[2],
                arguments=dict(one.get("arguments", {})),
                account=str(one.get("account", account)),
            )
            for one in several
        )
        plan = plan_of_calls(calls, catalog, scope_of, kind)
    changes: dict[str, Any] = {}
    if "risk" in case or "scope" in case:
        changes["needs"] = tuple(
            replace(
                need,
                risk=Risk.parse(str(case["risk"])) if "risk" in case else need.risk,
                scope=str(case.get("scope", need.scope)),
            )
            for need in plan.needs
        )
    if "undo" in case:
        changes["undo_class"] = UndoClass(str(case["undo"]))
    if "bounds" in case:
        changes["bounds"] = {str(name): int(value) for name, value in case["bounds"].items()}
    resolved = dict(plan.resolved)
    for name in ("databases", "tables"):
        if name in case:
            resolved[name] = [str(one) for one in case[name]]
    if "hosts" in case:
        for step, host in zip(resolved.get("steps", ()), case["hosts"], strict=False):
            step["request"] = {"origin": f"https://{host}"}
    return replace(plan, resolved=resolved, **changes)


def _files(case: Mapping[str, Any], kind: str) -> Plan:
    folder, program = str(case["folder"]), str(case.get("program", "true"))
    action: Action = Files(folder=folder, language="shell", program=program)
    if kind in REVERTS:
        action = Revert(verb=kind, target="a-case")  # type: ignore[arg-type]
    need = Need(
        service="files", account=folder, scope="files.write", risk=Risk.DELETE, methods=("files.run",), arguments=({},)
    )
    undo = UndoClass.IRREVERSIBLE if kind == "commit" else UndoClass.EXACT
    return _made(action, needs=(need,), undo=undo, resolved={"folder": folder})


def _sql(case: Mapping[str, Any], kind: str) -> Plan:
    database, scopes = str(case["database"]), [str(scope) for scope in case.get("scopes", ())]
    verbs = [scope.rpartition(":")[2] for scope in scopes]
    if not scopes or not all(verb in RISKS for verb in verbs):
        raise BadCase(
            "It doesn't say what a statement in that database needs.", next_step='Write scopes = ["orders:update"].'
        )
    action: Action = Sql(database=database, statements=str(case.get("program", "")))
    if kind in REVERTS:
        action = Revert(verb=kind, target="a-case")  # type: ignore[arg-type]
    reads = all(verb in ("select", "find") for verb in verbs)
    needs = tuple(
        Need(
            service=SERVICE,
            account=database,
            scope=scope,
            risk=RISKS[verb],
            methods=(verb,),
            arguments=({"statement": str(case.get("program", ""))},),
        )
        for scope, verb in zip(scopes, verbs, strict=True)
    )
    undo = UndoClass.NOTHING if reads else UndoClass.IRREVERSIBLE if kind == "commit" else UndoClass.EXACT
    resolved: dict[str, JsonValue] = {
        "databases": [database],
        "tables": sorted({scope.rpartition(":")[0] for scope in scopes}),
        "policy": "" if reads else str(case.get("policy", "reversal")),
    }
    return replace(_made(action, needs=needs, undo=undo, resolved=resolved), bounds={"rows": 0 if reads else 1})


def _made(action: Action, *, needs: tuple[Need, ...], undo: UndoClass, resolved: JsonObject) -> Plan:
    return Plan(
        action=action,
        needs=needs,
        undo_class=undo,
        undo_text="",
        resolved=resolved,
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )


def _method(call: Call, catalog: Catalogued) -> Method:
    service = catalog.services.get(call.service)
    if service is None:
        raise InvalidInput(
            f"There is no service {call.service[:60]!r}.", next_step=close(call.service, catalog.services)
        )
    method = service.methods.get(call.method)
    if method is None:
        names = difflib.get_close_matches(call.method, list(service.methods), n=3)
        raise InvalidInput(
            f"{service.name} has no method {call.method[:60]!r}.",
            next_step=f"Did you mean {' or '.join(f'{service.name}.{one}' for one in names)}?" if names else "",
        )
    return method


def _undo(method: Method) -> UndoClass:
    if method.risk is Risk.READ:
        return UndoClass.NOTHING
    return UndoClass.COMPENSATING if method.undo is not None else UndoClass.IRREVERSIBLE


def _moment(value: Any) -> datetime:
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
