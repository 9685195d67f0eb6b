"""Text from outside, made fit for a person's eyes.

Agents, services, providers and file names write text that a person decides on. A terminal, a markup renderer
or the Unicode bidirectional algorithm can be made to show something other than what will run, so every such
text passes through here first. Escaping is reversible by eye: what was hidden is shown as its code point.
"""

from __future__ import annotations

import unicodedata

# Cc controls, Cf formats (bidi overrides, zero-width), Cs surrogates, Co private use, Cn unassigned,
# Zl and Zp line and paragraph separators: none of these has a look of its own that a person could read.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Letters that draw nothing, or that fill space, though their category says "letter" or "symbol".
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")

_LAST_BEFORE_MARKS = "\u02ff"  # no combining mark has a smaller code point

# More combining marks in a row than any living orthography needs would paint over neighbouring lines.
_MOST_MARKS = 4


def escape(text: str, *, newlines: bool = False) -> str:
    """Return `text` with everything that can't be seen, or that can command a terminal, as a visible escape.

    With `newlines`, line feeds and tabs stay (for code and message bodies shown as a block).
    Spaces other than U+0020 become their escape too: they look alike and are not.
    """
    if _plain(text.replace("\n", "").replace("\t", "") if newlines else text):
        return text  # as most are, and a megabyte of them would take a second below
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if newlines and char in "\n\t":
            shown.append(char)
        elif category in _HIDDEN or char in _BLANK_LETTERS or (category == "Zs" and char != " ") or marks > _MOST_MARKS:
            shown.append(f"\\u{{{ord(char):x}}}")
        else:
            shown.append(char)
    return "".join(shown)


def _plain(text: str) -> bool:
    """Whether there is certainly nothing to escape in it."""
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
    return text[:limit], len(text) - limit
