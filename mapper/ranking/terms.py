"""Words of a request, or of a method's documentation, as *terms*: what the ranking counts and compares.

A term is one of
- a word, lower case, stemmed: `delete`, `mailbox`;
- two neighbouring words written together: `keyring` for "key rings", so that both spellings of a compound meet;
- a kind of thing that was named, never its value: `<email>`, `<date>`, `<file>`, `<id>`; values say nothing;
- a collection of a resource path: `keyrings/` for "projects/x/keyRings/y".

Requests and documents pass through the same functions. No state, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mapper.dates import MONTH

MOST_CHARACTERS = 4000
"""What is read of a request at most. What comes later is data, not wish."""

MOST_TERMS = 120
"""Distinct words of a request that are looked at."""

_STOP = """
a an the of in on at to for from by with and or as is are was were be been being am it its this that these those there
here i me my mine myself we our us you your he she they them his her their him can please could would will shall
should want need like just now then so some any into about via using which what how when where do does did has have
had if also too very really got get gets let lets one im ive id ill dont doesnt didnt isnt cant wont but than because
since while until again still already yet ok okay hey hi thanks thank pls plz gonna wanna gotta kindly
"""
STOP = frozenset(_STOP.split())

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"<[a-z]+[0-9]*>|[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[?]", re.UNICODE)
_VOWEL = re.compile(r"[aeiouy]")
_LINK = re.compile(r"https?://\S+|<[^<>]+>")
_LETTERS = re.compile(r"[a-z]+")
_JOINTS = re.compile(r"[._\-/:{}]+")
_QUOTED = re.compile(r"\"([^\"]{1,400})\"|“([^”]{1,400})”|«([^»]{1,400})»|(?<!\w)['‘]([^'’]{1,400})['’](?!\w)")

_FILE = r"(?:jpe?g|png|gif|webp|heic|svg|mp4|mov|avi|mkv|mp3|wav|flac|m4a|pdf|docx?|xlsx?|pptx?|csv|tsv|txt|md|json|xml|ya?ml|zip|tar|gz|html?|ics|vcf|apk|aab|eml|srt|vtt|sql|py|js|log|parquet|avro)"  # noqa: E501

_COLLECTION = re.compile(r"(?<![\w/.])/?((?:[A-Za-z][A-Za-z0-9_]*/[^\s/,;'\"]+/?)+)")
_PLURAL = re.compile(r"[A-Za-z][A-Za-z_]{1,40}s|people|(?:[a-z]+[A-Z]\w*)")  # collections are named so
_HOST_TEXT = "www com org net io co html htm google googleapis"
_HOST_WORDS = frozenset(_HOST_TEXT.split())

# (kind, pattern): each match is replaced by its kind. Order matters: the most specific first.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("sql", r"\bselect\s+.{1,200}?\s+from\s+\S+"),
        ("money", r"[$€£]\s?\d[\d.,]{0,24}\s?k?\b|\b\d[\d.,]{0,24}\s?(?:usd|eur|gbp|dollars?|euros?|bucks|quid)\b"),
        ("percent", r"\b\d+(?:\.\d+)?\s?(?:%|percent\b)"),
        ("cidr", r"\b\d{1,3}(?:\.\d{1,3}){3}/\d{1,2}\b"),
        ("ip", r"\b\d{1,3}(?:\.\d{1,3}){3}\b"),
        ("uuid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        ("date", r"\b\d{4}-\d{1,2}-\d{1,2}(?:t[\d:.]+z?)?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"),
        ("date", rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}\b(?:,?\s+\d{{4}})?"),
        ("date", rf"\b{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?"),
        ("coords", r"-?\b\d{1,3}\.\d{2,}\s*,\s*-?\d{1,3}\.\d{2,}\b"),
        ("phone", r"(?<![\w+])\+\d[\d\s()-]{6,16}\d\b"),
        ("time", r"\b\d{1,2}(?::\d{2}){1,2}\s?(?:am|pm)?\b|\b\d{1,2}\s?(?:am|pm|o'clock)\b"),
        ("package", r"\bcom\.[a-z0-9_]+(?:\.[a-z0-9_]+)+\b"),
        ("version", r"\bv\d+(?:\.\d+)*\b|\b\d+\.\d+\.\d+\b"),
        (
            "domain",
            r"\b(?:[a-z0-9-]{1,63}\.){1,5}(?:com|org|net|io|dev|co|app|edu|gov|uk|de|fr|se|nl|shop|info|biz|ai)\b",
        ),
        ("table", r"\b[a-z][a-z0-9-]{1,62}(?:(?:\.[a-z_]\w{0,62}){2}|\.[a-z]+_\w{1,62})\b"),
        ("range", r"\b(?:'?[a-z]\w*'?!)?[a-z]{1,2}\d{1,5}:[a-z]{1,2}\d{0,5}\b"),
        ("year", r"\b(?:19|20)\d{2}\b"),
    )
)
# Ids whose shape tells what they name, as their providers document or show them.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"(?<![\w/<.:@#-]){pattern}(?![\w>-])"))
    for kind, pattern in (
        ("room", r"![^\s:,]+:[A-Za-z0-9][\w.:-]*"),
        ("alias", r"#[^\s:#]+:[A-Za-z][\w.:-]*\w"),
        ("member", r"@[^\s:@]+:[A-Za-z][\w.:-]*\w"),
        ("roomevent", r"\$[A-Za-z0-9_\-+/:.]{10,}"),
        ("messagestamp", r"\d{10}\.\d{3,6}"),
        ("channelname", r"#[A-Za-z][\w-]{0,79}"),
        ("chatchannel", r"[CGD]0[A-Z0-9]{6,12}"),
        ("chatuser", r"[UW]0[A-Z0-9]{6,12}"),
        ("snowflake", r"\d{17,20}"),
        ("repoissue", r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9][\w.-]*#\d{1,9}"),
        ("repo", r"(?!(?:and|or|he|his|yes|on|either|w|n|s)/)[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9][\w.-]*(?![\w/.{-])"),
        ("issueno", r"#\d{1,9}"),
        ("track", r"spotify:[a-z]+:\w+"),
        ("billingid", r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}"),
        ("orderid", r"GPA\.[\d.-]+"),
        ("placeid", r"ChIJ[\w-]*"),
        ("channelid", r"UC(?=[\w-]*[a-z0-9])[\w-]{4,22}"),
        ("playlistid", r"PL(?=[\w-]*[a-z0-9])[\w-]{4,34}"),
        ("vmid", r"i-[0-9a-f]{6,17}"),
        ("hexid", r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{11,20}"),
        ("fileid", r"(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?:1[\w-]{7,60}|0B[\w-]{6,60})"),
        ("videoid", r"(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?=[\w-]*[0-9])[\w-]{11}"),
    )
)
_EMAIL = re.compile(r"[A-Za-z0-9._%+\-]{1,64}@([A-Za-z0-9.\-]{1,190}\.[A-Za-z]{2,24})")
_URL = re.compile(r"(?:https?://|www\.)([^\s<>\"'/]+)([^\s<>\"']*)", re.IGNORECASE)
_CLOUD_URI = re.compile(
    rf"\b(gs|s3)://[^\s<>\"']*?[^\s<>\"',;?!](?:\.({_FILE}))?(?=[,;?!.)]{{0,3}}(?:[\s<>\"']|$))", re.IGNORECASE
)
_FILE_NAME = re.compile(rf"(?<![\w.()-])[\w\-.()]{{0,120}}[\w)\-]\.({_FILE})\b", re.IGNORECASE)
# Without one of these no pattern above or below matches, as in most examples and most requests.
_VALUE = re.compile(r"[\d@#/:$]|\.\S|UC|PL|ChIJ|i-[a-f]|(?i:select|[a-f]{8}-)")
_IDENTIFIER = re.compile(r"(?<![\w<])(?=[A-Za-z0-9])(?=[\w\-]{0,120}\d)(?=[\w\-]{0,120}[A-Za-z])[\w\-]{5,}(?![\w>])")


def words(text: str) -> Iterator[str]:
    """The words of a request in order, values replaced by their kinds; quoted ones are left out."""
    for word, quoted in marked_words(text):
        if not quoted:
            yield word


def marked_words(text: str) -> Iterator[tuple[str, bool]]:
    """Each word of a request, with whether it stands inside quotes."""
    text = text[:MOST_CHARACTERS]
    position = 0
    for match in _QUOTED.finditer(text):
        yield from ((word, False) for word in _plain(text[position : match.start()]))
        yield "<quoted>", False
        inside = next(group for group in match.groups() if group is not None)
        yield from ((word, True) for word in _plain(inside))
        position = match.end()
    yield from ((word, False) for word in _plain(text[position:]))


def _plain(text: str) -> Iterator[str]:
    found: list[str] = []
    if _VALUE.search(text):
        text = _kinds(text, found)
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        if word.isdigit():
            yield "<number>" if len(word) < 6 else "<id1>"
        else:
            yield word.replace("’", "'").removesuffix("'s").replace("'", "")
    yield from found


def _kinds(text: str, found: list[str]) -> str:
    """The text with the kinds of values in their place; collections of paths go to `found`."""

    def url(match: re.Match[str]) -> str:
        parts = re.split(r"[./?&=_#-]+", match[1].lower()) + re.split(r"[/?&=#]+", match[2])
        kept = [part for part in parts if part.isalpha() and 2 < len(part) < 20 and part not in _HOST_WORDS]
        return " <url> " + " ".join(kept) + " "

    def email(match: re.Match[str]) -> str:
        domain = match[1].lower()
        if domain.endswith(".gserviceaccount.com"):
            return " <robot> "
        if domain.endswith("calendar.google.com"):
            return " <email> calendar "
        return " <email> "

    def path(match: re.Match[str]) -> str:
        segments = match[1].strip("/").split("/")
        names = segments[::2]
        if len(segments) < 2 or not all(_PLURAL.fullmatch(name) for name in names):
            return match[0]
        found.extend(f"{name.lower()}/" for name in names[: (len(segments) + 1) // 2])
        return " " + " ".join(split_name(name) for name in names) + " "

    text = _CLOUD_URI.sub(lambda match: f" <{match[1].lower()}> {match[2] or ''} ", text)
    text = _URL.sub(url, text)
    text = _EMAIL.sub(email, text)
    text = _COLLECTION.sub(path, text) if "/" in text else text
    text = _FILE_NAME.sub(lambda match: f" <file> {match[1]} ", text)
    for kind, pattern in (*_SHAPES, *_KINDS):
        text = pattern.sub(f" <{kind}> ", text)
    return _IDENTIFIER.sub(lambda match: f" <id{_size(match[0])}> " if _random(match[0]) else match[0], text)


def _size(value: str) -> int:
    return 1 if len(value) < 16 else 2 if len(value) < 30 else 3


def _random(value: str) -> bool:
    """Whether this looks made by a machine rather than a name with a number behind it (`lab-77`)."""
    return re.fullmatch(r"[A-Za-z]+(?:-[A-Za-z]+)*-?\d{1,3}", value) is None


def split_name(name: str) -> str:
    """A programmer's name as words: `cryptoKeyVersions` -> `crypto Key Versions`."""
    return _CAMEL.sub(" ", _JOINTS.sub(" ", name))


