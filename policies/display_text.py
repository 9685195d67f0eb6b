"""Text from outside, made fit for a person's eyes.

Agents, services, providers and file names write text that a person decides on. A terminal, a markup renderer
or the Unicode bidirectional algorithm can be made to show something other than what will run, so every such
text passes through here first. Escaping is reversible by eye: what was hidden is shown as its code point.
"""

from __future__ import annotations

import re
import unicodedata

from policies.lookalikes import COMPOSED, DECOMPOSED, END, ISOLATE, alike, ambiguous, bare, isolated, spelling

# Cc controls, Cf formats (bidi overrides, zero-width), Cs surrogates, Co private use, Cn unassigned,
# Zl and Zp line and paragraph separators: none of these has a look of its own that a person could read.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# What draws nothing, or fills space, though its category says "letter", "mark" or "symbol": Unicode's property
# Default_Ignorable_Code_Point, which holds for what isn't assigned yet, too (without the selectors below), and signs
# that are blank by what they are. By number, for what is assigned depends on the version of Python.
_BLANK = frozenset(
    "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2065"
    "\u2800\ufffc\U0001d159\U00016fe4\U00013441\U00013442\U0001da7f\U0001da80"
) | frozenset(map(chr, (*range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000))))
# Marks that draw nothing themselves: by these a script stacks its letters, by those it changes the sign before them.
_STACKING = frozenset(
    "\u1039\u17d2\u1a60\u1bab\u2d7f\uaaf6\U00010a3f\U0001107f\U00011133\U000113d0\U0001193e\U00011a47\U00011a99"
    "\U00011d45\U00011d97\U00011f42"
)
_CHANGING = frozenset(map(chr, (0x13440, 0x1BC9D, *range(0x1DA9B, 0x1DAA0), *range(0x1DAA1, 0x1DAB0))))

_LAST_BEFORE_MARKS = "\u02ff"  # no combining mark has a smaller code point

