"""The plan of a program: what it may call, which permissions that needs, how it is taken back. Pure.

Rules: what is planned is what the program can do at most, not what it will do; what undo promises holds for every
request that it may make. A program is a permission of its own beside those of its calls, since a grant for a call made
once isn't one for a program that makes it a hundred times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mapper.catalog import Catalog
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find, matched
from mapper.code.sent_requests import Seen
from mapper.least_scopes import scopes_of_calls
from mapper.pairs import of_catalog
from mapper.templates import complete, references
from policies.actions import Call, Code, Need, Plan, UndoClass
from policies.display_text import escape
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject
from policies.reversions import NoReversions, ReversionSet
from policies.services import Risk, UndoTemplate, believed_risk
from policies.typed_json import to_json
from runtimes.base import Context
from runtimes.code.permits import Accounts, Permit, permits
from runtimes.code.plan_text import named, permit_lines, program_lines
from runtimes.code.scopes import MAY_CHANGE, MAY_READ, PROGRAM, RUN, SERVICE
from runtimes.code.written_headers import Headers, another_effect, answer_without, meant_for, to_show, with_written
from runtimes.gateway.plan import Ref
from runtimes.gateway.request_headers import LEAVING_OUT
from runtimes.rest.plan_text import said_of, source_lines
from runtimes.rest.planner import chosen_for, why_none
from runtimes.rest.references import look as leading_to
from runtimes.sandbox.contract import Profile

NEEDS_BEFORE = "its way back needs what was there before, and what code sends is only seen when it leaves"

NOT_READ = "what it sends flows through unread, so it isn't known what would have to be taken back"


@dataclass(frozen=True, slots=True)
class _Back:
    """How one permit's requests are taken back; `why` says why they aren't."""

    pair: str = ""
    by: str = ""
    standing: str = ""
    why: str = ""
    remains: str = ""
    answered: bool = False  # it reads the answer
    shown: tuple[str, ...] = ()  # what it reads there


def accounts_of(action: Code, accounts: Accounts) -> Accounts:
    """Those of `accounts` that were named for the program, whose names are resolved."""
    found = {}
    for name in action.services:
        service, _, account = name.partition("/")
        found[service, account] = accounts[service, account]
    return found


@dataclass(frozen=True, slots=True)
class Looked:
    """What reading a program gave: what is in it, and what it may call."""

    finding: Finding
    permits: tuple[Permit, ...]


def look(action: Code, accounts: Accounts, catalog: Catalog, seen: Seen | None = None) -> Looked:
    """Find the calls of a program that was read (`seen`; else it is read here). It may take a while, and nothing here
    is bound to a thread. Raises InvalidInput, Unsupported for methods that were named and can't be called."""
    bases: dict[str, list[str]] = {}
    for (service, _), account in accounts.items():
        bases.setdefault(service, []).append(account.base_url)
    if seen is None:
        finding = find(action.language, action.program, catalog, action.services, bases)
    else:
        finding = matched(seen, catalog, action.services, bases)
    allowed = permits(finding.calls, action.methods, accounts, catalog)
    hosts = {origin.host for account in accounts.values() for origin in account.origins}
    headers = Headers.of(*meant_for(action.program, finding.headers, hosts))
    return Looked(
        finding,
        tuple(
            with_written(
                permit,
                headers,
                catalog.service(permit.service),
                catalog.method(permit.method_id),
                others=bases,
            )
            for permit in allowed
        ),
    )


