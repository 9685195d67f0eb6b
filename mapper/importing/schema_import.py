"""JSON Schema as OpenAPI documents and function sets write it, as ours (`mapper.json_schema`). Pure.

Rules: a value that the document allows is never refused for what can't be said here: that is left out, and
`x-loosened` names it, which `goex catalog lint` shows. An object that lists its properties takes no others, unless it
says so. `allOf` is merged; `oneOf` is `anyOf`; a reference stays one, so that what holds itself can be said. What a
stranger's schema costs is bounded: its depth, its choices, its patterns, and how many parts are looked at in all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mapper.importing.document_files import plain
from mapper.importing.google_schemas import MAX_CHOICES, searched
from mapper.importing.import_report import BadPart
from mapper.importing.pointers import Keys, Pointers, parts
from mapper.importing.schema_merge import CHAIN, cut_rings, joined, listed, loosened, nullable, number, size
from mapper.json_schema import LOOSENED, REF, TYPES

MAX_LEVELS = 18
MAX_PARTS = 1_500_000  # schemas that are looked at for one document
MAX_OWN_PARTS = 20_000  # and for one of its named ones, or one parameter or body
MAX_BYTES = 400_000  # of one schema, written as JSON
_BRANCHES = 60
_PROPERTIES = 2000
_WORDS = 200  # characters of a field's description

# What function sets write for types, beside JSON Schema's own names.
LOOSE: Mapping[str, str] = {
    "dict": "object", "hashmap": "object", "map": "object", "struct": "object", "record": "object",
    "float": "number", "double": "number", "decimal": "number", "long": "integer", "int": "integer",
    "short": "integer", "byte": "integer", "bigint": "integer", "tuple": "array", "list": "array", "set": "array",
    "arraylist": "array", "bool": "boolean", "str": "string", "char": "string", "text": "string", "none": "null",
    "any": "any", "object": "object", "string": "string", "integer": "integer", "number": "number",
    "boolean": "boolean", "array": "array", "null": "null", "date": "string", "datetime": "string", "file": "any",
}  # fmt: skip

_UNSAID = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties",
    "propertyNames", "prefixItems", "contains", "minContains", "maxContains", "unevaluatedItems", "multipleOf",
    "$dynamicRef", "$recursiveRef", "discriminator",
)  # fmt: skip
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_OF = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_FORMAT = re.compile(r"[A-Za-z0-9_.\-]{1,40}")
_COMPOSED = frozenset({"$ref", "anyOf", "items", "const"})  # of a schema: its choices or types stand elsewhere, too


class Shapes:
    """The schemas of one document. `named` fills with those that are referred to; call `finish` when all are asked."""

    def __init__(self, pointers: Pointers, *, loose: bool = False) -> None:
        self._pointers = pointers
        self._loose = loose
        self._names: dict[str, str] = {}  # pointer -> name
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._todo: dict[str, None] = {}  # pointers, in order
        self._pointer_of: dict[str, str] = {}
        self._merging: list[str] = []
        self._spent = self._own = 0
        self.named: dict[str, Any] = {}
        self.problems: dict[tuple[Keys, str], BadPart] = {}

    def schema(self, raw: Any, keys: Keys, *, words: int = _WORDS) -> dict[str, Any]:
        """One schema; a part of it that can't be read is a problem, and anything may stand there."""
        self._own = 0
        made = self._part(raw, keys, 0, words=words)
        return made if size(made) <= MAX_BYTES else loosened({}, "it is too long")

    def opened(self, raw: Any, keys: Keys) -> dict[str, Any]:
        """One schema whose own properties are all in it, even where it is put together from others."""
        self._own = 0
        return self._opened(raw, keys, 0)

    def kinds(self, schema: Mapping[str, Any]) -> set[str]:
        """The types that a value of a schema made here may have, references followed; none where any may stand."""
        found = (schema,) if _COMPOSED.isdisjoint(schema) else self._alternatives(schema)
        return {kind for one in found if "type" in one for kind in listed(one["type"])}

    def _alternatives(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """A schema made here and each that a value of it may fit, references followed."""
        seen: set[str] = set()
        todo = [schema]
        while todo and len(seen) < CHAIN:
            one = todo.pop()
            yield one
            todo.extend(one.get("anyOf", ()))
            target = one.get("$ref", "")
            if target and target not in seen:
                seen.add(target)
                todo.append(self._made(target.removeprefix(REF)))

    def followed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema made here with what it refers to, where it is a reference (its own words stay), and with all types
        that a value of it may have and all choices, and those of its items."""
        if _COMPOSED.isdisjoint(schema):
            return schema
        target = schema.get("$ref", "")
        made = {**self._made(target.removeprefix(REF)), **schema} if target else {**schema}
        found = [*self._alternatives(schema)]
        items = [each for one in found if "items" in one for each in self._alternatives(one["items"])]
        types = [kind for one in found for kind in listed(one.get("type"))]
        return {**made, "type": types, "enum": _choices(found), "items": {"enum": _choices(items)}}

    def _made(self, name: str) -> dict[str, Any]:
        """The schema of that name, read now if it wasn't yet."""
        if name not in self.named:
            own, self._own = self._own, 0
            pointer = self._pointer_of[name]
            self._read_named(pointer)
            self._own = own
        found: dict[str, Any] = self.named[name]
        return found

    def _read_named(self, pointer: str) -> None:
        self._todo.pop(pointer, None)
        raw, _ = self._pointers.end(pointer, ())
        self.named[self._names[pointer]] = self.schema(raw, parts(pointer))

    def finish(self) -> dict[str, Any]:
        """The schemas that are referred to, by name."""
        while self._todo:
            self._read_named(next(iter(self._todo)))
        cut_rings(self.named)
        return self.named

    # ---- parts

    def _part(self, raw: Any, keys: Keys, level: int, *, close: bool = True, words: int = _WORDS) -> dict[str, Any]:
        try:
            return self._read(raw, keys, level, close, words)
        except BadPart as bad:
            self.problems.setdefault((bad.keys, bad.what), bad)
            return loosened({}, "it couldn't be read")

    def _read(self, raw: Any, keys: Keys, level: int, close: bool, words: int = _WORDS) -> dict[str, Any]:
        self._spent += 1
        self._own += 1
        if self._spent > MAX_PARTS or self._own > MAX_OWN_PARTS:
            return loosened({}, "it is too intricate")
        if isinstance(raw, bool):
            return {} if raw else loosened({}, "false")
        if not isinstance(raw, dict):
            raise BadPart("must be an object", *keys)
        if level > MAX_LEVELS:
            return loosened({}, f"it is nested deeper than {MAX_LEVELS} levels")
        made = self._said(raw, words)
        if "$ref" in raw:
            return self._reference(raw, made, keys)
        if "allOf" in raw:
            return self._all_of(raw, made, keys, level, close)
        unsaid = [key for key in _UNSAID if key in raw]
        kinds = self._kinds(raw, made, keys)
        if kinds:
            made["type"] = kinds[0] if len(kinds) == 1 else kinds
        self._bounds(raw, made, kinds, unsaid)
        self._values(raw, made, kinds, keys)
        branches = next((key for key in ("oneOf", "anyOf") if key in raw), "")
        if "array" in kinds:
            items = raw.get("items", {})
            if isinstance(items, list):
                unsaid.append("items of several kinds")
                items = {}
            made["items"] = self._part(items, (*keys, "items"), level + 1)
        if "object" in kinds:
            self._object(raw, made, keys, level, unsaid, close=close and not branches)
        if branches:
            self._branches(raw, branches, made, keys, level, unsaid)
        return loosened(made, *unsaid)

    def _said(self, raw: dict[str, Any], words: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        description = plain(raw.get("description"), words) or plain(raw.get("title"), words)
        if description:
            made["description"] = description
        for flag in ("readOnly", "deprecated"):
            if raw.get(flag) is True:
                made[flag] = True
        form = raw.get("format")
        if isinstance(form, str) and _FORMAT.fullmatch(form):
            made["format"] = form
        return made

    def _kinds(self, raw: dict[str, Any], made: dict[str, Any], keys: Keys) -> list[str]:
        kind = raw.get("type")
        if kind is None:
            kind = "object" if "properties" in raw else "array" if "items" in raw else "any"
        names = kind if isinstance(kind, list) else [kind]
        kinds = []
        for name in names:
            known = LOOSE.get(str(name).lower(), name) if self._loose else name
            if known == "file" and not self._loose:
                known = "string"
            if known == "any":
                return []
            if known not in TYPES:
                raise BadPart(f"{str(name)[:40]!r} isn't a type", *keys, "type")
            kinds.append(known)
        if raw.get("nullable") is True:
            kinds.append("null")
        return list(dict.fromkeys(kinds))

    def _bounds(self, raw: dict[str, Any], made: dict[str, Any], kinds: list[str], unsaid: list[str]) -> None:
        for kind, names in _OF.items():
            for name in names if kind in kinds else ():
                count = raw.get(name)
                if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**53:
                    made[name] = count
        if "array" in kinds and raw.get("uniqueItems") is True:
            made["uniqueItems"] = True
        if {"integer", "number"} & set(kinds):
            for name, exclusive, step in (
                ("minimum", "exclusiveMinimum", 1),
                ("maximum", "exclusiveMaximum", -1),
            ):
                bound, strict = raw.get(name), raw.get(exclusive)
                if number(strict) and (not number(bound) or strict * step >= bound * step):
                    bound, strict = strict, True
                if not number(bound):
                    continue
                if strict is True:
                    if isinstance(bound, int) and "number" not in kinds:
                        bound += step
                    else:
                        unsaid.append(exclusive)
                made[name] = bound
        pattern = raw.get("pattern")
        if isinstance(pattern, str) and "string" in kinds:
            kept = searched(pattern)
            if kept:
                made["pattern"] = kept
            else:
                unsaid.append("pattern")

    def _values(self, raw: dict[str, Any], made: dict[str, Any], kinds: list[str], keys: Keys) -> None:
        if "enum" in raw:
            choices = raw["enum"]
            if not isinstance(choices, list) or not choices:
                raise BadPart("must be a list with something in it", *keys, "enum")
            if len(choices) > MAX_CHOICES:
                raise BadPart(f"has {len(choices)} choices; at most {MAX_CHOICES} are taken", *keys, "enum")
            if raw.get("nullable") is True:
                choices = [*choices, None]
            made["enum"] = list({json.dumps(one, sort_keys=True): one for one in choices}.values())
        if "const" in raw:
            made["const"] = raw["const"]
        default = raw.get("default")
        if isinstance(default, bool | int | float) or (
            isinstance(default, str) and len(default) <= 100 and default.isprintable()
        ):
            made["default"] = default

    def _object(
        self, raw: dict[str, Any], made: dict[str, Any], keys: Keys, level: int, unsaid: list[str], *, close: bool
    ) -> None:
        properties = raw.get("properties")
        more = raw.get("additionalProperties")
        if properties is not None:
            if not isinstance(properties, dict):
                raise BadPart("must be an object", *keys, "properties")
            if len(properties) > _PROPERTIES:
                raise BadPart(f"has {len(properties)} properties; at most {_PROPERTIES} are taken", *keys)
            found = {}
            for name, value in properties.items():
                if not _NAME.fullmatch(name):
                    self._odd(BadPart("isn't a name of a property that is taken", *keys, "properties", name[:60]))
                    unsaid.append("a property")
                    continue
                found[name] = self._part(value, (*keys, "properties", name), level + 1)
            made["properties"] = found
            required = raw.get("required", [])
            if isinstance(required, list):
                for name in required:
                    if isinstance(name, str) and _NAME.fullmatch(name):
                        found.setdefault(name, {})
            if raw.get("unevaluatedProperties") is False:
                more = False
            if close and found and more is None and "patternProperties" not in raw and "a property" not in unsaid:
                more = False
        needed = raw.get("required")
        if isinstance(needed, list):
            names = [name for name in dict.fromkeys(n for n in needed if isinstance(n, str)) if _NAME.fullmatch(name)]
            # A property that only answers have can't be needed in what is sent.
            names = [n for n in names if not made.get("properties", {}).get(n, {}).get("readOnly")]
            if names:
                made["required"] = names
        if isinstance(more, bool):
            made["additionalProperties"] = more
        elif isinstance(more, dict):
            made["additionalProperties"] = (
                self._part(more, (*keys, "additionalProperties"), level + 1) if more else True
            )

    def _branches(
        self, raw: dict[str, Any], key: str, made: dict[str, Any], keys: Keys, level: int, unsaid: list[str]
    ) -> None:
        branches = raw[key]
        if not isinstance(branches, list) or not branches:
            raise BadPart("must be a list with something in it", *keys, key)
        if "anyOf" in raw and "oneOf" in raw:
            unsaid.append("anyOf beside oneOf")
        if len(branches) > _BRANCHES:
            unsaid.append(f"{key} with more than {_BRANCHES} choices")
            return
        if key == "oneOf" and len(branches) > 1:
            unsaid.append("oneOf (one or more may fit)")
        found = []
        for place, branch in enumerate(branches):
            here = (*keys, key, str(place))
            if "properties" in made:  # judged together with them, so neither may refuse what the other has
                found.append(self._opened(branch, here, level + 1))
            else:
                found.append(self._part(branch, here, level + 1))
        if raw.get("nullable") is True and "type" not in made:
            found.append({"type": "null"})
        made["anyOf"] = found

    # ---- references

    def _reference(self, raw: dict[str, Any], made: dict[str, Any], keys: Keys) -> dict[str, Any]:
        name = self._name(raw["$ref"], keys)
        made.pop("format", None)
        unsaid = [key for key in (*_COUNTS, "pattern", "enum", "minimum", "maximum", "properties", "required", "anyOf",
                                  "oneOf", "allOf") if key in raw]  # fmt: skip
        if raw.get("nullable") is True:
            made["anyOf"] = [{"$ref": REF + name}, {"type": "null"}]
        else:
            made["$ref"] = REF + name
        return loosened(made, *(f"{key} beside a reference" for key in unsaid))

    def _name(self, reference: Any, keys: Keys) -> str:
        _, pointer = self._pointers.end(reference, keys)
        if pointer not in self._names:
            steps = parts(pointer)
            usual = len(steps) == 2 or (len(steps) == 3 and steps[0] == "components")
            own = steps[-1] if usual else ".".join(steps[-3:])
            name = stem = re.sub(r"[^A-Za-z0-9_.\-]+", "_", own)[:120] or "root"
            while name in self._taken:
                self._numbers[stem] = self._numbers.get(stem, 1) + 1
                name = f"{stem}_{self._numbers[stem]}"
            self._names[pointer] = name
            self._taken.add(name)
            self._pointer_of[name] = pointer
            self._todo[pointer] = None
        return self._names[pointer]

    # ---- allOf

    def _all_of(self, raw: dict[str, Any], made: dict[str, Any], keys: Keys, level: int, close: bool) -> dict[str, Any]:
        listed = raw["allOf"]
        if not isinstance(listed, list) or not listed:
            raise BadPart("must be a list with something in it", *keys, "allOf")
        rest = {key: value for key, value in raw.items() if key not in ("allOf", "description", "title")}
        bare = not (rest.keys() - {"nullable", "readOnly", "writeOnly", "deprecated", "example", "default", "xml"})
        if bare and len(listed) == 1 and isinstance(listed[0], dict) and "$ref" in listed[0]:
            return self._reference({**listed[0], **rest}, made, keys)
        if len(listed) > _BRANCHES:
            return loosened(made, f"allOf with more than {_BRANCHES} parts")
        whole: dict[str, Any] = {}
        for place, each in enumerate(listed):
            whole = joined(whole, self._opened(each, (*keys, "allOf", str(place)), level + 1))
        if not bare:
            whole = joined(whole, self._read(rest, keys, level + 1, False))
        elif raw.get("nullable") is True:
            nullable(whole)
        if close and "properties" in whole and "anyOf" not in whole:
            whole.setdefault("additionalProperties", False)
        return {**whole, **made}

    def _opened(self, raw: Any, keys: Keys, level: int) -> dict[str, Any]:
        """A schema without its reference, and open to other properties: one that is judged together with others."""
        made = self._unfolded(raw, keys, level)
        if LOOSENED in made and "type" not in made and "properties" not in made:
            made["additionalProperties"] = True  # it isn't known what it lists
        return made

    def _unfolded(self, raw: Any, keys: Keys, level: int) -> dict[str, Any]:
        if not isinstance(raw, dict) or "$ref" not in raw:
            return self._part(raw, keys, level, close=False)
        try:
            value, pointer = self._pointers.end(raw["$ref"], keys)
            if pointer in self._merging:
                return loosened({}, "it is a part of itself")
            self._merging.append(pointer)
        except BadPart as bad:
            self._odd(bad)
            return loosened({}, "it couldn't be read")
        try:
            return self._part(value, parts(pointer), level, close=False)
        finally:
            self._merging.pop()

    def _odd(self, bad: BadPart) -> None:
        self.problems.setdefault((bad.keys, bad.what), bad)


def _choices(schemas: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [each for one in schemas for each in (*one.get("enum", ()), *([one["const"]] if "const" in one else ()))]
