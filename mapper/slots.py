"""What a request names: ids, channels, people, numbers, and the words that it wants said.

Purely lexical. Each thing found is cut out of the request and replaced by a placeholder, so that what somebody wants
*said* never decides what is *done*: a message about deleting repositories is a message. Kinds are the `format`s that
catalog entries use for their parameters.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache, partial

# Placeholders are private-use characters; a request can't bring its own.
_BASE = 0xE000
_PLACE = "[\ue000-\uf8ff]"


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that was named: its kind and value."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Said:
    """Words to be said. `role` is what they are meant for: `title`, `body`, `topic`, `label`, or `any`."""

    text: str
    role: str = "any"
    quoted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Slots:
    """What a request names. `rest` is what remains of it: what is to be done, in words. `phrase` is the same with the
    things that were named in their places, and … where something is said."""

    slots: tuple[Slot, ...]
    said: tuple[Said, ...]
    settings: tuple[tuple[str, str], ...]  # key=value as written
    rest: str
    phrase: str

    def of(self, kind: str) -> list[str]:
        """The values of one kind, in the order of the request."""
        return [slot.value for slot in self.slots if slot.kind == kind]


_QUOTES = re.compile(r'"([^"]*)"|“([^“”]*)”|«([^«»]*)»|(?<!\w)\'([^\']+)\'(?!\w)|`([^`]*)`')
_SETTING = re.compile(r"(?<!\S)([A-Za-z_][A-Za-z0-9_]*)=(\S+)")

_REPO = r"(?<![\w./-])([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9._-]*[A-Za-z0-9_-])"
_AGE = r"(?:last|latest|newest|recent|first|top)"
_THINGS = r"(?:messages|posts|issues|channels|rooms|repos|repositories|people|users|members|comments|pull requests|prs)"
_TIME = r"(?:am|pm|%|days?|hours?|minutes?|o'clock)"

# Most specific first; each match is cut out before the next pattern is tried. Several kinds take the groups in turn.
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("repo-owner repo-name number", r"https?://github\.com/([\w-]+)/([\w.-]+)/(?:issues|pull)/(\d+)\b/?"),
    ("repo-owner repo-name", r"https?://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?(?=[\s,;]|$)"),
    ("url", r"(https?://[^\s<>\"]+)"),
    ("matrix-room", r"((?<!\w)![^\s:,!]+:[A-Za-z0-9.\-]*[A-Za-z0-9](?::\d+)?|(?<!\w)![A-Za-z0-9_-]{43}(?![\w-]))"),
    ("matrix-alias", r"(#[^\s:#]+:[A-Za-z0-9.\-]*[A-Za-z0-9](?::\d+)?)"),
    ("matrix-user", r"(@[^\s:@]+:[A-Za-z0-9.\-]*[A-Za-z0-9](?::\d+)?)"),
    ("matrix-event", r"(?<!\S)(\$[A-Za-z0-9_\-+/:.]{10,})"),
    ("email", r"(?<![\w.%+-])([A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9.\-]{1,190}\.[A-Za-z]{2,24})"),
    ("slack-ts", r"\b(\d{10}\.\d{3,6})\b"),
    ("number", r"(?<![\w#])#(\d{1,9})\b"),
    ("repo-owner repo-name number", _REPO + r"#(\d{1,9})\b"),
    ("repo-owner repo-name", _REPO + r"(?![\w/])"),
    ("slack-channel", r"(?<![\w#])(#[A-Za-z0-9_\-]{1,80})\b"),
    ("slack-channel", r"(?-i:\b([CGD]0[A-Z0-9]{6,12})\b)"),
    ("slack-user", r"(?-i:\b([UW]0[A-Z0-9]{6,12})\b)"),
    ("handle", r"(?<![\w@])(@[A-Za-z0-9](?:[\w.\-]*[A-Za-z0-9])?)\b"),
    ("emoji", r"(?<![\w:]):([a-z0-9_+\-]+):(?![\w:])"),
    ("comment-id", r"\bcomment\s+(?:with\s+(?:the\s+)?id\s+|number\s+|id\s+)?(\d{1,12})\b"),
    ("limit", rf"\b{_AGE}\s+(\d{{1,3}})\b"),
    ("limit", rf"\b(\d{{1,3}})\s+(?:(?:most\s+)?(?:{_AGE}|open|closed|public)\s+)?{_THINGS}\b"),
    ("number", rf"(?<![\w.:])(?<![A-Za-z_]-)(\d{{1,9}})(?![\w.:]|\s*{_TIME}\b)"),
)
_COMPILED = [(tuple(kinds.split()), re.compile(pattern, re.IGNORECASE)) for kinds, pattern in _PATTERNS]
_NOT_REPOSITORIES = {("and", "or"), ("he", "she"), ("his", "her"), ("yes", "no"), ("on", "off"), ("either", "or")}

# Unquoted words are looked for in requests of at most this many characters, without what was cut out already: the
# patterns below take time that grows faster than the text.
_MOST_WORDS = 600

# What a number or an id keeps of the words around it, for the ranking: "comment 12" still speaks of a comment.
_KEEP = {"comment-id": "comment"}

_ROLES = (
    ("title", r"titled|title|called|named|name|subject"),
    ("body", r"body|description|details|content|text of"),
    ("topic", r"topic"),
    ("label", r"labell?ed|labels?|tagged|tags?"),
)
_ROLE_BEFORE = [
    (role, re.compile(rf"\b(?:{words})(?:\s+(?:it|as|is|of|with|to))?\s*:?\s*$", re.IGNORECASE))
    for role, words in _ROLES
]


def extract(text: str, services: Collection[str] = ()) -> Slots:
    """What `text` names. `services` are names after which no more words belong to what is said ("… on slack")."""
    return _Extraction(re.sub(_PLACE, " ", text).strip(), services).run()


@dataclass
class _Extraction:
    text: str
    services: Collection[str]
    slots: list[Slot] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)  # placeholder -> what stood there
    _slots_at: dict[str, list[Slot]] = field(default_factory=dict)
    _said_at: set[str] = field(default_factory=set)

    def run(self) -> Slots:
        self._take_settings()
        self._take_quotes()
        for kinds, pattern in _COMPILED:
            self.text = pattern.sub(partial(self._slot, kinds), self.text)
        if not self.said and len(self.text) <= _MOST_WORDS:
            self._take_words()
        rest = re.sub(_PLACE, " ", self.text)
        phrase = re.sub(_PLACE, lambda match: "…" if match[0] in self._said_at else self._places[match[0]], self.text)
        rest, phrase = (re.sub(rf"(?:\s|{_PLACE})+", " ", text).strip() for text in (rest, phrase))
        return Slots(tuple(self.slots), tuple(self.said), tuple(self.settings), rest, phrase)

    def _place(self, original: str) -> str:
        mark = chr(_BASE + min(len(self._places), 6000))
        self._places[mark] = original
        return mark

    def _restore(self, text: str) -> str:
        return re.sub(_PLACE, lambda match: self._places.get(match[0], ""), text)

    def _take_settings(self) -> None:
        def quoted(match: re.Match[str]) -> str:
            self.settings.append((match[1], match[3]))
            return " "

        def plain(match: re.Match[str]) -> str:
            self.settings.append((match[1], match[2]))
            return " "

        self.text = re.sub(r"(?<!\S)([A-Za-z_][A-Za-z0-9_]*)=([\"'])(.*?)\2(?!\S)", quoted, self.text)
        # Inside quotes an equals sign is just text.
        pieces = re.split(r'("[^"]*")', self.text)
        self.text = "".join(piece if piece.startswith('"') else _SETTING.sub(plain, piece) for piece in pieces)

    def _take_quotes(self) -> None:
        def quoted(match: re.Match[str]) -> str:
            value = next((group for group in match.groups() if group is not None), "")
            if value.strip():
                before = match.string[max(0, match.start() - 60) : match.start()]
                role = next((role for role, pattern in _ROLE_BEFORE if pattern.search(before)), "any")
                self.said.append(Said(value, role, quoted=True))
            mark = self._place(match[0])
            self._said_at.add(mark)
            return mark

        self.text = _QUOTES.sub(quoted, self.text)

    def _slot(self, kinds: tuple[str, ...], match: re.Match[str]) -> str:
        values = match.groups()
        if kinds == ("repo-owner", "repo-name") and tuple(value.lower() for value in values) in _NOT_REPOSITORIES:
            return match[0]
        found = [Slot(kind, value) for kind, value in zip(kinds, values, strict=True)]
        self.slots.extend(found)
        kept = _KEEP.get(kinds[0], "") or re.sub(r"\d+", " ", match[0]) if kinds[0] in ("limit", "comment-id") else ""
        mark = self._place(match[0])
        self._slots_at[mark] = found
        return f"{kept} {mark}" if kept else mark

    def _take_words(self) -> None:
        """Unquoted words to be said, by what leads to them."""
        for role, pattern in _leads("|".join(re.escape(name) for name in self.services) or r"(?!)"):
            match = pattern.search(self.text)
            if match is None:
                continue
            words = self._restore(match[1]).strip(" .,;")
            plain = re.sub(_PLACE, "", match[1]).strip(" .,;:")
            if not plain or _EMPTY.fullmatch(plain):
                continue
            self.said.append(Said(words, role))
            for mark in re.findall(_PLACE, match[1]):  # what stands in words to be said is part of them
                self.slots = [slot for slot in self.slots if not any(slot is s for s in self._slots_at.get(mark, ()))]
            place = self._place(match[1])
            self._said_at.add(place)
            self.text = f"{self.text[: match.start(1)]} {place} {self.text[match.end(1) :]}"
            if role == "any":
                return


@cache
def _leads(services: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Patterns whose first group is what is to be said, with its role; likeliest first."""
    article = r"(?:the\s+)?"
    noun = r"(?:room|channel|repo|repository|issue|ticket|pr|pull\s+request)"
    thing = rf"{article}(?:(?:{services})\s+)?(?:{noun}\s*)?{_PLACE}"
    stop = (
        rf"(?=\s+(?:in|on|to|at|into|from|for|of)\s+(?:{thing}|{article}(?:{services})\b)"
        r"|\s+(?:and\s+)?with\s+(?:the\s+)?(?:body|description)\s"
        r"|\s*,\s*(?:in|on|to|with)\s|\s*$)"
    )
    itself = r"(?!(?:a|an|the|my|me|this)\s+(?:\w+\s+)?(?:message|msg|note|comment|reply|answer)\b)"
    # "send slack msg hi to #ops" says "hi"; "post the message of the day in #ops" says all of it.
    kinds = rf"(?:(?:(?:a|an|the|my|this|new|quick|short|chat|text|{services})\s+)+(?:message|msg|dm|note|comment)"
    goes_on = r"(?!(?:to|in|on|into|at|from|for|of|with|about|that|which|saying)\b)"
    lead = rf"(?:{kinds}|message|msg|dm)\s*:?\s+{goes_on})?"
    says = r"(?:saying|that\s+says?|which\s+says?|stating|reading|with\s+(?:the\s+)?(?:text|message|words))"
    patterns = (
        ("title", rf"\b(?:titled|entitled|called|named|with\s+(?:the\s+)?(?:title|name))\s+(.+?){stop}"),
        ("topic", rf"\bwith\s+(?:the\s+)?topic\s+(.+?){stop}"),
        ("body", rf"\bwith\s+(?:the\s+)?(?:body|description)\s+(.+?){stop}"),
        ("label", r"\b(?:labell?ed|tagged|labels?|tag)\s+(?:as\s+|with\s+)?(?!(?:called|named)\b)([\w-]+)(?=\s|$)"),
        ("any", rf"\b{says}\s+(?:that\s+)?(.+?){stop}"),
        ("any", rf"\b(?:rename|change|set|update|switch|make)\b.*?\s+to\s+(?!{_PLACE})(.+?)\s*$"),
        (
            "any",
            rf"\b(?:tell|inform|notify|message|msg|dm|ping|let)\s+{thing}\s+(?:know\s+)?(?:that\s+|about\s+)?(.+?)\s*$",
        ),
        ("any", r":\s+(.+?)\s*$"),
        (
            "any",
            r"\b(?:say|announce|shout|write|post|send|publish|comment|reply|answer)\s+"
            rf"{lead}{itself}(.+?)\s+(?:in|on|to|into|at)\s+{thing}",
        ),
    )
    return tuple((role, re.compile(pattern, re.IGNORECASE | re.DOTALL)) for role, pattern in patterns)


# Objects that name the thing itself and say nothing: "send a message", "post something".
_EMPTY = re.compile(
    r"(?:a|an|the|my|this|some|another|new|quick|short|slack|matrix|github|chat|text|in|on|to|of|from|for|at|\s)*"
    r"(?:message|msg|note|comment|reply|answer|something|it|that|invitation|link|channel|room|topic|name|title|reaction)?s?",
    re.IGNORECASE,
)
