"""Arguments for one method from what a request names. Nothing is invented: each value stands in the request, or is a
word that the method's own documentation gives for "the caller's own" (`me`, `primary`).

Parameters say what they are in three ways, tried in this order: by `format` (manifests name kinds of things:
`slack-channel`, `email`, `date-time`), by a pattern of a resource name (`^projects/[^/]+/topics/[^/]+$`), and by name
and description ("eventId", "The user's primary email address"). A thing that was named is used once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from mapper import dates
from mapper.addressees import addressed
from mapper.catalog import Catalog
from mapper.left_out import texts, verbs
from mapper.ranking.terms import split_name, stem
from mapper.slots import Said, Slot, Slots
from policies.actions import Call
from policies.errors import InvalidInput, Unsupported
from policies.services import Method, Risk

# Which roles of what is said fit a format, best first.
SAYABLE = {
    "text": ("any", "body", "title"),
    "title": ("title", "any"),
    "topic": ("topic", "any"),
    "body": ("body", "any"),
    "label": ("label",),
    "slack-name": ("title", "any"),
}
_NAMED_TITLE = ("title", "summary", "name", "displayName", "subject")
_NAMED_BODY = ("text", "body", "content", "description", "notes", "message", "snippet")
_SEARCHED = frozenset(("keyword", "keywords", "phrase", "q", "query", "search", "searchterm", "search_term", "term"))
_WRITTEN = frozenset((*map(str.lower, (*_NAMED_TITLE, *_NAMED_BODY)), "word"))
_SYNTAX = re.compile(
    r"\b(?:clauses?|expressions?|filter\w*|json|operators?|regex\w*|sql|syntax)\b|[=<>]", re.IGNORECASE
)
_BODY_FIELDS = 60  # of a body are looked at

_WORDS = r"[\"'`](me|primary|my_customer|@default|people/me|users/me)[\"'`]"
_OWN = re.compile(
    r"(?:special (?:value|string|keyword|alias|identifier)|keyword|can (?:also )?(?:be|use)|use|set to|value of|or)"
    rf"[^.]{{0,60}}?{_WORDS}|{_WORDS}[^.]{{0,30}}(?:keyword|special|to indicate|to refer)",
    re.IGNORECASE,
)
_ID = r"(?=[\w.:@~%+-]{0,100}[\d_])[A-Za-z0-9][\w.:@~%+-]{0,100}[A-Za-z0-9_=-]"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.~%+-]{0,80}"
_NO_MORE = r"(?![\w@~%+/-]|[.:!?&=#$*]\w)"  # of a longer name no beginning is taken
_TOKEN = re.compile(rf"(?<![\w/@.:~%+-]){_ID}(?![\w/@])")
_TIMES = re.compile(r"(?<![\w/-])\d+(?:st|nd|rd|th)(?![\w/-])", re.IGNORECASE)
# The word before a token: what it is the id of, or that it's an amount.
_BEFORE = re.compile(
    r"\b([A-Za-z][A-Za-z-]{0,40})\s+(?:(?:with\s+)?(?:the\s+)?(?:id|number|no\.)\s+)?[\"'“#(]?\Z", re.IGNORECASE
)
_NO_NOUNS = frozenset(("by", "id", "key", "name", "number"))
_COMPARED = frozenset(("above", "about", "around", "below", "exceeding", "least", "most", "over", "than", "under"))
_SEGMENT = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)/\[\^/\]\+")
_CLOSING = ".,;:!?()[]{}<>\"'`“”‘’…"  # what ends a sentence or closes a bracket is no part of a resource name
_POSSESSIVE = re.compile(r"['’]s\Z")
_NOT_NAMES = """
the a an this that my our your slack public private new each every which some any to in of for on from general-purpose
what no is are was has have with and or it its called named id number please now by at all be will can should so if
when then does do did as than there here not
"""
_NO_NAMES = frozenset(_NOT_NAMES.split())


# Names beside nouns are looked for in so much of a request: what comes later is data, and patterns take their time.
_MOST_CHARACTERS = 1500


class Filler:
    """Fills one method's arguments from what was named."""

    def __init__(self, catalog: Catalog, method: Method, found: Slots, moments: Sequence[dates.Moment]) -> None:
        self._catalog = catalog
        self._method = method
        self._found = found
        self._phrase = found.phrase[:_MOST_CHARACTERS]
        self._said = list(found.said)
        self._left = list(found.slots)
        self._moments = list(moments)
        for digits in re.findall(r"\d+", " ".join(moment.words for moment in moments)):
            slot = next((slot for slot in self._left if slot.kind == "number" and slot.value == digits), None)
            if slot is not None:  # a date's day is no number of something
                self._left.remove(slot)
        self._timeless = _TIMES.sub(" ", _without(self._phrase, moments))
        self._before: list[Call] = []
        self._settings = dict(found.settings)
        self._claimed: set[str] = set()
        self.arguments: dict[str, Any] = {}
        self.named = 0  # arguments whose value stands in the request
        self._lacks_body = False
        required = method.parameters.get("required", ())
        properties = method.parameters.get("properties", {})
        # What is required is served first, in the order of the catalog.
        for name in sorted(properties, key=lambda name: name not in required):
            value = self._fill(name, properties[name], name in required)
            if value is not None:
                self.arguments[name] = value

    def calls(self) -> tuple[tuple[Call, ...], tuple[str, ...]]:
        """The calls, looked-up values first, and the required arguments that are missing or don't fit."""
        required = self._method.parameters.get("required", ())
        missing = tuple(name for name in required if name not in self.arguments and name not in self._method.defaults)
        if self._lacks_body:
            missing = (*missing, "what to write")
        if missing:
            return (), missing
        call = Call(service=self._method.service, method=self._method.name, arguments=self.arguments)
        try:
            return self._catalog.validate_all((*self._before, call)), ()
        except (InvalidInput, Unsupported) as error:
            return (), (error.message.removeprefix(f"{self._method.id}: ").rstrip("."),)

    def unused(self) -> tuple[str, ...]:
        """What was named and has no place in this method."""
        names = [f'"{said.text[:40]}"' for said in self._said]
        # A number or a handle may be part of a name that was taken whole.
        names += [
            slot.value[:40]
            for slot in self._left
            if slot.kind not in ("handle", "url") and not any(slot.value in taken for taken in self._claimed)
        ]
        names += [f'"{moment.words}"' for moment in self._moments]
        taken = "\n".join(texts((self.arguments, [call.arguments for call in self._before])))
        known = "\n".join((taken, *(slot.value for slot in self._found.slots)))
        names += sorted(token[:40] for token in self._tokens() - self._own_names if token not in known)
        return (*names, *(f"{key}={value[:40]}" for key, value in self._settings.items()))

    # ---- one argument

    def _fill(self, name: str, schema: Mapping[str, Any], required: bool) -> Any:
        setting = next((key for key in self._settings if key.lower() == name.lower()), None)
        if setting is not None:
            self.named += 1
            return _typed(self._settings.pop(setting), schema)
        value = self._by_format(name, schema, required)
        if value is None and self._method.locations.get(name) == "whole":
            return self._body(schema)
        if value is None and required and _is_text(schema):
            value = self._by_pattern(schema.get("pattern", "")) or self._by_name(name, schema)
            value = self._quoted(name, schema) if value is None else value
        elif value is None and _is_text(schema):
            value = self._quoted(name, schema) if self._method.risk is Risk.READ and name.lower() in _SEARCHED else None
        elif value is None and required and _is_count(schema):
            digits = self._by_name(name, schema) or ""
            value = _typed(digits, schema) if digits.isdecimal() else None
        if value is not None:
            self.named += 1
            return value
        return self._own(schema) if required and _is_text(schema) else None

    def _quoted(self, name: str, schema: Mapping[str, Any]) -> str | None:
        """What stands in quotes, as the text that a parameter of this name takes: one that is searched for, checked or
        written; none that has a syntax of its own."""
        if (
            name.lower() not in _SEARCHED | _WRITTEN
            or [one.quoted for one in self._said] != [True]
            or schema.get("format") in SAYABLE
            or "pattern" in schema
        ):
            return None
        if _SYNTAX.search(str(schema.get("description", ""))):
            return None
        return self._said.pop().text

    def _by_format(self, name: str, schema: Mapping[str, Any], required: bool) -> Any:
        kind = schema.get("format", "")
        if schema.get("type") == "array":
            return self._several(name, schema)
        if "enum" in schema:
            return self._choice(schema["enum"], required)
        if "x-lookup" in schema and not any(slot.kind == kind for slot in self._left):
            return self._looked_up(schema["x-lookup"])
        if kind in SAYABLE:
            if kind == "slack-name" and not self._said:
                channel = self._take("slack-channel")
                return channel.lstrip("#") if channel else None
            said = self._say(kind, required)
            return said.text if said else None
        if kind in ("date-time", "date", "google-datetime"):
            return self._moment(name, whole_day=kind == "date")
        value = self._take(kind) if kind else None
        if value is None and name in ("limit", "per_page", "maxResults", "pageSize") and _is_count(schema):
            value = self._take("limit")
        if value is None and kind == "slack-channel" and required:
            value = self._take("handle") or self._channel_word()
        return None if value is None else _typed(value, schema)

    def _moment(self, name: str, *, whole_day: bool) -> str | None:
        """The next moment that was named; a day alone is a time from its beginning, or up to its end."""
        if not self._moments:
            return None
        ends = re.search(r"max|end|until|before|to$", name, re.IGNORECASE) is not None
        if self._moments[0].whole_day and not whole_day:
            if not re.search(r"min|max|start|end|since|until|before|after|from|to$", name, re.IGNORECASE):
                return None
            start, after = dates.whole(self._moments[0])
            if ends or len(self._moments) > 1 or not self._has_end():
                self._moments.pop(0)
            return (after if ends else start).isoformat(timespec="seconds")
        moment = self._moments.pop(0)
        return moment.day() if whole_day else moment.rfc3339()

    def _has_end(self) -> bool:
        """Whether another parameter takes the end of a day that was named."""
        return any(
            re.search(r"max|end|until|before|to$", name, re.IGNORECASE) and name not in self.arguments
            for name, schema in self._method.parameters.get("properties", {}).items()
            if schema.get("format") in ("date-time", "google-datetime")
        )

    def _by_pattern(self, pattern: str) -> str | None:
        """A resource name: as it stands in the request, or put together when each of its parts was named."""
        segments = _SEGMENT.findall(pattern)
        if not segments or not pattern.startswith("^"):
            return None
        written = re.compile(rf"(?<![\w/])(?:{pattern.removeprefix('^')})\Z")
        for word in self._phrase.split():  # whole: of a longer name no beginning is taken
            if whole := written.search(_POSSESSIVE.sub("", word.rstrip(_CLOSING))):
                return self._claim(whole[0])
        if _SEGMENT.sub("", pattern).strip("^$/"):
            return None
        parts = []
        for collection in segments:
            value = self._beside(_singular(collection))
            if value is None:
                return None
            parts.append(f"{collection}/{value}")
        return self._claim("/".join(parts))

    def _by_name(self, name: str, schema: Mapping[str, Any]) -> str | None:
        words = _words(name)
        description = str(schema.get("description", ""))
        if "email" in words or re.search(r"email address", description, re.IGNORECASE):
            email = self._take("email")
            if email is not None:
                return email
        noun = " ".join(word for word in words if word not in ("id", "key", "name", "number"))
        if not noun and (place := re.search(rf"([A-Za-z][\w-]*)/\{{{re.escape(name)}\}}", self._method.path)):
            noun = _singular(place[1])
        value = self._beside(noun) if noun else None
        if value is None and noun.count(" "):
            value = self._beside(noun.rpartition(" ")[2])
        if value is not None:
            return self._claim(value)
        if words[-1:] in (["id"], ["key"], ["name"]) or re.search(r"\b(?:id|identifier)\b", description, re.IGNORECASE):
            return self._only_token()
        return None

    def _beside(self, noun: str) -> str | None:
        """The name or id right after a noun ("topic orders", "event 2rb8"), or right before it ("the orders topic")."""
        text = self._timeless
        after_noun, before_noun = _around(noun)
        after = after_noun.search(text)
        if after and after[1].lower() not in _NO_NAMES and (_looks_named(after[1]) or _called(text, after)):
            return after[1].rstrip(".")
        before = before_noun.search(text)
        if before and before[1].lower() not in _NO_NAMES and _looks_named(before[1]):
            return before[1]
        return None

    def _only_token(self) -> str | None:
        """The one id in the request, if there is exactly one that nothing else took and that isn't another thing's."""
        tokens = self._tokens() - self._claimed - self._own_names
        if len(tokens) != 1:
            return None
        (token,) = tokens
        before = _BEFORE.search(self._timeless[: self._timeless.index(token)][-80:])
        lead = before[1].lower() if before else ""
        if (token.isdigit() and lead in _COMPARED) or self._of_another(stem(lead)):
            return None
        return self._claim(token)

    def _tokens(self) -> set[str]:
        """The ids in the request."""
        tokens = {token.rstrip(".") for token in _TOKEN.findall(self._timeless)}
        return {token for token in tokens if _looks_made(token)}

    @cached_property
    def _own_names(self) -> set[str]:
        """Names of the service itself, as tokens: "s3", "art19"."""
        tokens = self._tokens()
        if not tokens:
            return tokens
        service = self._catalog.service(self._method.service)
        names = (service.name, service.title, service.provider, service.provider_name)
        return {token for token in tokens if any(token.lower() in name.lower() for name in names)}

    def _of_another(self, noun: str) -> bool:
        """Whether a word is what other methods of the service are about, and not this one."""
        if not noun or noun in verbs():
            return False
        own = (*self._method.path.split("/"), *self._method.parameters.get("properties", {}))
        others = self._catalog.service(self._method.service).methods
        return noun not in _nouns((self._method.name, *own)) and noun in _nouns(others)

    def _claim(self, value: str) -> str:
        self._claimed.add(value)
        self._left = [slot for slot in self._left if slot.value != value]
        return value

    def _own(self, schema: Mapping[str, Any]) -> str | None:
        """The documentation's word for the caller's own thing."""
        match = _OWN.search(str(schema.get("description", "")))
        return (match[1] or match[2]) if match else None

    def _body(self, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """A body's plain fields: what is to be called or said, addresses, moments."""
        properties = self._resolved(schema).get("properties", {})
        made: dict[str, Any] = {}
        for names, roles in ((_NAMED_TITLE, ("title", "any", "topic")), (_NAMED_BODY, ("body", "any", "title"))):
            name = next((name for name in names if _is_text(properties.get(name, {}))), None)
            said = next((said for role in roles for said in self._said if said.role == role), None)
            if name is not None and said is not None and name not in made:
                self._said.remove(said)
                made[name] = said.text
        for name, inner in list(properties.items())[:_BODY_FIELDS]:
            if name in made or not isinstance(inner, Mapping):
                continue
            value: Any = None
            if inner.get("format") in ("date-time", "date", "google-datetime"):
                value = self._moment(name, whole_day=inner["format"] == "date")
            elif _is_text(inner) and "email" in _words(name):
                value = self._take("email")
            if value is not None:
                made[name] = value
        self.named += len(made)
        if not made and properties and self._method.risk > Risk.READ and _writes(self._method):
            self._lacks_body = True
        return made or None

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        found = self._method.parameters.get("$defs", {}).get(name, schema)
        return found if isinstance(found, Mapping) else schema

    def _take(self, kind: str) -> str | None:
        for slot in self._left:
            if slot.kind == kind:
                self._left.remove(slot)
                return slot.value
        return None

    def _several(self, name: str, schema: Mapping[str, Any]) -> list[str] | None:
        kind = schema.get("items", {}).get("format", "")
        if kind in SAYABLE:
            values = [said.text for said in self._said if said.role in SAYABLE[kind]]
            self._said = [said for said in self._said if said.role not in SAYABLE[kind]]
            values = [part.strip() for value in values for part in value.split(",") if part.strip()]
        elif kind:
            values = [slot.value for slot in self._left if slot.kind == kind]
            if kind == "email":
                values = addressed(self._found.phrase, values, name.lower())
            self._left = [slot for slot in self._left if slot.kind != kind or slot.value not in values]
        else:
            values = []
        return values or None

    def _say(self, kind: str, required: bool) -> Said | None:
        for role in SAYABLE[kind]:
            if role == "any" and not required and kind != "body":
                continue
            for said in self._said:
                if said.role == role:
                    self._said.remove(said)
                    return said
        return None

    def _choice(self, choices: Sequence[Any], required: bool) -> Any:
        rest = self._found.rest.lower()
        words = set(re.findall(r"[a-z_-]+", rest))
        if not required:  # "merge" asks for the method that merges, not for a way to merge
            words -= set(re.findall(r"[a-z]+", self._method.name.lower()))
        for choice in (str(each).lower() for each in choices):
            parts = re.split("[_-]", choice)  # "not planned"
            if f" {' '.join(parts)} " in f" {rest} " and words.issuperset(parts):
                words.add(choice)
        return next((choice for choice in choices if isinstance(choice, str) and choice.lower() in words), None)

    def _looked_up(self, lookup: Mapping[str, str]) -> dict[str, Any] | None:
        """A call that finds the wanted value by another name, and a reference to its answer."""
        for slot in self._left:
            if re.fullmatch(lookup["pattern"], slot.value):
                self._left.remove(slot)
                self._before.append(
                    Call(
                        service=self._method.service,
                        method=lookup["method"],
                        arguments={lookup["argument"]: slot.value},
                    )
                )
                return {"$from": len(self._before) - 1, "path": lookup["path"]}
        return None

    def _channel_word(self) -> str | None:
        match = re.search(r"\b(?:the\s+)?([a-z0-9_-]{2,40})\s+channel\b", self._found.rest, re.IGNORECASE)
        word = match[1].lower() if match else ""
        return f"#{word}" if word and word not in _NO_NAMES else None


@lru_cache(4000)
def _around(noun: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns whose first group is the name after a noun, and before it."""
    plain = re.escape(noun).replace(r"\ ", r"[\s_-]+")
    lead = r"(?:\s+(?:with\s+)?(?:the\s+)?(?:id|number|name|called|named|key))?\s*[:#]?\s*[\"'“]?"
    return (
        re.compile(rf"\b{plain}s?{lead}({_ID}|{_NAME}){_NO_MORE}", re.IGNORECASE),
        re.compile(rf"(?<![\w.:@~%+/!&=$*-])({_ID}|{_NAME})[\"'”]?\s+{plain}\b", re.IGNORECASE),
    )


def kinds(schema: Mapping[str, Any]) -> set[str]:
    """The kinds of things that a parameter takes, by its formats."""
    items = schema.get("items")
    found = {schema.get("format", ""), items.get("format", "") if isinstance(items, Mapping) else ""}
    if "x-lookup" in schema:
        found.add("matrix-alias" if schema["x-lookup"]["pattern"].startswith("^#") else "")
    return found - {""}


def _is_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and "enum" not in schema


def _is_count(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "integer"


def _writes(method: Method) -> bool:
    return re.search(r"(?:insert|create|update|patch|import|append|add)\w*$", method.name, re.IGNORECASE) is not None


def _without(phrase: str, moments: Sequence[dates.Moment]) -> str:
    for moment in moments:
        phrase = phrase.replace(moment.words, " ")
    return phrase


def _nouns(names: Iterable[str]) -> set[str]:
    """What each part of these names is about: of "users.channelSections" the user and the section."""
    parts = (re.findall(r"[a-z]+", split_name(part).lower()) for name in names for part in name.split("."))
    kept = ([word for word in part if word not in _NO_NOUNS] for part in parts)
    return {stem(part[-1]) for part in kept if part}


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]", " ", name).split()]


def _singular(collection: str) -> str:
    plain = " ".join(_words(collection))
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("s", "")):
        if plain.endswith(ending):
            return plain.removesuffix(ending) + instead
    return plain


def _looks_named(word: str) -> bool:
    """Whether a word beside a noun is a name: more than letters, or all of them large."""
    return re.search(r"[\d_-]", word) is not None or (len(word) > 1 and word.isupper())


def _called(text: str, match: re.Match[str]) -> bool:
    """Whether the request itself says that a plain word is a name: in quotes, or after "called"."""
    before = text[match.start() : match.start(1)]
    return re.search(r"[\"'“:#]|\b(?:called|named|id|name|number)\s*$", before) is not None


def _looks_made(token: str) -> bool:
    """Whether a machine may have made this id: letters and digits mixed, or many digits."""
    letters, digits = re.search(r"[A-Za-z]", token), len(re.findall(r"\d", token))
    return digits > 0 and len(token) >= 4 and (bool(letters) or digits >= 5)


def _typed(value: str, schema: Mapping[str, Any]) -> Any:
    """A word of the request as the schema's type; the word itself where it isn't one (validation then says so)."""
    wanted = schema.get("type")
    if wanted == "integer" and re.fullmatch(r"-?\d{1,15}", value):
        return int(value)
    if wanted == "boolean" and value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("true", "yes")
    if wanted == "array":
        return [part for part in value.split(",") if part]
    return value


__all__ = ("SAYABLE", "Filler", "Slot", "kinds")
