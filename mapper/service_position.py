"""Names that stand where a request says by which service something is done: "from fastmail to Ann", "via Nimbus".

Rules: only the request's own words are looked at, never what is quoted, an address or a channel. After "via", "using",
"with my … account", "use … to" and before a colon a name is a service's, whatever comes before. After "on", "in", "at",
"to", "into", "from", "by" and "of" it may as well be a place, a person or a folder: such a name is a service's only
where no value of the calls holds it. What a mail is about, mentions or came from is no service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policies.actions import Call
from policies.jsonvalue import JsonValue

_KIND = r"(?:(?:business|company|new|old|other|own|personal|private|school|work)\s+)?"
_OWN = rf"(?:(?:my|our|the|an?)\s+)?(?:\w+['’]s\s+)?{_KIND}"
_NAME = r"([A-Za-z][\w+-]*(?:\.[A-Za-z][\w-]*)*(?:\s+(?-i:[A-Z])[\w+-]*(?:\.[a-z]+)*)?)"
_ITS = r"(?:accounts?|apps?|inbox|mailbox|workspace|server|instance|login|address)"
_ENDS = (
    r"(?=\s*(?:$|[,;!?)]|\.(?:\s|$))"
    r"|\s+(?:to|for|with|from|in|on|at|and|then|called|named|titled|saying|about|tomorrow|today|tonight|please|pls)\b)"
)
_PLAINLY = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^\W*{_NAME}\s*:\s+\S",
        rf"\b(?:via|using|through)\s+{_OWN}{_NAME}",
        rf"^\W*(?:please\s+|pls\s+)?(?:use|open|launch)\s+{_OWN}{_NAME}(?:\s+{_ITS})?\s+(?:to|and)\s+\w",
        rf"\b(?:with|from|on|in|by|of)\s+(?:my|our|the)\s+{_NAME}\s+{_ITS}\b",
        rf"^\W*(?:please\s+)?(?:send|write|compose|mail|e-?mail|post|forward|publish|reply)\b.*?\bfrom\s+{_OWN}{_NAME}{_ENDS}",
        rf"\bwith\s+{_NAME}\s*$",
    )
)
_PERHAPS = re.compile(rf"\b(?:on|in|at|to|into|from|by|of)\s+{_OWN}{_NAME}{_ENDS}", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|(?<!\w)'[^']+'(?!\w)|`[^`]*`")
_MARKED = re.compile(r"https?://\S+|\S*[@#/]\S*|\S*\d\S*")
_ABOUT = re.compile(
    r"\b(?:about|regarding|concerning|re|mention(?:s|ing)?|called|named|titled|subject"
    r"|(?:e-?mails?|mails?|messages?|letters?|newsletters?)\s+from|search(?:\s+\w+){0,4}\s+for)\s+(?:(?:my|our|the|an?)\s+)?$",
    re.IGNORECASE,
)
_ASKED = re.compile(r"^\W*(?:please\s+)?(?:send|write|compose|post|forward|reply)\b", re.IGNORECASE)


_MEANS_TEXT = """
    all any api apis batch both chat cli default each either email emails e-mail every following full http https it json
    link links mail mails message messages only oauth one other phone post proxy python rest same script sms sql text
    these those two url
"""
MEANS = frozenset(_MEANS_TEXT.split())
"""Ordinary words for what something is done by, none of which is a service's name."""

_BARE = re.compile(r"\b(?:via|using|use)\s+\Z", re.IGNORECASE)
_ON = re.compile(rf"\bon\s+(?:my\s+)?{_KIND}\Z", re.IGNORECASE)
_FILE = re.compile(
    r".+\.(?:csv|docx?|gif|html?|ics|jpe?g|js|json|md|mp[34]|pdf|png|pptx?|py|sh|sql|txt|xlsx?|xml|ya?ml|zip)"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A name, in small letters; whether it stands where nothing but a service does; and whether any name that nobody
    knows is one there, even an ordinary word ("via orange")."""

    name: str
    plainly: bool
    unknown: bool
    ordinary: bool = False

    @property
    def host(self) -> bool:
        """Whether it looks like a host's name."""
        return "." in self.name


def standing(text: str) -> Iterator[Standing]:
    """The names in a service's place, those that are plainly there first."""
    plain = _MARKED.sub("\x00", _QUOTED.sub("\x00", text))
    for pattern in _PLAINLY:
        for match in pattern.finditer(plain):
            yield from _names(plain, match, True)
    for match in _PERHAPS.finditer(plain):
        yield from _names(plain, match, False)


def _names(text: str, match: re.Match[str], plainly: bool) -> Iterator[Standing]:
    before = text[: match.start(1)]
    if is_data(before) and not (_ASKED.match(text) and re.search(r"from\s+(?:\w+\s+)?$", before)):
        return
    for words in dict.fromkeys((match[1].lower(), match[1].lower().split()[0])):
        if not _FILE.fullmatch(words):
            host = "." in words
            yield Standing(words, plainly, plainly or host or bool(_ON.search(before)), bool(_BARE.search(before)))


def is_data(before: str) -> bool:
    """Whether what comes next, after these words, is what something is about or who it came from."""
    return _ABOUT.search(before) is not None


def held(name: str, calls: Sequence[Call]) -> bool:
    """Whether a value of the calls has the name, other than as the end of words to be said ("hi via nimbus")."""
    ends = _ends(name)
    return any(name in text.lower() and not ends.search(text) for call in calls for text in _texts(call.arguments))


def swallowed(name: str, calls: Sequence[Call]) -> bool:
    """Whether a value of the calls ends in the name as a place: "gym in nimbus"."""
    ends = _ends(name)
    return any(ends.search(text) is not None for call in calls for text in _texts(call.arguments))


def _ends(name: str) -> re.Pattern[str]:
    return re.compile(rf"\S\s+(?:via|using|through|with|on|in)\s+{_OWN}{re.escape(name)}\W*\Z", re.IGNORECASE)


def not_served(name: str) -> str:
    """The sentence for the person."""
    return f"{name!r} stands where a service's name does, and no service of the catalog is called so."


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