def stem(word: str) -> str:
    """A light English stem: endings of plurals and of verbs, nothing cleverer."""
    if len(word) < 4 or word[-1] not in "sgde" or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith(("sses", "shes", "ches", "xes", "zzes")) else word[:-1]
    for ending, least in (("ing", 6), ("ied", 5), ("ed", 5)):
        if word.endswith(ending) and len(word) >= least:
            cut = word[: -len(ending)]
            if ending == "ied":
                return cut + "y"
            if not _VOWEL.search(cut):
                return word
            if cut[-1] == cut[-2] and cut[-1] not in "lsz":
                return cut[:-1]
            return cut.removesuffix("e")
    return word.removesuffix("e") if len(word) > 4 else word


def terms(marked: list[tuple[str, bool]]) -> dict[str, float]:
    """Terms with how much each counts: 1 for a word, less inside quotes and for pairs of words."""
    found: dict[str, float] = {}
    before, before_stop = "", True
    for number, (word, quoted) in enumerate(marked):
        if len(found) >= MOST_TERMS:
            break
        special = word.startswith("<") or word.endswith("/") or word == "?"
        stopped = word in STOP
        stemmed = word if special else stem(word)
        scale = 0.3 if quoted else 1.0
        if not stopped and word != "?":
            found[stemmed] = max(found.get(stemmed, 0.0), scale)
        if number < 2 and not special:
            found.setdefault(f"^{stemmed}", 0.5)
        if not special and before and not (stopped and before_stop) and not quoted:
            pair = stem(before + stemmed)
            found[pair] = max(found.get(pair, 0.0), 0.6)
        before, before_stop = ("", True) if special else (stemmed, stopped)
    return found


