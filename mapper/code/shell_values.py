"""Values that a shell makes itself: lists of words, changed texts, what `printf` and `jq` print.

Rules: what isn't known to be printed or expanded exactly so is unknown; an array of which a word isn't known to be one
word is unknown as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Form,
    Json,
    Listed,
    Lit,
    OneOf,
    Stream,
    Text,
    Value,
    each,
    is_whole,
    joined,
    of_json,
    parts_of,
    text,
)

WORDS = Stream(UNKNOWN)  # any number of words
MOST_WORDS = 200
PATH = "\udc80"  # around the number of a path that isn't known: half a character, which no program can write
_MOST_PATH = 300  # characters
_LIST = re.compile(r"\$@|\$\{(?:@|([A-Za-z_]\w*)\[@\])(?::(0|[1-9]\d{0,2}))?\}", re.ASCII)
_PATTERN = re.compile(r"[^*?\[\]\\$`'\"{}()~]*+\*?[^*?\[\]\\$`'\"{}()~]*+")  # one `*` at most
_FORMAT = re.compile(r"%%|%s|%d|%|\\[nt\\\"]|\\|[^%\\]+")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", '\\"': '"'}
# An option of `xargs`: with a value behind it or in it, or without one.
_XARGS = re.compile(
    r"(?P<flag>-[0prtxo]+|--(?:null|no-run-if-empty|verbose|interactive|exit|open-tty))"
    r"|-[0prtx]*(?P<letter>[IndPLEas])(?P<value>.+)?"
    r"|--(?P<long>replace|max-args|max-procs|max-lines|delimiter|arg-file|max-chars)(?:=(?P<long_value>.*))?",
    re.DOTALL,
)
_JQ_FLAGS = re.compile(
    r"-[ncrSMaRsj]+|--(?:null-input|compact-output|raw-output|sort-keys|raw-input|slurp|join-output)"
)
_JQ_RAW = re.compile(r"-\w*[rj]\w*|--(?:raw|join)-output")
_JQ_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_JQ_TO_END = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_JQ_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_JQ_NUMBER = re.compile(r"(?:0|-?[1-9]\d{0,14})(?![\w.])", re.ASCII)
_JQ_NESTED = re.compile(r'\\\((?![^"()\\#]*+\))')  # a filter within a string that isn't plain
_JQ_DEEPEST = 20
_JQ_LONGEST = 5_000  # characters


def list_named(written: str) -> tuple[str, int] | None:
    """The list that `"$@"`, `"${name[@]}"` or a part of one stands for, and how many of its words are left out; None
    for anything else."""
    found = _LIST.fullmatch(written)
    if found is None:
        return None
    start = int(found[2] or 0)
    if found[1]:
        return found[1], start
    return ("@", max(start - 1, 0)) if not found[2] or start > 0 else ("", 0)


def words_of(known: Value | None, left_out: int) -> list[Value]:
    """The words that a list becomes."""
    if isinstance(known, Listed) and not known.more:
        return list(known.items[left_out:])
    return [known] if isinstance(known, Lit | Text) and not left_out else [WORDS]


def array(items: Sequence[Value]) -> Value:
    """A list of these words; unknown where one may be several."""
    few = len(items) <= MOST_WORDS
    return Listed(tuple(items)) if few and not any(isinstance(one, Stream | Listed) for one in items) else UNKNOWN


def changed(known: str, how: str) -> Value:
    """What `${name…}` gives of a text, where `how` follows the name."""
    if not is_whole(known):
        return UNKNOWN
    if how in ("^^", ",,") and known.isascii():
        return Lit(known.upper() if how == "^^" else known.lower())
    if part := re.fullmatch(r":(0|[1-9]\d{0,3})(?::(0|[1-9]\d{0,3}))?", how, re.ASCII):  # others may be octal
        start = int(part[1])
        return Lit(known[start : start + int(part[2])] if part[2] else known[start:])
    cut = re.fullmatch(r"(##?|%%?)([^#%].*)", how, re.DOTALL)
    if cut is None or not _PATTERN.fullmatch(cut[2]) or not known.isascii() or len(known) > 1_000:
        return UNKNOWN
    head, star, tail = cut[2].partition("*")
    longest = len(cut[1]) == 2
    if cut[1][0] == "#":
        if not known.startswith(head):
            return Lit(known)
        at = len(head) if not star else (known.rfind if longest else known.find)(tail, len(head))
        return Lit(known[at + len(tail) :] if at >= 0 else known)
    if not known.endswith(tail if star else head):
        return Lit(known)
    end = len(known) - len(tail)
    at = end - len(head) if not star else (known.find if longest else known.rfind)(head, 0, end)
    return Lit(known[:at] if at >= 0 else known)


def printf(args: Sequence[Value]) -> Value:
    """What `printf FORMAT ARGUMENT…` prints."""
    if not args or not isinstance(args[0], Lit) or str(args[0].value).startswith("-"):
        return UNKNOWN
    pieces = _FORMAT.findall(str(args[0].value))
    given = list(args[1:])
    if sum(piece in ("%s", "%d") for piece in pieces) != len(given) or any(isinstance(one, Stream) for one in given):
        return UNKNOWN  # the format is used again for what is left
    made: list[Value] = []
    for piece in pieces:
        if piece in ("%s", "%d"):
            one = given.pop(0)
            plainly = piece == "%s" or (isinstance(one, Lit) and re.fullmatch(r"0|[1-9]\d{0,15}", str(one.value)))
            made.append(one if plainly else UNKNOWN)
        elif piece in ("%", "\\"):
            return UNKNOWN
        else:
            made.append(Lit("%" if piece == "%%" else _ESCAPES.get(piece, piece)))
    found = text(part for one in made for part in parts_of(one))
    return Lit(found.value.rstrip("\n")) if isinstance(found, Lit) and isinstance(found.value, str) else found


def xargs(words: Sequence[Value]) -> list[Value] | None:
    """The command that `xargs` runs, with what it adds to it; None where its options aren't known."""
    left = list(words)
    mark = ""
    while left and isinstance(first := left[0], Lit) and str(first.value).startswith("-"):
        left.pop(0)
        found = _XARGS.fullmatch(str(first.value))
        if found is None:
            return None
        value: Value = Lit(found["value"] or found["long_value"] or "")
        bare = found["flag"] or found["long"] in ("replace", "max-lines")  # their value is in the word, if anywhere
        if not bare and found["value"] is None and found["long_value"] is None:
            value = left.pop(0) if left else UNKNOWN
        if found["letter"] == "I" or found["long"] == "replace":
            if not isinstance(value, Lit):
                return None
            mark = str(value.value) or "{}"
    if not mark:
        return [*(left or [Lit("echo")]), WORDS]
    return [text(part for each in parts_of(one) for part in _marked(each, mark)) for one in left]


