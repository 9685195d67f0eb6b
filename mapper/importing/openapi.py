"""OpenAPI 3.0 to 3.2 and Swagger 2, one document at a time.

Rules: an operation that can't be taken is a problem with its place, and the rest is taken; one that can be described
but not sent is catalogued and says why. All operations go to one address, which the account's own base URL overrides;
nothing in the document is ever fetched, and nothing of it is believed about who it is: its name is only a wish.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from mapper.importing import operation_shapes as forms
from mapper.importing.credential_arguments import ways_by_arguments
from mapper.importing.document_files import plain
from mapper.importing.import_report import BadPart
from mapper.importing.login_endpoints import chosen
from mapper.importing.operation_shapes import ways_back
from mapper.importing.parameters import Arguments, Parameters
from mapper.importing.pointers import MAX_STEPS, Keys, Pointers, TooMuch
from mapper.importing.safe_methods import SAFE, change_in, is_action, risk
from mapper.importing.schema_import import Shapes
from mapper.importing.security import Security, Ways, placement_of, settle, signed_beside
from mapper.importing.servers import base_url, same_place
from mapper.store.import_rows import Document, DocumentMethod, DocumentScope
from mapper.store.service_names import MAX_METHOD_NAME, METHOD_NAME
from policies.services import OAuth, Placement, Risk

PROVIDER = "openapi"
MAX_METHODS = 100_000
_AS_JSON = ("application/json", "*/*", "application/merge-patch+json", "application/vnd.api+json")
_TEXT = {"type": "string"}  # what stands for an answer that is no JSON
_NOT_THE_THING = frozenset({"application/json-patch+json", "application/problem+json", "application/stream+json"})
_LOOKED_AT = 300  # parameters of one operation
_TOLD = 10  # words behind a path
_LONGEST = 8_000  # letters of a path that a server takes

_VERBS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query", "additionalOperations")
_SENT = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_LETTER = r"[A-Za-z0-9._~:@!$&'()*+,=-]"
_SEGMENT = re.compile(rf"\{{([^{{}}/]{{1,100}})\}}({_LETTER}*)|{_LETTER}+")
_UNSEEN = re.compile(r"[^ -~]")
_MIXED = re.compile(rf"(?:{_LETTER}|\{{[^{{}}/]{{1,100}}\}})+")
# What is done with what a path names, as its end says it: `/jobs:purge`, `/jobs/{}.delete`.
_CUSTOM = re.compile(r"[:}][^A-Za-z:}/]*([A-Za-z][^:}/]*)/?\Z")
# What documents write behind a path that stands in them twice: a query's names, and words that aren't sent.
_BEHIND = re.compile(r"([^?#]+)(?:\?([^?#]+))?(?:#[^/{}?#]*)?")
_ASKED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=\{\1\}")


@dataclass(frozen=True, slots=True)
class About:
    """What a document says of itself: a wish for a name, a title, a version."""

    title: str
    version: str
    swagger: bool


@dataclass(slots=True)
class _Operation:
    keys: Keys
    verb: str
    path: str
    raw: Mapping[str, Any]
    item: Mapping[str, Any]
    item_keys: Keys
    ways: Ways
    place: tuple[str, str]
    lost: BadPart | None = None  # why this stands for what couldn't be read


def _as_json(content: Mapping[str, Any]) -> Any:
    """What is said of the JSON among a body's formats; None where there is none."""
    found = {str(media).partition(";")[0].strip().lower(): about for media, about in content.items()}
    also = (media for media in found if media.endswith("+json") and media not in _NOT_THE_THING)
    return next((found[media] for media in (*_AS_JSON, *also) if media in found), None)


def about(raw: Any) -> About:
    """Which kind of document this is. Raises BadPart when it is none that is known."""
    if not isinstance(raw, dict):
        raise BadPart("isn't an OpenAPI document: it must be an object")
    version = str(raw.get("openapi", raw.get("swagger", "")))
    swagger = "swagger" in raw and "openapi" not in raw
    if not re.fullmatch(r"2(\.0)?" if swagger else r"3\.[0-2](\.[0-9]+)?(-[a-z0-9.]+)?", version):
        key = "swagger" if swagger else "openapi"
        said = f"{version[:20]!r} isn't a version that is read" if version else "isn't an OpenAPI document"
        raise BadPart(f"{said}: openapi 3.0 to 3.2, and swagger 2.0, are", *((key,) if key in raw else ()))
    info = raw.get("info")
    info = info if isinstance(info, dict) else {}
    own = re.sub(r"[^A-Za-z0-9_.-]+", "-", str(info.get("version", ""))[:40]).strip("-._")[:40]
    return About(plain(info.get("title"), 100), own or "1", swagger)