def assess_code(
    action: Code,
    looked: Looked,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet | None = None,
) -> Plan:
    """The plan of a program. Raises InvalidInput."""
    accounts = accounts_of(action, context.accounts)
    finding, allowed = looked.finding, looked.permits
    back = [_way_back(permit, catalog, reversions or NoReversions()) for permit in allowed]
    allowed = tuple(
        replace(permit, rule=replace(permit.rule, answered=True, shown=way.shown)) if way.answered else permit
        for permit, way in zip(allowed, back, strict=True)
    )
    program = hashlib.sha256(action.program.encode("utf-8")).hexdigest()
    steps = _steps(allowed)
    bound = _bound(action)
    return Plan(
        action=action,
        needs=(_running(action, bound, allowed), *_needs(allowed, bound, context, catalog)),
        undo_class=_class(allowed, back),
        undo_text=_undo_text(allowed, back),
        resolved={
            "verb": "do",
            "language": action.language,
            PROGRAM: program,
            "accounts": [
                {"service": service, "account": name, "base_url": account.base_url, "format": account.format}
                for (service, name), account in accounts.items()
            ],
            "permits": [to_json(permit) for permit in allowed],
            "steps": steps,
            "probes": [],
        },
        bounds={"requests": sum(permit.rule.calls for permit in allowed)},
        catalog_hash=catalog.entry_hash(dict.fromkeys(permit.method_id for permit in allowed)) if allowed else "",
        image_id=image_id,
        limits={**to_json(profile.limits), "image": profile.image, "runtime": profile.runtime},
        lines=(
            *program_lines(action, profile),
            *permit_lines(allowed, finding),
            *source_lines(catalog.service(name) for name in dict.fromkeys(permit.service for permit in allowed)),
        ),
        undo={
            "calls": [
                {"call": step["call"], "pair": way.pair, "standing": way.standing}
                for step in steps
                if (way := back[step["permit"]]).pair
            ]
        },
    )


def _steps(allowed: Sequence[Permit]) -> list[dict[str, Any]]:
    """What it may call, as rules look at it: each set of values that a call is held to, the rest of them open."""
    made: list[dict[str, Any]] = []
    for place, permit in enumerate(allowed):
        for one in permit.sets():
            made.append(
                {
                    "call": len(made),
                    "permit": place,
                    "role": "call",
                    "read": permit.read,
                    "service": permit.service,
                    "method": permit.method,
                    "account": permit.account,
                    "arguments": one,
                    "closed": list(permit.closed),
                    **({"more": list(permit.more)} if permit.more else {}),
                    "request": {"origin": str(permit.rule.origin)},
                }
            )
    return made


def _bound(action: Code) -> str:
    """What a grant for one program is bound to: naming a method frees its arguments, so it is a program of its own."""
    words = (action.program, *sorted(set(action.methods)))
    return hashlib.sha256("\0".join(words).encode("utf-8")).hexdigest()


def _running(action: Code, program: str, allowed: Sequence[Permit]) -> Need:
    changes = any(not permit.read for permit in allowed)
    return Need(
        service=SERVICE,
        account=action.profile,
        scope=MAY_CHANGE if changes else MAY_READ,
        risk=Risk.WRITE if changes else Risk.READ,
        methods=(RUN,),
        arguments=({PROGRAM: program, "language": action.language},),
    )


def _needs(allowed: Sequence[Permit], program: str, context: Context, catalog: Catalog) -> tuple[Need, ...]:
    """One need for each account and scope; a grant can be bound to the program, or to what its calls are held to."""
    if not allowed:
        return ()
    calls = tuple(
        Call(service=permit.service, method=permit.method, arguments=_single(permit), account=permit.account)
        for permit in allowed
    )
    scopes = scopes_of_calls(catalog, calls, context.granted, words=context.intent)
    groups: dict[tuple[str, str, str], list[Permit]] = {}
    for scope, permit in zip(scopes, allowed, strict=True):
        groups.setdefault(scope, []).append(permit)
    return tuple(
        Need(
            service=service,
            account=account,
            scope=scope,
            risk=max(_risk(permit, catalog) for permit in members),
            methods=tuple(dict.fromkeys(permit.method for permit in members)),
            arguments=tuple(
                {**one, PROGRAM: program} for permit in members for one in permit.arguments()
            ),
        )
        for (service, account, scope), members in groups.items()
    )  # fmt: skip


def _risk(permit: Permit, catalog: Catalog) -> Risk:
    return believed_risk(catalog.service(permit.service), catalog.method(permit.method_id))


