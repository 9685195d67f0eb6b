"""What a person sees is what is there: nothing hidden, nothing that commands a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.display_text import counted, escape, escape_name, escape_value, shorten
from policies.lookalikes import COMPOSED, DECOMPOSED, END, ISOLATE, bare, right_to_left

TRICKS = {
    "an ANSI colour": "\x1b[31mred",
    "a cursor movement": "safe\x1b[2K\rrm -rf /",
    "an OSC title": "\x1b]0;title\x07",
    "a C1 control": "\x9b31m",
    "a carriage return": "a\rb",
    "a backspace": "rm\b\bls",
    "a bidi override": "\u202etxt.exe",
    "a bidi isolate": "\u2066x\u2069",
    "a zero-width space": "a\u200bb",
    "a zero-width joiner": "a\u200db",
    "a tag character": "a\U000e0041",
    "a no-break space": "a\u00a0b",
    "an ideographic space": "a\u3000b",
    "a Hangul filler": "a\u3164b",
    "a blank braille cell": "a\u2800b",
    "a line separator": "a\u2028b",
    "a private character": "\ue000",
    "a paragraph separator": "a\u2029b",
    "an unassigned code point": "a\u0378b",
    "a noncharacter": "a\uffffb",
    "a Hangul choseong filler": "a\u115fb",
    "a Hangul jungseong filler": "a\u1160b",
    "a halfwidth Hangul filler": "a\uffa0b",
    "a combining grapheme joiner": "a\u034fb",
    "a Khmer inherent vowel": "a\u17b4b",
    "another Khmer inherent vowel": "a\u17b5b",
    "a variation selector": "report\ufe00.pdf",
    "one for emoji behind a letter": "report\ufe0f.pdf",
    "one behind a digit": "1\ufe0f0",
    "an ideographic variation selector": "report\U000e0100.pdf",
    "a Mongolian variation selector": "a\u180bb",
    "a stack of enclosing marks": "a" + "\u20dd" * 30,
    "a lone surrogate": "\ud800",
    "a NUL": "a\0b",
    "a soft hyphen": "a\u00adb",
    "a stack of marks": "a" + "\u0300" * 30,
    "a musical null notehead": "a\U0001d159b",
    "a Khitan filler": "a\U00016fe4b",
    "an object replacement": "a\ufffcb",
    "a Burmese stacker among other letters": "a\u1039b",
    "one behind a Burmese letter": "\u1000\u1039b",
    "two of them": "\u1000\u1039\u1039\u1000",
    "a Khmer stacker at the end": "\u1780\u17d2",
    "a Tifinagh joiner": "a\u2d7fb",
    "a Brahmi joiner": "a\U0001107fb",
    "a Duployan selector": "a\U0001bc9db",
    "a SignWriting modifier": "a\U0001da9bb",
}
# Of Default_Ignorable_Code_Point, and blank by what they are: assigned in this Python's Unicode, or in a later one.
DRAWN_NOT = (
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010),
    *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0,
    *range(0xFFF0, 0xFFF9), 0xFFFC, 0x13441, 0x13442, 0x16FE4, *range(0x1BCA0, 0x1BCA4), 0x1D159,
    *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000),
)  # fmt: skip


@pytest.mark.promise(8)
@pytest.mark.parametrize("name", TRICKS)
def test_each_trick_becomes_visible(name: str) -> None:
    shown = escape(TRICKS[name])
    assert shown != TRICKS[name]
    assert "\\u{" in shown
    assert "\x1b" not in shown


def test_plain_text_stays_as_it_is() -> None:
    for text in ("Grüße an alle 👋", "naïve café", "日本語", "a\\b [bold]x[/bold] <b>&amp;</b>"):
        assert escape(text) == text


def test_what_stacks_letters_of_its_script_stays() -> None:
    for text in ("မင်္ဂလာပါ", "ភាសាខ្មែរ", "ᨲ᩠ᩅᩫ᩠ᨾᩮᩬᩥᨦ"):
        assert escape(text) == text


@pytest.mark.promise(8)
@pytest.mark.parametrize("category", ["", "Lo"])
def test_what_draws_nothing_is_shown_by_its_number(category: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a `category`: as a later version of Unicode may have assigned what this one hasn't."""
    known = unicodedata.category
    if category:
        later = {chr(code) for code in DRAWN_NOT if known(chr(code)) == "Cn"}
        monkeypatch.setattr(unicodedata, "category", lambda char: category if char in later else known(char))
    text = [f"a{chr(code)}b" for code in DRAWN_NOT]
    assert [each for each in text if "\\u{" not in escape(each)] == []


def test_newlines_stay_only_where_they_are_asked_for() -> None:
    assert escape("a\n\tb", newlines=True) == "a\n\tb"
    assert "\n" not in escape("a\n\tb")