def read_document(raw: dict[str, Any], name: str, file: str, sha256: str) -> tuple[Document | None, list[BadPart]]:
    """A document as the service `name`, and the parts of it that couldn't be taken; None when nothing could.

    Raises BadPart when it is no such document.
    """
    said = about(raw)
    reader = _Reader(raw, said)
    url = base_url(raw, said.swagger, reader.problems)
    try:
        methods, placement, scopes, oauth = reader.methods(url, said.title or name)
        schemas = reader.shapes.finish()
    except TooMuch:
        raise BadPart(f"makes more work than a document may ({MAX_STEPS:,} steps)", "paths") from None
    if not methods:
        only = "; webhooks are sent by the service, and there is nothing else to call" if raw.get("webhooks") else ""
        return None, reader.problems or [BadPart(f"has no operation{only}", "paths")]
    info = raw.get("info")
    described = plain(info.get("description"), 300) if isinstance(info, dict) else ""
    if placement.more:
        names = ", ".join(one.header for one in placement.places)
        described = f"{described} Its credential is a JSON object of {len(placement.places)} values: {names}.".strip()
    elif placement.format.startswith("Basic "):
        described = f"{described} Its credential is `user:password` in base64.".strip()
    document = Document(
        provider=PROVIDER,
        provider_name=name,
        version=said.version,
        title=said.title or name,
        description=described,
        base_url=url,
        file=file,
        sha256=sha256,
        scopes=scopes,
        methods=tuple(methods),
        schemas=schemas,
        placement=placement,
        oauth=oauth,
        undos=reader.undos,
    )
    return document, [*reader.problems, *reader.shapes.problems.values()]