def _marked(part: str | Form | None, mark: str) -> list[str | Form | None]:
    """A part of a text, unknown where a mark stands."""
    if not isinstance(part, str):
        return [part]
    return [each for at, piece in enumerate(part.split(mark)) for each in ([None] * bool(at) + [piece])]


def jq(args: Sequence[Value]) -> Value:
    """What `jq` prints: the names of an object that its filter makes, and the values that it is given for them."""
    given: dict[str, Value] = {}
    raw = False
    place = 0
    program: str | None = None
    while place < len(args):
        arg = args[place]
        word = str(arg.value) if isinstance(arg, Lit) else ""
        place += 1
        if not isinstance(arg, Lit) and program is None:
            return UNKNOWN
        if word in ("--arg", "--argjson") and place + 1 < len(args):
            name, value = args[place : place + 2]
            place += 2
            if not isinstance(name, Lit) or isinstance(value, Stream):
                return UNKNOWN
            given.setdefault(str(name.value), _argument(value, as_json=word == "--argjson"))  # the first counts
        elif word.startswith("-"):
            if not _JQ_FLAGS.fullmatch(word):
                return UNKNOWN
            raw = raw or _JQ_RAW.fullmatch(word) is not None
        elif program is None:
            program = word
    made = _JqObject(program, given).whole() if program is not None else None
    made = Fields.of(given) if program == "$ARGS.named" else made
    return Json(made) if made is not None else UNKNOWN if raw or program is None else Json(UNKNOWN)


def _argument(value: Value, *, as_json: bool) -> Value:
    if not as_json:
        return value if isinstance(value, Lit | Text) else UNKNOWN
    if not isinstance(value, Lit):
        return value.value if isinstance(value, Json) and not _deeper(value.value, _JQ_DEEPEST) else UNKNOWN
    written = str(value.value)
    try:
        known = json.loads(written, parse_float=_inexact, parse_constant=_inexact, parse_int=_exact)
        found = of_json(known) if len(written) <= _JQ_LONGEST else UNKNOWN
    except (ValueError, RecursionError):
        return UNKNOWN
    return UNKNOWN if _deeper(found, _JQ_DEEPEST) else found


def _deeper(value: Value, most: int) -> bool:
    """Whether values lie in each other more than so many times."""
    inner = value.items if isinstance(value, Listed) else [one for _, one in getattr(value, "items", ())]
    return bool(inner) and (most == 0 or any(_deeper(one, most - 1) for one in inner))


def _inexact(number: str) -> int:
    raise ValueError(f"{number} may be written otherwise")


def _exact(number: str) -> int:
    return int(number) if _JQ_NUMBER.fullmatch(number) else _inexact(number)


