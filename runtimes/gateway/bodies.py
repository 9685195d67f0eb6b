"""Bodies of code's requests: read whole where a rule holds values in them, else watched while they are streamed. Pure.

A body that was read is written anew, so a server can't find in it what wasn't seen here: no key twice, no key that
a server could take for another one (case, underscores, brackets), no second boundary, no charset but UTF-8.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical, parse
from policies.normal_form import nfkc
from policies.services import outer_name, overrides
from runtimes.gateway.admission import BodyKind, Refused
from runtimes.gateway.multipart import BadParts, FirstPart, Part, PartReader, boundary_of, read_parts, write_parts
from runtimes.gateway.plan import MethodRule
from runtimes.gateway.request_headers import carries_credential, refuse
from runtimes.gateway.routes import visible
from runtimes.gateway.urls import BadTarget, decode_query, encode_query, unclosed
from runtimes.idempotency import is_key

FORM = "application/x-www-form-urlencoded"
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+\-]{1,127}/[A-Za-z0-9!#$&^_.+\-]{1,127}")
_JSON = re.compile(r"application/json|text/json|application/[a-z0-9!#$&^_.\-]+\+json")
# What fetch and aiohttp say of a text whose type the program doesn't say, whatever is in it.
_TEXT = re.compile(r"text/plain; ?charset=utf-8", re.IGNORECASE)
# Several requests in one body, or a language of their own: the rule could say nothing about what is in them.
_HIDDEN = re.compile(r"multipart/(?!form-data\Z|related\Z).*|application/(http|graphql.*)|message/.*")
# A part of multipart/related that some servers would take for a field of a form.
_NAMED = re.compile(rb"content-disposition\s*:(?:(?!\n\r?\n)[\s\S]){0,500}?[;\s]name\*?\s*=")
_OBJECT = re.compile(rb"\{\s*[\"}]")
_MAYBE_OBJECT = re.compile(rb"\xef(?:\xbb)?|\{\s*")
_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii"})
_UTF8 = re.compile(r'charset\s*=\s*"?([^";\s]*)"?', re.IGNORECASE)
MAX_FIELDS = 10_000
_PREFIX = 8  # parts of a name before those that are held
MAX_BEFORE = 900  # servers leave out what comes after 1,000 parameters or fields, and tell nobody
MAX_VALUES: Mapping[str, int] = {"json": 500_000, "form": MAX_FIELDS, "multipart": 2**63}
_MARKS: Mapping[str, tuple[bytes, ...]] = {"json": (b",", b"[", b"{"), "form": (b"&",), "multipart": ()}
_LONG_ROOM = 600
_ROOM = 256  # bytes of the last piece that a name may have begun in


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A body that was read: its top-level fields (None where it isn't an object), its value, and how it is sent."""

    fields: tuple[tuple[str, JsonValue], ...] | None
    value: JsonValue
    body: bytes
    type: str
    size: int  # bytes as it came
    typed: bool = False  # JSON, whose values have a type; those of a form are texts
    file: bool = False  # a part of it is a file, which isn't in its value


def kind_of(content_type: str | None) -> BodyKind:
    """What a body says it is. Raises Refused for what can't be held to a rule at all."""
    if content_type is None:
        return ""
    media = content_type.partition(";")[0].strip().lower()
    if not _TYPE.fullmatch(media):
        raise refuse("header", "the content-type isn't one")
    if _HIDDEN.fullmatch(media):
        raise refuse("batch", f"a body of {media} holds requests of its own", hint="Send each request by itself.")
    charset = _UTF8.search(content_type)
    if charset and charset[1].lower() not in _CHARSETS and not media.startswith("text/"):
        raise refuse("header", "a charset other than UTF-8")
    if _JSON.fullmatch(media):
        return "json"
    if media == FORM:
        return "form"
    if _TEXT.fullmatch(content_type):
        return "text"
    return "multipart" if media == "multipart/form-data" else "other"