@given(st.text())
def test_what_is_shown_is_printable_and_escaping_twice_changes_nothing(text: str) -> None:
    shown = escape(text)
    assert all(char.isprintable() for char in bare(shown))
    assert escape(shown) == shown


@pytest.mark.parametrize(
    ("noun", "one", "several"),
    [("row", "1 row", "2,000 rows"), ("library", "1 library", "2,000 libraries"), ("day", "1 day", "2,000 days")],
)
def test_a_noun_agrees_with_its_number(noun: str, one: str, several: str) -> None:
    assert (counted(1, noun), counted(2000, noun)) == (one, several)


def test_what_was_cut_is_counted() -> None:
    assert shorten("abcdef", 4) == ("abcd", 2)
    assert shorten("abc", 4) == ("abc", 0)


ALIKE = {
    "a Cyrillic letter in a Latin word": ("p\u0430ypal", "p\\u{430}ypal"),
    "in a host": ("https://\u0440aypal.com/x", "https://\\u{440}aypal.com/x"),
    "a Cyrillic letter that isn't alike, in a Latin word": ("gi\u0442hub", "gi\\u{442}hub"),
    "a Greek letter in a Latin word": ("g\u03bfogle", "g\\u{3bf}ogle"),
    "an Armenian letter in a Latin word": ("g\u0585ogle", "g\\u{585}ogle"),
    "a word that is wholly Cyrillic, and taken for a Latin one": ("#\u0441\u043e\u0440\u0435 now", None),
    "a single letter": ("\u0430", "\\u{430}"),
    "a Cherokee word": ("\u13a0\u13a1", "\\u{13a0}\\u{13a1}"),
    "full width": ("\uff47it", "\\u{ff47}it"),
    "full width alone": ("\uff41\uff42", "\\u{ff41}\\u{ff42}"),
    "mathematical": ("\U0001d5c0it", "\\u{1d5c0}it"),
    "a Roman numeral": ("\u2170tunes", "\\u{2170}tunes"),
    "a letter of phonetics": ("\u0261it", "\\u{261}it"),
    "a Bengali 4 that looks like 8": ("1\u09ea0 EUR", "1\\u{9ea}0 EUR"),
    "an Arabic digit among others": ("1\u06f80", "1\\u{6f8}0"),
    "a slash of division": ("bank.com\u2215a", "bank.com\\u{2215}a"),
    "a slash of fractions": ("a\u2044b", "a\\u{2044}b"),
    "a dot that leads": ("a\u2024com", "a\\u{2024}com"),
    "a low quote that looks like a comma": ("a\u201ab", "a\\u{201a}b"),
    "a sign of ratio": ("a\u2236b", "a\\u{2236}b"),
    "an @ in full width": ("ann\uff20b.com", "ann\\u{ff20}b.com"),
    "a # in full width": ("\uff03ops", "\\u{ff03}ops"),
    "a Hebrew letter in a Latin word": ("a\u05d0b", "a\\u{5d0}b"),
}


@pytest.mark.promise(8)
@pytest.mark.parametrize("name", ALIKE)
def test_a_letter_that_is_taken_for_another_becomes_its_code_point(name: str) -> None:
    text, wanted = ALIKE[name]
    shown = escape(text)
    assert shown == wanted if wanted else shown.count("\\u{") == 4
    assert escape(shown) == shown
    assert "\\u{" in escape(f"first\n{text}\nlast", newlines=True)


@pytest.mark.parametrize(
    "text",
    [
        "\u041f\u0440\u0438\u0432\u0435\u0442, \u0440\u0435\u0441\u0443\u0440\u0441 ready",
        "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 Anna",
        "T\u30b7\u30e3\u30c4 \u3068 \uff21\uff22\uff23",
        "5 \u00b5m, 1\u00aa, 20 \u2103, \u0394t",
        "na\u00efve \u0142\u00f3d\u017a \u00e5ngstr\u00f6m",
        "\u65e5\u672c\uff1a\u6771\u4eac\uff0f\u5927\u962a",
        "\u2764\ufe0f #\ufe0f\u20e3 1\ufe0f\u20e3 \u203c\ufe0f \u2194\ufe0f",
        "\u09e7\u09ea \u0967\u0968",
    ],
)
def test_texts_in_an_alphabet_of_their_own_stay_as_they_are(text: str) -> None:
    assert escape(text) == text


