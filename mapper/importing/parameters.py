"""The arguments of an OpenAPI operation: which there are, and where each goes. Pure.

Rules: an argument is called as it is sent. What can't be sent as the document wants it (cookies, `deepObject`, headers
that are the gateway's) is left out where it is optional, and said; an operation that needs it is refused. A body of
JSON is one argument; a form's fields are one each; files and other bodies can't be sent, and the operation says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mapper.importing.credential_arguments import is_credential, stands_in
from mapper.importing.import_report import BadPart
from mapper.importing.pointers import Keys, Pointers
from mapper.importing.schema_import import Shapes
from mapper.importing.security import HEADER, OURS, alike
from policies.services import BodyFormat, Location, Placement

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$\[\]-]{0,99}")
_MOST = 300  # parameters of one operation

_GATEWAYS = frozenset({"accept", "content-type", "user-agent", "accept-encoding"})
_FORM = "application/x-www-form-urlencoded"
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
    unsupported: str = ""

    def add(self, name: str, schema: Mapping[str, Any], place: Location, *, needed: bool) -> None:
        self.properties[name] = schema
        self.locations[name] = place
        if needed:
            self.required.append(name)


class _CantSend(BadPart):
    """A parameter that is understood, and can't be sent."""


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
        holes: tuple[str, ...],
        keys: Keys,
        shared_keys: Keys,
        http: str,
    ) -> Arguments:
        """The arguments of an operation, `shared` being those of its path. Raises BadPart when it can't be taken."""
        made = Arguments()
        forms: list[tuple[dict[str, Any], Keys]] = []
        bodies: list[tuple[dict[str, Any], Keys]] = []
        for (place, name), (raw, here) in self._listed(operation, shared, keys, shared_keys).items():
            if place == "formData":
                forms.append((raw, here))
            elif place == "body":
                bodies.append((raw, here))
            else:
                if stands_in(self.credential, place, str(raw["name"])):
                    self.problems.append(BadPart(f"{name[:60]!r} is the gateway's alone", *here, "name"))
                    continue
                self._parameter(made, raw, place, name, holes, here)
        for hole in holes:
            if made.locations.get(hole) != "path":
                raise BadPart(f"the path names {{{hole[:60]}}}, which is no parameter of it", *keys, "parameters")
        if self.swagger:
            self._swagger_body(made, operation, bodies, forms, keys)
        elif "requestBody" in operation:
            self._body(made, operation["requestBody"], (*keys, "requestBody"))
        if made.body != "none" and http in ("GET", "HEAD"):
            raise BadPart(f"a {http} with a body isn't sent", *keys, "requestBody")
        return made

    def _listed(
        self, operation: Mapping[str, Any], shared: Any, keys: Keys, shared_keys: Keys
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
                if not isinstance(name, str) or not name:
                    raise BadPart("must be a name", *here, "name")
                key = (place, name.lower() if place == "header" else name)
                if key in own:
                    raise BadPart(
                        f"the {place} parameter {name[:60]!r} stands twice", *before, "parameters", str(number)
                    )
                own.add(key)
                found[key] = raw, here
        return found

    def _parameter(
        self, made: Arguments, raw: dict[str, Any], place: str, name: str, holes: tuple[str, ...], keys: Keys
    ) -> None:
        wire = str(raw["name"])
        needed = raw.get("required") is True or place == "path"
        if place == "header" and name in _GATEWAYS:
            return  # as OpenAPI itself has it, or the gateway's own, which always sends one
        try:
            if place == "cookie":
                raise _CantSend("a cookie isn't sent", *keys)
            if place == "header":
                self._check_header(name, keys)
            if place in ("query", "header") and is_credential(raw):
                raise _CantSend(f"{wire!r} is a credential, and the account's goes elsewhere", *keys)
            if not _NAME.fullmatch(wire):
                raise _CantSend(f"{wire[:60]!r} isn't a name that is sent", *keys, "name")
            schema, where = self._schema(raw, place, keys)
        except _CantSend as bad:
            if needed and not (place == "header" and name == "authorization"):
                raise BadPart(f"{bad.what}, and the operation needs it", *bad.keys) from bad
            self.problems.append(bad)
            return
        if place == "path" and wire not in holes:
            raise BadPart(f"the path doesn't name {{{wire[:60]}}}", *keys, "name")
        if wire in made.properties:
            if needed:
                raise BadPart(f"two parameters are called {wire[:60]!r}, in different places", *keys, "name")
            self.problems.append(BadPart(f"left out: another parameter is called {wire[:60]!r}, too", *keys, "name"))
            return
        made.add(wire, schema, where, needed=needed)

    def _check_header(self, name: str, keys: Keys) -> None:
        plain = alike(name)
        if plain in OURS or plain == "authorization" or plain.startswith(("proxy-", "sec-")):
            raise _CantSend(f"the header {name[:60]!r} is the gateway's alone", *keys, "name")
        if not HEADER.fullmatch(name):
            raise _CantSend(f"{name[:60]!r} isn't a header that is sent", *keys, "name")

    def _schema(self, raw: dict[str, Any], place: str, keys: Keys) -> tuple[dict[str, Any], Location]:
        """The schema of a parameter and how its values are sent."""
        as_json = False
        if self.swagger:
            schema = self.shapes.schema({key: raw[key] for key in _SCHEMA_KEYS if key in raw}, keys)
        elif "content" in raw:
            content = raw["content"]
            media = next(iter(content), "") if isinstance(content, dict) else ""
            if _media(media) != "application/json" or not isinstance(content[media], dict):
                raise _CantSend(f"a value as {media[:40]!r} isn't sent", *keys, "content")
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
        if "array" in kinds or "object" in kinds or as_json:
            raise _CantSend(f"a list or an object isn't sent in the {place}", *keys)
        if raw.get("style") not in (None, "simple"):
            raise _CantSend(f"the style {str(raw.get('style'))[:30]!r} isn't sent", *keys, "style")
        return schema, "path" if place == "path" else "header"

    def _query(self, raw: dict[str, Any], kinds: set[str], as_json: bool, keys: Keys) -> Location:
        if as_json:
            if "array" in kinds:
                raise _CantSend("a list written as JSON isn't sent in the query", *keys, "content")
            return "query"
        if self.swagger:
            form = raw.get("collectionFormat", "csv")
            many, style = form == "multi", "form" if form in ("csv", "multi") else form
        else:
            style = raw.get("style", "form")
            many = raw.get("explode", style == "form") is not False
        if "object" in kinds:
            raise _CantSend("an object isn't sent in the query", *keys)
        if "array" not in kinds:
            return "query"
        if style != "form":
            raise _CantSend(f"a list in the style {str(style)[:30]!r} isn't sent", *keys)
        return "repeat" if many else "query"

    def _kinds(self, schema: Mapping[str, Any]) -> set[str]:
        """The types that a value may have, references followed; "object" where it has parts of its own."""
        return self.shapes.kinds(schema)

    # ---- bodies

    def _body(self, made: Arguments, raw: Any, keys: Keys) -> None:
        body, keys = self.pointers.object(raw, keys)
        content = body.get("content")
        if not isinstance(content, dict) or not content:
            raise BadPart("must be an object with something in it", *keys, "content")
        needed = body.get("required") is True
        known = {_media(media): media for media in reversed(content)}
        for wanted in ("application/json", "*/*", "application/*", _FORM):
            if wanted not in known:
                continue
            media = content[known[wanted]]
            here = (*keys, "content", known[wanted])
            if not isinstance(media, dict):
                raise BadPart("must be an object", *here)
            if wanted == _FORM:
                self._form(made, media, here)
            else:
                schema = self.shapes.schema(media.get("schema", {}), (*here, "schema"))
                self._whole(made, schema, body.get("description"), needed, keys)
            return
        made.unsupported = f"it wants its body as {next(iter(known))[:60]}, and GoEx sends JSON or a form."

    def _whole(self, made: Arguments, schema: dict[str, Any], description: Any, needed: bool, keys: Keys) -> None:
        said = self.shapes.schema({"description": description}, keys)
        name = next((name for name in ("body", "payload", "request_body") if name not in made.properties), "")
        if not name:
            raise BadPart("its parameters leave no name for the body", *keys)
        made.add(name, {**said, **schema}, "whole", needed=needed)
        made.body = "json"

    def _form(self, made: Arguments, media: dict[str, Any], keys: Keys) -> None:
        raw, here = self.pointers.object(media.get("schema", {}), (*keys, "schema"))
        schema = self.shapes.opened(raw, here)
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            raise BadPart("a form must list its fields", *here)
        encoding = media.get("encoding", {})
        for name, each in properties.items():
            styled = encoding.get(name) if isinstance(encoding, dict) else None
            odd = isinstance(styled, dict) and (styled.get("style", "form") != "form" or styled.get("explode") is False)
            self._field(made, name, each, name in schema.get("required", ()), odd, (*here, "properties", name))
        made.body = "form"

    def _field(self, made: Arguments, name: str, schema: dict[str, Any], needed: bool, odd: bool, keys: Keys) -> None:
        why = ""
        if not _NAME.fullmatch(name) or name in made.properties:
            why = f"{name[:60]!r} can't be a field's name beside the parameters"
        elif odd or "object" in self._kinds(schema):
            why = "a form's field with parts of its own isn't sent"
        if not why:
            made.add(name, schema, "body", needed=needed)
        elif needed:
            raise BadPart(f"{why}, and the operation needs it", *keys)
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
            if listed and not {"application/json", "*/*", "application/*"} & set(listed):
                made.unsupported = f"it wants its body as {listed[0][:60]}, and GoEx sends JSON or a form."
                return
            schema = self.shapes.schema(raw.get("schema", {}), (*here, "schema"))
            self._whole(made, schema, raw.get("description"), raw.get("required") is True, here)
            return
        if any(raw.get("type") == "file" for raw, _ in forms) or (listed and _FORM not in listed):
            made.unsupported = "it wants a form with files, and GoEx sends JSON or a plain form."
            return
        for raw, here in forms:
            schema = self.shapes.schema({key: raw[key] for key in _SCHEMA_KEYS if key in raw}, here)
            odd = raw.get("type") == "array" and raw.get("collectionFormat", "csv") != "multi"
            self._field(made, str(raw["name"]), schema, raw.get("required") is True, odd, here)
        made.body = "form"


def _media(text: Any) -> str:
    return str(text).partition(";")[0].strip().lower()