def read_content(kind: BodyKind, content_type: str, body: bytes, limit: int) -> Content:
    """Parse a whole body. Raises Refused when it can't be read in exactly one way."""
    media = content_type.partition(";")[0].strip().lower()
    size = len(body)
    # What comes out of many small values is many times as large, and takes seconds.
    if sum(body.count(mark) for mark in _MARKS[kind]) > MAX_VALUES[kind]:
        raise refuse(
            "size",
            f"JSON and forms are looked at before they are sent: this one has more than {MAX_VALUES[kind]:,} values",
            hint="Send it in several requests.",
            status=413,
        )
    try:
        if kind == "json":
            value = parse(body.decode("utf-8"), limit=limit, what="The body")
            fields = tuple(value.items()) if isinstance(value, dict) else None
            said = "; charset=utf-8" if _UTF8.search(content_type) else ""
            found = Content(fields=fields, value=value, body=_dumped(value), type=media + said, size=size, typed=True)
        elif kind == "form":
            pairs = decode_query(body.decode("ascii"), form=True, ordered=True)
            sent = encode_query(pairs).encode("ascii")
            found = Content(fields=pairs, value=_gathered(pairs), body=sent, type=FORM, size=size)
        else:
            parts = read_parts(body, boundary_of(content_type))
            pairs = tuple((part.name, part.text()) for part in parts if not part.file)
            # A file has no value that a rule could have, and a name that it could have.
            files = tuple((part.name, None) for part in parts if part.file)
            sent, written = write_parts(parts)
            found = Content(
                fields=(*pairs, *files), value=_gathered(pairs), body=sent, type=written, size=size, file=bool(files)
            )
    except (InvalidInput, BadTarget, BadParts, ValueError, RecursionError) as error:
        raise refuse("body", "the body can't be read in exactly one way", status=400) from error
    if len(found.fields or ()) > MAX_FIELDS:
        raise refuse("size", f"the body has more than {MAX_FIELDS} fields", status=413)
    return found


def without_field(content: Content, name: str) -> Content:
    """The content without a top-level field: its placeholder, which is swapped when it is sent."""
    fields = tuple(pair for pair in content.fields or () if pair[0] != name)
    if content.type == FORM:
        pairs = [(one, str(value)) for one, value in fields]
        body = encode_query(pairs).encode("ascii")
        return replace(content, fields=fields, value=_gathered(pairs), body=body)
    return replace(content, fields=fields, value=dict(fields), body=_dumped(dict(fields)))


def check_fields(
    rule: MethodRule, content: Content | None, pairs: Iterable[tuple[str, str]], must: Collection[str]
) -> None:
    """Raise Refused for a value that the rule doesn't have, in the body or in the query, or for one that is missing
    of those that must be there."""
    query = tuple(pairs)
    typed = content is not None and content.typed
    fields = () if content is None or content.fields is None else content.fields
    in_body = same if typed else same_text
    said = [*((*pair, same_text) for pair in query), *((*pair, in_body) for pair in fields)]
    if content is not None and content.fields is None and looks_at(rule):
        raise refuse("field", "the body must be an object, since its fields are held to values")
    check_closed(rule, [name for name, _ in fields], typed=typed)
    free = () if typed else _free_parts(rule)
    other = next(
        (name for name, _ in fields if rule.only and name not in rule.fields and not name.startswith(free)), ""
    )
    if other:
        raise refuse("field", f"the field {other[:60]} isn't part of what was allowed", hint="Leave it out.")
    for constrained in (rule.fields, rule.query):
        values = held(constrained)
        names = {_plain(name): name for name in values}
        for name, value, is_same in said:
            alias = next((names[plain] for plain in _plains(name) if plain in names), None)
            if alias is None:
                continue
            if name != alias:
                raise refuse("field", f"the name {name} could be taken for {alias}")
            if not any(is_same(value, one) for one in values[alias]):
                raise refuse("field", f"{alias} is held to {_shown(values[alias])}")
    there = Counter(name for name, _, _ in said)
    fixed = held(rule.fields).keys() | held(rule.query).keys()
    for name in fixed:
        if there[name] > 1:
            raise refuse("field", f"{name} stands twice")
    _check_parts([name for name in fixed if "[" in name], there)
    unknown = [name for name, _, is_same in said if is_same is same_text and not _knows(rule, name, free)]
    _check_within(fixed, unknown)
    for group in (query, () if typed else fields):
        if last := next((name for name, _ in group[MAX_BEFORE:] if name in rule.must), ""):
            reason = f"a server may leave out {last}, which comes after {MAX_BEFORE} parameters or fields"
            raise refuse("size", reason, hint="Send it before them, or in several requests.", status=413)
    missing = [name for name in must if name not in there]
    if missing:
        raise refuse("field", f"{missing[0]} is missing, and this method is allowed with it alone")


def _free_parts(rule: MethodRule) -> tuple[str, ...]:
    """How a form's field begins that is a part (`metadata[order]`) of one that is known, and free."""
    return tuple(f"{name}[" for name, values in rule.fields.items() if not values)


def _check_parts(names: Collection[str], there: Iterable[str]) -> None:
    """Raise Refused for a field that could be one of the `names`, hold it, or be a part of it, as servers read brackets
    and dots. Each field is looked up, since both are up to thousands."""
    if not names:
        return
    parts = {name: _parts(name) for name in names}
    deepest = max(len(each) for each in parts.values())
    whole: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    begun: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, each in parts.items():
        whole[each].append(name)
        for length in range(len(each) + 1):
            begun[each[:length]].append(name)
    for one in there:
        mine = _parts(one, deepest + 1)
        near = [begun.get(mine, ()), *(whole.get(mine[:length], ()) for length in range(min(len(mine), deepest) + 1))]
        if other := next((name for each in near for name in each if name != one), ""):
            raise refuse("field", f"the name {one} could be taken for {other}")