@pytest.mark.promise(8)
def test_what_reads_from_right_to_left_is_isolated() -> None:
    """The order of what stands around it, digits and dots too, is then nobody's but ours."""
    name = "\u05d0\u05d1 \u05d2"
    assert escape(f"rm {name} 12/x.txt") == f"rm {ISOLATE}{name}{END} 12/x.txt"
    assert escape("\u05d0/\u05d1") == f"{ISOLATE}\u05d0{END}/{ISOLATE}\u05d1{END}"
    assert right_to_left(f"x {name} \u0627") == ("Hebrew", "Arabic")
    for theirs in ("\u2068\u05d0", "\u05d0\u2069", "\u2068x\u2069", "\u2068\u05d0 x\u2069", "\u2068\u2068\u05d0\u2069"):
        shown = escape(theirs)
        assert "\\u{206" in shown, "isolates that somebody else wrote are shown"
        assert shown.count(ISOLATE) == shown.count(END)
    kept, _ = shorten(escape(f"{name}{name}"), 3)
    assert kept.endswith(END), "what is cut is closed, or what we write after it would be reordered"


def test_a_large_text_takes_no_longer_by_its_letters() -> None:
    escape("\u0440\u0435\u0441 p\u0430y \u05d0 " * 50_000)


AMBIGUOUS = {
    "an accent of its own": ("cafe\u0301", f"caf\u00e9 {DECOMPOSED}"),
    "one of two, in a part of a path": ("a/e\u0301\u00e9/b", "a/e\\u{301}\u00e9/b"),
    "the sign of the unit": ("\u212bngstr\u00f6m", "\\u{212b}ngstr\u00f6m"),
    "accents in another order": ("q\u0307\u0323", "q\u0307\\u{323}"),
    "an accent behind one that joins": ("a\u0301\u0302", f"\u00e1\u0302 {DECOMPOSED}"),
    "a Korean syllable in parts": ("\u1112\u1161\u11ab", f"\ud55c {DECOMPOSED}"),
    "one partly in parts": ("\ud55c\u1112\u1161", "\ud55c\u1112\\u{1161}"),
    "a Bengali letter that is usually two": ("\u09dc", f"\u09a1\u09bc {COMPOSED}"),
    "a mark of its own": (f"caf\u00e9 {DECOMPOSED}", "caf\u00e9 \\u{5c}u{decomposed}"),
    "a Kangxi radical": ("\u2f00\u65e5", "\\u{2f00}\u65e5"),
    "a compatibility ideograph": ("\uf900", "\\u{f900}"),
    "a ligature": ("\ufb01le", "\\u{fb01}le"),
    "an Arabic letter by its place": ("\ufe91", "\\u{fe91}"),
    "a Greek letter where the sign for micro belongs": ("10 \u03bcs", "10 \\u{3bc}s"),
    "the sign for micro in Greek": ("\u00b5\u03ae\u03bb\u03bf", "\\u{b5}\u03ae\u03bb\u03bf"),
    "a prime": ("O\u2032Brien", "O\\u{2032}Brien"),
    "an accent alone": ("O\u00b4Brien", "O\\u{b4}Brien"),
    "an apostrophe's twin among accents": ("\u00e9\u02bc\u00e9", "\u00e9\\u{2bc}\u00e9"),
    "a quotation mark for an okina": ("Hawai\u2018i", "Hawai\\u{2018}i"),
    "an okina for a quotation mark": ("\u02bbx\u2019", "\\u{2bb}x\u2019"),
    "a dot's twin": ("col\u2219lecci\u00f3", "col\\u{2219}lecci\u00f3"),
    "another hyphen": ("#ops\u2010team", "#ops\\u{2010}team"),
    "one that doesn't break": ("#ops\u2011team", "#ops\\u{2011}team"),
    "one between Japanese letters": ("\u4f1a\u8b70\u2010\u65e5", "\u4f1a\u8b70\\u{2010}\u65e5"),
    "a minus": ("\u2212rf", "\\u{2212}rf"),
    "hyphens in a row": ("a\u2010\u2010\u2010b", "a\\u{2010}\\u{2010}\\u{2010}b"),
    "a modifier letter": ("ann\u02bcs", "ann\\u{2bc}s"),
    "a box's line": ("a\u2571b", "a\\u{2571}b"),
    "a sign with its selector": ("x\u2194\ufe0f", "x\\u{2194}\\u{fe0f}"),
    "a Cyrillic letter, as everywhere": ("#\u043eps", "#\\u{43e}ps"),
}


@pytest.mark.promise(8)
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_in_a_name_what_is_drawn_as_something_else_becomes_its_code_point(name: str) -> None:
    text, wanted = AMBIGUOUS[name]
    assert escape_name(text) == wanted
    assert escape(wanted) == wanted