class _JqObject:
    """A filter that is an object: `{channel: $c, "text": "hi", $more, list: [1, $b]}`."""

    def __init__(self, program: str, given: Mapping[str, Value]) -> None:
        self._text = program
        self._given = given
        self._at = 0
        self._depth = 0

    def whole(self) -> Fields | None:
        """The object; None where the filter is anything else."""
        if len(self._text) > _JQ_LONGEST or _JQ_NESTED.search(self._text):
            return None
        if "#" in _JQ_TO_END.sub("", self._text):  # a comment
            return None
        self._blank()
        found = self._object() if self._text.startswith("{", self._at) else None
        self._blank()
        return found if found is not None and self._at == len(self._text) else None

    def _blank(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
            self._at += 1

    def _take(self, mark: str) -> bool:
        self._blank()
        there = self._text.startswith(mark, self._at)
        self._at += len(mark) * there
        return there

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        self._blank()
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _object(self) -> Fields | None:
        made: dict[str, Value] = {}
        self._take("{")
        if self._take("}"):
            return Fields()
        while True:
            entry = self._entry()
            if entry is None:
                return None
            made[entry[0]] = entry[1]
            if self._take("}"):
                return Fields.of(made)
            if not self._take(","):
                return None

    def _entry(self) -> tuple[str, Value] | None:
        if self._take("$"):
            name = self._match(_JQ_NAME)
            return (name, self._given.get(name, UNKNOWN)) if name is not None else None
        key = self._match(_JQ_NAME)
        if key is None:
            known = self._string()
            key = known.value if isinstance(known, Lit) else None
        if not isinstance(key, str) or not is_whole(key):
            return None
        if not self._take(":"):
            return key, UNKNOWN  # `{name}` is that of the input
        value = self._value()
        return (key, value) if value is not None else None

    def _string(self) -> Value | None:
        found = self._match(_JQ_STRING)
        if found is None:
            return None
        try:
            return Lit(json.loads(found, strict=False)) if "\\(" not in found else UNKNOWN
        except ValueError:
            return UNKNOWN

    def _value(self) -> Value | None:
        """A value up to the mark that ends it; None where it never ends."""
        self._depth += 1
        begun = self._at
        found = self._atom() if self._depth <= _JQ_DEEPEST else None
        self._depth -= 1
        self._blank()
        if found is not None and self._text[self._at : self._at + 1] in (",", "}", "]"):
            return found
        self._at = begun
        return UNKNOWN if self._skip() else None

    def _atom(self) -> Value | None:
        self._blank()
        match self._text[self._at : self._at + 1]:
            case "{":
                return self._object()
            case "[":
                return self._array()
            case '"':
                return self._string()
            case "$":
                self._at += 1
                name = self._match(_JQ_NAME)
                return self._given.get(name, UNKNOWN) if name is not None else None
        number = self._match(_JQ_NUMBER)
        if number is not None:
            return Lit(int(number))
        return {"true": Lit(True), "false": Lit(False), "null": Lit(None)}.get(self._match(_JQ_NAME) or "")

    def _array(self) -> Value | None:
        self._take("[")
        items: list[Value] = []
        if self._take("]"):
            return Listed(())
        while True:
            value = self._value()
            if value is None:
                return None
            items.append(value)
            if self._take("]"):
                # What isn't plain may be several items, or none.
                plainly = all(isinstance(one, Lit | Text | Fields | Listed) for one in items)
                return Listed(tuple(items)) if plainly else UNKNOWN
            if not self._take(","):
                return None

    def _skip(self) -> bool:
        """Past an expression, up to the mark that ends it."""
        open_marks = 0
        while self._at < len(self._text):
            mark = self._text[self._at]
            if mark == '"':
                if self._match(_JQ_STRING) is None:
                    return False
                continue
            if open_marks == 0 and mark in ",}]":
                return True
            open_marks += (mark in "([{") - (mark in ")]}")
            if open_marks < 0:
                return False
            self._at += 1
        return False


def unescaped(raw: str) -> str:
    return re.sub(r'\\([$`"\\\n])', lambda match: "" if match[1] == "\n" else match[1], raw)


def together(made: Sequence[Value]) -> Value:
    """The text of these, one after the other; a path that isn't known stays the one that it is. Of several that may be
    one of a few each, it isn't known which go together."""
    if sum(isinstance(one, OneOf) for one in made) == 1:
        return joined(together(ways) for ways in each(*made))
    texts = [one.value for one in made if isinstance(one, Lit) and isinstance(one.value, str)]
    if len(texts) == len(made) and any(PATH in one for one in texts) and sum(map(len, texts)) < _MOST_PATH:
        return Lit("".join(texts))
    return text(part for one in made for part in parts_of(one))
