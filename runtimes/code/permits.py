"""What code may call, as rules for the gateway: a permit for each catalogued method, account and way of sending. Pure.

Rules: a permit is made of what was found in the program, or of a method that was named for it. A value that every found
call of it has written out is a value that its requests are held to; one call whose value isn't known frees it, and so
does naming the method. What isn't in the catalog, or can't be called through GoEx, has no permit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from mapper.catalog import Catalog
from mapper.code.found_calls import ANY, FoundCall
from policies.accounts import Account, Origin
from policies.actions import ANY_VALUE, OTHER_ARGUMENTS
from policies.errors import GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from policies.services import Method, Risk, Service, believed_risk
from runtimes.code.document_rule import DOCUMENT, document_rule
from runtimes.code.same_address import apart, beyond, known_fields
from runtimes.gateway.head import OVERRIDES
from runtimes.gateway.plan import MethodRule, Slot
from runtimes.gateway.plan_check import OURS
from runtimes.gateway.request_headers import OVERRIDE_NAMES
from runtimes.gateway.routes import is_graphql
from runtimes.rest.requests import credential_of, placement_for

MOST_VALUES = 32  # of one argument that requests are held to; with more of them it is free
MOST_SETS = 32  # sets of values that are shown to rules and grants; beyond it arguments count as free there
MOST_PERMITS = 64
READS, WRITES = 1000, 100  # requests by one permit
BODY_BYTES = 16 * 2**20  # of one request

_HOLE = re.compile(r"\{(?P<several>\+?)(?P<name>[^{}]+)\}(?P<end>[^{}]*)")
_MIXED = re.compile(r"[^/{]\{|\}[^/{]*\{")
_NEVER = OURS | OVERRIDES | {"authorization"}  # headers that no catalog can let code send
_PLAIN = re.compile(r"[A-Za-z0-9._~@-]+")
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCES = 5  # that lead to an argument's schema
_FORMS_OF_KINDS = {
    "integer": r"\A-?[0-9]{1,20}\Z",
    "number": r"\A-?[0-9]{1,20}(?:\.[0-9]{1,20})?\Z",
    "boolean": r"\A(?:true|false)\Z",
}
_UUID = r"\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z"
_UNREAD = frozenset({"GET", "HEAD"})
_FORMS = ("alt", "$alt")  # parameters of Google's
_PLAIN_FORM = ("json",)
_WATCHED: Mapping[str, Literal["json", "form", "none"]] = {"json": "json", "form": "form", "none": "none"}
Accounts = Mapping[tuple[str, str], Account]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """One method that code may call on one account. `lines`: where it was found, () where it was named.

    `held`: for each argument that its requests are held to, the values; those that needn't be there are in `optional`.
    `closed` are the arguments of the catalog that its requests don't have, since no call in the program does; `free`
    those that may be anything.
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
                    made.append(permit)
    if len(made) > MOST_PERMITS:
        raise InvalidInput(
            f"The program calls {len(made)} methods; one action may call {MOST_PERMITS} at most.",
            next_step="Make several programs of it.",
        )
    return tuple(replace(each, rule=_less(each.rule, method_of(catalog, each), catalog)) for each in made)


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
    where = _Places(method, http, calls)
    held, optional, must = _held(where, reads)
    closed = _closed(where, reads)
    own = apart(method, service)
    # What is streamed isn't looked at, unless it could be another method's.
    fixed = own.fixed if own.must or where.format != "any" else {}
    named_all = bool(reads) and where.format != "any" and known_fields(method) and not _may_have_any(reads)
    more = beyond(method, reads, (*where.all, *service.code.query)) if named_all else ()
    forms = _forms(reads)
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
        path=template(method, held),
        query={
            **{name: forms if name in _FORMS else () for name in service.code.query},
            **{name: tuple(_text(value) for value in held.get(name, ())) for name in where.query if name not in closed},
        },
        fields={
            **{name: held.get(name, ()) for name in where.body if name not in closed},
            **dict.fromkeys(more, ()),
            **{name: (value,) for name, value in fixed.items()},
        },
        closed=tuple(dict.fromkeys([*(name for name in closed if name in where.body), *own.closed])),
        only=named_all or (own.shared and known_fields(method) and (where.format != "any" or bool(own.must))),
        must=(*(name for name in must if name in where.query or name in where.body), *own.must),
        headers=tuple(name for name in dict.fromkeys([*service.headers, *where.headers]) if name.lower() not in _NEVER),
        body_format=where.format,
        calls=READS if read else WRITES,
        request_bytes=BODY_BYTES,
        **credential_of(placement),
    )
    if is_graphql(rule) and not rule.fields.get("query"):
        return None  # a language of its own: only documents that are written in the program are let through
    return Permit(
        rule=rule,
        service=service.name,
        method=method.name,
        read=read,
        lines=tuple(sorted({call.line for call in reads})),
        held={name: tuple(typed(value, properties.get(name)) for value in values) for name, values in held.items()},
        optional=tuple(name for name in held if name in optional),
        closed=closed,
        free=(*(name for name in where.all if name not in held and name not in closed), *more, *loose),
    )