def _knows(rule: MethodRule, name: str, free: tuple[str, ...]) -> bool:
    return name in rule.fields or name in rule.query or name.startswith(free)


def _check_within(names: Iterable[str], unknown: Iterable[str]) -> None:
    """Raise Refused for a field, of which nothing is known, that could be one of the `names` behind a prefix or without
    it: to ASP.NET `user.id`, `user[id]` and `model.user.id` are one, and `id` is where no other name has the prefix."""
    whole = {_parts(name): name for name in names}
    ends = {parts[at:]: name for parts, name in whole.items() for at in range(1, len(parts))}
    lengths: defaultdict[str, set[int]] = defaultdict(set)  # by how they begin
    for parts in filter(None, whole):
        lengths[parts[0]].add(len(parts))
    deepest = max(map(len, whole), default=0)
    for one in unknown if deepest else ():
        mine = _parts(one, _PREFIX + deepest)
        starts = [at for at, part in enumerate(mine) if part in lengths]
        within = (whole.get(mine[at : at + length]) for at in starts for length in lengths[mine[at]])
        if other := ends.get(mine) or next(filter(None, within), ""):
            raise refuse("field", f"the name {one[:60]} could be taken for {other}")


def _parts(name: str, most: int = 0) -> tuple[str, ...]:
    return tuple(_plain(part) for part in re.split(r"[\[\].]+", name, maxsplit=most) if part)


def looks_at(rule: MethodRule) -> bool:
    """Whether the rule says anything about a body's fields."""
    return bool(held(rule.fields) or held(rule.query) or rule.closed or rule.only)


def check_closed(rule: MethodRule, names: Iterable[str], *, typed: bool) -> None:
    """Raise Refused for a field that may not stand in a body, under any name that it could be taken for. `typed`: of
    JSON, whose names have no parts."""
    closed = {_plain(name): name for name in rule.closed}
    free = _free_parts(rule)
    for name in names:
        if (
            name not in rule.fields
            and not name.startswith(free)
            and (alias := next((closed[one] for one in _plains(name) if one in closed), ""))
        ):
            raise refuse("field", f"the field {alias} isn't part of what was allowed", hint="Leave it out.")
    if not typed:
        _check_within(rule.closed, [name for name in names if not _knows(rule, name, free)])


def check_graphql(names: Iterable[str]) -> None:
    """Raise Refused for a GraphQL body that says what is asked for in another way than by its `query`."""
    other = sorted(set(names) - {"query", "variables", "operationName"})
    if other:
        raise refuse("graphql", f"a GraphQL request with {other[0]}, beyond the query that was allowed")


def check_names(rule: MethodRule, names: Collection[str], *, typed: bool) -> None:
    """Raise Refused for a field of a body that would be a method override, a credential, or a key by which an earlier
    request is known again. `typed`: of JSON, which isn't read as the query is, and whose names have no parts."""
    in_body = rule.credential_at == "body"
    own = (rule.credential_name,) if in_body or (rule.credential_at == "query" and not typed) else ()
    known = {*rule.fields, *(own if in_body else ())}
    for name in names:
        if overrides(name):
            raise refuse("override", f"the field {name} would change what the request means", hint="Leave it out.")
        if not typed and unclosed(name):
            raise refuse("field", f"the bracket of the field {name} isn't closed: it could be taken for another")
        if name in known:
            continue
        if carries_credential(name, "token", *own):
            raise refuse("credential", f"a credential that isn't the vault's, in the field {name}")
        if not (rule.read or rule.any_query) and is_key(re.sub(r"[ .]", "_", outer_name(name).strip())):
            hint = f"Write the name {name[:60]} out in the program, or leave it out."
            raise refuse("field", f"by the field {name[:60]} it could be taken for an earlier request", hint=hint)


def same(found: JsonValue, allowed: JsonValue) -> bool:
    """Whether a value in JSON is the allowed one, of the same type at any depth."""
    return canonical(found) == canonical(allowed)


def same_text(found: JsonValue, allowed: JsonValue) -> bool:
    """Whether a text in a query or form is a way of writing the allowed value. None is a file, which is no value."""
    if not isinstance(found, str):
        return False
    if isinstance(allowed, str):
        return found == allowed
    if isinstance(allowed, bool):
        return found in (("true", "True", "1") if allowed else ("false", "False", "0"))
    if isinstance(allowed, int | float):
        return found == canonical(allowed).decode("ascii")
    if isinstance(allowed, list) and found == ",".join(str(item) for item in allowed):
        return True
    if isinstance(allowed, list | dict):
        try:
            return canonical(parse(found)) == canonical(allowed)
        except InvalidInput:
            return False
    return False