class _Reader:
    def __init__(self, raw: dict[str, Any], said: About) -> None:
        self._raw = raw
        self._swagger = said.swagger
        self._pointers = Pointers(raw)
        self.problems: list[BadPart] = []
        self.shapes = Shapes(self._pointers)
        self._security = Security(self._pointers, self.problems)
        self._numbers: dict[str, int] = {}  # of names that several operations want
        self.undos: dict[str, Any] = {}
        # What is sent to one place can be any of the operations there, also one that we can't send or read.
        self._worst: dict[tuple[str, str], Risk] = {}
        self._there: Counter[tuple[str, str]] = Counter()
        components = raw.get("components")
        if said.swagger:
            self._security.read_schemes(raw.get("securityDefinitions"), ("securityDefinitions",))
        elif isinstance(components, dict):
            self._security.read_schemes(components.get("securitySchemes"), ("components", "securitySchemes"))

    def methods(
        self, url: str, title: str
    ) -> tuple[list[DocumentMethod], Placement, tuple[DocumentScope, ...], OAuth | None]:
        """Every operation that can be taken, where the credential goes, the scopes, and how a login goes."""
        operations = [replace(each, ways=self._ways(each)) for each in self._operations()]
        placement = placement_of(each.ways for each in operations)
        reading = Parameters(
            self._pointers, self.shapes, self.problems, self._swagger, self._raw.get("consumes"), placement
        )  # fmt: skip
        taken: set[str] = set()
        read: list[tuple[_Operation, str, Arguments, str]] = []
        for each in operations:
            try:
                if each.lost:
                    raise each.lost
                path, holes, why = _path(each.path, each.keys)
                arguments = reading.read(
                    each.raw, each.item.get("parameters"), holes, each.keys, each.item_keys, each.verb, each.ways
                )
            except BadPart as bad:
                self.problems.append(bad)
                self._weigh_unread(each.verb, each.path, each.raw, each.item)
                if {".", ".."} & set(each.path.split("/")) or len(each.path) > _LONGEST:
                    continue  # no path that is sent
                # It can't be called. That its path is its own, and what it does there, counts all the same.
                each = replace(each, path=_shown(each.path), lost=bad)
                path, why, arguments = each.path, f"{bad.what}.", Arguments()
            why = why or self._elsewhere(each, url) or arguments.unsupported
            self._weigh(each.verb, each.path, each.raw, arguments.asked)
            read.append((each, path, arguments, why))
        if all(each.lost and not each.raw for each, *_ in read):
            read = []  # no operation stands there that is known
        # What can be read has its name first: one that was chosen before means the same, whatever stands beside it.
        read.sort(key=lambda one: one[0].lost is not None)
        made = [
            (each, self._name(each, taken), path, self._worst[each.place], arguments, why)
            for each, path, arguments, why in read
        ]
        granted, scopes, together = settle(
            [(each.ways, risk) for each, _, _, risk, _, _ in made], placement, self._security.declared, title
        )
        methods = [
            DocumentMethod(
                origin_id=f"{each.verb} {each.path}",
                name=name,
                description=_described(each.raw),
                http=each.verb,
                path=path,
                risk=risk,
                scopes=allowed.scopes,
                properties=arguments.properties,
                required=tuple(arguments.required),
                locations=arguments.locations,
                body=arguments.body,
                media=arguments.media,
                unsupported=why or allowed.unsupported,
            )
            for (each, name, path, risk, arguments, why), allowed in zip(made, granted, strict=True)
        ]
        self._derive(made, methods, scopes)
        oauth = chosen(self._security.logins) if placement == Placement() else None
        return methods, placement, scopes, replace(oauth, spelled=together) if oauth is not None else None

    def _ways(self, each: _Operation) -> Ways:
        """Where an operation's credential may go, by its security and by its parameters."""
        return ways_by_arguments(each.ways, self._listed(each.item, each.raw))

    def _listed(self, item: Mapping[str, Any], operation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """An operation's parameters as they stand there."""
        found: dict[tuple[Any, Any], dict[str, Any]] = {}
        for listed in (item.get("parameters"), operation.get("parameters")):
            for one in listed[:_LOOKED_AT] if isinstance(listed, list) else ():
                with suppress(BadPart):
                    raw, _ = self._pointers.object(one, ())
                    found[str(raw.get("in")), str(raw.get("name"))] = raw
        return list(found.values())

    def _weigh_unread(self, verb: str, path: str, raw: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        """The same as `_weigh` of an operation of which not all is right."""
        made: list[tuple[str, Mapping[str, Any]]] = []
        for each in self._listed(item, raw):
            schema: Mapping[str, Any] = {}
            with suppress(BadPart):
                schema, _ = self._pointers.object(each.get("schema", each), ())
            said, choices = _text(each.get("description", schema.get("description"))), schema.get("enum")
            told = {"type": schema.get("type"), "description": said}
            if each.get("in") == "query" or is_action(str(each.get("name"))):
                made.append((str(each.get("name")), {**told, "enum": choices if isinstance(choices, list) else []}))
        self._weigh(verb, path, raw, made)

    def _weigh(
        self, verb: str, path: str, raw: Mapping[str, Any], parameters: Iterable[tuple[str, Mapping[str, Any]]]
    ) -> None:
        """Count what an operation can do, by all that the document says of it, for all at its place."""
        tags = raw.get("tags")
        tags = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
        said = (_text(raw.get("summary")), _text(raw.get("description")))
        query = [(name, self.shapes.followed(schema)) for name, schema in parameters]
        alone, *words = _parts(path)
        own, place = _own_name(raw), _place(verb, alone)
        told = [(own or (_fixed(alone) or [""])[-1], alone), *((word, f"{alone}/{word}") for word in words[:_TOLD])]
        told += [(c[1], alone) for c in _CUSTOM.finditer(alone) if verb in SAFE or change_in(c[1], "") is not Risk.READ]
        for asked, where in told:
            its = risk(verb, asked, path=_fixed_path(where), said=said, tags=tags, parameters=query, named=asked == own)
            self._worst[place] = max(its, self._worst.get(place, its))

    def _derive(
        self,
        made: list[tuple[_Operation, str, str, Risk, Arguments, str]],
        methods: list[DocumentMethod],
        scopes: tuple[DocumentScope, ...],
    ) -> None:
        bodies, answers = {}, {}
        for (each, *_), method in zip(made, methods, strict=True):
            body = self._swagger_body(each) if self._swagger else self._json_of(each.raw.get("requestBody"))
            bodies[method.origin_id], answers[method.origin_id] = body, self._answer(each.raw)
        # Of several operations at one place an undo couldn't tell what it takes back.
        alone = [
            method
            for (each, *_), method in zip(made, methods, strict=True)
            if each.path == method.path and self._there[each.place] == 1
        ]
        self.undos = ways_back(alone, scopes, bodies, answers, forms.Shapes(self._named))

    def _named(self, reference: str) -> tuple[str, Any]:
        value, pointer = self._pointers.end(reference, ())
        return pointer, value

    def _swagger_body(self, each: _Operation) -> Any:
        for listed in (each.raw.get("parameters"), each.item.get("parameters")):
            for one in listed if isinstance(listed, list) else ():
                with suppress(BadPart):
                    raw, _ = self._pointers.object(one, ())
                    if raw.get("in") == "body":
                        return raw.get("schema")
        return None

    def _json_of(self, holder: Any) -> Any:
        """The schema of a body or an answer in JSON; None where it has none."""
        with suppress(BadPart):
            raw, _ = self._pointers.object(holder, ())
            content = raw.get("content")
            if isinstance(content, dict):
                return self._pointers.object(_as_json(content), ())[0].get("schema")
            return raw.get("schema") if self._swagger else None
        return None

    def _answer(self, raw: Mapping[str, Any]) -> tuple[Any, frozenset[int]]:
        """The schema of the good answer, and the codes that are spoken of."""
        responses = raw.get("responses")
        said = {str(code): about for code, about in responses.items()} if isinstance(responses, dict) else {}
        codes = frozenset(int(code) for code in said if code.isdecimal() and len(code) == 3)
        good = next((code for code in ("200", "201", "2XX", "2xx", "202") if code in said), "")
        found = self._json_of(said[good]) if good else None
        return (_TEXT if found is None and good and self._is_other(said[good]) else found), codes

    def _is_other(self, holder: Any) -> bool:
        """Whether an answer is said to be something else than JSON."""
        with suppress(BadPart):
            content = self._pointers.object(holder, ())[0].get("content")
            return isinstance(content, dict) and bool(content) and _as_json(content) is None
        return True

    def _operations(self) -> Iterator[_Operation]:
        paths = self._raw.get("paths", {})
        if not isinstance(paths, dict):
            self.problems.append(BadPart("must be an object", "paths"))
            return
        try:
            common = self._security.ways([] if (said := self._raw.get("security")) is None else said, ("security",))
        except BadPart as bad:
            self.problems.append(bad)
            common = Ways(why="what its document says about security couldn't be read")
        count = 0
        for path, value in paths.items():
            if path.startswith("x-"):
                continue
            try:
                item, keys = self._pointers.object(value, ("paths", path))
            except BadPart as bad:
                # Which operations are there isn't known, nor what they do: that counts as deleting.
                place = _place("DELETE", _parts(path)[0])
                yield _Operation(("paths", path), "DELETE", path, {}, {}, (), Ways(why=bad.what), place, bad)
                continue
            for verb in [verb for verb in _VERBS if verb in item]:
                here = (*keys, verb)
                raw = item[verb] if isinstance(item[verb], dict) else {}
                lost = None if raw is item[verb] else BadPart("must be an object", *here)
                if "$ref" in raw:  # a document in several files has its operations in others
                    beside = {name: said for name, said in raw.items() if name != "$ref"}
                    try:
                        raw, here = self._pointers.object(raw, here)
                        if beside or "$ref" in raw:
                            raise BadPart("says more beside a reference to an operation", *here)
                    except BadPart as bad:
                        raw, lost = beside, bad
                place = _place(verb.upper(), _parts(path)[0])
                self._there[place] += verb != "head"
                count += 1
                if count > MAX_METHODS:
                    raise BadPart(f"has more than {MAX_METHODS:,} operations", "paths")
                if verb.upper() not in _SENT:
                    what = {"options": "an OPTIONS", "additionalOperations": "another method"}.get(verb)
                    self.problems.append(BadPart(f"{what or f'a {verb.upper()}'} isn't sent", *here))
                    self._weigh_unread(verb.upper(), path, raw, item)
                    continue
                ways = common if lost is None else Ways(why=lost.what)
                try:
                    if raw.get("security") is not None:
                        ways = self._security.ways(raw["security"], (*here, "security"))
                    if why := signed_beside(raw, item, self._raw):
                        ways = Ways(why=why)
                except BadPart as bad:
                    self.problems.append(bad)
                    ways = Ways(why=bad.what)
                yield _Operation(here, verb.upper(), path, raw, item, keys, ways, place, lost)

    def _elsewhere(self, each: _Operation, url: str) -> str:
        """Why an operation with servers of its own can't be called at the document's address; "" when it can."""
        for holder in (each.raw, each.item):
            servers = holder.get("servers")
            if servers and not same_place(servers, url, self._raw.get("servers")):
                return "it is at another address than the rest, and an account has one."
        return ""

    def _name(self, each: _Operation, taken: set[str]) -> str:
        """The method's name."""
        wanted = each.raw.get("operationId")
        own = _own_name(each.raw)
        if wanted is not None and not own:
            odd = f"{str(wanted)[:60]!r} can't be a name; it is called by its path"
            self.problems.append(BadPart(odd, *each.keys, "operationId"))
        fixed = _fixed("/".join(_parts(each.path)))
        by_path = _method_name(".".join([*fixed, each.verb.lower()])) or each.verb.lower()
        name = own or by_path
        if name in taken and own:
            twice = f"another operation is {own[:60]!r} already; it is called by its path"
            self.problems.append(BadPart(twice, *each.keys, "operationId"))
            name = by_path
        stem = name[: MAX_METHOD_NAME - 8]
        while name in taken:
            self._numbers[stem] = self._numbers.get(stem, 1) + 1
            name = f"{stem}_{self._numbers[stem]}"
        taken.add(name)
        return name


def _method_name(text: str) -> str:
    """A text as a method's name; "" where nothing of it can be one."""
    parts = [re.sub(r"[^A-Za-z0-9_-]+", "_", part).strip("_-") for part in re.split(r"[./:#]+", text[:400])]
    name = ".".join(part for part in parts if part)[:MAX_METHOD_NAME].rstrip("._-")
    if name and not name[0].isalpha():
        name = f"op_{name}"[:MAX_METHOD_NAME].rstrip("._-")
    return name if METHOD_NAME.fullmatch(name) else ""


def _own_name(raw: Mapping[str, Any]) -> str:
    wanted = raw.get("operationId")
    return _method_name(wanted) if isinstance(wanted, str) else ""


def _text(value: Any) -> str:
    return value[:2000] if isinstance(value, str) else ""


def _fixed(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment and "{" not in segment]


def _fixed_path(path: str) -> str:
    """What risks are told about a path: the resource, without a custom method behind it."""
    return "/".join(segment.partition(":")[0] for segment in path.split("/"))


def _parts(path: str) -> list[str]:
    """A path alone, `{}` for each name in it, and the words behind it: what names and risks are told about it."""
    alone, *behind = re.split(r"[?#]", re.sub(r"\{[^{}]*\}", "{}", path), maxsplit=1)
    return [alone, *(word for word in re.split(r"[?#&=]", "".join(behind)) if word and "{" not in word)]


def _place(verb: str, alone: str) -> tuple[str, str]:
    """Where an operation is sent: the same for those that no request tells apart, and for a HEAD, which servers answer
    by what they do for a GET."""
    return "GET" if verb == "HEAD" else verb, alone.strip("/")


def _shown(path: str) -> str:
    """The path of what can't be called as one of ours."""
    seen = _UNSEEN.sub(lambda odd: quote(odd[0], safe=""), path)
    return seen if seen.startswith("/") else f"/{seen}"


def _parted(whole: str) -> tuple[str, list[str]]:
    """A path alone, and the names that its query asks for; all of it where more than that stands behind it."""
    if (behind := _BEHIND.fullmatch(whole)) is None:
        return whole, []
    asked = [_ASKED.fullmatch(each) for each in behind[2].split("&")] if behind[2] else []
    names = [each[1] for each in asked if each is not None]
    return (behind[1], names) if len(names) == len(asked) else (whole, [])


def _path(whole: str, keys: Keys) -> tuple[str, dict[str, str], str]:
    """A path as ours, the names in it with their places, and why it can't be called. Raises BadPart."""
    if not whole.startswith("/") or len(whole) > 500:
        raise BadPart("isn't a path that begins with a slash", *keys[:-1])
    path, asked = _parted(whole)
    holes: list[str] = []
    why = ""
    segments = path[1:].split("/")
    for place, segment in enumerate(segments):
        if not segment and place == len(segments) - 1:
            continue  # a slash at the end, or the root
        match = _SEGMENT.fullmatch(segment)
        if match is None and _MIXED.fullmatch(segment):
            if "}{" in segment:
                why = "two names stand side by side in a part of its path, with nothing between them."
            holes += re.findall(r"\{([^{}]+)\}", segment)
            continue
        if match is None or segment in (".", ".."):
            raise BadPart(f"{segment[:60]!r} isn't a path segment", *keys[:-1])
        if match[1]:
            holes.append(match[1])
    if len({*holes, *asked}) != len(holes) + len(asked):
        raise BadPart("names a parameter twice", *keys[:-1])
    return path, dict.fromkeys(holes, "path") | dict.fromkeys(asked, "query"), why


def _described(raw: Mapping[str, Any]) -> str:
    summary, description = plain(raw.get("summary"), 200), plain(raw.get("description"), 400)
    text = description
    if summary and not description.lower().startswith(summary.rstrip(".").lower()):
        text = f"{summary.rstrip('.')}. {description}".strip() if description else summary
    tags = raw.get("tags")
    names = [plain(tag, 40) for tag in tags[:3] if isinstance(tag, str)] if isinstance(tags, list) else []
    unsaid = [tag for tag in names if tag and tag.lower() not in text.lower()]
    if unsaid:
        text = f"{text} [{', '.join(unsaid)}]".strip()
    return f"Deprecated. {text}".strip() if raw.get("deprecated") is True else text