class _Places:
    """Where the arguments of a method are in a request that is sent in one way."""

    def __init__(self, method: Method, http: str, calls: Sequence[FoundCall]) -> None:
        names = [str(name) for name in method.parameters.get("properties", {}) if name.lower() not in OVERRIDE_NAMES]
        usual = "body" if method.body != "none" else "query"
        at = {name: str(method.locations.get(name, usual)) for name in names}
        self.path = [name for name in names if at[name] == "path"]
        self.several = [match["name"] for match in _HOLE.finditer(method.path) if match["several"]]
        self.headers = [name for name in names if at[name] == "header"]
        rest = [name for name in names if at[name] not in ("path", "header")]
        if http == method.http:
            self.query = [name for name in rest if at[name] in ("query", "repeat")]
            self.body = [name for name in rest if at[name] == "body"]
            # Text, bytes and parts are streamed: no rule says anything about what is in them.
            self.format: Literal["json", "form", "any", "none"] = _WATCHED.get(method.body, "any")
        elif http in _UNREAD or http == "DELETE":
            self.query, self.body, self.format = rest, [], "none"
        else:
            self.query, self.body, self.format = [], rest, "form"
        said = {name for call in calls for name in call.query}
        self.query += [name for name in rest if name in said and name not in self.query]
        self.all = dict.fromkeys((*self.path, *self.query, *self.body))
        if any(call.body == "any" for call in calls):
            self.format = "any"
        elif self.format == "none" and any(call.body != "none" for call in calls):
            self.format = "json"


def _held(
    where: _Places, calls: Sequence[FoundCall]
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
        if not in_path and name in where.body and where.format == "any":
            continue  # it is streamed, so nobody reads it
        if {part[0] for part in parts if part[0]} == {"query", "fields"}:
            continue  # written in two places, it would be held in one
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


def _closed(where: _Places, calls: Sequence[FoundCall]) -> tuple[str, ...]:
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
    return tuple(dict.fromkeys((*_PLAIN_FORM, *(_text(value) for _, value in said if value is not None))))


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


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else canonical(value).decode("utf-8")


def template(method: Method, held: Mapping[str, tuple[JsonValue, ...]]) -> tuple[str | Slot, ...]:
    made: list[str | Slot] = []
    segments = [segment for segment in method.path.removeprefix("/").split("/") if segment]
    for place, segment in enumerate(segments, 1):
        hole = _HOLE.fullmatch(segment)
        if hole is None:
            made.append(segment)
            continue
        custom = bool(method.origin_id) and place == len(segments) and not hole["end"]
        if hole["several"] and hole["name"] in held:
            *first, last = _text(held[hole["name"]][0]).split("/")
            made += [*first, last + hole["end"]]
            continue
        shape = shape_of(method, hole["name"]) if hole["several"] else ()
        if shape:
            made += _shaped(hole["name"], shape, hole["end"], verbs=not custom)
            continue
        made.append(
            Slot(
                hole["name"],
                tuple(_text(value) for value in held.get(hole["name"], ())),
                many=bool(hole["several"]),
                end=hole["end"],
                verbs=not custom,
                form="" if hole["several"] else form_of(method, hole["name"]),
            )
        )
    return tuple(made)


def form_of(method: Method, name: str) -> str:
    """A pattern for a segment that is the value of this argument; "" where the catalog doesn't say what it looks like.
    (An imported document's pattern is in the catalog only where matching it is quick.)"""
    schema: Any = method.parameters.get("properties", {}).get(name)
    for _ in range(_REFERENCES):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = method.parameters.get("$defs", {}).get(str(schema["$ref"]).removeprefix("#/$defs/"))
    if not isinstance(schema, Mapping):
        return ""
    choices = schema.get("enum")
    if isinstance(choices, list | tuple) and all(isinstance(one, str | int | bool) for one in choices):
        return rf"\A(?:{'|'.join(re.escape(_text(one)) for one in choices)})\Z"
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else ""
    if kind in _FORMS_OF_KINDS:
        return _FORMS_OF_KINDS[str(kind)]
    if kind != "string":
        return ""
    if isinstance(pattern := schema.get("pattern"), str) and pattern:
        # As arguments are held to it: `$` is the end, and not also a line's end before it.
        return pattern[:-1] + r"\Z" if re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) else pattern
    return _UUID if schema.get("format") == "uuid" else ""


