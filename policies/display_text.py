"""Text from outside, made fit for a person's eyes.

Agents, services, providers and file names write text that a person decides on. A terminal, a markup renderer
or the Unicode bidirectional algorithm can be made to show something other than what will run, so every such
text passes through here first. Escaping is reversible by eye: what was hidden is shown as its code point.
"""

from __future__ import annotations

import unicodedata

from policies.lookalikes import END, ISOLATE, alike, bare, isolated

# Cc controls, Cf formats (bidi overrides, zero-width), Cs surrogates, Co private use, Cn unassigned,
# Zl and Zp line and paragraph separators: none of these has a look of its own that a person could read.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Letters that draw nothing, or that fill space, though their category says "letter" or "symbol".
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")

_LAST_BEFORE_MARKS = "\u02ff"  # no combining mark has a smaller code point

# Variation selectors, which draw nothing themselves: two of them choose how the sign before them is drawn.
_SELECTORS = frozenset(map(chr, (*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_EMOJI_OR_TEXT, _KEYCAP, _ALSO_EMOJI = "\ufe0f\ufe0e", "\u20e3", "\u203c\u2049\u2194"

# More combining marks in a row than any living orthography needs would paint over neighbouring lines.
_MOST_MARKS = 4


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
        text = "\n".join(_told_apart(line) for line in text.split("\n"))
    return isolated(text)


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
            or char in _BLANK_LETTERS
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
    return before in _ALSO_EMOJI or (unicodedata.category(before) == "So" and before not in _BLANK_LETTERS)


def _told_apart(line: str) -> str:
    places = alike(line)
    return "".join(_code(char) if place in places else char for place, char in enumerate(line)) if places else line


def _code(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


def _plain(text: str) -> bool:
    """Whether there is certainly nothing hidden in it."""
    if not text.isprintable():  # the hidden categories, and every space but U+0020
        return False
    distinct = set(text)
    return distinct.isdisjoint(_BLANK_LETTERS) and not any(
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
