"""Letters that look like others: those of another alphabet in a Latin word, and right-to-left ones, whose neighbours a
display would reorder. Pure, and by the standard library's Unicode tables.

Rules: what is alike becomes its code point; what reads from right to left is isolated (U+2068 … U+2069), so that the
text around it stays in its order. Doing it twice changes nothing. Of texts that are wholly in an alphabet of their own
nothing is changed: a Russian, Greek or Hebrew sentence stays readable.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ISOLATE, END = "\u2068", "\u2069"

# By alphabet: the letters that are taken for Latin ones (UTS #39, as far as a common typeface shows them alike).
_ALIKE = {
    "CYRILLIC": frozenset(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u04cf\u0475\u04af\u0433"
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405\u050c\u051a\u051c"
        "\u0474\u04ae\u04c0\u0417\u0431"
    ),
    "GREEK": frozenset(
        "\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c3\u03c5\u03c4\u03c7\u03f2\u03f3\u03b7\u03c9\u03b5"
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03f9\u037f"
    ),
    "ARMENIAN": frozenset("\u0561\u0581\u0570\u0578\u0585\u057d\u0566\u0575\u056c\u054d\u0555\u053c"),
}
_ALL_ALIKE = frozenset({"CHEROKEE", "LISU", "COPTIC", "DESERET", "OLD"})  # nearly all of their letters
_EAST = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "YI", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"})
_OTHER_LATIN = frozenset("\u0251\u0261\u0269\u01c0\u01c1\u01c3\u2113")  # no orthography's own, and alike: a g i l l! l

# Signs that divide addresses, paths and numbers, as others draw them; full width is usual beside eastern letters.
_SIGNS = frozenset("\u2044\u2215\u29f8\u2024\u2236\ua789\u201a\ufe52\ufe55\ufe6b")
_WIDE_SIGNS = frozenset("\uff03\uff0c\uff0e\uff0f\uff1a\uff20")

_WORD = re.compile(r"[^\W_]+")
_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lo", "Nl", "Nd"})
_RIGHT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
_RUN = f"[{_RIGHT}]+(?: +[{_RIGHT}]+)*"
_DRAWN_ALIKE = frozenset({"<compat>", "<font>", "<noBreak>", "<small>"})  # of `unicodedata.decomposition`
_BY_PLACE = frozenset({"<initial>", "<medial>", "<final>", "<isolated>"})
_LONGEST_LINE = 4096
_MOST_JOINED = 30  # marks on a letter, as in Unicode's stream-safe format: what is longer takes too long to compare
# Frequent in names, and drawn as nothing of ASCII, like signs of currencies; the last are the letters of flags.
_OWN_LOOK = frozenset("§©®°±×÷«»¿¡¶’“”„·♯♭•→←№™✓★☆♥❤≤≥≠µ") | frozenset(map(chr, range(0x1F1E6, 0x1F200)))
# Drawn as a hyphen is (with the category Pd), or as one of the quotation marks, apostrophes and dots above.
_POSING = frozenset(
    "\u2212\u00b4\u02b9\u02ba\u02bc\u02bd\u02be\u02bf\u02c8\u02ca\u02cb\u02ee\u201b\u201f\u2032\u2033\u2034\u2035\u2036"
    "\u2037\u2057\ua78b\ua78c\u1fbd\u1fbf\u1ffd\u1ffe\u2027\u2219\u22c5\u2e31\u2e33"
)
_SIGN_RUN = re.compile("[sd][sdm]*")  # signs, dashes and the marks on them
# What Unicode's composition leaves apart (its composition exclusions), as "\u09a1\u09bc": by that, the letter "\u09dc",
# which keyboards of Hindi, Bengali and Punjabi write.
_LEFT_APART = {
    unicodedata.normalize("NFC", letter): letter
    for letter in map(
        chr,
        (
            *range(0x958, 0x960), 0x9DC, 0x9DD, 0x9DF, 0xA33, 0xA36, *range(0xA59, 0xA5C), 0xA5E, 0xB5C, 0xB5D, 0xFB1D,
            0xFB1F, *range(0xFB2A, 0xFB37), *range(0xFB38, 0xFB3D), 0xFB3E, 0xFB40, 0xFB41, 0xFB43, 0xFB44,
            *range(0xFB46, 0xFB4F),
        ),
    )
}  # fmt: skip
_APART = re.compile("|".join(sorted(map(re.escape, _LEFT_APART), key=len, reverse=True)))
DECOMPOSED, COMPOSED = "\\u{decomposed}", "\\u{composed}"
_TO_RIGHT, _ISOLATED = re.compile(f"({_RUN})"), re.compile(f"{ISOLATE}({_RUN}){END}")


def isolated(text: str) -> str:
    """`text` with each run of right-to-left letters isolated."""
    return _TO_RIGHT.sub(rf"{ISOLATE}\1{END}", text)


def bare(text: str) -> str:
    """`text` without the isolates that `isolated` makes; others stay, for whoever escapes them."""
    return _ISOLATED.sub(r"\1", text)


def alike(line: str) -> frozenset[int]:
    """The places in a line of letters, digits and signs that are taken for others."""
    kinds = {char: kind(char) for char in set(line) if not char.isascii()}
    east = not _EAST.isdisjoint(kinds.values())
    signs = (_SIGNS if east else _SIGNS | _WIDE_SIGNS) & kinds.keys()
    found = {place for place, char in enumerate(line) if char in signs} if signs else set()
    if not any(kinds.values()):
        return frozenset(found)
    # A letter and its accent are one letter, however they are spelled; a longer line takes too long.
    whole = set(unicodedata.normalize("NFC", line)) if len(line) <= _LONGEST_LINE else kinds.keys()
    posing = {
        name
        for name, letters in _ALIKE.items()
        if name in kinds.values() and all(char in letters for char in whole if kind(char) == name)
    }
    for word in _WORD.finditer(line):
        latin = any((char.isascii() and char.isalpha()) or kinds.get(char) == "LATIN" for char in word[0])
        digits = any(char.isascii() and char.isdecimal() for char in word[0])
        for place, char in enumerate(word[0], word.start()):
            script = kinds.get(char, "")
            mixed = latin and (char in _ALIKE["GREEK"] if script == "GREEK" else script not in ("", "LATIN", *_EAST))
            styled = script == "STYLED" and (latin or not east)
            if (
                (mixed and script != "STYLED")
                or styled
                or script in posing
                or script in _ALL_ALIKE
                or char in _OTHER_LATIN
                or (digits and not char.isascii() and char.isdecimal())  # 1, a Bengali 4 that looks like 8, 0
            ):
                found.add(place)
    return frozenset(found)


def spelling(name: str) -> tuple[str, str]:
    """The name in normal form (NFC), and how it was spelled: "", DECOMPOSED (each letter apart from its accents, as
    macOS writes names) or COMPOSED (what NFC leaves apart is one letter). A name spelled in yet another way stays as
    it is, with "": by name and spelling, two names are always told apart."""
    if unicodedata.is_normalized("NFC", name):
        return name, ""
    normal = unicodedata.normalize("NFC", name)
    if unicodedata.normalize("NFD", normal) == name:
        return normal, DECOMPOSED
    if _APART.sub(lambda found: _LEFT_APART[found[0]], normal) == name:
        return normal, COMPOSED
    return name, ""


def ambiguous(name: str) -> frozenset[int]:
    """The places in a name of what is drawn as something else: what isn't in normal form (NFC), what only stands for
    another letter, signs that pose as others, like the other hyphens, and signs beside ASCII's own that have no look of
    their own. Marks go with the letter that they are on."""
    letters = set(name)
    # Of two that are drawn alike, and each frequent: the one that has no business here.
    greek = any(kind(char) == "GREEK" for char in letters - {"\u03bc"})
    posing = {"\u00b5" if greek else "\u03bc", "\u02bb" if "\u2019" in letters else "\u2018"}
    posing = {char for char in letters if char in posing or _stands_for_another(char)}
    found = _not_normal(name) | {place for place, char in enumerate(name) if char in posing}
    signs = {char: "a" if char.isascii() else "m" if unicodedata.category(char)[0] == "M" else "" for char in letters}
    for place, char in enumerate(name) if found else ():
        if place - 1 in found and signs[char] == "m":
            found.add(place)
    signs = {char: of or _sign(char) for char, of in signs.items()}
    kinds = "".join("a" if place in found else signs[char] for place, char in enumerate(name))
    for run in _SIGN_RUN.finditer(kinds):
        if "d" in run[0] or "a" in kinds[max(run.start() - 1, 0) : run.end() + 1]:
            found.update(range(*run.span()))
    return frozenset(found)


def _not_normal(name: str) -> set[int]:
    found: set[int] = set()
    if unicodedata.is_normalized("NFC", name):
        return found
    begun = ""  # the letter there with what belongs to it
    for place, char in enumerate(name):
        joins = len(begun) > _MOST_JOINED or _joins(begun, char)
        if joins:
            found.add(place)
        if not (joins or unicodedata.combining(char)):
            begun = char
        elif len(begun) <= _MOST_JOINED:
            begun += char
    return found


@lru_cache(maxsize=4096)
def _joins(begun: str, char: str) -> bool:
    return unicodedata.normalize("NFC", begun + char) != unicodedata.normalize("NFC", begun) + char


@lru_cache(maxsize=4096)
def _stands_for_another(char: str) -> bool:
    """Whether it is drawn as what it decomposes to: one letter, a ligature, or an Arabic letter by its place."""
    if char == "\u00b5":
        return False
    how, _, of = unicodedata.decomposition(char).partition(" ")
    alone = " " not in of or unicodedata.category(char) in ("Ll", "Lu", "Lt")
    return how in _BY_PLACE or (how in _DRAWN_ALIKE and alone)


@lru_cache(maxsize=4096)
def _sign(char: str) -> str:
    """What stands for it in `_SIGN_RUN`. Full-width signs are told by their width."""
    category = unicodedata.category(char)
    if category[0] == "M":
        return "m"
    if category == "Sc" or char in _OWN_LOOK or char in "\u02bb\u2018":
        return "x"
    if char in _POSING:
        return "d"
    if (category[0] in "PS" or category == "Lm") and unicodedata.east_asian_width(char) not in ("W", "F"):
        return "d" if category == "Pd" else "s"
    return "x"


def right_to_left(text: str) -> tuple[str, ...]:
    """The alphabets of right-to-left letters in it, by name."""
    return tuple(dict.fromkeys(kind(char).title() for run in _TO_RIGHT.findall(text) for char in run if kind(char)))


@lru_cache(maxsize=4096)
def kind(char: str) -> str:
    """The alphabet of a letter, as Unicode's names begin; STYLED where it is a Latin letter or a digit in another shape
    (full width, bold, Roman numerals); "" for what is no letter."""
    if unicodedata.category(char) not in _LETTERS or char in "\u00aa\u00ba\u00b5":
        return ""
    plain = unicodedata.normalize("NFKC", char)
    if plain != char and plain.isascii():
        return "STYLED"
    return unicodedata.name(char, "").partition(" ")[0]