# Variation selectors, which draw nothing themselves: two of them choose how the sign before them is drawn.
_SELECTORS = frozenset(map(chr, (*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_EMOJI_OR_TEXT, _KEYCAP, _ALSO_EMOJI = "\ufe0f\ufe0e", "\u20e3", "\u203c\u2049\u2194"

_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"?')
_WORD, _OF_ADDRESS = re.compile(r'[^\s"<>]+'), re.compile("@|://")
_SPACE, _ASCII = re.compile(r"\s"), re.compile("[!#-~]")  # visible, and no quotation mark

# A path is no longer, in Linux. What is behind these of a name is escaped as a message is: it takes long to compare.
_LONGEST_NAME = 4096

# More combining marks in a row than any living orthography needs would paint over neighbouring lines.
_MOST_MARKS = 4


def counted(number: int, noun: str) -> str:
    """The number and its noun, as in `1 record`, `1,000 records` and `2 libraries`."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def quoted(text: str) -> str:
    """A text in quotes that it can't end itself. Control characters stay: `escape` shows these."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def escape(text: str, *, newlines: bool = False) -> str:
    """Return `text` with everything that can't be seen, or that can command a terminal, as a visible escape; so are
    letters that are taken for others (`lookalikes.alike`). What reads from right to left is isolated.

    With `newlines`, line feeds and tabs stay (for code and message bodies shown as a block).
    Spaces other than U+0020 become their escape too: they look alike and are not.
    """
    if text.isascii() and _plain(text.replace("\n", "").replace("\t", "") if newlines else text):
        return text  # as most are, and a megabyte of them would take a second below
    text = bare(text)
    if not _plain(text.replace("\n", "").replace("\t", "") if newlines else text):
        text = _escaped(text, newlines)
    if not text.isascii():
        text = "\n".join(map(_told_apart, text.split("\n")))
    return isolated(text)


def escape_name(text: str) -> str:
    """`escape`, of what is told from others by its letters: a name, a path, an address, a method. What is drawn as
    something else becomes its code point, too (`lookalikes.ambiguous`).

    Each part of a path that is spelled in another way than usual is shown in the usual spelling (NFC), with one mark
    behind it: ` \\u{decomposed}` where each letter is apart from its accents, as macOS writes names, ` \\u{composed}`
    where an Indic or Hebrew letter is one code point that Unicode would write as two. Of a name that holds such a mark
    itself, the mark's backslash becomes its code point. For people alone: a program needs the name as it is.
    """
    if text.isascii():
        return escape(text)
    for mark in (DECOMPOSED, COMPOSED):
        text = text.replace(mark, f"{_code(mark[0])}{mark[1:]}")
    parts = [spelling(part) if len(part) <= _LONGEST_NAME else (part, "") for part in text.split("/")]
    shown = _unambiguous("/".join(part for part, _ in parts))
    if not any(mark for _, mark in parts):
        return shown
    marks = (f" {mark}" if mark else "" for _, mark in parts)  # a "/" is never replaced, nor made
    return "/".join(f"{part}{mark}" for part, mark in zip(shown.split("/"), marks, strict=True))


def _unambiguous(name: str) -> str:
    shown = escape(name)
    plain = bare(shown)
    if shown.isascii() or not (places := ambiguous(plain[:_LONGEST_NAME])):
        return shown
    return _unambiguous(_with_codes(plain, places))  # beside what was replaced, others may now pose as ASCII's


def escape_value(text: str) -> str:
    """`escape`, of a value on one line, bare or as JSON: in it a text without spaces counts as a name, if it is no
    longer than a path can be, and so does an address; all else as a message's."""
    if text.isascii():
        return escape(text)
    return escape(_JSON_TEXT.sub(lambda found: _escape_text(found[0]), text) if '"' in text else _escape_text(text))


def _escape_text(text: str) -> str:
    if _SPACE.search(text):
        return _WORD.sub(lambda found: escape_name(found[0]) if _OF_ADDRESS.search(found[0]) else found[0], text)
    # Where a language is written without spaces, what holds nothing of ASCII may be a whole sentence.
    is_name = _ASCII.search(text) and (len(text) <= _LONGEST_NAME or _OF_ADDRESS.search(text))
    return escape_name(text) if is_name else text


def _escaped(text: str, newlines: bool) -> str:
    shown: list[str] = []
    marks = 0
    for place, char in enumerate(text):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if newlines and char in "\n\t":
            shown.append(char)
        elif (
            category in _HIDDEN
            or char in _BLANK
            or (char in _STACKING and not (_is_beside(text, place, -1) and _is_beside(text, place, 1)))
            or (char in _CHANGING and not _is_beside(text, place, -1))
            or (category == "Zs" and char != " ")
            or marks > _MOST_MARKS
            or (char in _SELECTORS and not _selects(text, place))
        ):
            shown.append(_code(char))
        else:
            shown.append(char)
    return "".join(shown)


def _selects(text: str, place: int) -> bool:
    """Whether the selector there follows what it can select for: a symbol, or what becomes a keycap."""
    if text[place] not in _EMOJI_OR_TEXT or not place:
        return False
    before = text[place - 1]
    if before in "#*0123456789":
        return text[place + 1 : place + 2] == _KEYCAP
    return before in _ALSO_EMOJI or (unicodedata.category(before) == "So" and before not in _BLANK)


def _is_beside(text: str, place: int, step: int) -> bool:
    """Whether what stands before or behind the mark there is drawn, and of the mark's own script."""
    beside = text[place + step : place + step + 1] if place + step >= 0 else ""
    if not beside or beside in _STACKING or beside in _CHANGING or beside in _BLANK:
        return False
    scripts = (unicodedata.name(char, "").split()[:1] for char in (text[place], beside))
    return next(scripts) == next(scripts) != []


def _told_apart(line: str) -> str:
    """Letters become their code points until none is left that is taken for another: without those, others may be."""
    places = alike(line)
    return _told_apart(_with_codes(line, places)) if places else line


def _with_codes(line: str, places: frozenset[int]) -> str:
    return "".join(_code(char) if place in places else char for place, char in enumerate(line))


def _code(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


def _plain(text: str) -> bool:
    """Whether there is certainly nothing hidden in it."""
    if not text.isprintable():  # the hidden categories, and every space but U+0020
        return False
    distinct = set(text)
    return distinct.isdisjoint(_BLANK) and not any(
        unicodedata.category(char) in ("Mn", "Me") for char in distinct if char > _LAST_BEFORE_MARKS
    )


def shorten(text: str, limit: int) -> tuple[str, int]:
    """Cut `text` to `limit` characters. Returns the text and how many characters were left out.

    Whoever shows the result must say the number: what was cut from a prompt can't be approved unseen.
    """
    if len(text) <= limit:
        return text, 0
    kept = text[:limit]
    # What is written after it isn't to be read as a part of it.
    return kept + END * (kept.count(ISOLATE) > kept.count(END)), len(text) - limit
