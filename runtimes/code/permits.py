"""What code may call, as rules for the gateway: a permit for each catalogued method, account and way of sending. Pure.

Rules: a permit is made of what was found in the program, or of a method that was named for it. A value that every found
call of it has written out is a value that its requests are held to; one call whose value isn't known frees it, and so
does naming the method. What isn't in the catalog, or can't be called through GoEx, has no permit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any
from urllib.parse import unquote, urlsplit

from mapper.catalog import Catalog
from mapper.code.found_calls import ANY, FoundCall
from policies.accounts import Account, Origin
from policies.actions import ANY_VALUE, OTHER_ARGUMENTS
from policies.errors import GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from policies.services import Method, Risk, Service, believed_risk
from policies.typed_json import SPARSE
from runtimes.code.document_rule import DOCUMENT, document_rule
from runtimes.code.path_templates import HOLE, as_text, in_query, template, without_others
from runtimes.code.places import Places, base_of
from runtimes.code.same_address import apart, beyond, known_fields
from runtimes.code.unlisted_fields import Unlisted
from runtimes.gateway.head import OVERRIDES
from runtimes.gateway.plan import MethodRule, Slot
from runtimes.gateway.plan_check import OURS
from runtimes.gateway.request_headers import LEAVING_OUT, has_meaning, may_change
from runtimes.gateway.routes import is_graphql
from runtimes.rest.path_owner import check_path_owner
from runtimes.rest.requests import credential_of, placement_for

MOST_VALUES = 32  # of one argument that requests are held to; with more of them it is free
MOST_SETS = 32  # sets of values that are shown to rules and grants; beyond it arguments count as free there
MOST_PERMITS = 64
MOST_PATHS = 1024  # that the values of one permit make
READS, WRITES = 1000, 100  # requests by one permit
BODY_BYTES = 16 * 2**20  # of one request

_MIXED = re.compile(r"[^/{]\{|\}[^/{]*\{")
_NEVER = OURS | OVERRIDES | {"authorization"}  # headers that no catalog can let code send
_PLAIN = re.compile(r"[A-Za-z0-9._~@-]+")
_FORMS = ("alt", "$alt")  # parameters of Google's
_PLAIN_FORM = ("json",)
Accounts = Mapping[tuple[str, str], Account]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """One method that code may call on one account. `lines`: where it was found, () where it was named.

    `held`: for each argument that its requests are held to, the values; those that needn't be there are in `optional`.
    `closed` are the arguments of the catalog that its requests don't have, since no call in the program does; `free`
    those that may be anything, and `parts` what single fields of an argument are held to, by the names that a person
    is told; `more` those that are free, and that the catalog doesn't know.
    """

    rule: MethodRule
    service: str
    method: str
    read: bool
    lines: tuple[int, ...] = ()
    held: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    more: tuple[str, ...] = field(default=(), metadata=SPARSE)
    parts: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict, metadata=SPARSE)

    @property
    def account(self) -> str:
        return self.rule.account[1]

    @property
    def method_id(self) -> str:
        return f"{self.service}.{self.method}"

    def sets(self) -> tuple[dict[str, JsonValue], ...]:
        """Every set of values that a request of it can have, of the arguments that it is held to. Where that are too
        many, those with the most values count as free."""
        held = dict(self.held)
        choices = {name: len(values) + (name in self.optional) for name, values in held.items()}
        while _many(choices.values()) > MOST_SETS:
            widest = max(choices, key=lambda name: choices[name])
            del held[widest], choices[widest]
        names = tuple(held)
        ways: list[list[tuple[bool, JsonValue]]] = [
            [(True, value) for value in held[name]] + [(False, None)] * (name in self.optional) for name in names
        ]
        return tuple(
            {name: value for name, (there, value) in zip(names, one, strict=True) if there} for one in product(*ways)
        )

    def arguments(self) -> tuple[JsonObject, ...]:
        """As a need says them: what a standing grant can be bound to, and that there may be more."""
        return tuple({**one, OTHER_ARGUMENTS: ANY_VALUE} for one in self.sets())


def _many(counts: Iterable[int]) -> int:
    made = 1
    for count in counts:
        made *= count
    return made


def permits(
    found: Sequence[FoundCall],
    named: Sequence[str],
    accounts: Accounts,
    catalog: Catalog,
) -> tuple[Permit, ...]:
    """The permits of a program, in the order in which they come up. `accounts` are all that were named for it.

    Raises InvalidInput, Unsupported for a named method that can't be called.
    """
    made: list[Permit] = []
    groups: dict[tuple[str, str, str], list[FoundCall]] = {}
    for call in found:
        if callable_(catalog, call.method_id):
            groups.setdefault((call.method_id, call.http, call.base), []).append(call)
    for id in dict.fromkeys(named):
        catalog.check_callable(id)
        method = catalog.method(id)
        if method.document:
            raise Unsupported(f"{id} can't be named for a program.", next_step="Write its document out in the program.")
        both = catalog.service(method.service).code.either and {method.http} <= {"GET", "POST"}
        for http in ("GET", "POST") if both else (method.http,):
            groups.setdefault((id, http, ""), [])
    for (id, http, base), calls in groups.items():
        method = catalog.method(id)
        service = catalog.service(method.service)
        for key, account in accounts.items():
            if key[0] == method.service:
                permit = _permit(len(made), service, method, account, (http, base), calls, id in named)
                if permit is not None:
                    _check_owner(catalog, service, method, permit.rule.path, calls)
                    made.append(permit)
    if len(made) > MOST_PERMITS:
        raise InvalidInput(
            f"The program calls {len(made)} methods; one action may call {MOST_PERMITS} at most.",
            next_step="Make several programs of it.",
        )
    made = _together(made)
    return tuple(
        replace(each, rule=replace(without_others(each.rule, method_of(catalog, each), catalog), read=each.read))
        for each in made
    )


def _together(made: Sequence[Permit]) -> list[Permit]:
    """The permits, of which those that share a GraphQL document are one: each of its requests is a change where one of
    its root fields is, is as many as the fewest of them may be, and counts for all of them."""
    budgets: dict[tuple[tuple[str, str], str], str] = {}  # of an account and a document
    names: dict[str, str] = {}  # of budgets that are one
    for permit in made:
        for text in permit.held.get(DOCUMENT, ()):
            own = names.setdefault(permit.rule.id, permit.rule.id)
            other = budgets.setdefault((permit.rule.account, str(text)), own)
            names = {rule: own if budget == names[other] else budget for rule, budget in names.items()}
    groups: dict[str, list[Permit]] = {}
    for permit in made:
        groups.setdefault(names.get(permit.rule.id, permit.rule.id), []).append(permit)
    joined = {budget: group for budget, group in groups.items() if len(group) > 1}
    return [
        replace(
            permit,
            read=all(one.read for one in group),
            rule=replace(permit.rule, calls=min(one.rule.calls for one in group), budget=names[permit.rule.id]),
        )
        if (group := joined.get(names.get(permit.rule.id, ""), []))
        else permit
        for permit in made
    ]


def _check_owner(
    catalog: Catalog, service: Service, method: Method, path: Sequence[str | Slot], calls: Sequence[FoundCall]
) -> None:
    """Raise InvalidInput where a value that is held in the path makes it another method's, as with a planned call."""
    slots = [part for part in path if isinstance(part, Slot)]
    if not any(slot.values for slot in slots):
        return
    # What is free is looked at when a request leaves; its stand-in is no word of any path.
    ways = [
        [part] if isinstance(part, str) else [value + part.end for value in part.values or ("\0",)] for part in path
    ]
    paths: Iterable[Sequence[str]] = product(*ways)
    if _many(len(way) for way in ways) > MOST_PATHS:
        paths = (*(_called(call, path) for call in calls), *_each_alone(ways))
    for segments in paths:
        check_path_owner(catalog, service, method, segments)


