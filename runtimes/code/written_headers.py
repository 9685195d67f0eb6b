"""Headers that change what a request means, as a program has them written out: preferences, betas, versions of an API.
Pure.

The gateway passes on these values and no other, each in the header that it was written for. What isn't a library's or
the service's own is told beside the call, since an insert becomes one that overwrites by it, or another version of the
API does something else. A text is gone through once, in a time that grows as it does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from policies.services import Method, Service
from runtimes.code.permits import Permit
from runtimes.gateway.request_headers import (
    ADDED_TO,
    ASKING,
    FIELD_MASK,
    LEAVING_OUT,
    LIBRARY_VERSIONS,
    LOGGED,
    asked_for,
    bare_name,
    has_meaning,
    is_own_version,
    is_told_alone,
    leaves_out,
    lists_fields,
    may_change,
    media_of,
    other_meaning,
    shapes_answer,
)
from runtimes.idempotency import is_key

MOST = 32  # values of one header, and headers; more of them aren't passed on
MOST_ADDED = 8  # headers that are told beside those, of each call
MOST_LISTS = 256  # of betas, and calls of other hosts, that are looked at in one program
LONGEST_LIST = 4000  # characters

_SPACE = r"\s{0,80}+"
_ANNOTATED = rf"(?::{_SPACE}[A-Za-z][\w.\[\], |]{{0,60}}?{_SPACE}(?==))?"
_QUOTE = r"[rbuRBU]?(?P<quote>['\"`])"
_SAID = rf"['\"`]?\]?{_SPACE}{_ANNOTATED}[:=,]{_SPACE}\(?{_SPACE}{_QUOTE}"
_ASKING = "|".join(ASKING)
_ASKING_BARE = frozenset(map(bare_name, ASKING))
_ASKED = re.compile(r"[A-Za-z][\w.\-]{0,60}(?:=(?:[\w.\-]{1,60}|\"[^\"]{1,60}\"))?")
_LISTS = (
    re.compile(rf"(?<![\w-])(?P<name>{_ASKING}){_SAID}(?P<value>[^\n]{{1,300}}?)(?P=quote)", re.IGNORECASE),
    re.compile(rf"(?P<quote>['\"`])(?P<name>{_ASKING}):\s{{0,5}}(?P<value>[^\n]{{1,300}}?)(?P=quote)", re.IGNORECASE),
)
# As Anthropic's library takes them: texts, and names of texts, with comments among them.
_BETAS = re.compile(rf"(?<!\w)\w{{0,60}}betas['\"]?{_SPACE}{_ANNOTATED}[:=]{_SPACE}[\[(]", re.IGNORECASE)
_LISTED = re.compile(
    r"(?P<value>(?>(?:[^\])'\"`#]|'[^'\n]{0,60}'|\"[^\"\n]{0,60}\"|`[^`\n]{0,60}`|#[^\n]{0,200})*))[\])]"
)
_ITEM = re.compile(
    r"#[^\n]{0,200}|(?P<quote>['\"`])(?P<value>[\w.\-=]{1,60})(?P=quote)|(?P<named>[A-Za-z_$][\w$]{0,60})"
)
_END = rf"(?P=quote)(?!{_SPACE}[+%]|\.)"  # what is put together of texts is none of them
# What a program falls back to where a variable of its environment isn't set.
_UNSET = r"(?:process\.env[\w.\[\]'\"]{1,60}\s{0,5}(?:\?\?|\|\|)\s{0,5})?"
_ASSIGNED = re.compile(
    rf"(?<![\w$.\-])(?P<name>[A-Za-z_$][\w$]{{0,60}}){_SPACE}{_ANNOTATED}={_SPACE}\(?{_SPACE}{_UNSET}{_QUOTE}"
    rf"(?P<value>[\w.\-]{{1,60}}){_END}"
)
# `"Bank-Version": "7"`, `api_version="7"`, `apiVersion: '7'`, `-H "Bank-Version: 7"`.
_VERSIONS = (
    re.compile(
        rf"(?<![\w-])(?P<name>[\w-]{{1,60}}version|revision){_SAID}(?P<value>[\w.\-]{{1,40}}){_END}", re.IGNORECASE
    ),
    re.compile(
        rf"(?<![\w-])(?P<name>[\w-]{{1,60}}version)['\"`]?\]?{_SPACE}[:=]{_SPACE}\(?{_SPACE}{_UNSET}{_QUOTE}"
        rf"(?P<value>[\w.\-]{{1,40}}){_END}",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![\w-])(?P<name>[\w-]{1,60}-version):\s{0,5}(?P<value>[\w.\-]{1,40})", re.IGNORECASE),
)
# `"Bank-Version": VERSION`: what the program assigns to that name, or has as a parameter's default.
_NAMED = re.compile(
    rf"(?<![\w-])(?P<name>[\w-]{{1,60}}version|revision)(?:['\"`]\]?{_SPACE}[:=,]|{_SPACE}[:=]){_SPACE}\(?{_SPACE}"
    r"(?P<named>[A-Za-z_$][\w$]{0,60})(?![\w$'\"`.\[(])",
    re.IGNORECASE,
)
_MEDIA_NAMES = ("Accept", "Content-Type")
_MEDIA_BARE = frozenset(map(bare_name, _MEDIA_NAMES))
_TYPE = r"[\w.+\-*]{1,60}/[\w.+\-*]{1,100}(?:; ?[\w.+\-]{1,30}=[\w.+\-\"]{1,40}){0,4}"
_TYPES = rf"(?P<value>{_TYPE}(?:, ?{_TYPE}){{0,8}})"
_MEDIA = (
    re.compile(rf"(?<![\w-])(?P<name>Accept|Content[_-]?Type){_SAID}{_TYPES}(?P=quote)", re.IGNORECASE),
    re.compile(rf"(?P<quote>['\"`])(?P<name>Accept|Content-Type):\s{{0,5}}{_TYPES}(?P=quote)", re.IGNORECASE),
)
# `"X-App": "bot"`, `-H "X-App: bot"`: headers that no document has.
_OTHERS = (
    re.compile(
        rf"(?<=['\"`])(?P<name>[A-Za-z]\w{{0,40}}-[A-Za-z0-9\-]{{1,60}})['\"`]\]?{_SPACE}[:=,]{_SPACE}{_QUOTE}"
        rf"(?P<value>[^'\"`\n]{{1,200}}){_END}"
    ),
    re.compile(
        r"(?P<quote>['\"])(?P<name>X-[A-Za-z0-9\-]{1,60}): ?(?P<value>[^'\"`\n]{1,200})(?P=quote)", re.IGNORECASE
    ),
)
# Versions that are no header's: of Kubernetes, and in paths. One that a header called `revision` has is a day.
_OF_A_PATH = re.compile(r"v\d[\w.]{0,20}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d[\w.\-]{0,10}")
# Bodies that are read otherwise than as what they look like; the rest of what a `content_type` names is a file.
_PATCHES = re.compile(r"application/(([a-z\-]{1,30}-)?patch|vnd\.[\w.\-]{1,80})\+json")
_PREFERRED = re.compile(r"['\"`]prefer['\"`:]|(?<!\w)Prefer(?!\w)")
# A call whose first text is an address, up to its end.
_CALLED = re.compile(
    r"\w\(\s{0,80}+(?:['\"`][A-Z]{1,10}['\"`],\s{0,80}+)?[fF]?['\"`]https?://(?P<host>[\w.\-]{1,200})(?=[:/?'\"`])"
)
_WITHIN = re.compile(r"'(?:[^'\\\n]|\\.){0,500}'|\"(?:[^\"\\\n]|\\.){0,500}\"|[()]")


def _imported(names: str) -> re.Pattern[str]:
    """What imports one of these libraries."""
    return re.compile(
        rf"^[ \t]*(?:import|from)[ \t]+(?:{names})\b|\b(?:from|import|require)[ \t(]*['\"](?:{names})['\"]",
        re.MULTILINE,
    )


_SUPABASE = r"supabase|postgrest|@supabase/[a-z\-]{1,20}"
_AZURE = ("2025-05-05", "2025-07-05", "2025-11-05", "2026-02-06", "2026-04-06", "2026-06-06", "2026-10-06")
# What libraries say by themselves: the library, what in the program has it said, the header, its values.
_LIBRARIES = tuple(
    (
        _imported(names),
        re.compile(asked, re.IGNORECASE),
        header,
        values,
    )
    for names, asked, header, values in (
        (r"square", "", "Square-Version", ("2025-10-16", "2026-09-16")),
        (r"plaid", "", "Plaid-Version", ("2020-09-14",)),
        (r"gocardless_pro|gocardless-nodejs", "", "GoCardless-Version", ("2015-07-06",)),
        (r"intercom-client", "", "Intercom-Version", ("2.11", "2.14")),
        (r"airtable", "", "X-API-Version", ("0.1.0",)),
        (r"azure\.storage|@azure/storage-[a-z\-]{1,20}", "", "x-ms-version", _AZURE),
        (r"@supabase/[a-z\-]{1,20}", "", "Prefer", ("return=minimal",)),
        (_SUPABASE, r"\breturning\b", "Prefer", ("return=minimal",)),
        (_SUPABASE, r"\.upsert\(|\bupsert['\"]?\s{0,5}[=:]", "Prefer", ("resolution=merge-duplicates",)),
        (_SUPABASE, r"\bignore_?duplicates\b", "Prefer", ("resolution=ignore-duplicates",)),
        (_SUPABASE, r"\bdefault_?to_?null\b", "Prefer", ("missing=default",)),
        (_SUPABASE, r"\.rollback\(", "Prefer", ("tx=rollback",)),
    )
)
# What clients are given as an argument, and say in a header: the library, the argument, the header.
_GIVEN = tuple(
    (
        _imported(names),
        re.compile(rf"(?<![\w-]){argument}['\"`]?{_SPACE}[:=]{_SPACE}{_QUOTE}(?P<value>{value}){_END}", re.IGNORECASE),
        header,
    )
    for names, argument, value, header in (
        (r"openai", "organization", r"[\w.\-]{1,80}", "OpenAI-Organization"),
        (r"openai", "project", r"[\w.\-]{1,80}", "OpenAI-Project"),
        (r"stripe", "stripe_?account", r"[\w.\-]{1,80}", "Stripe-Account"),
        (r"stripe", "stripe_?context", r"[\w.\-/]{1,80}", "Stripe-Context"),
        (r"discord|nextcord|disnake|hikari|discord\.js", "reason", r"[\w.,:;!?\-/ ]{1,200}", "X-Audit-Log-Reason"),
    )
)
# Names that a dictionary of headers has, and none of a letter or a body: `Client-Id`, `On-Behalf-Of`.
_SPELLED = re.compile(r"(?=[^-]*-)(?:[A-Z][A-Za-z0-9]*(?:-|\Z))+")
_OF_A_LETTER = re.compile(
    r"(in-)?reply-to|message-id|return-path|list-.*|mime-version|content-(?!profile).*|disposition-.*|auto-submitted"
    r"|resent-.*|delivered-to|feedback-id|thread-.*",
    re.IGNORECASE,
)
# A preview of Stripe's, sent behind the version.
_ADDED = re.compile(r"\badd_beta_version\(\s{0,20}(['\"])(?P<name>\w{1,60})\1,\s{0,20}(['\"])(?P<value>\w{1,20})\3")
_VERSION = re.compile(r"[\w.\-]{1,40}(?:; ?\w{1,60}=\w{1,20}){0,10}")


def written_in(program: str) -> dict[str, tuple[str, ...]]:
    """The values that a program has written out, by the names of their headers or arguments."""
    found: dict[str, dict[str, None]] = {}

    def add(name: str, values: Iterable[str]) -> None:
        there = found.setdefault(name, {}) if name in found or len(found) < MOST + len(ASKING) else {}
        there.update((one, None) for one in values if len(there) < MOST)

    preferred = _PREFERRED.search(program) is not None
    for match in (match for one in _LISTS for match in one.finditer(program)):
        if match["name"] == "prefer" and not preferred:
            continue  # a variable
        add(match["name"], (one for part in match["value"].split(",") if _ASKED.fullmatch(one := part.strip())))
    for match in (match for one in _MEDIA for match in one.finditer(program)):
        add(match["name"], media_of(match["value"]))
    assigned: dict[str, dict[str, None]] = {}
    for match in _ASSIGNED.finditer(program):
        there = assigned.setdefault(match["name"], {})
        if len(there) < MOST:
            there[match["value"]] = None
    for begun in islice(_BETAS.finditer(program), MOST_LISTS):
        listed = _LISTED.match(program, begun.end(), begun.end() + LONGEST_LIST)
        for match in _ITEM.finditer(listed["value"]) if listed else ():
            for beta in [match["value"]] if match["value"] else assigned.get(match["named"], ()):
                add(_of_beta(beta), (beta,))
    for match in (match for one in (*_VERSIONS, _NAMED) for match in one.finditer(program)):
        add(match["name"], [match["value"]] if match.re is not _NAMED else assigned.get(match["named"], ()))
    if FIELD_MASK in program.lower():
        add(FIELD_MASK, ("*",))
    if preferred and leaves_out("prefer", program):
        add("Prefer", ("return=minimal",))
    for match in (match for one in _OTHERS for match in one.finditer(program)):
        if is_told_alone(match["name"]):
            add(match["name"], (match["value"],))
    for library, argument, header in _GIVEN:
        if argument.search(program) and library.search(program):
            add(header, (match["value"] for match in argument.finditer(program)))
    return {name: tuple(values) for name, values in found.items() if values}


def added_to(program: str, found: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The values beside those, by their headers: what reading the program `found`, and what its libraries say."""
    names: dict[str, str] = {}  # as they are spelled, by the bare ones
    added: dict[str, list[str]] = {}

    def add(name: str, values: Iterable[str]) -> None:
        added.setdefault(names.setdefault(bare_name(name), name), []).extend(values)

    for library, asked, header, values in _LIBRARIES:
        if library.search(program) and asked.search(program):
            add(header, values)
    for match in _ADDED.finditer(program):
        add("Stripe-Version", (f"{match['name']}={match['value']}",))
    preferred = _PREFERRED.search(program) is not None
    for name, value in found:
        if name == "prefer" and not preferred:
            continue
        if bare_name(name) == "betas":
            name = _of_beta(value)
        if bare_name(name) in _MEDIA_BARE:
            add(name, media_of(value))
        elif bare_name(name) in _ASKING_BARE:
            add(name, (part.strip() for part in value.split(",") if _ASKED.fullmatch(part.strip())))
        elif name.lower().endswith(("version", "revision")) and _VERSION.fullmatch(value):
            add(name, (value,))
    return {name: _few(values) for name, values in list(added.items())[:MOST_ADDED]}