def _single(permit: Permit) -> JsonObject:
    return {name: values[0] for name, values in permit.held.items() if len(values) == 1}


def _class(allowed: Sequence[Permit], back: Sequence[_Back]) -> UndoClass:
    if all(permit.read for permit in allowed):
        return UndoClass.NOTHING
    if all(permit.read or not way.why for permit, way in zip(allowed, back, strict=True)):
        return UndoClass.COMPENSATING
    return UndoClass.IRREVERSIBLE


def _way_back(permit: Permit, catalog: Catalog, reversions: ReversionSet) -> _Back:
    """The pair by which each request of a permit would be taken back; none where one of them has none."""
    if permit.read:
        return _Back()
    method = catalog.method(permit.method_id)
    if permit.rule.body_format == "any" or method.document:
        return _Back(why=NOT_READ)
    if other := another_effect(permit, method):
        return _Back(why=other)
    found = _Back(why="no way back is known for it")
    for one in permit.sets():
        try:
            chosen = chosen_for(method, complete(method, one, "goex"), catalog, reversions)
        except InvalidInput as error:
            return _Back(why=error.message.rstrip("."))
        if chosen.pair is None:
            return _Back(why=why_none(method, chosen))
        undo = chosen.pair.undo
        if undo.pre is not None:
            return _Back(why=NEEDS_BEFORE)
        if undo.unless and _name(undo.unless) not in permit.closed:
            return _Back(why=f"the program may choose {_name(undo.unless)} itself, and meet what was there before")
        needed = tuple(_read_in_answer(undo))
        if needed and (what := answer_without(permit, needed)):
            return _Back(why=f"the program may ask by {what} for an answer without what its way back reads there")
        found = _Back(
            pair=chosen.pair.hash,
            by=named(f"{permit.service}.{call.method}" for call in undo.calls),
            standing=chosen.standing.value,
            remains=(f" What remains: {undo.note.rstrip('.')}." if undo.note else "")
            + said_of(chosen.pair.source, chosen.standing.value),
            answered=found.answered or bool(needed),
            shown=tuple(dict.fromkeys((*found.shown, *to_show(needed)))) if _lists_fields(permit) else (),
        )
    return found


def _lists_fields(permit: Permit) -> bool:
    return any(name in permit.held or name in permit.parts for name in LEAVING_OUT)


def _read_in_answer(undo: UndoTemplate) -> Iterator[str]:
    """The paths into the answer that a way back reads; "" for all of it."""
    if undo.answered:
        yield ""
    for path in _references(undo):
        yield path.removeprefix("$").strip(".")


def _references(undo: UndoTemplate) -> Iterator[str]:
    for one in (*undo.reads, *undo.sends):
        for reference in references([one.arguments, [each.value for each in one.expect]]):
            if reference.source == "response":
                yield reference.path


def read_in_answer(permit: Permit, catalog: Catalog, reversions: ReversionSet) -> Iterator[str]:
    """The paths into the answer that any way back of the permit's method reads, as an undo looks for them."""
    method = catalog.method(permit.method_id)
    for pair in (*reversions.added(method.id), of_catalog(catalog, method)):
        for path in _references(pair.undo) if pair is not None else ():
            yield leading_to(Ref("", "$"), path).path


def _name(path: str) -> str:
    """The argument that a path into a request is about."""
    return path.partition(".")[0]


def _undo_text(allowed: Sequence[Permit], back: Sequence[_Back]) -> str:
    if all(permit.read for permit in allowed):
        return "Nothing that it may call changes anything: there is nothing to take back."
    ways = {permit.method_id: way for permit, way in zip(allowed, back, strict=True) if not permit.read}
    stuck = [f"{id} can't be taken back: {way.why}." for id, way in ways.items() if way.why]
    if stuck:
        return escape(" ".join(stuck))
    said = [f"{id} is taken back by {way.by}.{way.remains}" for id, way in ways.items()]
    return escape(f"Undo takes back the requests that the gateway saw, newest first: {' '.join(said)}")