def shape_of(method: Method, name: str) -> tuple[str, ...]:
    """The segments of a name that the catalog knows the form of: "" where any may stand; () when it doesn't say.

    Google's `{+name}` is `^projects/[^/]+/topics/[^/]+$`: without it, GET /v1/{+name} would be every such method.
    """
    pattern = method.parameters.get("properties", {}).get(name, {}).get("pattern")
    if not isinstance(pattern, str) or not (pattern.startswith("^") and pattern.endswith("$")):
        return ()
    parts = pattern[1:-1].replace("[^/]+", "\0").split("/")
    if not all(part == "\0" or _WORD.fullmatch(part) for part in parts):
        return ()
    return tuple("" if part == "\0" else part for part in parts)


def _shaped(name: str, shape: Sequence[str], end: str, *, verbs: bool) -> list[str | Slot]:
    """The parts of a path where such a name stands: its free segments are `name/0`, `name/1`, …"""
    made: list[str | Slot] = []
    for place, word in enumerate(shape):
        last = place == len(shape) - 1
        tail = end if last else ""
        made.append(word + tail if word else Slot(f"{name}/{place}", end=tail, verbs=verbs or not last))
    return made


def held_in_path(permit: Permit) -> tuple[str, ...]:
    """The names that stand in a rule's path as words, so that no slot of a request says them."""
    slots = {part.name for part in permit.rule.path if isinstance(part, Slot)}
    elsewhere = {*permit.rule.query, *permit.rule.fields, *slots}
    return tuple(name for name, values in permit.held.items() if name not in elsewhere and len(values) == 1)


def name_from(shape: Sequence[str], name: str, slots: Mapping[str, str]) -> str:
    """The whole name, of the segments that a request had."""
    return "/".join(word or slots.get(f"{name}/{place}", "") for place, word in enumerate(shape))


def _less(rule: MethodRule, method: Method, catalog: Catalog) -> MethodRule:
    """The rule without the paths that are another method's, whatever its verb: `/files/{id}` isn't
    `/files/generateIds`, and what a service takes a POST at is no id that it would take a GET for."""
    if all(isinstance(part, str) for part in rule.path):
        return rule
    others = []
    for other in catalog.service(method.service).methods.values():
        if other.id != method.id:
            path = template(other, {})
            if _meets(path, rule.path) and sum(isinstance(part, Slot) and part.many for part in path) < 2:
                others.append(path)
    return replace(rule, others=tuple(others))


def _meets(one: Sequence[str | Slot], other: Sequence[str | Slot]) -> bool:
    """Whether a path can fit both templates, and the first has words in the place of a slot of the other's."""
    many = next((place for place, part in enumerate(other) if isinstance(part, Slot) and part.many), None)
    if many is None:
        if len(one) != len(other) and not any(isinstance(part, Slot) and part.many for part in one):
            return False
        pairs = list(zip(one, other, strict=False))
    else:
        behind = len(other) - many - 1
        if len(one) < len(other):
            return False
        pairs = [
            *zip(one[:many], other[:many], strict=True),
            *((part, other[many]) for part in one[many : -behind or None]),
        ]
        pairs += list(zip(one[len(one) - behind :], other[many + 1 :], strict=True))
    if any(isinstance(mine, str) and isinstance(theirs, str) and mine != theirs for mine, theirs in pairs):
        return False
    return any(isinstance(theirs, Slot) and (isinstance(mine, str) or mine.end != theirs.end) for mine, theirs in pairs)