class Watch:
    """Looks at a body that is streamed, across the borders of its pieces. `feed` raises Refused."""

    def __init__(self, kind: BodyKind, content_type: str, rule: MethodRule, placeholders: Collection[str]) -> None:
        self._rule = rule
        self._marks = [placeholder.encode("ascii") for placeholder in placeholders]
        self._related = content_type.lower().startswith("multipart/related")
        self._overlap = max([_LONG_ROOM if self._related else _ROOM, *(len(mark) for mark in self._marks)])
        self._tail = b""
        self._first = FirstPart(content_type) if self._related and rule.closed else None
        # What comes first in a body that may be an object, as far as it has come; None: it isn't looked at (any more).
        self._start = b"" if kind in ("other", "text", "") and not self._related and rule.closed else None
        if self._start is not None and (charset := _UTF8.search(content_type)) and charset[1].lower() not in _CHARSETS:
            raise refuse("header", "a charset other than UTF-8")
        self._parts: PartReader | None = None
        if kind == "multipart":
            try:
                self._parts = PartReader(boundary_of(content_type), self._part)
            except BadParts as error:
                raise refuse("body", error.message, status=400) from error

    def feed(self, data: bytes) -> None:
        seen = self._tail + data
        self._tail = seen[-self._overlap :]
        if any(mark in seen for mark in self._marks):
            raise misplaced("the body")
        if self._start is not None:
            self._start = (self._start + data).removeprefix(codecs.BOM_UTF8).lstrip()[:_ROOM]
            if _OBJECT.match(self._start):
                hint = "Say that it is JSON, or send it as a part beside the fields."
                raise refuse("body", "an object that isn't said to be JSON: its fields aren't looked at", hint=hint)
            if self._start and not _MAYBE_OBJECT.fullmatch(self._start):
                self._start = None
        if self._first is not None:
            self._look_at_first(self._first, data)
        if self._related and b"disposition" in (lowered := seen.lower()) and _NAMED.search(lowered):
            raise refuse("body", "a part that is named as a form's field is, in a body that isn't a form")
        if self._parts is not None:
            try:
                self._parts.feed(data)
            except BadParts as error:
                raise refuse("body", error.message, status=400) from error

    def _look_at_first(self, part: FirstPart, data: bytes) -> None:
        try:
            names = part.feed(data)
        except BadParts as error:
            raise refuse("body", error.message, status=400) from error
        if names is not None:
            self._first = None
            check_names(self._rule, names, typed=True)
            check_closed(self._rule, names, typed=True)

    def finish(self) -> None:
        """The body has ended. Raises Refused where it ended early."""
        if self._first is not None:
            raise refuse("body", "a multipart/related body without its first part", status=400)
        if self._parts is not None:
            try:
                self._parts.close()
            except BadParts as error:
                raise refuse("body", error.message, status=400) from error

    def _part(self, part: Part) -> None:
        check_names(self._rule, (part.name,), typed=False)
        check_closed(self._rule, (part.name,), typed=False)
        if _plains(part.name) & {_plain(name) for name in held(self._rule.query)}:
            raise refuse("field", f"the field {part.name} could be taken for the parameter of that name")
        if not _knows(self._rule, part.name, _free_parts(self._rule)):
            _check_within(held(self._rule.query), (part.name,))


def misplaced(where: str) -> Refused:
    """A placeholder where none belongs."""
    return refuse(
        "placeholder",
        f"a placeholder in {where}, where this service takes no credential",
        hint="Send it where the service wants its token, and nowhere else.",
    )


def held(values: Mapping[str, tuple[JsonValue, ...]]) -> dict[str, tuple[JsonValue, ...]]:
    """The names that have values of their own."""
    return {name: allowed for name, allowed in values.items() if allowed}


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-.+!'\"`\x00-\x1f\x7f-\x9f]", "", visible(nfkc(name)).casefold())


def _plains(name: str) -> set[str]:
    """What servers may take a name for: without brackets, without what follows a dot or a colon (`id:int` is `id` to
    Zope), without separators."""
    outer = outer_name(name)
    return {_plain(name), _plain(outer), _plain(re.split(r"[.:]", outer, maxsplit=1)[0])}


def _dumped(value: JsonValue) -> bytes:
    """JSON as it is sent, in the order that it came in. Raises ValueError."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def _gathered(pairs: Iterable[tuple[str, str]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def _shown(values: tuple[JsonValue, ...]) -> str:
    shown = ", ".join(canonical(value).decode("utf-8")[:60] for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5} more"