def meant_for(
    program: str, found: Iterable[tuple[str, str]], hosts: Collection[str]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The program without its calls of other hosts, and what was `found` without what stands there alone."""
    kept, begun = [], 0
    for match in islice(_CALLED.finditer(program), MOST_LISTS):
        if match["host"].lower() in hosts or match.start() < begun:
            continue
        depth = 1
        for one in _WITHIN.finditer(program, match.end("host"), match.end() + LONGEST_LIST):
            depth += {"(": 1, ")": -1}.get(one[0], 0)
            if not depth:
                kept.append(program[begun : match.end("host")])
                begun = one.start()
                break
    rest = "\n".join((*kept, program[begun:]))
    return rest, tuple((name, value) for name, value in found if value in rest or value not in program)


@dataclass(frozen=True, slots=True)
class Headers:
    """What a program says in headers, by their names: as they are written out, and beside that."""

    written: Mapping[str, tuple[str, ...]]
    added: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, program: str, found: Iterable[tuple[str, str]]) -> Headers:
        """What stands in the program, with what reading it `found`."""
        return cls(written_in(program), added_to(program, found))


def with_written(
    permit: Permit, headers: Headers, service: Service, method: Method, others: Iterable[str] = ()
) -> Permit:
    """The permit, whose requests say what the program says in headers, or what the service or a document fixes. What is
    called after one of the `others`, services of the same program, is meant for that one."""
    elsewhere = tuple(bare_name(one) for one in others if one != service.name)
    written: dict[str, tuple[str, ...]] = {}
    told: dict[str, dict[str, None]] = {}
    fields = {bare_name(name) for name in (*permit.rule.fields, *permit.rule.query, *permit.closed)}
    for source in (headers.written, headers.added):
        for name, values in source.items():
            bare = bare_name(name)
            if ("-" not in name and bare in fields) or bare.startswith(elsewhere):
                continue  # a field of the request is called so, or it is another service's
            values = tuple(one for one in values if _may_be_sent(name, one, permit, service, method))
            values = tuple(one for one in values if one not in written.get(bare, ()))
            written[bare] = _few((*written.get(bare, ()), *values))
            if bare not in _MEDIA_BARE and bare not in _ASKING_BARE and bare != bare_name(FIELD_MASK):
                added = () if source is headers.written else values
                kept = [one for one in values if one in added or not _is_own(permit, name, one)]
                told.setdefault(name, {}).update(dict.fromkeys(kept))
    for name in _MEDIA_NAMES if not permit.read else ():
        own = (*media_of(service.headers.get(name, "")), *media_of(method.media if name == "Content-Type" else ""))
        values = tuple(one for one in written.get(bare_name(name), ()) if other_meaning(name, one) and one not in own)
        told[name] = dict.fromkeys(values)
        written[bare_name(name)] = _few((*own, *values))
    declared = [(name, one, True) for name, one in service.headers.items()] + [*_declared(method)]
    for name, value, alone in declared:
        if has_meaning(name):
            there = written.get(bare_name(name), ())
            if not alone and value not in there:
                told.setdefault(name, {})[value] = None
            values = (value,) if name not in ASKING else tuple(part.strip() for part in value.split(","))
            written[bare_name(name)] = _few((*values, *there))
            for each in told.values() if alone else ():
                each.pop(value, None)
    for name in ASKING:
        told[name] = dict.fromkeys(one for one in written.get(bare_name(name), ()) if asked_for(name, one))
    own_parts = {name: (*permit.parts.get(name, ()), *values) for name, values in told.items() if values}
    return replace(
        permit,
        rule=replace(permit.rule, written={name: values for name, values in written.items() if values}),
        parts={**permit.parts, **own_parts},
        optional=(*permit.optional, *own_parts),
    )


def _may_be_sent(name: str, value: str, permit: Permit, service: Service, method: Method) -> bool:
    """Whether a value that stands under a name in a program may be a header's of this method: a variable
    `schema_version` is none, and `api_version` is one where the service has versions."""
    bare, own = bare_name(name), bare_name(service.name)
    if bare in _ASKING_BARE or bare == bare_name(FIELD_MASK) or ("-" in name and has_meaning(name)):
        return True
    if bare in _MEDIA_BARE:
        return "-" in name or bare == "accept" or _PATCHES.match(value) is not None
    if "-" in name:
        named = name.lower().startswith(("x-", own)) or (_SPELLED.fullmatch(name) and not _OF_A_LETTER.fullmatch(name))
        return not permit.read and is_told_alone(name) and bool(named)
    if bare == "revision":
        return _DAY.fullmatch(value) is not None
    if bare == "apiversion":
        headers = (*service.headers, *(one for one, place in method.locations.items() if place == "header"))
        known = any(one not in ASKING and has_meaning(one) for one in headers)
        return not _OF_A_PATH.fullmatch(value) and (known or any(one.startswith(own) for one in _VERSIONED))
    return bare.startswith(own) or bare in _VERSIONED


def another_effect(permit: Permit, method: Method) -> str:
    """Why a header may have a permit's requests do something else than what a way back was made for; "" where none
    may."""
    declared = {value for _, value, _ in _declared(method)}
    declared_names = {name.lower() for name in permit.rule.headers}
    for name, values in permit.parts.items():
        if name in ASKING or name in _MEDIA_NAMES:
            return (
                f"the program may ask with the header {name} for another effect, such as to overwrite what was there "
                "before"
            )
        versions = values if name.lower().endswith(("version", "revision")) else ()
        if bare_name(name) in permit.rule.written and not all(
            one in declared or _is_own(permit, name, str(one)) for one in versions
        ):
            return f"the program may ask for another version of the API ({name}), of which its way back isn't known"
        if name.lower() not in declared_names and _is_other(name, permit):
            return f"the program may say with the header {name} what changes its effect"
    if key := _key_of(permit, method):
        return f"for a {key} that was used before, the service may answer with what was there already"
    loose = [name for name in permit.rule.headers if may_change(name)]
    return f"the program may say anything in the header {loose[0]}, which may change what it does" if loose else ""


def _is_other(name: str, permit: Permit) -> bool:
    if "-" not in name or name.lower() == LOGGED:
        return False
    return bare_name(name) in permit.rule.written and not has_meaning(name) and is_told_alone(name)


def _is_own(permit: Permit, name: str, version: str) -> bool:
    """Whether a version is one that a library says by itself, and no other API than what the catalog has."""
    name = f"{permit.service}-version" if bare_name(name) == "apiversion" else name
    return (bare_name(name), version) in _SAID_BY_LIBRARIES or is_own_version(name, version)


def _key_of(permit: Permit, method: Method) -> str:
    """The argument, or a field of the body, by which the service may know a request again; "" for none."""
    whole = next((name for name, place in method.locations.items() if place == "whole"), "")
    schema = method.parameters.get("properties", {}).get(whole)
    within = schema.get("properties", {}) if isinstance(schema, dict) and not permit.rule.only else ()
    own = (method.idempotency,) if method.locations.get(method.idempotency) != "header" else ()
    names = (*permit.held, *permit.free, *permit.parts, *permit.more, *permit.rule.fields, *permit.rule.query, *within)
    # A header's value is GoEx's own key.
    there = (one for one in names if one and one not in permit.closed and method.locations.get(one) != "header")
    return next((one for one in there if one in own or is_key(one)), "")


def answer_without(permit: Permit, needed: Iterable[str]) -> str:
    """What in a program may have its answer lack one of the `needed` paths, which its way back reads there; "" where
    nothing does."""
    written = permit.rule.written
    if FIELD_MASK.replace("-", "") in written or any(leaves_out("prefer", one) for one in written.get("prefer", ())):
        return "a header"
    needed = tuple(needed)
    said = (*permit.held, *permit.parts, *permit.free)
    shaping = (name for name in said if name in permit.rule.query and shapes_answer(name))
    for name in dict.fromkeys((*LEAVING_OUT, *shaping)):
        values = (*permit.held.get(name, ()), *permit.parts.get(name, ()))
        if lists_fields(name):
            shown = all(
                _shows(str(one), path) or (path and ADDED_TO.fullmatch(str(one)) and name in LEAVING_OUT)
                for one in values
                for path in needed
            )
        else:
            shown = not any(shapes_answer(name, str(one)) for one in values)
        if not shown or (permit.lines and name in permit.free):
            return name
    return ""


def _shows(fields: str, path: str) -> bool:
    """Whether a list of fields has all of what stands at a path."""
    names = path.strip("$.").replace("[", ".").split(".")
    # A part of what it has isn't all.
    listed = [one.strip() for one in re.sub(r"\([^()]*\)", "()", fields).split(",")]
    return "*" in listed or any("/".join(names[: place + 1]) in listed for place in range(len(names)))


def to_show(needed: Iterable[str]) -> tuple[str, ...]:
    """What a list of fields has to have for these paths."""
    return tuple(dict.fromkeys(re.split(r"[.\[]", path.strip("$."))[0] for path in needed if path))


def _declared(method: Method) -> Iterable[tuple[str, str, bool]]:
    """The headers of a method for which its document has one value that is meant, and whether it has no other."""
    for name, place in method.locations.items():
        schema = method.parameters.get("properties", {}).get(name) if place == "header" else None
        if isinstance(schema, dict):
            values = schema.get("enum", [schema.get("const", schema.get("default"))])
            value = values[0] if len(values) == 1 else schema.get("default")
            if isinstance(value, str):
                yield name, value, len(values) == 1


def _of_beta(value: str) -> str:
    """The header that a client's argument `betas` is sent in."""
    return "OpenAI-Beta" if "=" in value else "Anthropic-Beta"


_VERSIONED = frozenset(map(bare_name, (*LIBRARY_VERSIONS, *(header for _, _, header, _ in _LIBRARIES))))
_SAID_BY_LIBRARIES = frozenset((bare_name(header), value) for _, _, header, values in _LIBRARIES for value in values)


def _few(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))[:MOST]