def form_terms(marked: list[tuple[str, bool]]) -> dict[str, float]:
    """Terms of the request's form, which tell what is to be done rather than with what: small words, the first words,
    whether several things are meant, whether it is a question. They begin with `~`."""
    found: dict[str, float] = {}
    plain = [word for word, quoted in marked if not quoted]
    for number, word in enumerate(plain[:40]):
        if word in STOP and len(word) > 1:
            found[f"~{word}"] = 0.5
        elif word == "?":
            found["~?"] = 0.7
        elif word.endswith("s") and len(word) > 4 and not word.endswith(("ss", "us", "is")):
            found["~s"] = 0.5
        if number and word in STOP and plain[number - 1] in STOP:
            found[f"~{plain[number - 1]} {word}"] = 0.4
    if plain:
        found[f"~^{plain[0]}"] = 1.0
        found[f"~^{' '.join(plain[:2])}"] = 0.7
    return found


def request_terms(text: str) -> dict[str, float]:
    """The terms of a request or of an example of one."""
    return terms(list(marked_words(text)))


def document_terms(text: str) -> dict[str, float]:
    """The terms of documentation or of a name: no positions, no kinds."""
    plain = _LINK.sub(" ", text)
    marked = [(word, False) for word in _LETTERS.findall(split_name(plain).lower())]
    return {term: weight for term, weight in terms(marked).items() if not term.startswith("^")}