def _called(call: FoundCall, path: Sequence[str | Slot]) -> list[str]:
    return [part if isinstance(part, str) else call.path.get(part.name, "\0") + part.end for part in path]


def _each_alone(ways: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """The path with each value of its slots, the others left open."""
    for place, values in enumerate(ways):
        for value in values:
            yield [value if at == place else way[0] if len(way) == 1 else "\0" for at, way in enumerate(ways)]


def method_of(catalog: Catalog, permit: Permit) -> Method:
    return catalog.method(permit.method_id)


def callable_(catalog: Catalog, id: str) -> bool:
    """Whether GoEx calls such a method at all."""
    try:
        catalog.check_callable(id)
    except (InvalidInput, Unsupported):
        return False
    method = catalog.method(id)
    return bool(method.scopes) and not method.unsupported


def _permit(
    number: int,
    service: Service,
    method: Method,
    account: Account,
    way: tuple[str, str],
    calls: Sequence[FoundCall],
    named: bool,
) -> Permit | None:
    http, base = way
    try:
        origin = Origin.parse(base or account.base_url)
    except InvalidInput:
        return None
    if origin not in account.origins:
        return None  # the account's credential goes nowhere else, whatever the program says
    reads = [] if named else list(calls)
    read = believed_risk(service, method) is Risk.READ
    if method.document:
        documents = document_rule(number, service, method, account, origin, calls)
        if documents is None:
            return None
        return Permit(
            rule=replace(documents, calls=READS if read else WRITES, request_bytes=BODY_BYTES),
            service=service.name,
            method=method.name,
            read=read,
            lines=tuple(sorted({call.line for call in calls})),
            held={DOCUMENT: documents.fields["query"]},
            free=("variables",),
        )
    where = Places(method, http, calls)
    # Those that say what a request means are passed on as the program has them written out.
    loose_headers = tuple(name for name in where.headers if not has_meaning(name))
    again = method.idempotency if method.locations.get(method.idempotency) == "header" else ""
    own_headers = tuple(name for name in service.headers if not has_meaning(name))
    own_headers += (again,) if again and not may_change(again) else ()
    held, optional, must = _held(where, reads)
    closed = _closed(where, reads)
    own = apart(method, service)
    # What is streamed isn't looked at, unless it could be another method's.
    fixed = own.fixed if own.must or where.format != "any" else {}
    known = bool(reads) and where.format != "any" and known_fields(method) and not _may_have_any(reads)
    more = beyond(method, reads, (*where.all, *service.code.query)) if known else ()
    unlisted = Unlisted.of(method, reads, where.format, where.all)
    other_fields = bool(reads) and where.format in ("json", "form") and known_fields(method) and _may_have_any(reads)
    forms = _forms(reads)
    shown = {} if read else _shown(calls, service.code.query)
    loose = tuple(name for name in _FORMS if reads and forms != _PLAIN_FORM and name in service.code.query)
    placement = placement_for(service, account)
    if placement.more or placement.at == "cookie" or _MIXED.search(method.path):
        # A program has one placeholder, in a header or in the query, and its rules have one name a segment.
        return None
    properties = method.parameters.get("properties", {})
    rule = MethodRule(
        id=f"rule-{number}",
        method_id=method.id,
        account=(account.service, account.name),
        origin=origin,
        base_path=tuple(unquote(part) for part in urlsplit(base or account.base_url).path.split("/") if part),
        method=http,
        path=template(method, {**held, **_written_segments(method, reads)}),
        query={
            **{
                name: forms if name in _FORMS else tuple(shown.get(name) or ())
                for name in service.code.query
                if read or name not in LEAVING_OUT or name in shown or not reads
            },
            **{
                name: tuple(in_query(value) for value in held.get(name, ()))
                for name in where.query
                if name not in closed
            },
        },
        fields={
            **{name: held.get(name, ()) for name in where.body if name not in closed},
            **dict.fromkeys(more, ()),
            **unlisted.fields,
            **{name: (value,) for name, value in fixed.items()},
        },
        closed=tuple(dict.fromkeys([*(name for name in closed if name in where.body), *own.closed])),
        only=known
        or unlisted.only
        or (own.shared and known_fields(method) and (where.format != "any" or bool(own.must))),
        must=(*(name for name in must if name in where.query or name in where.body), *unlisted.must, *own.must),
        headers=tuple(name for name in dict.fromkeys([*own_headers, *loose_headers]) if name.lower() not in _NEVER),
        body_format=where.format,
        calls=READS if read else WRITES,
        request_bytes=BODY_BYTES,
        **credential_of(placement),
    )
    if is_graphql(rule) and not rule.fields.get("query"):
        return None  # a language of its own: only documents that are written in the program are let through
    made = {
        name: tuple(typed(value, properties.get(name)) for value in values)
        for name, values in held.items()
        if name not in where.parts
    }
    in_parts = {base_of(name) for name in where.parts}
    parts = {name: values for name, values in shown.items() if values}
    return Permit(
        rule=rule,
        service=service.name,
        method=method.name,
        read=read,
        lines=tuple(sorted({call.line for call in reads})),
        held={**made, **unlisted.held},
        optional=(*(name for name in held if name in optional), *unlisted.optional, *parts),
        closed=tuple(name for name in closed if name not in in_parts),
        free=(
            *(name for name in where.all if name not in held and name not in closed),
            *loose_headers,
            *(name for name in own_headers if may_change(name) and name.lower() not in _NEVER),
            *unlisted.free,
            *_free_segments(rule.path, properties),
            *more,
            *(("any other field",) if other_fields else ()),
            *loose,
            *(name for name, values in shown.items() if values is None),
        ),
        more=(*more, *(name for name in where.parts if base_of(name) not in properties))
        if reads and not other_fields
        else (OTHER_ARGUMENTS,),
        parts={**parts, **unlisted.parts, **{name: values for name, values in held.items() if name in where.parts}},
    )


def _held(
    where: Places, calls: Sequence[FoundCall]
) -> tuple[dict[str, tuple[JsonValue, ...]], frozenset[str], tuple[str, ...]]:
    """The arguments whose values are known in every call, those of them that some call leaves out, and those that none
    does."""
    held: dict[str, tuple[JsonValue, ...]] = {}
    optional: set[str] = set()
    must: list[str] = []
    open_ = {name for call in calls for name in call.open}
    for name in dict.fromkeys(name for call in calls for name in call.arguments):
        parts = [_value(call, name) for call in calls]
        known = [part[1] for part in parts if part[0]]
        in_path = name in where.path
        if name in open_ or (name not in where.path and name not in where.query and name not in where.body):
            continue
        if name in where.parts and not where.stands_once(name, open_):
            continue
        if not in_path and name in where.body and where.format == "any":
            continue  # it is streamed, so nobody reads it
        if {part[0] for part in parts if part[0]} == {"query", "fields"}:
            continue  # written in two places, it would be held in one
        if any(place == "query" and isinstance(value, list) and len(value) != 1 for place, value in parts):
            continue  # clients send its name several times, or not at all, which no rule holds
        values = tuple({canonical(value): value for value in known}.values())
        if len(values) > MOST_VALUES or (in_path and len(known) < len(calls)):
            continue
        if name in where.several and not _one_name(values):
            continue
        missing = len(known) < len(calls)
        if missing and any(ANY in call.open for call in calls if not _value(call, name)[0]):
            continue  # it may come with what isn't known
        held[name] = values
        if missing:
            optional.add(name)
        elif not in_path:
            must.append(name)
    return held, frozenset(optional), tuple(must)


def _one_name(values: Sequence[JsonValue]) -> bool:
    """Whether it is one name of several plain segments, which can stand in a rule as words."""
    if len(values) != 1 or not isinstance(values[0], str):
        return False
    return all(_PLAIN.fullmatch(part) and part.strip(".") for part in values[0].split("/"))


def _written_segments(method: Method, calls: Sequence[FoundCall]) -> dict[str, tuple[JsonValue, ...]]:
    """The values of the path's slots that are no argument in the catalog (`users/{userId}`), where every call has them
    written out."""
    made: dict[str, tuple[JsonValue, ...]] = {}
    for hole in HOLE.finditer(method.path):
        name = hole["name"]
        if name in method.parameters.get("properties", {}) or not calls or hole["several"]:
            continue
        values = tuple(dict.fromkeys(call.path[name] for call in calls if name in call.path and name not in call.open))
        if len(values) <= MOST_VALUES and all(name in call.path and name not in call.open for call in calls):
            made[name] = values
    return made


def _free_segments(path: Sequence[str | Slot], arguments: Mapping[str, Any]) -> Iterator[str]:
    """The slots that nothing holds and that are no argument."""
    for part in path:
        if isinstance(part, Slot) and not part.values and part.name.partition("/")[0] not in arguments:
            yield part.name


def _closed(where: Places, calls: Sequence[FoundCall]) -> tuple[str, ...]:
    """The arguments that none of these calls has, where all of each call's are known by name."""
    if not calls or _may_have_any(calls):
        return ()
    there = {name for call in calls for name in (*call.arguments, *call.open)}
    body = where.body if where.format != "any" else []
    return tuple(name for name in (*where.query, *body) if name not in there)


def _forms(calls: Sequence[FoundCall]) -> tuple[str, ...]:
    """The forms that an answer may be asked for in: as usual, and as the calls say; () for any. In another one a file's
    facts are its content."""
    said = [(name in call.open or ANY in call.open, call.query.get(name)) for call in calls for name in _FORMS]
    if not calls or any(unknown for unknown, _ in said):
        return ()
    return tuple(dict.fromkeys((*_PLAIN_FORM, *(as_text(value) for _, value in said if value is not None))))


def _shown(calls: Sequence[FoundCall], names: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
    """What calls say of how much an answer shows, by the parameter: its values, None for any."""
    made: dict[str, tuple[str, ...] | None] = {}
    for name in (one for one in LEAVING_OUT if one in names):
        values = tuple(dict.fromkeys(as_text(call.query[name]) for call in calls if name in call.query))
        if any(name in call.open for call in calls) or len(values) > MOST_VALUES:
            made[name] = None
        elif values:
            made[name] = values
    return made


def _may_have_any(calls: Sequence[FoundCall]) -> bool:
    return any(ANY in call.open for call in calls)


def _value(call: FoundCall, name: str) -> tuple[str, JsonValue]:
    """Where a call has an argument, and its value; "" where it doesn't."""
    for place, values in (("path", call.path), ("query", call.query), ("fields", call.fields)):
        if name in values:
            return place, values[name]
    return "", None


def typed(value: JsonValue, schema: Any) -> JsonValue:
    """A value of a path, query or form as the kind of value that the catalog says it is."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(value, str) or kind in (None, "string"):
        return value
    try:
        if kind in ("integer", "number", "boolean", "array", "object"):
            return parse(value, what="A value")
    except GoexError:
        if kind == "array":
            return value.split(",")
    return value


def held_in_path(permit: Permit) -> tuple[str, ...]:
    """The names that stand in a rule's path as words, so that no slot of a request says them."""
    slots = {part.name for part in permit.rule.path if isinstance(part, Slot)}
    elsewhere = {*permit.rule.query, *permit.rule.fields, *slots}
    return tuple(name for name, values in permit.held.items() if name not in elsewhere and len(values) == 1)
