"""Who gets something by a call: the recipients that rules and `[confine] recipients` judge.

A method of a manifest says it (`Method.audience`), and a read reaches nobody. Of a method that says nothing the names
of its arguments tell some of it: enough to forbid by, never enough to permit by.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from policies.actions import ANY_VALUE, refers
from policies.host_names import SPELLINGS
from policies.jsonvalue import JsonObject, JsonValue
from policies.normal_form import nfkc
from policies.rules.arguments import is_open
from policies.services import Audience, Method, Risk, Service, believed_risk

# Arguments that name who gets something, in the many ways in which services call them.
_RECIPIENTS = frozenset(
    {
        "to", "cc", "bcc", "recipient", "recipients", "attendees", "invitees", "members", "member", "users", "user",
        "user_id", "user_ids", "channel", "channels", "channel_id", "invite", "invites",
        "room", "room_id", "email", "emails", "email_address", "address",
        "addresses", "phone", "phone_number", "reviewers", "assignees", "collaborators", "participants", "guests",
        "shared_with", "grantee",
    }
)  # fmt: skip
_BETWEEN = re.compile(r"[\s<>,;\"()\[\]]+")  # what stands around addresses; splitting is linear, whatever is written
_LETTER = r"[^\W\d_]|[\u0300-\u036f\u0900-\u0eff]"  # with the marks that some alphabets write beside them
# An address with a name before it. A name is of letters alone: an id may be of digits and signs, too.
_NAMED = re.compile(rf"""(?:{_LETTER}|[ .'’"()-])*+<\s*([^<>\s]+)\s*>""")
_QUOTED = re.compile(rf"""\"(?:{_LETTER}|[ ,.'’()-])*+\"(?=\s*<[^<>@]*@)""")  # a name that may hold a comma
_IN_URL = re.compile(r"[?&=\s<>,;]+")  # the same in what follows mailto:
_LISTS = re.compile(r"to|b?cc|.*(?<!s)s", re.IGNORECASE)  # arguments of which one text may name many
_TAILS = frozenset({"recipient", "recipients", "email", "emails", "attendees"})  # of names like `share_recipients`
_DEEPEST = 6  # levels of a schema that are looked at
_SLOT = re.compile(r"\{([^{}]+)\}")
_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Recipients:
    """Who gets something by a call: `names`, in lower case, and in `later` places somebody whom an answer or a program
    names. `said`: the method says whom it reaches; where it doesn't, there may be others."""

    names: frozenset[str] = frozenset()
    later: int = 0
    said: bool = True

    @property
    def known(self) -> bool:
        """Whether `names` is everybody."""
        return self.said and not self.later

    def spellings(self) -> Iterator[tuple[Callable[[str], str], frozenset[str]]]:
        """Each way in which a service may read `names`, which may take several characters for one, and how it spells
        hosts."""
        plain = (one for name in self.names for one in ((name,) if _plain(name) == name else _addresses(_plain(name))))
        for names in (self.names, frozenset(plain)):
            for spelled in SPELLINGS:
                yield spelled, frozenset(map(spelled, names))


def recipients_of(service: Service | None, method: Method | None, arguments: JsonObject) -> Recipients:
    """Return who gets something by a call. A method that the catalog doesn't have says nothing."""
    if service is None or method is None or (method.audience is None and believed_risk(service, method) > Risk.READ):
        found, later = guessed_recipients(arguments)
        return Recipients(found, later + _filled_objects(method, arguments), said=False)
    declared = _declared(method.audience or (), arguments)
    known = method.parameters.get("properties", {})
    if method.audience is not None and any(is_open(value) and name not in known for name, value in arguments.items()):
        return replace(declared, said=False)  # what the catalog doesn't know may reach somebody, too
    return declared


def at_most_one_each(method: Method | None, arguments: JsonObject, later: int) -> bool:
    """Tell whether each of the `later` places is one text without a list in it, and so at most one recipient."""
    properties = method.parameters.get("properties") if method is not None else None
    if method is None or not isinstance(properties, Mapping):
        return False
    single = sum(
        1
        for name, value in arguments.items()
        if _is_unknown(value)
        and (_is_recipient(name) if method.audience is None else any(name == one.of for one in method.audience))
        and isinstance(properties.get(name), Mapping)
        and properties[name].get("type") == "string"
        and not _LISTS.fullmatch(name)
    )
    return single >= later


def names_reached(method: Method, path: tuple[str, ...]) -> bool | None:
    """Whether an argument, or a member of it, says who gets something; None where the method doesn't say whom it
    reaches."""
    if method.audience is None:
        return None
    looked_at = {name.partition(".")[0] for one in method.audience for name in one.arguments}
    return path[0] in looked_at or any(map(_is_recipient, path))


def _declared(audience: tuple[Audience, ...], arguments: JsonObject) -> Recipients:
    parts = [_one(one, arguments) for one in audience]
    return Recipients(
        frozenset().union(*(part.names for part in parts)),
        sum(part.later for part in parts),
        all(part.said for part in parts),
    )


def _one(audience: Audience, arguments: JsonObject) -> Recipients:
    value = _filled(audience.of, arguments) if "{" in audience.of else _at(audience.of, arguments)
    absent = Recipients(frozenset(filter(None, (audience.absent,))), said=audience.absent is not None)
    if value is _ABSENT:
        return absent
    found, later = _walked([(True, str(value).lower() if isinstance(value, bool) else value)])
    if not found and not later:
        return absent  # many services take an empty list, or a text that names nobody, for nothing said
    said = True
    if audience.means:
        said = all(name in audience.means for name in found)
        found = {audience.means.get(name, "") for name in found} - {""}
    elif audience.place and any("@" in name for name in found):
        found, said = set(), False  # it would pass for an address
    return Recipients(frozenset(found - set(audience.own)), later, said)


def _at(path: str, arguments: JsonObject) -> Any:
    """The value at this dotted path; what an answer or a program fills in is there, and unknown."""
    value: Any = arguments
    for name in path.split(".") if path else ("",):
        if _is_unknown(value):
            return value
        if not isinstance(value, Mapping) or value.get(name) is None:
            return _ABSENT
        value = value[name]
    return value


def _filled(template: str, arguments: JsonObject) -> Any:
    """The template with its arguments in it. What an answer fills in makes all of it unknown, and so does a slash,
    which would make another place of it."""
    values = {name: _at(name, arguments) for name in _SLOT.findall(template)}
    for value in values.values():
        if _is_unknown(value) or value is _ABSENT:
            return value
        if not isinstance(value, str | int) or "/" in str(value):
            return ANY_VALUE
    return _SLOT.sub(lambda slot: str(values[slot[1]]), template)


def guessed_recipients(arguments: JsonObject) -> tuple[frozenset[str], int]:
    """Return the recipients that the names of these arguments tell, and how many of them an answer fills in later."""
    found, later = _walked([(_is_recipient(name), value) for name, value in arguments.items()])
    return frozenset(found), later


def _filled_objects(method: Method | None, arguments: JsonObject) -> int:
    """How many arguments that are called otherwise may have recipients in them by their schemas, and are filled in,
    wholly or partly, by an answer."""
    filled = [name for name, value in arguments.items() if not _is_recipient(name) and refers(value)]
    properties = method.parameters.get("properties") if filled and method is not None else None
    if not isinstance(properties, Mapping):
        return 0
    return sum(1 for name in filled if name in properties and may_hold(properties[name]))


def may_hold(schema: Any, depth: int = 0) -> bool:
    """Tell whether a value of this JSON Schema may have objects with recipients in it."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind in ("string", "integer", "number", "boolean"):
        return False
    if kind == "array":
        return depth > _DEEPEST or may_hold(schema.get("items"), depth + 1)
    properties = schema.get("properties") if kind == "object" else None
    if not isinstance(properties, Mapping) or schema.get("additionalProperties") is not False or depth > _DEEPEST:
        return True
    return any(_is_recipient(str(name)) or may_hold(one, depth + 1) for name, one in properties.items())


def _walked(stack: list[tuple[bool, JsonValue]]) -> tuple[set[str], int]:
    """The recipients in these values; `True` beside a value says that it names some."""
    found: set[str] = set()
    later = 0
    while stack:
        named, value = stack.pop()
        if isinstance(value, Mapping):
            if _is_unknown(value):
                later += named
            else:  # as in {"attendees": [{"email": "a@b.c"}]}; where none is called so, any of them may be who gets it
                known = any(_is_recipient(str(inner)) for inner in value)
                for inner, item in value.items():
                    address = isinstance(item, str) and "@" in item
                    stack.append((_is_recipient(str(inner)) or (named and (address or not known)), item))
        elif isinstance(value, list | tuple):
            stack.extend((named, item) for item in value)
        elif isinstance(value, str) and named:
            found.update(_addresses(value))
        elif isinstance(value, int | float) and not isinstance(value, bool) and named:
            found.add(str(value))  # services number their users
    return found, later


def _is_unknown(value: Any) -> bool:
    return isinstance(value, Mapping) and ("$from" in value or "$ref" in value or is_open(value))


def _is_recipient(name: str) -> bool:
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
    return plain in _RECIPIENTS or plain.rsplit("_", 1)[-1] in _TAILS


def _addresses(text: str) -> Iterator[str]:
    """`Ann <ann@example.org>, bob@example.org` as its addresses: each that anybody could read in it, since services
    read such a text in ways of their own. Beside an address each word is one that isn't its name; of several @ in one
    word each stands in one."""
    text = _QUOTED.sub("", text.lower())
    addressed = "@" in text or "mailto:" in text  # behind which `%40` is one
    for item in (one for each in (_bared(text) if addressed else (text,)) for one in re.split(r"[,;\t\r\n]", each)):
        for word in _words(item.strip()) if addressed else (item.strip(),):
            parts = word.split("@")
            yield from map("@".join, pairwise(parts)) if len(parts) > 1 else filter(None, parts)
            # `smtp:eve@d.e`, and a route that was once written before an address
            yield from (f"{one.rpartition(':')[2]}@{host}" for one, host in pairwise(parts) if ":" in one)


def _bared(text: str) -> dict[str, None]:
    """The text, and the same without comments, quotation marks and space, which an address may have: `"eve"(x) @d.e`.
    A bracket in quotation marks begins a comment for some and none for others."""
    return dict.fromkeys((text, _bare(text), _bare(text, quotes=True)))


def _bare(text: str, *, quotes: bool = False) -> str:
    kept: list[str] = []
    depth, quoted, escaped = 0, False, False
    for char in text:
        if escaped or char == "\\":
            escaped = quotes and not escaped
            kept += char if not depth and char != "\\" and not char.isspace() else ""
        elif char == '"' and not depth:
            quoted = quotes and not quoted
        elif char in "()" and not quoted:
            depth = depth + 1 if char == "(" else max(depth - 1, 0)
        elif not depth and not char.isspace() and char != '"':
            kept.append(char)
    return "".join(kept)


def _plain(name: str) -> str:
    """A name as a service may take it that makes one letter of several (`＠` of full width is `@`) and leaves out what
    nobody sees. The full stop of Chinese parts a host's name, too (UTS #46), and one behind it says nothing."""
    seen = "".join(char for char in nfkc(name) if unicodedata.category(char) != "Cf").replace("\u3002", ".")
    return seen.rstrip(".") if "@" in seen else seen


def _words(item: str) -> Iterator[str]:
    named = _NAMED.fullmatch(item)
    for word in (one for text in _bared(named[1] if named else item) for one in _BETWEEN.split(text)):
        plain = word.removeprefix("mailto:")
        yield from (
            (plain,) if plain == word else (one for said in _bared(unquote(plain)) for one in _IN_URL.split(said))
        )