@pytest.mark.parametrize(
    "name",
    [
        "na\u00efve-\u0142\u00f3d\u017a_\u00e5ngstr\u00f6m",
        "\u8cc7\u6599\uff08\u6771\u4eac\uff09\u30fb\u30d5\u30a1\u30a4\u30eb\u301c",
        "\ud55c\uae00 \U0001f389",
        "Budget \u20ac500, 25\u00b0C, \u00a75 \u00a9 5\u00b11",
        "\u0e19\u0e49\u0e33",
        "\u0f56\u0f7c\u0f51\u0f0b\u0f61\u0f72\u0f42",
        "O\u2019Brien",
        "Hawai\u02bbi",
        "col\u00b7lecci\u00f3",
        "10 \u00b5s",
        "C\u266f",
        "\u201c\u5f15\u53f7\u201d.pdf",
        "\u2018x\u2019",
        "\U0001f1e9\U0001f1ea Team",
    ],
)
def test_a_name_in_an_alphabet_of_its_own_stays_as_it_is(name: str) -> None:
    assert escape_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "r\u00e9sum\u00e9.pdf",
        "Vi\u1ec7t Nam",
        "\u0419\u043e\u0448\u043a\u0430\u0440-\u041e\u043b\u0430",
        "\u03b3\u03b9\u03b1\u03c4\u03af",
        "\uc774\ub825\uc11c.pdf",
        "\u30d9\u30c8\u30ca\u30e0.pdf",
        "\u304c\u3093\u3070\u308c",
        "\u09b9\u09df \u09ac\u09be\u09dc\u09bf",
        "\u0958\u0932\u092e \u092a\u095d\u0928\u093e",
        "\u0a5b\u0a2e\u0a40\u0a28",
        "\u0b95\u0bca\u0b9f\u0bc1",
        "\u0d15\u0d4a\u0d1f\u0d3f",
        "\u0e19\u0e49\u0e33",
        "\u0622\u0645\u0646\u0629",
        "\ufb2a\u05dc\u05d5\u05dd",
        "\u6771\u4eac.txt",
    ],
)
def test_an_everyday_name_is_readable_however_it_is_spelled(name: str) -> None:
    spelled = {name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))}
    shown = {bare(escape_name(each)) for each in spelled}
    assert len(shown) == len(spelled)
    normal = unicodedata.normalize("NFC", name)
    assert shown <= {normal, f"{normal} {DECOMPOSED}", f"{normal} {COMPOSED}"}


def test_each_part_of_a_path_has_its_own_mark() -> None:
    decomposed, normal = "e\u0301", "\u00e9"
    assert escape_name(f"/{normal}/{decomposed}/x") == f"/{normal}/{normal} {DECOMPOSED}/x"
    assert escape_name(f"{decomposed}/{normal}") == f"{normal} {DECOMPOSED}/{normal}"


@given(st.text())
def test_two_names_that_are_one_in_normal_form_are_shown_apart(text: str) -> None:
    shown = escape_name(text)
    for form in ("NFC", "NFD"):
        again = unicodedata.normalize(form, text)
        assert text == again or bare(shown) != bare(escape_name(again))
    assert escape(shown) == shown
    # What was shown isn't a name any more: one that holds a mark would be another's.
    assert (
        escape_name(shown) == shown.replace(DECOMPOSED, "\\u{5c}u{decomposed}").replace(COMPOSED, "\\u{5c}u{composed}")
        or shown.isascii()
    )


def test_a_message_stays_readable_and_the_names_in_a_value_are_told_apart() -> None:
    prose = "We\u2019re done \u2014 cafe\u0301 at 5\u20136"
    assert escape(prose) == escape_value(prose) == prose
    said = f'{{"to": ["ann@ex\u2010ample.org", "Ann <b@ex\u2010ample.org>"], "text": "{prose}"}}'
    assert escape_value(said) == said.replace("\u2010", "\\u{2010}")
    assert escape_value("#ops\u2010team") == "#ops\\u{2010}team"
    for sentence in ('"\u5b8c\u6210\u4e86\u2014\u2014\u62a5\u544a"', "\u5b8c\u6210\u4e86\u2014\u2014\u62a5\u544a"):
        assert escape_value(sentence) == sentence


def test_a_long_name_takes_no_longer_by_its_marks() -> None:
    escape_name("a\u302e\u2010" * 20_000 + "a" + "\u302e" * 200_000)
    escape_value(f"\u2010 {'a' * 200_000}" + ' "' + '\\"' * 100_000)
    escape_name("a" + "\u0316\u0301" * 200_000)


def test_a_long_value_counts_as_a_message_unless_it_is_an_address() -> None:
    long = "e\u0301" * 5_000
    assert escape_value(f'"a{long}"') == f'"a{long}"'
    assert escape_value(f'"ann@ex\u2010ample.org{long}"').startswith('"ann@ex\\u{2010}ample.org')
