"""The arguments of an OpenAPI operation: which there are, and where each goes. Pure.

Rules: an argument is called as it is sent. What can't be sent as the document wants it (cookies, `deepObject`, headers
that are the gateway's) is left out where it is optional, and said; an operation that needs it says that it can't be
called. A body of JSON is one argument; a form's fields are one each; files and other bodies can't be sent, and the
operation says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from mapper.importing.credential_arguments import is_credential, is_its_token, stands_in
from mapper.importing.import_report import BadPart, CantSend
from mapper.importing.pointers import Keys, Pointers
from mapper.importing.safe_methods import is_action
from mapper.importing.schema_import import Shapes
from mapper.importing.security import HEADER, OURS, Ways, alike
from policies.media_types import FORM, JSON, MULTIPART, format_of
from policies.services import BodyFormat, Location, Placement, overrides

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$\[\]-]{0,99}")
_MOST = 300  # parameters of one operation

_ORDER = ("json", "form", "multipart", "text", "bytes")  # what is chosen first of several
_BODILESS = frozenset({"GET", "HEAD"})
_GATEWAYS = frozenset({"accept", "content-type", "user-agent", "accept-encoding"})
_MERGE_PATCH = "application/merge-patch+json"
_ANY = ("*/*", "application/*", "")
_FILE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The file's name."},
        "type": {"type": "string", "description": "Its media type."},
        "text": {"type": "string", "description": "What is in it, as text."},
        "base64": {"type": "string", "description": "What is in it, in base64, instead of text."},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_COLLECTED = {"csv": "form", "multi": "form", "pipes": "pipeDelimited", "ssv": "spaceDelimited"}
_PARTED: Mapping[Any, Location] = {"pipeDelimited": "pipes", "spaceDelimited": "spaces"}
# Swagger 2 describes a parameter's value beside its place.
_SCHEMA_KEYS = (
    "type", "format", "items", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "enum", "multipleOf", "description",
)  # fmt: skip


@dataclass(slots=True)
class Arguments:
    """What one operation takes."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    locations: dict[str, Location] = field(default_factory=dict)
    body: BodyFormat = "none"
    media: str = ""
    unsupported: str = ""

    @property
    def asked(self) -> list[tuple[str, Any]]:
        """Those of the query, and what says in the path what is done, with their schemas."""
        return [
            (name, schema)
            for name, schema in self.properties.items()
            if self.locations[name] in ("query", "repeat") or (self.locations[name] == "path" and is_action(name))
        ]

    def add(self, name: str, schema: Mapping[str, Any], place: Location, *, needed: bool) -> None:
        self.properties[name] = schema
        self.locations[name] = place
        if needed:
            self.required.append(name)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Reads the arguments of operations of one document."""

    pointers: Pointers
    shapes: Shapes
    problems: list[BadPart]
    swagger: bool  # version 2
    consumes: Any = None  # the whole document's, of Swagger 2
    credential: Placement = field(default_factory=Placement)  # where the account's credential goes

    def read(
        self,
        operation: Mapping[str, Any],
        shared: Any,
        holes: Mapping[str, str],
        keys: Keys,
        shared_keys: Keys,
        http: str,
        ways: Ways,
    ) -> Arguments:
        """The arguments of an operation, `shared` being those of its path, and `holes` the names in that with the place
        of each. Raises BadPart when it can't be taken."""
        made = Arguments()
        forms: list[tuple[dict[str, Any], Keys]] = []
        bodies: list[tuple[dict[str, Any], Keys]] = []
        listed = self._listed(operation, shared, holes, keys, shared_keys)
        for (place, name), (raw, here) in listed.items():
            if place == "formData":
                forms.append((raw, here))
            elif place == "body":
                bodies.append((raw, here))
            else:
                if stands_in(self.credential, place, str(raw["name"])):
                    self.problems.append(BadPart(f"{name[:60]!r} is the gateway's alone", *here, "name"))
                    continue
                if place in ("query", "header") and is_its_token(raw, ways):
                    said = f"{name[:60]!r} is the account's token, which is sent as a bearer's"
                    self.problems.append(BadPart(said, *here, "name"))
                    continue
                self._parameter(made, raw, place, name, holes, here)
        for hole, at in holes.items():
            if (at, hole) not in listed or (at == "path" and made.locations.get(hole) != "path"):
                odd = BadPart if at == "path" else CantSend
                raise odd(f"the path names {{{hole[:60]}}}, which is no parameter of it", *keys, "parameters")
        if self.swagger:
            if http in _BODILESS:
                bodies = [each for each in bodies if each[0].get("required") is True]
            self._swagger_body(made, operation, bodies, forms, keys)
        elif "requestBody" in operation:
            self._body(made, operation["requestBody"], http, (*keys, "requestBody"))
        if made.body != "none" and http in _BODILESS:
            raise CantSend(f"a {http} with a body isn't sent", *keys, "requestBody")
        return made

    def _listed(
        self, operation: Mapping[str, Any], shared: Any, holes: Mapping[str, str], keys: Keys, shared_keys: Keys
    ) -> dict[tuple[str, str], tuple[dict[str, Any], Keys]]:
        """Every parameter by place and name; those of the operation replace the path's."""
        found: dict[tuple[str, str], tuple[dict[str, Any], Keys]] = {}
        for listed, before in ((shared, shared_keys), (operation.get("parameters"), keys)):
            if listed is None:
                continue
            if not isinstance(listed, list) or len(listed) > _MOST:
                raise BadPart(f"must be a list of at most {_MOST}", *before, "parameters")
            own: set[tuple[str, str]] = set()
            for number, each in enumerate(listed):
                raw, here = self.pointers.object(each, (*before, "parameters", str(number)))
                place, name = raw.get("in"), raw.get("name")
                if place not in ("path", "query", "header", "cookie", "formData", "body"):
                    raise BadPart(f"{str(place)[:20]!r} isn't a place for a parameter", *here, "in")
                if place in ("formData", "body") and not self.swagger:
                    raise BadPart(f"{place!r} is a place in Swagger 2 alone", *here, "in")
                if name == "" and place in ("query", "header", "cookie") and raw.get("required") is not True:
                    self.problems.append(BadPart("left out: it has no name", *here, "name"))
                    continue
                if not isinstance(name, str) or not name:
                    raise BadPart("must be a name", *here, "name")
                if place == "path":
                    place = holes.get(name, place)  # so they call it, too, where they write a query behind the path
                key = (place, name.lower() if place == "header" else name)
                if key in own and raw != found[key][0]:
                    raise BadPart(
                        f"the {place} parameter {name[:60]!r} stands twice", *before, "parameters", str(number)
                    )
                own.add(key)
                found[key] = raw, here
        return found

    def _parameter(
        self, made: Arguments, raw: dict[str, Any], place: str, name: str, holes: Mapping[str, str], keys: Keys
    ) -> None:
        wire = str(raw["name"])
        needed = raw.get("required") is True or place == "path"
        if place == "header" and name in _GATEWAYS:
            return  # as OpenAPI itself has it, or the gateway's own, which always sends one
        try:
            if place == "cookie":
                raise CantSend("a cookie isn't sent", *keys)
            if place == "header":
                self._check_header(name, keys)
            if place in ("query", "header") and is_credential(raw):
                raise CantSend(f"{wire!r} is a credential, and the account's goes elsewhere", *keys)
            if not _NAME.fullmatch(wire) or (place == "query" and overrides(wire)):
                raise CantSend(f"{wire[:60]!r} isn't a name that is sent", *keys, "name")
            schema, where = self._schema(raw, place, keys)
        except CantSend as bad:
            if needed and not (place == "header" and name == "authorization"):
                raise CantSend(f"{bad.what}, and the operation needs it", *bad.keys) from bad
            self.problems.append(bad)
            return
        if place == "path" and wire not in holes:
            raise BadPart(f"the path doesn't name {{{wire[:60]}}}", *keys, "name")
        if wire in made.properties:
            if needed:
                raise CantSend(f"two parameters are called {wire[:60]!r}, in different places", *keys, "name")
            self.problems.append(BadPart(f"left out: another parameter is called {wire[:60]!r}, too", *keys, "name"))
            return
        made.add(wire, schema, where, needed=needed)

    def _check_header(self, name: str, keys: Keys) -> None:
        plain = alike(name)
        if plain in OURS or plain == "authorization" or plain.startswith(("proxy-", "sec-")):
            raise CantSend(f"the header {name[:60]!r} is the gateway's alone", *keys, "name")
        if not HEADER.fullmatch(name):
            raise CantSend(f"{name[:60]!r} isn't a header that is sent", *keys, "name")

    def _schema(self, raw: dict[str, Any], place: str, keys: Keys) -> tuple[dict[str, Any], Location]:
        """The schema of a parameter and how its values are sent."""
        as_json = False
        if self.swagger:
            schema = self.shapes.schema({key: raw[key] for key in _SCHEMA_KEYS if key in raw}, keys)
        elif "content" in raw:
            content = raw["content"]
            media = next(iter(content), "") if isinstance(content, dict) else ""
            if _media(media) != "application/json" or not isinstance(content[media], dict):
                raise CantSend(f"a value as {media[:40]!r} isn't sent", *keys, "content")
            as_json = True
            schema = self.shapes.schema(content[media].get("schema", {}), (*keys, "content", media, "schema"))
        else:
            schema = self.shapes.schema(raw.get("schema", {}), (*keys, "schema"))
        description = self.shapes.schema({"description": raw.get("description")}, keys, words=240)
        schema = {**schema, **description}
        if raw.get("deprecated") is True:
            schema["deprecated"] = True
        kinds = self._kinds(schema)
        if place == "query":
            return schema, self._query(raw, kinds, as_json, keys)
        if as_json:
            raise CantSend(f"a value as JSON isn't sent in the {place}", *keys, "content")
        if "object" in kinds or ("array" in kinds and raw.get("collectionFormat", "csv") != "csv"):
            raise CantSend(f"an object isn't sent in the {place}", *keys)
        if raw.get("style") not in (None, "simple"):
            raise CantSend(f"the style {str(raw.get('style'))[:30]!r} isn't sent", *keys, "style")
        return schema, "path" if place == "path" else "header"

    def _query(self, raw: dict[str, Any], kinds: set[str], as_json: bool, keys: Keys) -> Location:
        if as_json:
            return "text"
        if self.swagger:
            form = raw.get("collectionFormat", "csv")
            many, style = form == "multi", _COLLECTED.get(str(form), str(form))
        else:
            style = raw.get("style", "form")
            many = raw.get("explode", style == "form") is not False
        if "object" in kinds:
            if "array" in kinds or kinds & {"string", "number", "integer", "boolean"}:
                raise CantSend("a value that may be an object or something else isn't sent in the query", *keys)
            if style == "deepObject":
                return "deep"
            if style == "form" and many and not self.swagger:
                return "spread"
            raise CantSend("an object isn't sent in the query", *keys)
        if "array" not in kinds:
            return "query"
        if style in _PARTED and not (many and not self.swagger):
            return _PARTED[style]
        if style != "form":
            raise CantSend(f"a list in the style {str(style)[:30]!r} isn't sent", *keys)
        return "repeat" if many else "query"

    def _kinds(self, schema: Mapping[str, Any]) -> set[str]:
        """The types that a value may have, references followed; "object" where it has parts of its own."""
        return self.shapes.kinds(schema)

    # ---- bodies

    def _body(self, made: Arguments, raw: Any, http: str, keys: Keys) -> None:
        body, keys = self.pointers.object(raw, keys)
        if http in _BODILESS and body.get("required") is not True:
            return  # documents name empty ones, and such a request has none
        content = body.get("content")
        needed = body.get("required") is True
        if content == {} and not needed:
            self.problems.append(BadPart("left out: a body of no kind", *keys, "content"))
            return
        if not isinstance(content, dict) or not content:
            raise BadPart("must be an object with something in it", *keys, "content")
        known = {_media(media): media for media in reversed(content)}
        wanted, form = _wanted(reversed(known))
        if not form:
            made.unsupported = f"it wants its body as {next(reversed(known))[:60]}, which GoEx doesn't send."
            return
        media, here = self.pointers.object(content[known[wanted]], (*keys, "content", known[wanted]))
        if form in ("form", "multipart"):
            self._form(made, media, form, here)
        else:
            schema = self.shapes.schema(media.get("schema", {}), (*here, "schema")) if form == "json" else {}
            self._whole(made, schema, body.get("description"), needed, keys, form, wanted)

    def _whole(
        self, made: Arguments, schema: dict[str, Any], description: Any, needed: bool, keys: Keys,
        form: BodyFormat = "json", media: str = JSON,
    ) -> None:  # fmt: skip
        said = self.shapes.schema({"description": description}, keys)
        if form != "json":
            how = "The body as text." if form == "text" else "The bytes of the body, in base64."
            said["description"] = f"{said.get('description', '')} {how} It is {media}.".strip()
            schema = {"type": "string"}
        name = next((name for name in ("body", "payload", "request_body") if name not in made.properties), "")
        if not name:
            raise BadPart("its parameters leave no name for the body", *keys)
        made.add(name, {**schema, **said} if form != "json" else {**said, **schema}, "whole", needed=needed)
        made.body = form
        made.media = "" if media in (JSON, *_ANY) else media

    def _form(self, made: Arguments, media: dict[str, Any], form: BodyFormat, keys: Keys) -> None:
        raw, here = self.pointers.object(media.get("schema", {}), (*keys, "schema"))
        schema = self.shapes.opened(raw, here)
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            raise CantSend("a form must list its fields", *here)
        encoding = media.get("encoding", {})
        for name, each in properties.items():
            styled = encoding.get(name) if isinstance(encoding, dict) else None
            odd = isinstance(styled, dict) and (styled.get("style", "form") != "form" or styled.get("explode") is False)
            own = raw.get("properties")
            plain = own.get(name) if isinstance(own, dict) else None
            file = form == "multipart" and self._is_file(plain)
            self._field(
                made, name, each, name in schema.get("required", ()), odd, (*here, "properties", name),
                "file" if file else "body", form,
            )  # fmt: skip
        made.body = form

    def _is_file(self, raw: Any) -> bool:
        """Whether a field of a multipart body is a file, or several."""
        for _ in range(4):
            with suppress(BadPart):
                raw, _keys = self.pointers.object(raw, ())
            if not isinstance(raw, dict):
                return False
            if raw.get("type") == "file" or raw.get("format") in ("binary", "byte", "base64"):
                return True
            if "contentMediaType" in raw and raw.get("contentEncoding") is None and raw.get("type") == "string":
                return True
            if raw.get("type") != "array":
                return False
            raw = raw.get("items")
        return False

    def _field(
        self, made: Arguments, name: str, schema: dict[str, Any], needed: bool, odd: bool, keys: Keys,
        place: Location = "body", form: BodyFormat = "form",
    ) -> None:  # fmt: skip
        why = ""
        if not _NAME.fullmatch(name) or overrides(name) or name in made.properties:
            why = f"{name[:60]!r} can't be a field's name beside the parameters"
        elif form == "form" and (odd or "object" in self._kinds(schema)):
            why = "a form's field with parts of its own isn't sent"
        if place == "file":
            said = {key: schema[key] for key in ("description",) if key in schema}
            listed = "array" in self._kinds(schema)
            schema = {**({"type": "array", "items": _FILE} if listed else _FILE), **said}
        if not why:
            made.add(name, schema, place, needed=needed)
        elif needed:
            raise CantSend(f"{why}, and the operation needs it", *keys)
        else:
            self.problems.append(BadPart(why, *keys))

    def _swagger_body(
        self,
        made: Arguments,
        operation: Mapping[str, Any],
        bodies: list[tuple[dict[str, Any], Keys]],
        forms: list[tuple[dict[str, Any], Keys]],
        keys: Keys,
    ) -> None:
        if not bodies and not forms:
            return
        consumes = operation.get("consumes", self.consumes)
        listed = [_media(one) for one in consumes] if isinstance(consumes, list) else []
        if (bodies and forms) or len(bodies) > 1:
            raise BadPart("has more than one body", *keys, "parameters")
        if bodies:
            raw, here = bodies[0]
            wanted, form = _wanted(one for one in listed if one not in (FORM, MULTIPART)) if listed else (JSON, "json")
            if not form:
                made.unsupported = f"it wants its body as {listed[0][:60]}, which GoEx doesn't send."
                return
            schema = self.shapes.schema(raw.get("schema", {}), (*here, "schema")) if form == "json" else {}
            self._whole(made, schema, raw.get("description"), raw.get("required") is True, here, form, wanted)
            return
        files = any(raw.get("type") == "file" for raw, _ in forms)
        form = "multipart" if files or (MULTIPART in listed and FORM not in listed) else "form"
        for raw, here in forms:
            file = raw.get("type") == "file"
            schema = {} if file else self.shapes.schema({key: raw[key] for key in _SCHEMA_KEYS if key in raw}, here)
            if file:
                schema = self.shapes.schema({"description": raw.get("description")}, here)
            odd = raw.get("type") == "array" and raw.get("collectionFormat", "csv") != "multi"
            self._field(
                made, str(raw["name"]), schema, raw.get("required") is True, odd, here, "file" if file else "body", form
            )
        made.body = form


def _wanted(listed: Iterable[str]) -> tuple[str, BodyFormat | Literal[""]]:
    """Of the content types that a body may have, the one that is sent, and its format."""
    found: dict[str, str] = {}
    for media in listed:
        form = "json" if media in _ANY else format_of(media)
        order = {JSON: 0, "*/*": 1, _MERGE_PATCH: 2}.get(media, 3)
        if form and media != "application/json-patch+json":
            found.setdefault(f"{_ORDER.index(form)}{order}{len(found):04}", media)
        elif form:
            found.setdefault(f"{_ORDER.index(form)}9", media)
    if not found:
        return "", ""
    media = found[min(found)]
    return media, "json" if media in _ANY else format_of(media)


def _media(text: Any) -> str:
    return str(text).partition(";")[0].strip().lower()
